"""A local numbering: points along a Hilbert curve, cells sorted by their vertices.

Neighbours in space become neighbours in memory, which helps the caches of every later stage and
makes the coded file small.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.mesh.data import Floats, Ints, Mesh, orient_cells
from fieldcorr.mesh.fcmesh import round_to_nanometres
from fieldcorr.mesh.topology import boundary_facets, locate_facets

_BITS = 20  # per axis: cells of the curve are a millionth of the box


def tidy(mesh: Mesh, *, like: Floats | None = None) -> Mesh:
    """Return the mesh on whole nanometres, locally numbered, facets oriented outwards.

    The result depends only on the mesh as a set of points, cells and facets, not on their order.
    With ``like`` (P, 3) the points are numbered as if they lay there: two meshes that differ only
    by moved points keep the same cells.
    """
    points = round_to_nanometres(mesh.points)
    used = np.zeros(mesh.n_points, dtype=bool)
    used[mesh.cells] = True
    order = hilbert_order(points if like is None else round_to_nanometres(like))
    order = order[used[order]]
    number = np.full(mesh.n_points, -1, dtype=np.int32)
    number[order] = np.arange(len(order), dtype=np.int32)
    points = points[order]
    cells, cell_tags = _sorted_cells(points, number[mesh.cells], mesh.cell_tags)
    facets, facet_tags = _sorted_facets(cells, number[mesh.facets], mesh.facet_tags)
    return Mesh(
        points, cells, cell_tags, mesh.tissues, facets, facet_tags, mesh.facet_names, mesh.origin
    )


def hilbert_order(points: Floats) -> NDArray[np.int64]:
    """Return the order (P,) of the points along a Hilbert curve through their bounding box."""
    low = points.min(axis=0)
    extent = float((points.max(axis=0) - low).max()) or 1.0
    grid = ((points - low) / extent * (2**_BITS - 1)).astype(np.int64)
    return np.lexsort((*grid.T, hilbert_key(grid)))


def hilbert_key(grid: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position along the curve of integer coordinates (P, 3), 20 bits each.

    The transform of Skilling, AIP Conf. Proc. 707, 381 (2004): undo the excess work of the lower
    bits from the highest one down, then Gray encode.
    """
    x = grid.T.copy()
    for bit in range(_BITS - 1, 0, -1):
        q, low = 1 << bit, (1 << bit) - 1
        for axis in range(3):
            high = (x[axis] & q) != 0
            swap = np.where(high, 0, (x[0] ^ x[axis]) & low)
            x[0] = np.where(high, x[0] ^ low, x[0]) ^ swap
            x[axis] ^= swap
    x[1] ^= x[0]
    x[2] ^= x[1]
    flip = np.zeros_like(x[0])
    for bit in range(_BITS - 1, 0, -1):
        flip ^= np.where(x[2] & (1 << bit), (1 << bit) - 1, 0)
    x ^= flip
    key: NDArray[np.int64] = np.zeros(x.shape[1], dtype=np.int64)
    for bit in range(_BITS - 1, -1, -1):
        for axis in range(3):
            key = (key << 1) | ((x[axis] >> bit) & 1)
    return key


def _sorted_cells(points: Floats, cells: Ints, tags: Ints) -> tuple[Ints, Ints]:
    """Sort the vertices inside each cell, keep it positive, then sort the cells."""
    ascending = np.sort(cells, axis=1)
    oriented = orient_cells(points, ascending).astype(np.int32)
    order = np.lexsort(ascending.T[::-1])
    return oriented[order], tags[order]


def _sorted_facets(cells: Ints, facets: Ints, tags: Ints) -> tuple[Ints, Ints]:
    """Take the outward orientation from the cells where a facet is on the boundary, then sort."""
    outward, _ = boundary_facets(cells)
    found = locate_facets(facets, outward)
    oriented = np.where((found >= 0)[:, None], outward[found], facets) if len(facets) else facets
    smallest = np.argmin(oriented, axis=1) if len(facets) else np.zeros(0, np.int64)
    turned = np.take_along_axis(oriented, (smallest[:, None] + np.arange(3)) % 3, axis=1)
    order = np.lexsort((*turned.T[::-1], tags))
    return turned[order].astype(np.int32), tags[order]
