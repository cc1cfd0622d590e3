"""Restrictions that clinics commonly start from.

What flows in: a name. What flows out: keys of the table ``[configurations]`` and their values; any
key given in the model file itself takes precedence. Counts are those of the 16-contact 5-6-5 array
without case.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Preset:
    """A named set of rules."""

    description: str
    keys: Mapping[str, int | str]


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "all": Preset("Every configuration with an anode and a cathode (42 915 650).", {}),
        "up-to-two": Preset("One cathode and one anode anywhere (240).", {"active_max": 2}),
        "up-to-three": Preset("At most three active contacts (3 600).", {"active_max": 3}),
        "up-to-four": Preset("At most four active contacts (29 080).", {"active_max": 4}),
        "adjacent-bipole": Preset(
            "One cathode and one anode next to each other (66).",
            {"active_max": 2, "adjacent": "all"},
        ),
        "guarded-cathode": Preset(
            "One cathode between two anodes of its column (10).",
            {"cathodes_max": 1, "anodes_max": 2, "guarded": "cathodes"},
        ),
        "single-cathode": Preset(
            "One cathode and up to three anodes anywhere (9 200).",
            {"cathodes_max": 1, "anodes_max": 3},
        ),
        "programmer": Preset(
            "As many programmers: up to two cathodes, which are neighbours, and one anode (702).",
            {"cathodes_max": 2, "anodes_max": 1, "adjacent": "cathodes"},
        ),
    }
)
