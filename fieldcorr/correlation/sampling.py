"""Which points of a region stand for all of it, for measures that have no Gram matrix."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements import curve_order
from fieldcorr.errors import CorrelationError

_BITS = 10  # of each coordinate in the order along which samples are spread


@dataclass(frozen=True, eq=False)
class Samples:
    """S points chosen from a region."""

    index: NDArray[np.int64]  # (S,), which points, ascending
    weight: NDArray[np.float64]  # (S,), volume that each stands for, m3; sums to the region's


def choose_samples(
    weight: ArrayLike,
    count: int,
    *,
    seed: int,
    points: NDArray[np.float64] | None = None,
    n_points: int | None = None,
) -> Samples:
    """Choose samples with probability proportional to volume, evenly spread.

    The points are put in a row, each as long as its volume, and the row is cut at equal distances
    after a random start (systematic sampling): every stretch of the row gets its fair share. With
    ``points`` the row follows a space-filling curve, so every part of the region does.

    ``weight`` (N,) is the volume that each point stands for, m3; points with none are never chosen,
    and if no more than ``count`` have any, all of those are taken. ``points`` is (N, 3), m. N is
    checked against ``n_points`` where that is known.
    """
    w = _checked_weight(weight, n_points)
    if count < 2:
        raise CorrelationError(f"samples = {count}: a correlation needs at least 2")
    inside = np.flatnonzero(w)
    if len(inside) <= count:
        return Samples(inside, w[inside])
    order = inside if points is None else inside[_curve(points[inside])]
    ends = np.cumsum(w[order])
    step = ends[-1] / count
    cuts = (np.arange(count) + np.random.default_rng(seed).random()) * step
    hit = np.minimum(np.searchsorted(ends, cuts, side="right"), len(order) - 1)
    index, times = np.unique(order[hit], return_counts=True)
    return Samples(index, times * step)


def _checked_weight(weight: ArrayLike, n_points: int | None) -> NDArray[np.float64]:
    w = np.asarray(weight, dtype=np.float64)
    if w.ndim != 1 or (n_points is not None and len(w) != n_points):
        raise CorrelationError(f"weight has shape {w.shape}, expected one number per point")
    if not (np.isfinite(w).all() and (w >= 0.0).all() and w.any()):
        raise CorrelationError("weights must be finite, not negative and not all zero")
    return w


def _curve(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the order of points (N, 3) along a space-filling curve."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.where(high > low, high - low, 1.0)
    return curve_order(((points - low) / size * (2**_BITS - 1)).astype(np.int64))
