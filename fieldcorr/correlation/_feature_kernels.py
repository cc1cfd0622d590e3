"""Kernels of the features: pivoted Cholesky columns, symmetric eigenvectors, products.

All sums run in a fixed order in float64, so the bits do not depend on threads.
"""

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)


@_jit
def add_column(row: Float64s, pivot: int, count: int, factor: Float64s, rest: Float64s) -> None:
    """Write column ``count`` of a Cholesky factor (K, P) from the kernel's row of the pivot.

    An entry never exceeds the variance its arm has left: that holds for a positive semidefinite
    kernel anyway, and keeps the factor of a sparse matrix, which may be none, bounded.
    """
    root = np.sqrt(rest[pivot])
    for k in range(row.size):
        value = row[k]
        for c in range(count):
            value -= factor[k, c] * factor[pivot, c]
        limit = np.sqrt(max(rest[k], 0.0))
        value = min(max(value / root, -limit), limit)
        factor[k, count] = value
    for k in range(row.size):
        rest[k] -= factor[k, count] * factor[k, count]
    rest[pivot] = 0.0


@_jit
def centre(rows: Float64s) -> float:
    """Take the mean row off ``rows`` (K, F), in place; return the mean squared length left."""
    for f in range(rows.shape[1]):
        mean = 0.0
        for k in range(rows.shape[0]):
            mean += rows[k, f]
        mean /= rows.shape[0]
        for k in range(rows.shape[0]):
            rows[k, f] -= mean
    square = 0.0
    for k in range(rows.shape[0]):
        for f in range(rows.shape[1]):
            square += rows[k, f] * rows[k, f]
    return float(square / rows.shape[0])


@_jit
def times(rows: Float64s, matrix: Float64s, out: Float64s) -> None:
    """Write ``rows`` (K, F) times ``matrix`` (F, G) to ``out`` (K, G)."""
    for k in range(rows.shape[0]):
        for g in range(out.shape[1]):
            out[k, g] = 0.0
        for f in range(rows.shape[1]):
            value = rows[k, f]
            for g in range(out.shape[1]):
                out[k, g] += value * matrix[f, g]


@_jit
def jacobi(matrix: Float64s, vectors: Float64s, sweeps: int) -> None:
    """Diagonalise a symmetric matrix by cyclic Jacobi rotations, in place.

    Eigenvalues end on the diagonal, in no order, and eigenvectors in the *rows* of ``vectors``.
    """
    size = matrix.shape[0]
    for a in range(size):
        for b in range(size):
            vectors[a, b] = 1.0 if a == b else 0.0
    for _ in range(sweeps):
        off = 0.0
        total = 0.0
        for a in range(size):
            total += matrix[a, a] * matrix[a, a]
            for b in range(a + 1, size):
                off += matrix[a, b] * matrix[a, b]
        if off <= 1e-30 * total:
            return
        for a in range(size - 1):
            for b in range(a + 1, size):
                entry = matrix[a, b]
                if entry == 0.0:
                    continue
                ratio = (matrix[b, b] - matrix[a, a]) / (2.0 * entry)
                tangent = 1.0 / (abs(ratio) + np.sqrt(1.0 + ratio * ratio))
                tangent = tangent if ratio >= 0.0 else -tangent
                cosine = 1.0 / np.sqrt(1.0 + tangent * tangent)
                sine = tangent * cosine
                for k in range(size):
                    left = matrix[k, a]
                    right = matrix[k, b]
                    matrix[k, a] = cosine * left - sine * right
                    matrix[k, b] = sine * left + cosine * right
                for k in range(size):
                    left = matrix[a, k]
                    right = matrix[b, k]
                    matrix[a, k] = cosine * left - sine * right
                    matrix[b, k] = sine * left + cosine * right
                for k in range(size):
                    left = vectors[a, k]
                    right = vectors[b, k]
                    vectors[a, k] = cosine * left - sine * right
                    vectors[b, k] = sine * left + cosine * right
