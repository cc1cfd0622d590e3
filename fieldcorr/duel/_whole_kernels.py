"""Kernels of elimination and ranking for tens of millions of arms, tallied in float32.

Arms are handled in chunks of positions. Every result belongs to one chunk, and the largest or least
of them does not depend on their order: threads change nothing.
"""

import numba
import numpy as np
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
UInt16s = NDArray[np.uint16]
Bools = NDArray[np.bool_]

CHUNK = 2048

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)

_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
_FAR = np.float32(4.0)  # beyond every bound of an arm that may be eliminated


@_inner
def _fill_intervals(
    log_term: np.float32,
    common: np.float32,
    further: np.float32,
    growth: np.float32,
    wins: Float32s,
    plays: Float32s,
    lower: Float32s,
    upper: Float32s,
) -> None:
    """Fill the bounds of some arms; the radius is c(n), or the common one if that is not negative.

    An arm never compared has the estimate 1/2 and the radius 1. Without branches: everything is
    computed, then chosen.
    """
    for k in range(wins.size):
        n = plays[k] + further
        known = n > _ZERO
        safe = n if known else _ONE
        own = np.sqrt(log_term / (safe * growth))
        radius = own if known else _ONE
        radius = radius if common < _ZERO else common
        low, high = (wins[k] + further) / safe, wins[k] / safe
        lower[k] = (low if known else _HALF) - radius
        upper[k] = (high if known else _HALF) + radius


@_inner
def _fill_estimates(wins: Float32s, plays: Float32s, estimate: Float32s) -> None:
    for k in range(wins.size):
        known = plays[k] > _ZERO
        share = wins[k] / (plays[k] if known else _ONE)
        estimate[k] = share if known else _HALF


@_inner
def _largest(values: Float32s) -> np.float32:
    """Return the largest value; ``values`` are folded in halves on the way: no loop is a chain."""
    left = values.size
    while left > 1:
        half = (left + 1) // 2
        lower, upper = values[: left - half], values[half:left]
        for k in range(lower.size):
            lower[k] = upper[k] if upper[k] > lower[k] else lower[k]
        left = half
    return np.float32(values[0])


@_inner
def _hide(values: Float32s, start: int, alive: Bools, instead: np.float32) -> None:
    """Replace the values of arms that are not alive; no ``alive`` means that all are."""
    if alive.size > 0:
        here = alive[start : start + values.size]
        for k in range(values.size):
            values[k] = values[k] if here[k] else instead


@_jit
def least_plays(begin: int, end: int, plays: Float32s, alive: Bools, out: Float32s) -> None:
    """Fill ``out`` (chunks,) with the least count of the arms alive."""
    for c in range(begin, end):
        start, stop = c * CHUNK, min((c + 1) * CHUNK, plays.size)
        least = np.float32(np.inf)
        for k in range(start, stop):
            if alive.size == 0 or alive[k]:
                least = min(least, plays[k])
        out[c] = least


@_jit
def fill_bounds(
    begin: int,
    end: int,
    log_term: np.float32,
    common: np.float32,
    further: np.float32,
    growth: np.float32,
    wins: Float32s,
    plays: Float32s,
    alive: Bools,
    out: Float32s,
) -> None:
    """Fill ``out`` (chunks, 2): the largest lower and the least upper bound of the arms alive.

    As they will be after ``further`` duels, all won in the lower and all lost in the upper bound,
    if counts grow by the factor ``growth`` besides; 0 and 1 for now.
    """
    scratch = np.empty((2, CHUNK), np.float32)
    for c in range(begin, end):
        start, stop = c * CHUNK, min((c + 1) * CHUNK, plays.size)
        lower, upper = scratch[0, : stop - start], scratch[1, : stop - start]
        w, n = wins[start:stop], plays[start:stop]
        _fill_intervals(log_term, common, further, growth, w, n, lower, upper)
        _hide(lower, start, alive, -_FAR)
        _hide(upper, start, alive, _FAR)
        for k in range(upper.size):
            upper[k] = -upper[k]
        out[c, 0], out[c, 1] = _largest(lower), -_largest(upper)


@_jit
def find_worst(
    log_term: np.float32,
    common: np.float32,
    floor: np.float32,
    wins: Float32s,
    plays: Float32s,
    alive: Bools,
) -> int:
    """Return the position of the dominated arm that goes if only one does, -1 if there is none."""
    scratch = np.empty((2, CHUNK), np.float32)
    worst, key = -1, _FAR
    for start in range(0, wins.size, CHUNK):
        stop = min(start + CHUNK, wins.size)
        lower, upper = scratch[0, : stop - start], scratch[1, : stop - start]
        w, n = wins[start:stop], plays[start:stop]
        _fill_intervals(log_term, common, _ZERO, _ONE, w, n, lower, upper)
        _hide(upper, start, alive, _FAR)
        if common >= _ZERO:
            _fill_estimates(w, n, lower)
        for k in range(w.size):
            own = upper[k] if common < _ZERO else lower[k]
            if upper[k] <= floor and own < key:
                worst, key = start + k, own
    return worst


@_jit
def mark_dominated(
    begin: int,
    end: int,
    log_term: np.float32,
    common: np.float32,
    floor: np.float32,
    wins: Float32s,
    plays: Float32s,
    stays: Bools,
) -> None:
    """Take dominated arms of the chunks begin ... end out of ``stays``."""
    scratch = np.empty((2, CHUNK), np.float32)
    for c in range(begin, end):
        start, stop = c * CHUNK, min((c + 1) * CHUNK, plays.size)
        lower, upper = scratch[0, : stop - start], scratch[1, : stop - start]
        w, n, here = wins[start:stop], plays[start:stop], stays[start:stop]
        _fill_intervals(log_term, common, _ZERO, _ONE, w, n, lower, upper)
        for k in range(w.size):
            here[k] &= upper[k] > floor


@_jit
def keep(
    stays: Bools,
    offsets: Int64s,
    leaves: UInt16s,
    first_leaf: Int64s,
    wins: Float32s,
    plays: Float32s,
    kept_offsets: Int64s,
    kept_leaves: UInt16s,
) -> int:
    """Move tallies and leaves of what stays to the front; return their number.

    ``leaves`` holds the leaf of each position of block p from ``first_leaf[p]`` on. ``kept_leaves``
    may be ``leaves`` where these are in the order of the positions.
    """
    index = np.empty(np.diff(offsets).max() + 1, np.uint16)
    place = 0
    for p in range(offsets.size - 1):
        start, stop = offsets[p], offsets[p + 1]
        w, n, here = wins[start:stop], plays[start:stop], stays[start:stop]
        own = leaves[first_leaf[p] : first_leaf[p] + stop - start]
        # A list of what stays first: without branches, and two thirds of the time of moving all.
        left = 0
        for k in range(w.size):
            index[left] = k
            left += here[k]
        kept_offsets[p] = place
        to = slice(place, place + left)
        kept_wins, kept_plays, kept = wins[to], plays[to], kept_leaves[to]
        for k in range(left):
            kept_wins[k], kept_plays[k], kept[k] = w[index[k]], n[index[k]], own[index[k]]
        place += left
    kept_offsets[offsets.size - 1] = place
    return place


@_jit
def fill_tops(
    begin: int, end: int, wins: Float32s, plays: Float32s, alive: Bools, out: Float32s
) -> None:
    """Fill ``out`` (chunks, 2) with the best estimate of the arms alive, and its largest count."""
    scratch = np.empty((2, CHUNK), np.float32)
    for c in range(begin, end):
        start, stop = c * CHUNK, min((c + 1) * CHUNK, plays.size)
        n = plays[start:stop]
        estimate, count = scratch[0, : n.size], scratch[1, : n.size]
        _fill_estimates(wins[start:stop], n, estimate)
        _hide(estimate, start, alive, -_ONE)
        count[:] = estimate
        top = _largest(estimate)
        for k in range(n.size):
            count[k] = n[k] if count[k] == top else -_ONE
        out[c, 0], out[c, 1] = top, _largest(count)
