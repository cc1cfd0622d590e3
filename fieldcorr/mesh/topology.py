"""Faces of tetrahedra: which cells share them, and which lie on the boundary.

What flows in: cells (T, 4). What flows out: faces with their owners, boundary triangles oriented
outwards, keys that find the same face again in another list.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.mesh.data import Ints, Longs

FACE_VERTICES: Ints = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]], dtype=np.int32)
"""Local vertices of the face opposite each vertex, so that its normal points outwards."""

_PACK_BITS = 21  # three vertex numbers below 2^21 fit into one 64-bit key


@dataclass(frozen=True, eq=False)
class Faces:
    """Every distinct face of a mesh.

    ``vertices`` (N, 3) keeps the outward order of the first owner; ``cells`` (N, 2) are the owners,
    the second -1 on the boundary; ``uses`` (N,) counts the owners, 1 or 2 in a sound mesh.
    """

    vertices: Ints
    cells: Ints
    uses: Ints


def all_faces(cells: Ints) -> Faces:
    """Return the distinct faces with their owners; O(T log T)."""
    listed = cells[:, FACE_VERTICES].reshape(-1, 3)
    order, first = group_rows(np.sort(listed, axis=1))
    uses = np.diff(np.append(first, len(order))).astype(np.int32)
    owners = np.full((len(first), 2), -1, dtype=np.int32)
    owners[:, 0] = order[first] // 4
    shared = uses > 1
    owners[shared, 1] = order[first[shared] + 1] // 4
    return Faces(vertices=listed[order[first]], cells=owners, uses=uses)


def boundary_facets(cells: Ints) -> tuple[Ints, Ints]:
    """Return the outward triangles (B, 3) that one cell owns alone, and these cells (B,)."""
    faces = all_faces(cells)
    alone = faces.uses == 1
    return faces.vertices[alone], faces.cells[alone, 0]


def group_rows(rows: NDArray[np.integer[Any]]) -> tuple[Longs, Longs]:
    """Sort rows of three non-negative integers; return the order and where each group starts.

    The sort is stable, so the first of a group is the first of the input.
    """
    if rows.size and int(rows.max()) < 1 << _PACK_BITS:
        key = pack_rows(rows)
        order = np.argsort(key, kind="stable")
        new = np.diff(key[order]) != 0
    else:
        order = np.lexsort(rows.T[::-1])
        new = np.any(np.diff(rows[order], axis=0) != 0, axis=1)
    starts = np.flatnonzero(np.concatenate(([True] if len(rows) else [], new)))
    return order.astype(np.int64), starts.astype(np.int64)


def pack_rows(rows: NDArray[np.integer[Any]]) -> Longs:
    """Return one 64-bit key per row of three integers below 2^21."""
    wide = rows.astype(np.int64)
    key: Longs = (wide[:, 0] << 2 * _PACK_BITS) | (wide[:, 1] << _PACK_BITS) | wide[:, 2]
    return key


def locate_facets(facets: Ints, among: Ints) -> Longs:
    """Return for every facet its row in ``among`` (any vertex order), or -1, (F,)."""
    both = np.sort(np.concatenate((among, facets)), axis=1)
    order, starts = group_rows(both)
    group = np.empty(len(both), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(both))))
    head = order[starts] if len(starts) else order
    found: Longs = np.where(head < len(among), head, -1)[group[len(among) :]]
    return found
