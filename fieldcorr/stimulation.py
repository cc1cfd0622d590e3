"""Charge per phase, charge density and Shannon's k: what contacts deliver, as far as it is known.

It is known from a current drive or from a measured impedance, and only then: modelled impedances
are several times those of patients, and would pass what must be flagged. Everything is chosen so
that it errs towards more current. This is arithmetic for research; it claims no standard.

With the current I of a contact, pulse width t and area A: Q = I t, D = Q / A and
k = log10 D + log10 Q, D in uC/cm2 and Q in uC per phase (Shannon 1992, doi 10.1109/10.126616).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import format_configuration, parse_configuration
from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import CASE

if TYPE_CHECKING:
    from fieldcorr.store import Store

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]

LIMITS = ("charge_density_max_uC_per_cm2", "shannon_k_max", "current_per_contact_max_mA")
"""The keys of the limits, in a model's rules and in the file of a session."""

UNITS = {"voltage": "V", "current": "mA"}
"""Of the amplitude, by what the stimulator controls."""

MM2_PER_CM2 = 100.0
_ROUNDING = 1e-9  # of a step of the amplitude


def charge_uC(current_mA: ArrayLike, pulse_width_us: ArrayLike) -> Floats:
    """Return the charge of one phase of a rectangular pulse: mA times us is nC."""
    return np.abs(np.multiply(current_mA, pulse_width_us, dtype=np.float64)) / 1e3


def charge_density(charge: ArrayLike, area_cm2: ArrayLike) -> Floats:
    """Return the charge density, uC/cm2, of a charge, uC."""
    return np.divide(charge, area_cm2, dtype=np.float64)


def shannon_k(charge: ArrayLike, area_cm2: ArrayLike) -> Floats:
    """Return Shannon's k of a charge, uC, through an area; no charge is minus infinity."""
    with np.errstate(divide="ignore"):
        density = np.log10(charge_density(charge, area_cm2))
        return np.asarray(density + np.log10(np.asarray(charge, dtype=np.float64)))


@dataclass(frozen=True)
class Limits:
    """What no contact may exceed; None says nothing."""

    charge_density_max_uC_per_cm2: float | None = None
    shannon_k_max: float | None = None
    current_per_contact_max_mA: float | None = None

    def current_mA(self, area_cm2: Floats, pulse_width_us: float) -> Floats:
        """Return the largest current of contacts of such areas; NaN where it is not known."""
        most = np.full(area_cm2.shape, np.inf)
        if self.current_per_contact_max_mA is not None:
            most = np.minimum(most, self.current_per_contact_max_mA)
        if self.charge_density_max_uC_per_cm2 is not None:
            charge = self.charge_density_max_uC_per_cm2 * area_cm2
            most = np.minimum(most, 1e3 * charge / pulse_width_us)
        if self.shannon_k_max is not None:
            charge = np.sqrt(10.0**self.shannon_k_max * area_cm2)  # k = log10(Q^2 / A)
            most = np.minimum(most, 1e3 * charge / pulse_width_us)
        return most


@dataclass(frozen=True)
class Stimulator:
    """A stimulator and its setting; amplitudes are in V or mA, by what it controls."""

    control: Literal["voltage", "current"]
    pulse_width_us: float
    largest: float
    least: float = 0.0
    step: float = 0.0  # 0 for any amplitude
    planned: float | None = None
    rate_Hz: float | None = None
    impedance_ohm: Mapping[str, float] = field(default_factory=dict)  # of contacts or bipoles
    split: Literal["worst", "model"] = "worst"
    limits: Limits = Limits()

    @classmethod
    def read(cls, table: Mapping[str, Any], limits: Mapping[str, Any]) -> Self:
        """Return what a checked ``[stimulator]`` table and the limits say, as plain values."""
        control = table["control"]
        amplitude = {k: v for k, v in table[f"amplitude_{UNITS[control]}"].items() if v is not None}
        kept = {"pulse_width_us", "rate_Hz", "impedance_ohm", "split"}
        return cls(
            control=control,
            limits=Limits(**{key: limits.get(key) for key in LIMITS}),
            **amplitude,
            **{key: table[key] for key in kept if key in table},
        )

    @property
    def unit(self) -> str:
        """Unit of the amplitude."""
        return UNITS[self.control]

    def measured(self, impedances: Mapping[str, float]) -> Self:
        """Return the stimulator with further measured impedances, which win."""
        return replace(self, impedance_ohm={**self.impedance_ohm, **impedances})


@dataclass(frozen=True, eq=False)
class Doses:
    """What K configurations deliver; NaN where a contact is off or a number is not known.

    The case is no contact: nothing is said about it.
    """

    impedance_ohm: Floats  # (K,) measured, or at least so much
    contact_mA: Floats  # (K, E)
    charge_uC: Floats  # (K, E) per phase
    density_uC_per_cm2: Floats  # (K, E)
    shannon_k: Floats  # (K, E)
    ceiling: Floats  # (K,) largest amplitude within the limits; 0 if none can be set
    reasons: tuple[str, ...]  # why something is not known, "" where all is

    def columns(self, names: Sequence[str], unit: str) -> dict[str, NDArray[np.generic]]:
        """Return them as columns of a table: of configurations, then of single contacts."""
        parts = {
            "current (mA)": self.contact_mA,
            "charge (uC)": self.charge_uC,
            "charge density (uC/cm2)": self.density_uC_per_cm2,
            "Shannon k": self.shannon_k,
        }
        return {
            "measured impedance (ohm)": self.impedance_ohm,
            **{f"largest {what}": largest(values) for what, values in parts.items()},
            f"amplitude ceiling ({unit})": self.ceiling,
            "stimulation not known": np.array(self.reasons),
            **{
                f"{what} of {name}": values[:, e]
                for what, values in parts.items()
                for e, name in enumerate(names)
            },
        }


def largest(values: Floats) -> Floats:
    """Return the largest of each row (K, E), NaN where there is none."""
    most = np.fmax.reduce(values, axis=1, initial=-np.inf)
    return np.where(np.isneginf(most), np.nan, most)


@dataclass(frozen=True, eq=False)
class Stimulation:
    """A stimulator on an array."""

    stimulator: Stimulator
    names: tuple[str, ...]
    area_cm2: Floats  # (E,), NaN where it is not known
    material: str = ""

    def doses(
        self,
        polarity: Signs,
        current: Floats,
        *,
        amplitude: float | None = None,
        pulse_width_us: float | None = None,
    ) -> Doses:
        """Return what configurations deliver.

        Parameters
        ----------
        polarity
            (K, E): -1 cathode, 0 off, +1 anode.
        current
            (K, E) A for a unit drive, as the model has it: with the split "model" only the shares
            within a polarity are used, scaled to the measured total; with "worst" each contact may
            carry all of it.
        amplitude, pulse_width_us
            In place of those of the stimulator.
        """
        own, counted = self.stimulator, (polarity != 0) & (np.array(self.names) != CASE)
        width = own.pulse_width_us if pulse_width_us is None else pulse_width_us
        set_to = own.planned if amplitude is None else amplitude
        impedance = self.impedance(polarity)
        # mA of the whole configuration for one unit of amplitude.
        unit = np.ones(len(polarity)) if own.control == "current" else 1e3 / impedance
        share = np.where(counted, self._shares(polarity, current), np.nan)
        total = np.full(len(polarity), np.nan) if set_to is None else unit * set_to
        contact = share * total[:, None]
        charge = charge_uC(contact, width)
        return Doses(
            impedance,
            contact,
            charge,
            charge_density(charge, self.area_cm2),
            shannon_k(charge, self.area_cm2),
            self._ceiling(share, unit, width),
            tuple(self._reason(row, ohm, set_to) for row, ohm in zip(polarity, unit, strict=True)),
        )

    def impedance(self, polarity: Signs) -> Floats:
        """Return the measured impedance (K,) of configurations, NaN where there is none.

        That of the configuration itself or of its mirror image, if it was measured. Of contacts
        measured one by one, those of a polarity count as parallel, and the polarity with the higher
        impedance counts alone: the other one is in series and could only add, as long as less than
        half of its impedance is shared. The case, unless it was measured, adds nothing.
        """
        ohms = np.array(
            [
                self.stimulator.impedance_ohm.get(name, 0.0 if name == CASE else np.nan)
                for name in self.names
            ]
        )
        with np.errstate(divide="ignore"):
            siemens = 1.0 / ohms
            groups = [np.where(polarity == s, siemens, 0.0).sum(axis=1) for s in (1, -1)]
            found = np.maximum(*(1.0 / group for group in groups))
        for text, ohm in self.stimulator.impedance_ohm.items():
            if text not in self.names:
                row = parse_configuration(text, self.names)
                found[(polarity == row).all(axis=1) | (polarity == -row).all(axis=1)] = ohm
        return np.asarray(found)

    def within_limits(self, polarity: Signs, current: Floats) -> NDArray[np.bool_]:
        """Return which configurations (K,) can be set to what is planned; what is not known cannot.

        Without a planned amplitude, to any that the stimulator has.
        """
        need = self.stimulator.planned or self.stimulator.least
        ceiling = self.doses(polarity, current).ceiling
        return np.asarray((ceiling > 0.0) & (ceiling >= need * (1.0 - _ROUNDING)))

    def _shares(self, polarity: Signs, current: Floats) -> Floats:
        """Return the share (K, E) of each contact in the current of the configuration."""
        if self.stimulator.split == "worst":
            return np.asarray(polarity != 0, dtype=np.float64)
        size = np.abs(current)
        return np.asarray(2.0 * size / size.sum(axis=1, keepdims=True))

    def _ceiling(self, share: Floats, unit: Floats, width: float) -> Floats:
        own = self.stimulator
        most = own.limits.current_mA(self.area_cm2, width) / share
        # A contact that is off sets no limit; one whose limit is not known makes the rest unknown.
        total = np.where(np.isnan(share), np.inf, most).min(axis=1)
        found = np.minimum(total / unit, own.largest)
        if own.step:
            found = np.floor(found / own.step + _ROUNDING) * own.step
        return np.asarray(np.where(found < own.least, 0.0, found))

    def _reason(self, row: Signs, unit: float, amplitude: float | None) -> str:
        if np.isnan(unit):
            return f"no impedance of {format_configuration(row, self.names)} was measured"
        if np.isnan(self.area_cm2[row != 0]).any():
            return "the area of a contact is not known"
        return "no amplitude is planned" if amplitude is None else ""


def stimulation_of(
    store: "Store",
    table: Mapping[str, object] | None = None,
    *,
    limits: Mapping[str, object] | None = None,
    measured: Mapping[str, float] | None = None,
) -> Stimulation | None:
    """Return the stimulator on the array of a store, None if none is described.

    A session may bring a ``table`` of its own with its ``limits``, and impedances ``measured``
    since.
    """
    settings = store.record("settings")
    chosen = settings.get("stimulator") if table is None else table
    if chosen is None:
        return None
    kept = settings["configurations"] if limits is None else limits
    device = store.record("device")
    metal = device.get("metal") or {}
    return Stimulation(
        Stimulator.read(chosen, kept).measured(measured or {}),
        store.contact_names,
        device_areas_cm2(device, store.contact_names),
        metal.get("material", ""),
    )


def device_areas_cm2(device: Mapping[str, Any], names: Iterable[str]) -> Floats:
    """Return the areas (E,) of the contacts of a device by its file; the case has no end."""
    size, metal = device.get("contact") or {}, device.get("metal") or {}
    flat = size.get("length_mm", np.nan) * size.get("width_mm", np.nan)
    area = (metal.get("area_mm2") or flat) / MM2_PER_CM2
    return np.array([np.inf if name == CASE else area for name in names])


def measured_polarity(text: str, names: Sequence[str]) -> Signs | None:
    """Return the configuration (E,) that an impedance was measured of, by the key of a table.

    A contact alone is measured against the case; None where the case is no electrode.
    """
    if text not in names:
        return parse_configuration(text, names)
    if text == CASE or CASE not in names:
        return None
    return parse_configuration(f"{text}- {CASE}+", names)


def check_impedances(impedances: Mapping[str, float], names: Sequence[str]) -> None:
    """Refuse impedances of what is neither a contact nor a configuration with both signs."""
    for text in impedances:
        if text in names:
            continue
        try:
            row = parse_configuration(text, names)
        except ConfigurationError as error:
            raise ConfigurationError(f"neither a contact nor a configuration: {error}") from error
        if not row.max() > 0 > row.min():
            raise ConfigurationError(f"{text!r} needs an anode and a cathode")
