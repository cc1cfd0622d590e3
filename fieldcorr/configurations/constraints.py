"""From declarative rules to what can be counted: limits and pairwise constraints.

All rules but connectedness say something about one contact, about numbers, or about pairs of
contacts, so they become plain integers and bit masks (:class:`Constraints`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations import _kernels as kernels
from fieldcorr.configurations.grid import ContactGrid
from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import CASE

if TYPE_CHECKING:
    from fieldcorr.model import Rules

OFF, ANODE, CATHODE = 0, 1, 2
"""Digits of the ternary code."""

_TABLE_CONTACTS = 20  # arrays up to this size get a table of the sets that hang together


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
"""Restrictions that clinics commonly start from; counts are those of the 16-contact 5-6-5 array
without case. A key that the model file gives itself takes precedence."""


@dataclass(frozen=True)
class Settings:
    """The value of every rule, in the order in which they are applied.

    The defaults are what holds when neither model nor preset says anything.
    """

    excluded: Sequence[str] = ()
    off: Sequence[str] = ()
    on: Mapping[str, str] = field(default_factory=dict)
    case: str = "anode"
    cathodes_min: int = 1
    cathodes_max: int | None = None
    anodes_min: int = 1
    anodes_max: int | None = None
    active_min: int | None = None
    active_max: int | None = None
    adjacent: str = "any"
    extent_max_mm: float | None = None
    connected: Sequence[str] = ()
    guarded: str = "none"
    symmetric: bool = False


def settings_of(rules: "Rules") -> Settings:
    """Return the value of every rule: the model's own, else the preset's, else the default."""
    own = {key.name: getattr(rules, key.name) for key in fields(Settings)}
    said = {key: value for key, value in own.items() if value is not None}
    settings = replace(Settings(), **dict(PRESETS[rules.preset].keys) | said)
    for what in ("cathode", "anode"):
        least = getattr(settings, f"{what}s_min")
        if least < 1:
            raise ConfigurationError(f"{what}s_min = {least}: current needs at least one {what}")
    return settings


@dataclass(frozen=True, eq=False)
class Constraints:
    """What a configuration must satisfy; sets of contacts are bit masks."""

    allowed: NDArray[np.bool_]
    """(E, 3): whether contact e may have digit d (off, anode, cathode)."""
    limits: tuple[int, int, int, int, int, int]
    """Least and most cathodes, anodes, active contacts."""
    forbid: NDArray[np.int64] = field(repr=False)
    """(2, E, 3): contacts that must not be anodes [0], cathodes [1], if contact e has digit d."""
    require: NDArray[np.int64] = field(repr=False)
    """(2, E, 3): contacts that must be so, all numbered above e; forbidding goes both ways."""
    adjacency: NDArray[np.int64] = field(repr=False)
    """(E,): neighbours of each contact."""
    body: int
    """The contacts on the array, all but the case."""
    connected: tuple[bool, bool]
    """Whether anodes, and cathodes, must hang together."""

    @property
    def only_counts(self) -> bool:
        """Whether nothing is said about pairs or groups of contacts."""
        return not (self.forbid.any() or self.require.any() or any(self.connected))

    @cached_property
    def can_connect(self) -> NDArray[np.bool_]:
        """Which sets of contacts can hang together, for the walk; empty if not needed, or large."""
        size = len(self.adjacency)
        if not any(self.connected) or size > _TABLE_CONTACTS:
            return np.empty(0, dtype=np.bool_)
        table = np.zeros(2 ** (size + 1), dtype=np.bool_)
        kernels.fill_can_connect(self.adjacency, self.body, table)
        return table


def constraints_of(settings: Settings, contacts: ContactGrid) -> Constraints:
    """Return what the rules mean for these contacts."""
    size = contacts.size
    forbid = np.zeros((2, size, 3), dtype=np.int64)
    require = np.zeros((2, size, 3), dtype=np.int64)
    _forbid_pairs(forbid, settings, contacts)
    if settings.guarded == "cathodes":
        _guard(forbid, require, contacts)
    if settings.symmetric:
        _mirror(forbid, require, contacts.mirror)
    groups = settings.connected
    return Constraints(
        allowed=_allowed(settings, contacts),
        limits=_limits(settings, size),
        forbid=forbid,
        require=require,
        adjacency=_masks(contacts.neighbours),
        body=sum(1 << int(e) for e in contacts.on_array),
        connected=("anodes" in groups, "cathodes" in groups),
    )


def _allowed(settings: Settings, contacts: ContactGrid) -> NDArray[np.bool_]:
    """Return which digits each contact may have by itself."""
    allowed = np.ones((contacts.size, 3), dtype=np.bool_)
    for key, names in (("excluded", settings.excluded), ("off", settings.off)):
        allowed[_numbers(key, names, contacts), ANODE:] = False
    digits = {"+": [ANODE], "-": [CATHODE], "any": [ANODE, CATHODE]}
    for name, sign in settings.on.items():
        others = [d for d in (OFF, ANODE, CATHODE) if d not in digits[sign]]
        allowed[_numbers("on", [name], contacts)[0], others] = False
    if CASE in contacts.names:
        forbidden = {"off": [ANODE, CATHODE], "anode": [CATHODE], "any": []}
        allowed[contacts.names.index(CASE), forbidden[settings.case]] = False
    if settings.guarded == "cathodes":
        ends = [e for e, guards in enumerate(contacts.guards) if guards is None]
        allowed[ends, CATHODE] = False
    return allowed


def _limits(settings: Settings, size: int) -> tuple[int, int, int, int, int, int]:
    def up_to(most: int | None) -> int:
        return size if most is None else int(most)

    cathodes = int(settings.cathodes_min), up_to(settings.cathodes_max)
    anodes = int(settings.anodes_min), up_to(settings.anodes_max)
    return *cathodes, *anodes, int(settings.active_min or 0), up_to(settings.active_max)


def _forbid_pairs(forbid: NDArray[np.int64], settings: Settings, contacts: ContactGrid) -> None:
    """Forbid contacts that may not be active together: not neighbours, or too far apart."""
    whose = settings.adjacent
    apart = ~contacts.neighbours & ~np.eye(contacts.size, dtype=np.bool_)
    outside = [e for e in range(contacts.size) if e not in contacts.on_array]
    apart[outside] = False
    apart[:, outside] = False
    strangers = _masks(apart)
    if whose in ("anodes", "all"):
        forbid[0, :, ANODE] |= strangers
    if whose in ("cathodes", "all"):
        forbid[1, :, CATHODE] |= strangers
    if whose == "all":
        forbid[0, :, CATHODE] |= strangers
        forbid[1, :, ANODE] |= strangers
    if settings.extent_max_mm is not None:
        # A picometre more, so that 8.5 mm means 8.5 mm after the arithmetic of a tilted array.
        far = _masks(contacts.distance_m > settings.extent_max_mm * 1e-3 + 1e-12)
        forbid[:, :, ANODE:] |= far[None, :, None]


def _guard(forbid: NDArray[np.int64], require: NDArray[np.int64], contacts: ContactGrid) -> None:
    """Require anodes before and after each cathode in its column."""
    for e, guards in enumerate(contacts.guards):
        for g in guards or ():
            if g > e:
                require[0, e, CATHODE] |= 1 << g
            else:
                forbid[1, g, OFF] |= 1 << e
                forbid[1, g, CATHODE] |= 1 << e


def _mirror(
    forbid: NDArray[np.int64], require: NDArray[np.int64], mirror: NDArray[np.int64]
) -> None:
    """Require each contact to have the polarity of its mirror image."""
    for e, m in enumerate(mirror.tolist()):
        if m > e:
            forbid[:, e, OFF] |= 1 << m
            require[0, e, ANODE] |= 1 << m
            require[1, e, CATHODE] |= 1 << m


def _masks(table: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return each row of a boolean table as a bit mask."""
    bits = np.int64(1) << np.arange(table.shape[1], dtype=np.int64)
    return np.asarray((table * bits).sum(axis=1), dtype=np.int64)


def _numbers(key: str, names: Iterable[str], contacts: ContactGrid) -> list[int]:
    for name in names:
        if name not in contacts.names:
            raise ConfigurationError(
                f"{key}: {name!r} is not a contact; the contacts are {', '.join(contacts.names)}"
            )
    return [contacts.names.index(name) for name in names]
