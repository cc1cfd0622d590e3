"""Kernels of the Lagrange basis on tetrahedra: edge numbering and point location."""

import math

import numba
import numpy as np

FLAT = 1e-14


@numba.njit(cache=True)
def sort_by_insertion(values, start, stop):  # type: ignore[no-untyped-def]
    """Sort the few dozen ``values[start:stop]``; ``np.sort`` would take two seconds to compile."""
    for k in range(start + 1, stop):
        value = values[k]
        m = k
        while m > start and values[m - 1] > value:
            values[m] = values[m - 1]
            m -= 1
        values[m] = value


@numba.njit(cache=True)
def sorted_edges_of_vertices(cells, edge_ends, indptr, upper):  # type: ignore[no-untyped-def]
    """Collect, per vertex, the sorted distinct larger ends of its edges.

    ``indptr`` (P + 1) holds room for every occurrence on entry and the packed offsets on return;
    ``upper`` (6 T) is filled up to ``indptr[P]``.
    """
    n_points = indptr.size - 1
    cursor = indptr[:-1].copy()
    for t in range(cells.shape[0]):
        for e in range(edge_ends.shape[0]):
            a = cells[t, edge_ends[e, 0]]
            b = cells[t, edge_ends[e, 1]]
            low = min(a, b)
            upper[cursor[low]] = max(a, b)
            cursor[low] += 1
    packed = 0
    for p in range(n_points):
        start = indptr[p]
        stop = cursor[p]
        indptr[p] = packed
        sort_by_insertion(upper, start, stop)
        last = -1
        for k in range(start, stop):
            if upper[k] != last:
                last = upper[k]
                upper[packed] = last
                packed += 1
    indptr[n_points] = packed


@numba.njit(cache=True)
def count_edge_occurrences(cells, edge_ends, counts):  # type: ignore[no-untyped-def]
    """Count how often each vertex is the smaller end of a cell's edge."""
    for t in range(cells.shape[0]):
        for e in range(edge_ends.shape[0]):
            low = min(cells[t, edge_ends[e, 0]], cells[t, edge_ends[e, 1]])
            counts[low] += 1


@numba.njit(cache=True)
def number_cell_edges(cells, edge_ends, indptr, upper, first, out):  # type: ignore[no-untyped-def]
    """Write the dof number ``first + edge`` of each cell's edges into ``out`` (T, 6)."""
    for t in range(cells.shape[0]):
        for e in range(edge_ends.shape[0]):
            a = cells[t, edge_ends[e, 0]]
            b = cells[t, edge_ends[e, 1]]
            low = min(a, b)
            high = max(a, b)
            lo = indptr[low]
            hi = indptr[low + 1] - 1
            while lo < hi:
                mid = (lo + hi) // 2
                if upper[mid] < high:
                    lo = mid + 1
                else:
                    hi = mid
            out[t, e] = first + lo


@numba.njit(cache=True)
def cells_of_vertices(cells, indptr, out):  # type: ignore[no-untyped-def]
    """Fill the vertex-to-cell lists; ``indptr`` holds the offsets."""
    cursor = indptr[:-1].copy()
    for t in range(cells.shape[0]):
        for k in range(4):
            v = cells[t, k]
            out[cursor[v]] = t
            cursor[v] += 1


@numba.njit(cache=True)
def barycentric(points, cells, t, x, y, z, out):  # type: ignore[no-untyped-def]
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
        out[:] = 0.0
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
    return min(min(out[0], out[1]), min(out[2], out[3]))


@numba.njit(cache=True)
def neighbour_across(cells, indptr, around, t, local):  # type: ignore[no-untyped-def]
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
            return other
    return -1


@numba.njit(cache=True)
def walk_to_points(points, cells, indptr, around, start, queries, slack, limit, cell, bary):  # type: ignore[no-untyped-def]
    """Walk from a cell near each query to the one that holds it; -1 where no walk gets there.

    ``start`` (N,) is a vertex near each query. From a cell the walk crosses the face opposite the
    most negative barycentric coordinate. A walk that leaves the domain tries every cell around
    the start vertex; all of them together look at ``limit`` cells at most.
    """
    lam = np.empty(4)
    for i in range(queries.shape[0]):
        x, y, z = queries[i, 0], queries[i, 1], queries[i, 2]
        cell[i] = -1
        seen = 0
        for first in range(indptr[start[i]], indptr[start[i] + 1]):
            t = around[first]
            for _ in range(500):
                least = barycentric(points, cells, t, x, y, z, lam)
                if least >= -slack:
                    cell[i] = t
                    bary[i] = lam
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
def search_all_cells(points, cells, queries, slack, todo, cell, bary):  # type: ignore[no-untyped-def]
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
                bary[i] = lam
