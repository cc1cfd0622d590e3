"""Samples weighted by measured impedances of bipoles: those that fit a patient count more.

Each measurement is ln(measured / predicted) = noise of a relative size, by default 10 %: the
programmer's reading, leads and drift, and the mesh of the samples, whose impedances are about
2 % too small. Nothing is fitted; samples that predict well count more.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.ensemble import deviation, effective_size
from fieldcorr.drive import bipole_impedances
from fieldcorr.errors import ModelError
from fieldcorr.store.sweeps import SweepStore

Floats = NDArray[np.float64]

DEFAULT_ERROR = 0.1
LEAST_SIZE = 5.0
"""Effective samples below which a calibrated sweep says little."""

IDENTIFIED = 0.2
"""An input whose spread shrinks by less than this share is not identified by measurements."""


@dataclass(frozen=True)
class Measurement:
    """Resistance between two contacts, numbered by the contacts' order, and its relative error."""

    one: int
    other: int
    ohm: float
    relative_error: float = DEFAULT_ERROR


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights of the samples after measurements, and what they say.

    ``weight`` (M,) sums to 1; ``size`` is the effective number of samples. ``shrunk`` is by which
    share the spread of each key's place in its distribution shrank, beyond what fewer samples alone
    make of it.
    """

    weight: Floats
    size: float
    shrunk: dict[str, float]

    @property
    def identified(self) -> tuple[str, ...]:
        """Keys that the measurements narrowed by more than chance; none if few samples fit.

        The spread of n samples is known to a share of 1 / sqrt(2 n): it takes twice that.
        """
        if self.size < LEAST_SIZE:
            return ()
        least = max(IDENTIFIED, 2.0 / np.sqrt(2.0 * self.size))
        return tuple(key for key, share in self.shrunk.items() if share >= least)

    @property
    def statement(self) -> str:
        """What the measurements do and do not say, for a person."""
        left = f"{self.size:.1f} effective samples of {len(self.weight)}"
        if self.size < LEAST_SIZE:
            return (
                f"{left}: too few to say which inputs the measurements narrow, or to rely on the "
                "mean; take more samples, or wider distributions"
            )
        known = ", ".join(self.identified) or "no input"
        others = len(self.shrunk) - len(self.identified)
        return f"{left}; narrowed: {known}; the other {others} inputs are as uncertain as before"


def read_measurements(path: Path, names: tuple[str, ...]) -> list[Measurement]:
    """Read a table (CSV) with the columns one, other, ohm and, if wanted, relative_error."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{path}: cannot be read as a table of impedances: {error}") from error
    if not rows:
        raise ModelError(f"{path}: has no measurements; columns are one, other, ohm")
    return [_measurement(row, f"{path}: row {k}", names) for k, row in enumerate(rows, start=2)]


def _measurement(row: dict[str, str], where: str, names: tuple[str, ...]) -> Measurement:
    contacts = []
    for key in ("one", "other"):
        name = (row.get(key) or "").strip()
        if name not in names:
            raise ModelError(f"{where}: {key} = {name!r} is no contact; {', '.join(names)} are")
        contacts.append(names.index(name))
    if contacts[0] == contacts[1]:
        raise ModelError(f"{where}: a bipole needs two contacts, not {names[contacts[0]]!r} twice")
    ohm = _positive(row.get("ohm"), where, "ohm")
    error = row.get("relative_error")
    share = DEFAULT_ERROR if error in (None, "") else _positive(error, where, "relative_error")
    return Measurement(contacts[0], contacts[1], ohm, share)


def _positive(text: str | None, where: str, key: str) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = np.nan
    if not (np.isfinite(value) and value > 0.0):
        raise ModelError(f"{where}: {key} = {text!r}: must be a number above 0")
    return value


def calibrate(sweep: SweepStore, measurements: list[Measurement]) -> Calibration:
    """Weight the samples of a sweep by the likelihood of measurements."""
    predicted = np.array([bipole_impedances(y) for y in sweep.admittance])
    log_likelihood = np.zeros(len(sweep))
    for one in measurements:
        miss = np.log(one.ohm / predicted[:, one.one, one.other]) / one.relative_error
        log_likelihood -= 0.5 * miss**2
    weight = np.exp(log_likelihood - log_likelihood.max())
    weight /= weight.sum()
    before = deviation(sweep.points, np.full(len(sweep), 1.0 / len(sweep)))
    size = effective_size(weight)
    # The variance of n samples about their own mean is 1 - 1 / n of the true one.
    expected = before * np.sqrt((1.0 - 1.0 / size) / (1.0 - 1.0 / len(sweep)))
    after = deviation(sweep.points, weight)
    shrunk = 1.0 - np.divide(after, expected, out=np.ones_like(after), where=expected > 0.0)
    named = dict(zip(sweep.keys, shrunk.tolist(), strict=True))
    return Calibration(weight, size, named)
