"""Kernels of the lead field: change of basis, energy, Gram matrices."""

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


@numba.njit(cache=True, nogil=True)
def transform_rows(start: int, stop: int, values: Floats, weights: Floats, out: Floats) -> None:
    """OUT[n, b] = sum_a VALUES[n, a] WEIGHTS[a, b], each row in the same order of operations."""
    count = values.shape[1]
    for n in range(start, stop):
        for b in range(out.shape[1]):
            out[n, b] = 0.0
        for a in range(count):
            value = values[n, a]
            for b in range(out.shape[1]):
                out[n, b] += value * weights[a, b]


@numba.njit(cache=True)
def mutual_energy(
    first: Floats, second: Floats, dofs: Ints, tensors: Floats, reference: Floats
) -> float:
    """Return the integral of sigma grad u . grad v, cell by cell, for nodal values (n_dofs,)."""
    width = dofs.shape[1]
    total = 0.0
    for t in range(dofs.shape[0]):
        for i in range(width):
            u = first[dofs[t, i]]
            row = 0.0
            for j in range(width):
                entry = 0.0
                for c in range(6):
                    entry += tensors[t, c] * reference[i, j, c]
                row += entry * second[dofs[t, j]]
            total += u * row
    return total


@numba.njit(cache=True, nogil=True)
def weighted_gram(
    start: int,
    stop: int,
    values: Floats,
    dofs: Ints,
    moments: Floats,
    mass: Floats,
    block: int,
    out: Floats,
) -> None:
    """Sum the integrals of w u_a u_b over each block of cells into ``out`` (blocks, E, E).

    ``values`` (n_dofs, E); ``moments`` (T, 4) = volume times the window at the four vertices;
    ``mass`` (4, nd, nd) means of l_k phi_i phi_j over a cell.
    """
    n_cells, width = dofs.shape
    count = values.shape[1]
    local = np.empty((width, count))
    moved = np.empty((width, count))
    for b in range(start, stop):
        for t in range(b * block, min(n_cells, (b + 1) * block)):
            for i in range(width):
                for a in range(count):
                    local[i, a] = values[dofs[t, i], a]
                    moved[i, a] = 0.0
            for i in range(width):
                for j in range(width):
                    m = 0.0
                    for k in range(4):
                        m += moments[t, k] * mass[k, i, j]
                    for a in range(count):
                        moved[i, a] += m * local[j, a]
            for i in range(width):
                for a in range(count):
                    for c in range(count):
                        out[b, a, c] += local[i, a] * moved[i, c]
