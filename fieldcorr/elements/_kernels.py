"""Kernels that find the cell of a point."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]

FLAT = 1e-14


_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _barycentric(
    points: Floats, cells: Ints, t: int, x: float, y: float, z: float, out: Floats
) -> int:
    """Write the barycentric coordinates of (x, y, z) in cell ``t``; return which is smallest.

    A cell is flat, and its first coordinate -inf, when its volume is below FLAT times the largest
    one that edges of its lengths can span.
    """
    p0, p1, p2, p3 = cells[t, 0], cells[t, 1], cells[t, 2], cells[t, 3]
    x0, y0, z0 = points[p0, 0], points[p0, 1], points[p0, 2]
    x1, y1, z1 = points[p1, 0] - x0, points[p1, 1] - y0, points[p1, 2] - z0
    x2, y2, z2 = points[p2, 0] - x0, points[p2, 1] - y0, points[p2, 2] - z0
    x3, y3, z3 = points[p3, 0] - x0, points[p3, 1] - y0, points[p3, 2] - z0
    x, y, z = x - x0, y - y0, z - z0
    c0, c1, c2 = y2 * z3 - y3 * z2, x3 * z2 - x2 * z3, x2 * y3 - x3 * y2
    det = x1 * c0 + y1 * c1 + z1 * c2
    largest = math.sqrt(x1 * x1 + y1 * y1 + z1 * z1)
    largest *= math.sqrt(x2 * x2 + y2 * y2 + z2 * z2)
    largest *= math.sqrt(x3 * x3 + y3 * y3 + z3 * z3)
    if not abs(det) > FLAT * largest:
        out[0], out[1], out[2], out[3] = -np.inf, 0.0, 0.0, 0.0
        return 0
    out[1] = (c0 * x + c1 * y + c2 * z) / det
    out[2] = ((y3 * z1 - y1 * z3) * x + (x1 * z3 - x3 * z1) * y + (x3 * y1 - x1 * y3) * z) / det
    out[3] = ((y1 * z2 - y2 * z1) * x + (x2 * z1 - x1 * z2) * y + (x1 * y2 - x2 * y1) * z) / det
    out[0] = 1.0 - out[1] - out[2] - out[3]
    lowest = 0
    for k in range(1, 4):
        if out[k] < out[lowest]:
            lowest = k
    return lowest


@_inner
def _neighbour_across(cells: Ints, indptr: Longs, around: Ints, t: int, local: int) -> int:
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


@_jit
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
            t = np.int64(around[first])  # an int32 would have the helpers compiled twice
            for _ in range(500):
                lowest = _barycentric(points, cells, t, x, y, z, lam)
                if lam[lowest] >= -slack:
                    cell[i] = t
                    for k in range(4):  # assigning the row at once takes 3 s longer to compile
                        bary[i, k] = lam[k]
                    break
                opposite = cells[t, (lowest + 1) % 4]
                seen += indptr[opposite + 1] - indptr[opposite]
                t = _neighbour_across(cells, indptr, around, t, lowest)
                if t < 0 or seen > limit:
                    break
            if cell[i] >= 0 or seen > limit:
                break


@_jit
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
    lam, low, high = np.empty(4), np.empty(3), np.empty(3)
    for t in range(cells.shape[0]):
        for d in range(3):
            low[d] = high[d] = points[cells[t, 0], d]
            for k in range(1, 4):
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
            if not inside:
                continue
            x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
            if lam[_barycentric(points, cells, t, x, y, z, lam)] >= -slack:
                cell[i] = t
                for k in range(4):
                    bary[i, k] = lam[k]
