"""Kernels of the neighbourhoods: which entries of rows of r are above a threshold, and where.

What flows in: float32 rows of r, and where the first of them is. What flows out: counts, then
sorted column indices and values in the caller's arrays. Each row is counted and filled by itself,
so any number of threads gives the same bytes.
"""

import numba
import numpy as np
from numba import prange
from numpy.typing import NDArray

Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Integers = NDArray[np.int32] | NDArray[np.int64]

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
_parallel_jit = numba.njit(cache=True, error_model="numpy", nogil=True, parallel=True)


@_jit
def _count_above(row: Float32s, own: int, threshold: np.float32) -> int:
    """Count the entries of a row above the threshold, its diagonal left out."""
    count = 0
    for j in range(row.size):
        count += row[j] > threshold
    return count - int(row[own] > threshold)


@_parallel_jit
def count_neighbours(
    rows: Float32s, start: int, threshold: np.float32, top: int, counts: Int64s
) -> None:
    """Fill ``counts`` with the neighbours of each row: r > threshold, at most ``top`` of them."""
    for i in prange(rows.shape[0]):
        counts[i] = min(top, _count_above(rows[i], start + i, threshold))


@_jit
def _fill_above(
    row: Float32s, own: int, threshold: np.float32, indices: Integers, data: Float32s
) -> None:
    """Fill one neighbourhood with all entries above the threshold.

    Each entry is written where the next neighbour belongs and counted if it is one: no branch to
    mispredict. The loop ends with the last neighbour, so nothing is written past it.
    """
    place = 0
    j = 0
    while place < indices.size and j < row.size:
        r = row[j]
        indices[place] = j
        data[place] = r
        place += (r > threshold) & (j != own)
        j += 1


@_jit
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


@_jit
def _fill_largest(
    row: Float32s, own: int, threshold: np.float32, indices: Integers, data: Float32s
) -> None:
    """Fill one neighbourhood with the largest entries; of equal ones the first in the row."""
    count = _count_above(row, own, threshold)
    place_of = np.empty(count, np.int64)
    values = np.empty(count, np.float32)
    _fill_above(row, own, threshold, place_of, values)
    cut = _kth_largest(values.copy(), indices.size)
    equal = indices.size
    for n in range(count):
        equal -= values[n] > cut
    place = 0
    for n in range(count):
        same = values[n] == cut and equal > 0
        if values[n] > cut or same:
            indices[place] = place_of[n]
            data[place] = values[n]
            place += 1
            equal -= same


@_parallel_jit
def fill_neighbours(
    rows: Float32s,
    start: int,
    threshold: np.float32,
    top: int,
    indptr: Int64s,
    indices: Integers,
    data: Float32s,
) -> None:
    """Fill the neighbourhood of row start + i into the entries indptr[i] ... indptr[i + 1].

    ``indptr`` are the sums of what :func:`count_neighbours` counted with the same threshold and
    ``top``; a row with more than ``top`` neighbours keeps the largest.
    """
    for i in prange(rows.shape[0]):
        row, own = rows[i], start + np.int64(i)
        near = indices[indptr[i] : indptr[i + 1]]
        r = data[indptr[i] : indptr[i + 1]]
        if near.size == top and top < _count_above(row, own, threshold):
            _fill_largest(row, own, threshold, near, r)
        else:
            _fill_above(row, own, threshold, near, r)
