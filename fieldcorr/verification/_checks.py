"""What the closed forms ask of their arguments; a refusal is one line that names the value."""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ModelError

FloatArray = NDArray[np.float64]


def numbers(
    what: str, values: object, shape: tuple[int, ...] = (), *, infinite: bool = False
) -> FloatArray:
    """Return values as floats of a shape, in which -1 stands for any length but zero."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}: must be numbers, got {values!r:.80}") from error
    fits = [wanted in (-1, length) for wanted, length in zip(shape, array.shape, strict=False)]
    if len(shape) != array.ndim or not array.size or not all(fits):
        wanted = " x ".join("N" if n == -1 else str(n) for n in shape) or "1"
        raise ModelError(f"{what}: {wanted} numbers needed, got an array of shape {array.shape}")
    _refuse(what, "must be finite", array, np.isnan(array) if infinite else ~np.isfinite(array))
    return array


def positive(
    what: str, values: object, shape: tuple[int, ...] = (), *, infinite: bool = False
) -> FloatArray:
    """Return values as :func:`numbers` does, all of them positive."""
    array = numbers(what, values, shape, infinite=infinite)
    _refuse(what, "must be positive", array, array <= 0.0)
    return array


def not_negative(what: str, values: object, shape: tuple[int, ...] = ()) -> FloatArray:
    """Return values as :func:`numbers` does, none of them negative."""
    array = numbers(what, values, shape)
    _refuse(what, "must not be negative", array, array < 0.0)
    return array


def share(what: str, value: float) -> None:
    """Refuse a value that is not above 0 and at most 1."""
    array = positive(what, value)
    _refuse(what, "must be at most 1", array, array > 1.0)


def increasing(what: str, values: tuple[float, ...]) -> None:
    """Refuse radii that are not positive and strictly increasing."""
    array = positive(what, values, (-1,))
    _refuse(what, "must increase", array[1:], np.diff(array) <= 0.0)


def balanced(currents: list[float]) -> None:
    """Refuse currents (A) that do not sum to zero in an insulated body."""
    array = numbers("currents", currents, (-1,))
    total = float(array.sum())
    if abs(total) > 1e-12 * np.abs(array).sum():
        raise ModelError(f"currents: an insulated body needs a zero sum, got {total} A")


def _refuse(what: str, law: str, array: FloatArray, wrong: NDArray[np.bool_]) -> None:
    if wrong.any():
        raise ModelError(f"{what}: {law}, got {array[wrong][0]}")
