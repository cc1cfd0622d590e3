"""Faces of tetrahedra: which cells share them, which lie on the boundary, and where they misfit.

In a conforming mesh a face that only one cell owns lies on the boundary. Where two compartments
merely touch, both own their side: their nodes coincide without being shared, or the nodes of one
lie within the faces of the other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats, Ints, Longs, Mesh, triangle_normals

FACE_VERTICES: Ints = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]], dtype=np.int32)
"""Local vertices of the face opposite each vertex, so that its normal points outwards."""

_PACK_BITS = 21  # three vertex numbers below 2^21 fit into one 64-bit key
_SAME = 1e-3  # of the shortest edge: nodes closer than this are one node
_TOUCH = 0.02  # of a facet's size: how near to its plane a hanging node lies
_WITHIN = 0.02  # barycentric margin: a hanging node lies clearly within facet or edge


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


def group_rows(rows: NDArray[np.integer]) -> tuple[Longs, Longs]:
    """Sort rows of three non-negative integers; return the order and where each group starts.

    The sort is stable, so the first of a group is the first of the input.
    """
    if rows.size and int(rows.max()) < 1 << _PACK_BITS:
        wide = rows.astype(np.int64)
        key = (wide[:, 0] << 2 * _PACK_BITS) | (wide[:, 1] << _PACK_BITS) | wide[:, 2]
        order = np.argsort(key, kind="stable")
        new = np.diff(key[order]) != 0
    else:
        order = np.lexsort(rows.T[::-1])
        new = np.any(np.diff(rows[order], axis=0) != 0, axis=1)
    starts = np.flatnonzero(np.concatenate(([True] if len(rows) else [], new)))
    return order.astype(np.int64), starts.astype(np.int64)


def locate_facets(facets: Ints, among: Ints) -> Longs:
    """Return for every facet its row in ``among`` (any vertex order), or -1, (F,)."""
    both = np.sort(np.concatenate((among, facets)), axis=1)
    order, starts = group_rows(both)
    group = np.empty(len(both), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(both))))
    head = order[starts] if len(starts) else order
    return np.asarray(np.where(head < len(among), head, -1)[group[len(among) :]])


def check_conformity(mesh: Mesh, faces: Faces, *, shortest_edge: float) -> None:
    """Raise where nodes coincide, faces have three owners, nodes hang, or parts are apart."""
    _check_coincident(mesh, _SAME * shortest_edge)
    _check_owners(mesh, faces)
    _check_hanging(mesh, faces)
    _check_connected(mesh, faces)


def _check_coincident(mesh: Mesh, distance: float) -> None:
    pairs = cKDTree(mesh.points).query_pairs(distance, output_type="ndarray")
    if not len(pairs):
        return
    first, second = sorted(int(node) for node in pairs[0])
    tissues = [_tissues_at(mesh, node) for node in (first, second)]
    if tissues[0] != tissues[1]:
        raise MeshError(
            f"non-conforming compartments: {len(pairs)} pairs of nodes coincide but are not "
            f"shared, first {first} ({tissues[0]}) and {second} ({tissues[1]})"
        )
    raise MeshError(
        f"{len(pairs)} pairs of duplicate nodes, first {first} and {second} ({tissues[0]})"
    )


def _check_owners(mesh: Mesh, faces: Faces) -> None:
    crowded = np.flatnonzero(faces.uses > 2)
    if len(crowded):
        nodes = ", ".join(map(str, faces.vertices[crowded[0]]))
        raise MeshError(
            f"non-conforming compartments: {len(crowded)} faces belong to more than two cells, "
            f"first face {nodes}"
        )
    # A shared face whose two owners lie on one side of it:
    normals = triangle_normals(mesh.points, faces.vertices)
    start = mesh.points[faces.vertices[:, 0]]
    centre = mesh.points[mesh.cells[faces.cells[:, 1]]].mean(axis=1)
    height = np.einsum("ij,ij->i", normals, centre - start)
    doubled = np.flatnonzero((height < 0) & (faces.uses == 2))
    if len(doubled):
        a, b = faces.cells[doubled[0]]
        raise MeshError(f"cells overlap: cells {a} and {b} lie on the same side of a common face")


def _check_hanging(mesh: Mesh, faces: Faces) -> None:
    alone = faces.uses == 1
    facets, owners = faces.vertices[alone], faces.cells[alone, 0]
    facet, node = _candidates(mesh.points, facets)
    hanging = np.flatnonzero(_lies_within(mesh.points, facets[facet], node))
    if not len(hanging):
        return
    where = hanging[0]
    inside = mesh.tissues[mesh.cell_tags[owners[facet[where]]]]
    raise MeshError(
        f"non-conforming compartments: {len(np.unique(node[hanging]))} nodes hang within the faces "
        f"of others, first node {node[where]} ({_tissues_at(mesh, int(node[where]))}) in a face of "
        f"{inside}"
    )


def _candidates(points: Floats, facets: Ints) -> tuple[Longs, Longs]:
    """Return pairs of a boundary facet and a boundary node near it that is not its own."""
    nodes = np.unique(facets)
    centroids = points[facets].mean(axis=1)
    radius = np.linalg.norm(points[facets] - centroids[:, None], axis=2).max(axis=1)
    near = cKDTree(points[nodes]).query_ball_point(centroids, radius, return_sorted=True)
    facet = np.repeat(np.arange(len(facets)), [len(found) for found in near])
    node = nodes[np.concatenate(near).astype(np.int64)].astype(np.int64)
    foreign = np.all(facets[facet] != node[:, None], axis=1)
    return facet[foreign], node[foreign]


def _lies_within(points: Floats, triangles: Ints, nodes: Longs) -> NDArray[np.bool_]:
    """Return a mask of nodes that lie in the plane of their triangle and within it or its edges."""
    normals = triangle_normals(points, triangles)
    twice = np.linalg.norm(normals, axis=1)
    offset = points[nodes] - points[triangles[:, 0]]
    height = np.abs(np.einsum("ij,ij->i", offset, normals)) / twice
    flat = height < _TOUCH * np.sqrt(twice)
    corners = points[triangles] - points[nodes][:, None]
    opposite = np.cross(np.roll(corners, -1, axis=1), np.roll(corners, -2, axis=1))
    shares = np.einsum("nki,ni->nk", opposite, normals) / twice[:, None] ** 2  # barycentric
    return np.asarray(flat & (shares.min(axis=1) > -1e-6) & (shares.max(axis=1) < 1 - _WITHIN))


def _check_connected(mesh: Mesh, faces: Faces) -> None:
    shared = faces.cells[faces.uses == 2]
    ones = np.ones(len(shared), dtype=np.int8)
    links = coo_array((ones, (shared[:, 0], shared[:, 1])), shape=(mesh.n_cells, mesh.n_cells))
    count, part = connected_components(links, directed=False)
    if count == 1:
        return
    sizes = np.bincount(part)
    smallest = int(np.argmin(sizes))
    names = sorted({mesh.tissues[tag] for tag in np.unique(mesh.cell_tags[part == smallest])})
    raise MeshError(
        f"disconnected compartments: the mesh falls into {count} parts that share no face; the "
        f"smallest has {sizes[smallest]} cells of {', '.join(names)}"
    )


def _tissues_at(mesh: Mesh, node: int) -> str:
    tags = np.unique(mesh.cell_tags[np.any(mesh.cells == node, axis=1)])
    return "/".join(sorted(mesh.tissues[tag] for tag in tags))
