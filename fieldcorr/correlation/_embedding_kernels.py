"""Kernels of the embedding: a factor L of the Gram matrix with G = L L', and unit rows Z.

All sums run in a fixed order in float64 and without fused operations, so the bits depend neither on
threads nor on vector width.
"""

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_jit
def factor_gram(rest: Float64s, least: float, most_columns: int, factor: Float64s) -> int:
    """Cholesky factor of a positive semidefinite matrix with diagonal pivots.

    ``rest`` (E, E) holds G and is used up: what is left of it is G - L L'. ``factor`` (E, E) gets
    the columns of L, those after the rank returned stay as they are. The pivot is the largest
    diagonal entry left, the first of equal ones; its entry of L is positive. The factor ends
    before a pivot that is not above ``least``, or after ``most_columns``.
    """
    size = rest.shape[0]
    for column in range(most_columns):
        pivot = 0
        for e in range(size):
            if rest[e, e] > rest[pivot, pivot]:
                pivot = e
        if not rest[pivot, pivot] > least:
            return column
        root = np.sqrt(rest[pivot, pivot])
        for e in range(size):
            factor[e, column] = rest[e, pivot] / root
        for e in range(size):
            for f in range(size):
                rest[e, f] -= factor[e, column] * factor[f, column]
        # What the pivot had is used up exactly; rounding must not offer it again.
        rest[pivot, :] = 0.0
        rest[:, pivot] = 0.0
    return most_columns


@_jit
def unit_rows(currents: Float64s, factor: Float64s, deviation: Float64s, z: Float64s) -> int:
    """Fill ``z`` (K, R) with L' a / |L' a|; return the first row without variance, or -1.

    ``deviation`` (E,) is the square root of the diagonal of G: sum_e |a_e| deviation_e is the
    largest norm a row could have, and a norm below 1e-6 of it is rounding.
    """
    rank = factor.shape[1]
    for k in range(currents.shape[0]):
        largest = 0.0
        for e in range(currents.shape[1]):
            largest += abs(currents[k, e]) * deviation[e]
        square = 0.0
        for r in range(rank):
            total = 0.0
            for e in range(currents.shape[1]):
                total += factor[e, r] * currents[k, e]
            z[k, r] = total
            square += total * total
        norm = np.sqrt(square)
        if not (norm > 1e-6 * largest and norm < np.inf):
            return k
        for r in range(rank):
            z[k, r] /= norm
    return -1


@_inner
def _standardise(row: Float64s, weight: Float64s, root: Float64s, volume: float) -> bool:
    """Turn sampled values into a unit row: mean removed, times root of weight, over the norm.

    Return False, with the row spoilt, if it has no variance or is not finite.
    """
    mean = 0.0
    energy = 0.0
    for s in range(row.size):
        mean += weight[s] * row[s]
        energy += weight[s] * row[s] * row[s]
    mean /= volume
    square = 0.0
    for s in range(row.size):
        row[s] = root[s] * (row[s] - mean)
        square += row[s] * row[s]
    if not (square > 1e-24 * energy and square < np.inf):
        return False
    norm = np.sqrt(square)
    for s in range(row.size):
        row[s] /= norm
    return True


@_inner
def _fill_magnitude(currents: Float64s, field: Float64s, work: Float64s, row: Float64s) -> None:
    """Fill ``row`` with the magnitude of sum_a I_a E_a at each sample; ``field`` is (E, 3, S)."""
    row[:] = 0.0
    for axis in range(3):
        work[:] = 0.0
        for a in range(currents.size):
            current = currents[a]
            if current != 0.0:
                lead = field[a, axis]
                for s in range(row.size):
                    work[s] += current * lead[s]
        for s in range(row.size):
            row[s] += work[s] * work[s]
    for s in range(row.size):
        row[s] = np.sqrt(row[s])


@_jit
def magnitude_rows(
    begin: int,
    end: int,
    currents: Float64s,
    field: Float64s,
    weight: Float64s,
    root: Float64s,
    volume: float,
    sound: NDArray[np.bool_],
    z: Float64s,
) -> None:
    """Fill rows of ``z`` (K, S) with unit rows of |E|; ``sound`` (K,): which have variance."""
    work = np.empty(z.shape[1])
    for k in range(begin, end):
        _fill_magnitude(currents[k], field, work, z[k])
        sound[k] = _standardise(z[k], weight, root, volume)


@_jit
def feature_rows(
    weight: Float64s, root: Float64s, volume: float, sound: NDArray[np.bool_], z: Float64s
) -> None:
    """Turn the rows of sampled values in ``z`` (K, S) into unit rows in place."""
    for k in range(z.shape[0]):
        sound[k] = _standardise(z[k], weight, root, volume)


@_jit
def add_column(
    products: Float64s, pivot: int, count: int, columns: Float64s, residual: Float64s
) -> None:
    """Add column ``count`` of the Cholesky factor of r, pivot row ``pivot``.

    ``products`` (K,) is row ``pivot`` of r, ``columns`` (at least count + 1, K) the factor, one
    column after the other, ``residual`` (K,) what is left of the diagonal; all but the first are
    changed.
    """
    column = columns[count]
    column[:] = products
    for m in range(count):
        factor = columns[m, pivot]
        earlier = columns[m]
        for k in range(column.size):
            column[k] -= factor * earlier[k]
    root = np.sqrt(residual[pivot])
    for k in range(column.size):
        column[k] /= root
        left = residual[k] - column[k] * column[k]
        residual[k] = left if left > 0.0 else 0.0
    residual[pivot] = 0.0


@_jit
def normalised_rows(columns: Float64s, z: Float64s) -> None:
    """Fill ``z`` (K, R) with the unit rows of a matrix given by its columns (R, K)."""
    for k in range(z.shape[0]):
        square = 0.0
        for r in range(z.shape[1]):
            square += columns[r, k] * columns[r, k]
        norm = np.sqrt(square)
        for r in range(z.shape[1]):
            z[k, r] = columns[r, k] / norm
