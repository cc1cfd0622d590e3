"""Kernels of the largest r of each row: a search in float32, then the few that matter in float64.

r in float32 is within a margin of r in float64, so what lies further than two margins below the
k-th largest cannot be among the k largest. Only what is left is computed again, by the very sum
that :mod:`~fieldcorr.correlation._kernels` makes, so the result has its bits.
"""

from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]

COLUMNS = 4096
"""Configurations of a panel: 15 numbers of each stay in the second-level cache."""

GROUP = 32
"""Numbers that are passed over at once where the largest is too small."""

ROWS = 4
BATCH = 64
"""Rows that a panel serves while it is in the cache."""

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@intrinsic
def _fma(_context: Any, _x: Any, _y: Any, _z: Any) -> Any:
    """Return x y + z with one rounding, as the tiles do."""
    real = types.float64

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return real(real, real, real), generate


@numba.njit(
    error_model="numpy", fastmath={"contract"}, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
def _products(rows: Float32s, panel: Float32s, sums: Float32s) -> None:
    """Fill ``sums`` (4, COLUMNS) with products of 4 rows (4, R) and a panel (R, COLUMNS).

    R is a multiple of 4. Each column of the panel is loaded once for four rows.
    """
    s0, s1, s2, s3 = sums[0], sums[1], sums[2], sums[3]
    for k in range(COLUMNS):
        s0[k] = s1[k] = s2[k] = s3[k] = np.float32(0.0)
    for c in range(0, panel.shape[0], 4):
        p0, p1, p2, p3 = panel[c], panel[c + 1], panel[c + 2], panel[c + 3]
        for q in range(ROWS):
            a0, a1, a2, a3 = rows[q, c], rows[q, c + 1], rows[q, c + 2], rows[q, c + 3]
            s = sums[q]
            for k in range(COLUMNS):
                s[k] += a0 * p0[k] + a1 * p1[k] + a2 * p2[k] + a3 * p3[k]


@numba.njit(
    error_model="numpy", fastmath={"nnan", "nsz"}, no_cpython_wrapper=True, no_cfunc_wrapper=True
)
def _top_of(values: Float32s) -> np.float32:
    """Return the largest of some numbers, none of them NaN: then the loop runs in vectors."""
    top = values[0]
    for k in range(values.size):
        top = values[k] if values[k] > top else top
    return np.float32(top)


@_inner
def _collect(
    sums: Float32s,
    first: int,
    last: int,
    cut: np.float32,
    count: int,
    columns: Int64s,
    found: Float32s,
) -> int:
    """Append the columns above ``cut`` to the candidates; return their number."""
    for start in range(0, last - first, GROUP):
        stop = min(start + GROUP, last - first)
        if _top_of(sums[start:stop]) > cut:
            for k in range(start, stop):
                columns[count] = first + k
                found[count] = sums[k]
                count += sums[k] > cut
    return count


@_inner
def _kth_largest(values: Float32s, k: int) -> np.float32:
    """Return the k-th largest value (k from 1); ``values`` is reordered."""
    low, high, wanted = 0, values.size - 1, values.size - k
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return np.float32(values[wanted])


@_inner
def _least_cut(values: Float32s, top: int, work: Float32s) -> np.float32:
    """Return what at least ``top`` values reach: so many small groups have such a largest one."""
    groups = values.size // GROUP
    if groups < top:
        return np.float32(-2.0)
    for g in range(groups):
        work[g] = _top_of(values[GROUP * g : GROUP * (g + 1)])
    return np.float32(_kth_largest(work[:groups], top))


@_inner
def _cut_off(values: Float32s, top: int, work: Float32s) -> np.float32:
    """Return the top-th largest of some values, which stay in place."""
    for n in range(values.size):
        work[n] = values[n]
    return np.float32(_kth_largest(work[: values.size], top))


@_inner
def _exact(z: Float64s, i: int, j: int) -> np.float32:
    """Return r of two rows as the tiles compute it."""
    r = 0.0
    for c in range(z.shape[1]):
        r = _fma(z[i, c], z[j, c], r)
    r = 1.0 if r > 1.0 else r
    r = -1.0 if r < -1.0 else r
    return np.float32(r)


@_inner
def _keep_largest(top: int, columns: Int64s, found: Float32s, work: Float32s) -> int:
    """Keep the largest of some candidates in place, the first of equal ones; return how many."""
    if found.size <= top:
        return int(found.size)
    cut, equal, place = _cut_off(found, top, work), top, 0
    for n in range(found.size):
        equal -= found[n] > cut
    for n in range(found.size):
        same = (found[n] == cut) & (equal > 0)
        equal -= same
        columns[place], found[place] = columns[n], found[n]
        place += (found[n] > cut) | same
    return place


@_inner
def _prune(
    z: Float64s,
    own: int,
    top: int,
    margin: np.float32,
    room: int,
    columns: Int64s,
    found: Float32s,
    work: Float32s,
) -> int:
    """Leave out candidates that cannot be among the ``top`` largest; return how many stay.

    Where more than ``room`` are too close to tell, they are compared in float64.
    """
    cut, kept = _cut_off(found, top, work) - 2 * margin, 0
    for n in range(found.size):
        columns[kept], found[kept] = columns[n], found[n]
        kept += found[n] > cut
    if kept > room:
        for n in range(kept):
            found[n] = _exact(z, own, columns[n])
        kept = _keep_largest(top, columns[:kept], found[:kept], work)
    return kept


@_inner
def _finish(
    z: Float64s,
    own: int,
    top: int,
    threshold: np.float32,
    columns: Int64s,
    found: Float32s,
    work: Float32s,
) -> int:
    """Compute the candidates in float64 and keep the largest above the threshold, itself apart."""
    above = 0
    for n in range(found.size):
        j = columns[n]
        r = _exact(z, own, j)
        columns[above], found[above] = j, r
        above += (r > threshold) & (j != own)
    return int(_keep_largest(top, columns[:above], found[:above], work))


@_jit
def top_neighbours(
    begin: int,
    end: int,
    start: int,
    z: Float64s,
    narrow: Float32s,
    panels: Float32s,
    threshold: np.float32,
    margin: np.float32,
    counts: Int64s,
    indices: Int64s,
    data: Float32s,
) -> None:
    """Fill neighbours of the rows start + 64 begin ... start + 64 end: r > threshold, the largest.

    ``z`` (K, R) are unit rows, ``narrow`` (K + 3, R') the same in float32 with zeros up to a
    multiple of 4, ``panels`` (P, R', COLUMNS) these by columns. ``indices`` and ``data`` (n, top)
    get columns in ascending order and r, ``counts`` (n,) their number.
    """
    size, top = z.shape[0], indices.shape[1]
    room = 4 * top + COLUMNS
    columns = np.empty((BATCH, room + COLUMNS), np.int64)
    found = np.empty((BATCH, room + COLUMNS), np.float32)
    work, sums = np.empty(room + COLUMNS, np.float32), np.empty((ROWS, COLUMNS), np.float32)
    have, cut = np.zeros(BATCH, np.int64), np.empty(BATCH, np.float32)
    for batch in range(begin, end):
        place = BATCH * batch
        count = min(BATCH, counts.size - place)
        for q in range(count):
            have[q], cut[q] = 0, threshold - margin
        for p in range(panels.shape[0]):
            first, last = p * COLUMNS, min((p + 1) * COLUMNS, size)
            for q in range(count):
                own = start + place + q
                if q % ROWS == 0:
                    _products(narrow[own : own + ROWS], panels[p], sums)
                if p == 0:
                    least = _least_cut(sums[q % ROWS, : last - first], top + 1, work)
                    cut[q] = max(cut[q], least - 2 * margin)
                near, r = columns[q], found[q]
                n = _collect(sums[q % ROWS], first, last, cut[q], have[q], near, r)
                # Soon, so that the cut rises soon. The row itself is a candidate: one more.
                if n > 3 * top:
                    n = _prune(z, own, top + 1, margin, room, near[:n], r[:n], work)
                    cut[q] = max(cut[q], _cut_off(r[:n], top + 1, work) - 2 * margin)
                have[q] = n
        for q in range(count):
            n, near, r = have[q], columns[q], found[q]
            if n > top + 1:
                n = _prune(z, start + place + q, top + 1, margin, room, near[:n], r[:n], work)
            n = _finish(z, start + place + q, top, threshold, near[:n], r[:n], work)
            counts[place + q] = n
            for k in range(n):
                indices[place + q, k], data[place + q, k] = near[k], r[k]
