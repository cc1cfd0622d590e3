"""What the closed forms ask of their arguments; a refusal is one line that names the value."""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ModelError

FloatArray = NDArray[np.float64]


def numbers(what: str, values: object, shape: tuple[int, ...] = ()) -> FloatArray:
    """Return values as finite floats of a shape, in which -1 stands for any length but zero."""
    array = _floats(what, values, shape)
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: must be finite, got {_shown(values)}")
    return array


def positive(
    what: str, values: object, shape: tuple[int, ...] = (), *, infinite: bool = False
) -> FloatArray:
    """Return values as :func:`numbers` does, all of them positive; infinity only where it is."""
    array = _floats(what, values, shape) if infinite else numbers(what, values, shape)
    if not (array > 0.0).all():  # nor is NaN
        raise ModelError(f"{what}: must be positive, got {_shown(values)}")
    return array


def not_negative(what: str, values: object, shape: tuple[int, ...] = ()) -> FloatArray:
    """Return values as :func:`numbers` does, none of them negative."""
    array = numbers(what, values, shape)
    if (array < 0.0).any():
        raise ModelError(f"{what}: must not be negative, got {_shown(values)}")
    return array


def share(what: str, value: float) -> None:
    """Refuse a value that is not above 0 and at most 1."""
    if positive(what, value) > 1.0:
        raise ModelError(f"{what}: must be at most 1, got {value!r}")


def increasing(what: str, values: tuple[float, ...]) -> None:
    """Refuse radii that are not positive and strictly increasing."""
    if (np.diff(positive(what, values, (-1,))) <= 0.0).any():
        raise ModelError(f"{what}: must increase, got {_shown(values)}")


def conductivities(what: str, values: object, count: int) -> FloatArray:
    """Return conductivities (count,) in S/m."""
    array = positive(what, values, (-1,))
    if len(array) != count:
        raise ModelError(f"{what}: {count} needed, got {_shown(values)}")
    return array


def points_in(points: object) -> FloatArray:
    """Return points as an (N, 3) array of finite coordinates in m."""
    array = _floats("points", points, (-1, 3))
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise ModelError(f"points: point {bad[0]} is {array[bad[0]].tolist()}, not finite")
    return array


def balanced(currents: list[float]) -> None:
    """Refuse currents (A) that do not sum to zero in an insulated body."""
    array = numbers("currents", currents, (-1,))
    if abs(array.sum()) > 1e-12 * np.abs(array).sum():
        raise ModelError(
            f"currents: an insulated body needs a zero sum, got {float(array.sum())} A"
        )


def _floats(what: str, values: object, shape: tuple[int, ...]) -> FloatArray:
    """Return values as floats; refuse what is no number or has another shape."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{what}: must be numbers, got {_shown(values)}") from error
    fits = array.ndim == len(shape) and array.size > 0
    if not fits or any(wanted not in (-1, n) for n, wanted in zip(array.shape, shape, strict=True)):
        wanted = " x ".join("N" if n == -1 else str(n) for n in shape) or "1"
        raise ModelError(f"{what}: {wanted} numbers needed, got an array of shape {array.shape}")
    return array


def _shown(values: object) -> str:
    """Return the start of a value's text, in one line."""
    text = " ".join(repr(values).split())
    return text if len(text) <= 80 else f"{text[:77]}..."
