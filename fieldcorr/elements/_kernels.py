"""Kernels that find the cell of a point."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

FLAT = 1e-14


@numba.njit(cache=True)
def barycentric(
    points: Floats, cells: Ints, t: int, x: float, y: float, z: float, out: Floats
) -> float:
    """Write the barycentric coordinates of (x, y, z) in cell ``t``; return the smallest.

    A cell is flat, and -inf is returned, when its volume is below FLAT times the largest one that
    edges of its lengths can span.
    """
    p0 = cells[t, 0]
    m = np.empty((3, 3))
    largest = 1.0
    for k in range(3):
        square = 0.0
        for d in range(3):
            m[d, k] = points[cells[t, k + 1], d] - points[p0, d]
            square += m[d, k] * m[d, k]
        largest *= math.sqrt(square)
    bx = x - points[p0, 0]
    by = y - points[p0, 1]
    bz = z - points[p0, 2]
    c00 = m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1]
    c01 = m[0, 2] * m[2, 1] - m[0, 1] * m[2, 2]
    c02 = m[0, 1] * m[1, 2] - m[0, 2] * m[1, 1]
    det = m[0, 0] * c00 + m[1, 0] * c01 + m[2, 0] * c02
    if not abs(det) > FLAT * largest:
        for k in range(4):
            out[k] = 0.0
        return -np.inf
    out[1] = (c00 * bx + c01 * by + c02 * bz) / det
    out[2] = (
        (m[1, 2] * m[2, 0] - m[1, 0] * m[2, 2]) * bx
        + (m[0, 0] * m[2, 2] - m[0, 2] * m[2, 0]) * by
        + (m[0, 2] * m[1, 0] - m[0, 0] * m[1, 2]) * bz
    ) / det
    out[3] = (
        (m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0]) * bx
        + (m[0, 1] * m[2, 0] - m[0, 0] * m[2, 1]) * by
        + (m[0, 0] * m[1, 1] - m[0, 1] * m[1, 0]) * bz
    ) / det
    out[0] = 1.0 - out[1] - out[2] - out[3]
    return float(min(min(out[0], out[1]), min(out[2], out[3])))


@numba.njit(cache=True)
def neighbour_across(cells: Ints, indptr: Longs, around: Ints, t: int, local: int) -> int:
    """Return the cell that shares the face of ``t`` opposite its vertex ``local``, or -1."""
    a = cells[t, (local + 1) % 4]
    b = cells[t, (local + 2) % 4]
    c = cells[t, (local + 3) % 4]
    for k in range(indptr[a], indptr[a + 1]):
        other = around[k]
        if other == t:
            continue
        found = 0
        for v in range(4):
            if cells[other, v] == b or cells[other, v] == c:
                found += 1
        if found == 2:
            return int(other)
    return -1


@numba.njit(cache=True)
def walk_to_points(
    points: Floats,
    cells: Ints,
    indptr: Longs,
    around: Ints,
    queries: Floats,
    slack: float,
    near: Longs,
    start: Ints,
    limit: int,
    cell: Longs,
    bary: Floats,
) -> None:
    """Walk to the cells that hold the queries listed in ``near``, as far as walks get there.

    ``start`` is a vertex near each of them. From a cell the walk crosses the face opposite the
    most negative barycentric coordinate. A walk that leaves the domain tries every cell around
    the start vertex; all of them together look at ``limit`` cells at most.
    """
    lam = np.empty(4)
    for j in range(near.size):
        i = near[j]
        x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
        seen = 0
        for first in range(indptr[start[j]], indptr[start[j] + 1]):
            t = int(around[first])
            for _ in range(500):
                least = barycentric(points, cells, t, x, y, z, lam)
                if least >= -slack:
                    cell[i] = t
                    for k in range(4):  # assigning the row at once takes 3 s longer to compile
                        bary[i, k] = lam[k]
                    break
                lowest = np.argmin(lam)
                opposite = cells[t, (lowest + 1) % 4]
                seen += indptr[opposite + 1] - indptr[opposite]
                t = neighbour_across(cells, indptr, around, t, lowest)
                if t < 0 or seen > limit:
                    break
            if cell[i] >= 0 or seen > limit:
                break


@numba.njit(cache=True)
def search_all_cells(
    points: Floats,
    cells: Ints,
    queries: Floats,
    slack: float,
    todo: Longs,
    cell: Longs,
    bary: Floats,
) -> None:
    """Look for the queries listed in ``todo`` in every cell whose bounding box holds them."""
    lam = np.empty(4)
    for t in range(cells.shape[0]):
        low = points[cells[t, 0]].copy()
        high = low.copy()
        for k in range(1, 4):
            for d in range(3):
                v = points[cells[t, k], d]
                low[d] = min(low[d], v)
                high[d] = max(high[d], v)
        for j in range(todo.size):
            i = todo[j]
            if cell[i] >= 0:
                continue
            inside = True
            for d in range(3):
                pad = slack * (high[d] - low[d])
                inside = inside and low[d] - pad <= queries[i, d] <= high[d] + pad
            if (
                inside
                and barycentric(points, cells, t, queries[i, 0], queries[i, 1], queries[i, 2], lam)
                >= -slack
            ):
                cell[i] = t
                for k in range(4):
                    bary[i, k] = lam[k]
