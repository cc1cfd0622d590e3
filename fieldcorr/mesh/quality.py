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
_BLOCK = 1 << 13  # cells at a time: temporary arrays stay in the cache


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
    normals = _face_normals(corners)
    sizes = np.sqrt(np.einsum("tfi,tfi->tf", normals, normals))
    low, high = _dihedral_range(normals / sizes[:, :, None])
    ratio = _radius_ratios(corners, tetrahedron_volumes(points, cells), 0.5 * sizes.sum(axis=1))
    lengths = edge_lengths(points, cells)
    return low, high, ratio, lengths.min(axis=1), lengths.max(axis=1)


def edge_lengths(points: Floats, cells: Ints) -> Floats:
    """Return the lengths (T, 6) of the edges of each cell."""
    corners = points[cells]
    edges = corners[:, _EDGES[:, 1]] - corners[:, _EDGES[:, 0]]
    lengths: Floats = np.sqrt(np.einsum("tei,tei->te", edges, edges))
    return lengths


def _radius_ratios(corners: Floats, volume: Floats, areas: Floats) -> Floats:
    """Return 3 r_in / R_out of each cell, (T,).

    r_in = 3 V / sum of face areas; R_out = |a^2 (b x c) + b^2 (c x a) + c^2 (a x b)| / (12 V) with
    the edges a, b, c from the first vertex.
    """
    a, b, c = (corners[:, k] - corners[:, 0] for k in (1, 2, 3))
    aa, bb, cc = (np.einsum("ij,ij->i", e, e)[:, None] for e in (a, b, c))
    around = aa * np.cross(b, c) + bb * np.cross(c, a) + cc * np.cross(a, b)
    result: Floats = 108.0 * volume**2 / (areas * np.linalg.norm(around, axis=1))
    return result


def _dihedral_range(normals: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest dihedral angle of each cell, degrees."""
    cosine = -np.einsum("tei,tei->te", normals[:, _EDGES[:, 0]], normals[:, _EDGES[:, 1]])
    angles = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angles.min(axis=1), angles.max(axis=1)


def _face_normals(corners: Floats) -> Floats:
    """Return outward normals (T, 4, 3), twice as long as the face is large."""
    first, second, third = (corners[:, FACE_VERTICES[:, k]] for k in range(3))
    normals: Floats = np.cross(second - first, third - first)
    return normals
