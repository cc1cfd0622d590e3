"""Border checks shared by the closed forms, and the number of modes a series needs.

What flows in: what the caller asked. What flows out: nothing, or one error that names the value;
mode counts.
"""

import math

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConvergenceError, ModelError

FloatArray = NDArray[np.float64]


def require_positive(what: str, values: object) -> None:
    """Refuse values that are not all positive numbers (infinity is one)."""
    array = np.asarray(values, dtype=np.float64)
    if not (array.size and np.all(array > 0.0)):
        raise ModelError(f"{what}: every value must be positive, got {values!r}")


def require_increasing(what: str, values: tuple[float, ...]) -> None:
    """Refuse radii that are not positive, finite and strictly increasing."""
    array = np.asarray(values, dtype=np.float64)
    if not (
        array.size and array[0] > 0.0 and np.isfinite(array).all() and (np.diff(array) > 0).all()
    ):
        raise ModelError(f"{what}: must be positive and increase, got {values!r}")


def require_balance(currents: FloatArray) -> None:
    """Refuse currents (A) that do not sum to zero in an insulated body."""
    total = float(np.sum(currents))
    if abs(total) > 1e-12 * float(np.abs(currents).sum()):
        raise ModelError(f"currents: an insulated body needs a zero sum, got {total!r} A")


def modes_needed(decay: float, tolerance: float, limit: int, what: str) -> int:
    """Return n with exp(-n decay) <= tolerance, at least 1.

    Raises
    ------
    ConvergenceError
        When more than ``limit`` terms are needed: the points lie too near a sharp source.
    """
    count = math.inf if decay <= 0.0 else math.ceil(-math.log(tolerance) / decay)
    if count > limit:
        bound = math.exp(-limit * max(decay, 0.0))
        raise ConvergenceError(
            f"{what}: {count} terms are needed and {limit} allowed; move the points away from "
            f"the driven surface or blur the source (bound reached {bound:.1e})",
            residual=bound,
            iterations=limit,
        )
    return max(1, int(count))
