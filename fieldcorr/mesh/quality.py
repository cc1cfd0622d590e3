"""How well shaped the tetrahedra are.

What flows in: points and cells. What flows out: dihedral angles and radius ratios per cell, and
their summary.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fieldcorr.mesh.data import Floats, Ints, Mesh, tetrahedron_volumes
from fieldcorr.mesh.topology import FACE_VERTICES

_EDGES = np.array(list(combinations(range(4), 2)))
_BLOCK = 1 << 16  # cells at a time: temporary arrays stay in the cache


@dataclass(frozen=True)
class Quality:
    """Summary over all cells.

    ``dihedral_degree`` are the smallest and the largest angle between two faces of a cell,
    ``radius_ratio`` the smallest, the 1st percentile and the median of 3 r_in / R_out (1 for the
    regular tetrahedron, 0 for a flat one), ``edge`` the shortest and the longest edge in m.
    """

    dihedral_degree: tuple[float, float]
    radius_ratio: tuple[float, float, float]
    edge: tuple[float, float]


def measure_quality(mesh: Mesh) -> Quality:
    """Return the summary of a mesh without flat cells."""
    blocks = [
        _measure_block(mesh.points, mesh.cells[start : start + _BLOCK])
        for start in range(0, mesh.n_cells, _BLOCK)
    ]
    low, high, ratio, short, long = (np.concatenate(column) for column in zip(*blocks, strict=True))
    lowest, percentile, median = np.percentile(ratio, [0, 1, 50])
    return Quality(
        dihedral_degree=(float(low.min()), float(high.max())),
        radius_ratio=(float(lowest), float(percentile), float(median)),
        edge=(float(short.min()), float(long.max())),
    )


def _measure_block(points: Floats, cells: Ints) -> tuple[Floats, ...]:
    corners = points[cells]
    low, high = _dihedral_range(corners)
    lengths = _edge_lengths(corners)
    return low, high, radius_ratios(points, cells), lengths.min(axis=1), lengths.max(axis=1)


def radius_ratios(points: Floats, cells: Ints) -> Floats:
    """Return 3 r_in / R_out of each cell, (T,).

    r_in = 3 V / sum of face areas; R_out = |a^2 (b x c) + b^2 (c x a) + c^2 (a x b)| / (12 V) with
    the edges a, b, c from the first vertex.
    """
    corners = points[cells]
    volume = tetrahedron_volumes(points, cells)
    areas = 0.5 * np.linalg.norm(_face_normals(corners), axis=2).sum(axis=1)
    a, b, c = (corners[:, k] - corners[:, 0] for k in (1, 2, 3))
    aa, bb, cc = (np.einsum("ij,ij->i", e, e)[:, None] for e in (a, b, c))
    around = aa * np.cross(b, c) + bb * np.cross(c, a) + cc * np.cross(a, b)
    result: Floats = 108.0 * volume**2 / (areas * np.linalg.norm(around, axis=1))
    return result


def longest_edges(mesh: Mesh) -> Floats:
    """Return the longest edge of each cell, (T,) m."""
    lengths: Floats = _edge_lengths(mesh.points[mesh.cells]).max(axis=1)
    return lengths


def shortest_edge(mesh: Mesh) -> float:
    """Return the shortest edge of the mesh, m."""
    return float(_edge_lengths(mesh.points[mesh.cells]).min())


def _edge_lengths(corners: Floats) -> Floats:
    edges = corners[:, _EDGES[:, 1]] - corners[:, _EDGES[:, 0]]
    lengths: Floats = np.sqrt(np.einsum("tei,tei->te", edges, edges))
    return lengths


def _dihedral_range(corners: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest dihedral angle of each cell, degrees."""
    normals = _face_normals(corners)
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    cosine = -np.einsum("tei,tei->te", normals[:, _EDGES[:, 0]], normals[:, _EDGES[:, 1]])
    angles = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angles.min(axis=1), angles.max(axis=1)


def _face_normals(corners: Floats) -> Floats:
    """Return outward normals (T, 4, 3), twice as long as the face is large."""
    first, second, third = (corners[:, FACE_VERTICES[:, k]] for k in range(3))
    normals: Floats = np.cross(second - first, third - first)
    return normals
