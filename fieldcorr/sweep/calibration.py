"""Samples weighted by measured impedances: those that fit a patient count more.

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
from fieldcorr.drive import contact_currents
from fieldcorr.errors import ConfigurationError, ModelError
from fieldcorr.model.load import load_impedances
from fieldcorr.stimulation import check_impedances, measured_polarity
from fieldcorr.store.sweeps import SweepStore

Floats = NDArray[np.float64]

DEFAULT_ERROR = 0.1
LEAST_SIZE = 5.0
"""Effective samples below which a calibrated sweep says little."""

IDENTIFIED = 0.2
"""An input whose spread shrinks by less than this share is not identified by measurements."""


@dataclass(frozen=True)
class Measurement:
    """Impedance of a configuration ("0- 5+"), or of a contact against the case ("0")."""

    of: str
    ohm: float
    relative_error: float = DEFAULT_ERROR


@dataclass(frozen=True, eq=False)
class Calibration:
    """Weights of the samples after measurements, and what they say.

    ``weight`` (M,) sums to 1; ``size`` is the effective number of samples. ``shrunk`` is by which
    share the spread of each key's place in its distribution shrank, beyond what fewer samples alone
    make of it. ``unused`` were measured against a case that is no electrode of the model.
    """

    weight: Floats
    size: float
    shrunk: dict[str, float]
    unused: tuple[str, ...] = ()

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
        if self.unused:
            left = f"not used, as the model has no case: {', '.join(self.unused)}; {left}"
        if self.size < LEAST_SIZE:
            return (
                f"{left}: too few to say which inputs the measurements narrow, or to rely on the "
                "mean; take more samples, or wider distributions"
            )
        known = ", ".join(self.identified) or "no input"
        others = len(self.shrunk) - len(self.identified)
        return f"{left}; narrowed: {known}; the other {others} inputs are as uncertain as before"


def read_measurements(path: Path, names: tuple[str, ...]) -> list[Measurement]:
    """Read measured impedances of contacts ``names``, or of configurations of them.

    A .toml file has them in its table ``[stimulator]``: a model, or what a session takes. Another
    one is a table (CSV) with the columns configuration, ohm and, if wanted, relative_error.
    """
    if path.suffix == ".toml":
        where = f"{path}: stimulator.impedance_ohm"
        found = [(where, Measurement(of, ohm)) for of, ohm in load_impedances(path).items()]
    else:
        rows = enumerate(_rows(path), start=2)
        found = [(f"{path}: row {k}", _measurement(row, f"{path}: row {k}")) for k, row in rows]
    for where, one in found:
        try:
            check_impedances({one.of: one.ohm}, names)
        except ConfigurationError as error:
            raise ModelError(f"{where}: {error}") from error
    return [one for _, one in found]


def _rows(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ModelError(f"{path}: cannot be read as a table of impedances: {error}") from error
    if not rows:
        raise ModelError(f"{path}: has no measurements; columns are configuration, ohm")
    return rows


def _measurement(row: dict[str, str], where: str) -> Measurement:
    error = row.get("relative_error")
    share = DEFAULT_ERROR if error in (None, "") else _positive(error, where, "relative_error")
    text = (row.get("configuration") or "").strip()
    return Measurement(text, _positive(row.get("ohm"), where, "ohm"), share)


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
    rows = [measured_polarity(one.of, sweep.contact_names) for one in measurements]
    polarity = np.array([row for row in rows if row is not None])
    if not len(polarity):
        raise ModelError(
            f"{sweep.path}: its model has no case, so that impedances of single contacts cannot be "
            'compared; measure bipoles such as "0- 1+"'
        )
    used = [one for one, row in zip(measurements, rows, strict=True) if row is not None]
    measured = np.log([one.ohm for one in used])
    noise = np.array([one.relative_error for one in used])
    predicted = np.log([_impedances(polarity, y) for y in sweep.admittance])
    log_likelihood = -0.5 * (((measured - predicted) / noise) ** 2).sum(axis=1)
    weight = np.exp(log_likelihood - log_likelihood.max())
    weight /= weight.sum()
    before = deviation(sweep.points, np.full(len(sweep), 1.0 / len(sweep)))
    size = effective_size(weight)
    # The variance of n samples about their own mean is 1 - 1 / n of the true one.
    expected = before * np.sqrt((1.0 - 1.0 / size) / (1.0 - 1.0 / len(sweep)))
    after = deviation(sweep.points, weight)
    shrunk = 1.0 - np.divide(after, expected, out=np.ones_like(after), where=expected > 0.0)
    named = dict(zip(sweep.keys, shrunk.tolist(), strict=True))
    unused = [one.of for one, row in zip(measurements, rows, strict=True) if row is None]
    return Calibration(weight, size, named, tuple(unused))


def _impedances(polarity: NDArray[np.int8], admittance: Floats) -> Floats:
    """Return the impedance (K,) ohm of configurations (K, E): 1 V over what the anodes deliver."""
    current = contact_currents(polarity, admittance)
    return np.asarray(1.0 / np.where(polarity > 0, current, 0.0).sum(axis=1))
