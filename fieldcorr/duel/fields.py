"""The typed fields of a journal: what was delivered, what was measured, who decided and why.

They stand among the metadata of an event under names of their own, checked when they are written;
other metadata stay free, and journals without them stay readable.
"""

from collections.abc import Iterable, Mapping
from math import isfinite, isnan
from typing import TYPE_CHECKING, Any

from fieldcorr.duel.events import Event, Meta
from fieldcorr.errors import DuelError
from fieldcorr.stimulation import Doses, Stimulation, largest, stimulation_of

if TYPE_CHECKING:
    from fieldcorr.store import Store

NUMBERS: Mapping[str, tuple[float, float]] = {
    "amplitude_mA": (0.0, 1e3),
    "amplitude_V": (0.0, 1e3),
    "pulse_width_us": (1e-3, 1e5),
    "rate_Hz": (1e-3, 1e5),
    "impedance_ohm": (1.0, 1e7),
}
"""Fields that are numbers, with what they may be: a larger one is a mistake of units."""

TEXTS = ("adverse_event", "actor", "reason")
"""Fields that are texts: an adverse event, who took something back, and why."""

NOT_SAID = "not said"
IMPEDANCE_OF = "impedance_of"
"""Names what a measured impedance is of: a contact, or a configuration."""


def check_fields(meta: Meta) -> None:
    """Refuse a typed field that is something else than it must be."""
    for key, (least, most) in NUMBERS.items():
        value = meta.get(key, least)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise DuelError(f"{key} = {value!r} is not a number")
        if not least <= value <= most:
            raise DuelError(f"{key} = {value:g} is not within {least:g} and {most:g}")
    for key in TEXTS:
        value = meta.get(key, NOT_SAID)
        if not isinstance(value, str) or not value.strip():
            raise DuelError(f"{key} = {value!r} is not a text")


def last_said(key: str, kept: Mapping[str, object], events: Iterable[Event]) -> str:
    """Return what was said last under a name: holds from then on, "" if it was never said."""
    said = [event.meta[key] for event in events if key in event.meta]
    return str([kept.get(key, ""), *said][-1])


def stimulation_in(
    store: "Store", header: Mapping[str, Any], events: Iterable[Event]
) -> Stimulation | None:
    """Return the stimulator of a session: its own or its store's, with what was measured since."""
    kept = header.get("stimulation") or {}
    measured = {
        str(event.meta[IMPEDANCE_OF]): float(event.meta["impedance_ohm"])
        for event in events
        if event.kind == "note" and {IMPEDANCE_OF, "impedance_ohm"} <= set(event.meta)
    }
    return stimulation_of(
        store, kept.get("stimulator"), limits=kept.get("limits"), measured=measured
    )


def doses_of(stimulation: Stimulation, store: "Store", arms: Iterable[int], meta: Meta) -> Doses:
    """Return what arms deliver, at the amplitude and pulse width that were said, if any."""
    rows, unit = list(arms), stimulation.stimulator.unit
    said = {key: meta.get(key) for key in (f"amplitude_{unit}", "pulse_width_us")}
    amplitude, width = (None if value is None else float(value) for value in said.values())
    return stimulation.doses(
        store.polarity[rows], store.current[rows], amplitude=amplitude, pulse_width_us=width
    )


def dose_texts(stimulation: Stimulation, doses: Doses) -> list[str]:
    """Return in words what each configuration may have, and what it has where that is known."""
    figures = (
        ("{:.3g} uC", largest(doses.charge_uC)),
        ("{:.3g} uC/cm2", largest(doses.density_uC_per_cm2)),
        ("k {:.2f}", largest(doses.shannon_k)),
    )
    texts = []
    for row, (ceiling, reason) in enumerate(zip(doses.ceiling, doses.reasons, strict=True)):
        known = [text.format(values[row]) for text, values in figures if not isnan(values[row])]
        if isnan(ceiling):
            texts.append(f"charge not known: {reason}")
        else:
            most = f"at most {ceiling:g} {stimulation.stimulator.unit}"
            texts.append(f"{most}; {', '.join(known) or reason}")
    return texts
