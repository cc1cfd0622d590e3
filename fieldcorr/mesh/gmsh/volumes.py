"""Curved interfaces with the right volume.

Flat facets cut into the body they enclose; in P2 that is the largest error of the bulk. So points
on a curved interface are pushed outwards along the normal until the volume inside the flat facets
is the exact one.

A facet with edges e_i lies, in the mean over its area, below a surface of curvature tensor K by
``d = sum_i e_i' K e_i / 24``. A vertex moves by the area-weighted mean of the depths of its facets,
which makes the enclosed volume right to first order; one common factor close to 1 does the rest.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats, Ints, tetrahedron_volumes, triangle_areas, triangle_normals

_LEAST_SHARE = 0.3  # of a cell's volume that must be left after its vertices have moved


@dataclass(frozen=True)
class Quadric:
    """An ellipsoid, or the side of an elliptic cylinder: sum_i ((x_i - c_i) / a_i)^2 = 1.

    Centre c and half axes a are in m; an infinite half axis is the axis of a cylinder. ``volume``
    (m3) is what lies inside the part that is meshed: the whole ellipsoid, a half of it cut through
    the centre, or a length of the cylinder cut square.
    """

    centre: tuple[float, float, float]
    half_axes: tuple[float, float, float]
    volume: float

    def normals(self, points: Floats) -> Floats:
        """Return outward unit normals at points (N, 3)."""
        gradient = self._gradient(points)
        return np.asarray(gradient / np.linalg.norm(gradient, axis=1, keepdims=True))

    def bending(self, points: Floats, edges: Floats) -> Floats:
        """Return e' K e for edges (N, 3) at points (N, 3) on or near the surface.

        K is the Hessian of the level over the length of its gradient, taken where the ray from the
        centre through the point meets the surface.
        """
        gradient = self._gradient(points)
        level = np.einsum("ij,ij->i", gradient, points - np.array(self.centre))
        slope = np.linalg.norm(gradient, axis=1) / np.sqrt(level)
        return np.asarray((edges**2 @ self._weights()) / slope)

    def enclosed(self, points: Floats, facets: Ints) -> float:
        """Return the volume inside outward facets (F, 3), by the divergence theorem.

        The flux of x - c over the n finite axes is n times the volume; square ends and cuts through
        the centre add nothing to it.
        """
        finite = np.isfinite(self.half_axes)
        offset = points[facets].mean(axis=1) - np.array(self.centre)
        flux = np.sum(offset[:, finite] * triangle_normals(points, facets)[:, finite]) / 2.0
        return float(flux / np.count_nonzero(finite))

    def _weights(self) -> Floats:
        return 1.0 / np.array(self.half_axes) ** 2

    def _gradient(self, points: Floats) -> Floats:
        return np.asarray((points - np.array(self.centre)) * self._weights())


def elliptic_tube(x: float, y: float, a: float, b: float, length: float) -> Quadric:
    """Return the side of a cylinder along z: centre and half axes of its section, length, m."""
    return Quadric((x, y, 0.0), (a, b, np.inf), np.pi * a * b * length)


@dataclass(frozen=True, eq=False)
class Interface:
    """Facets (F, 3), oriented outwards, whose vertices lie on ``shape``."""

    facets: Ints
    shape: Quadric

    @classmethod
    def of(cls, points: Floats, facets: Ints, shape: Quadric) -> "Interface":
        """Turn the normals of facets to the outside of their shape."""
        normals = triangle_normals(points, facets)
        wrong = np.einsum("ij,ij->i", normals, shape.normals(points[facets].mean(axis=1))) < 0
        return cls(np.where(wrong[:, None], facets[:, [0, 2, 1]], facets), shape)

    def volume_error(self, points: Floats) -> float:
        """Return the relative error of the volume inside the facets."""
        return self.shape.enclosed(points, self.facets) / self.shape.volume - 1.0


def correct_volumes(points: Floats, cells: Ints, interfaces: Iterable[Interface]) -> Floats:
    """Return points moved so that the volumes inside the interfaces are right.

    Where a move would use up most of a cell, its vertices move less: half, a quarter, ...
    """
    total = np.sum([_scaled_moves(points, interface) for interface in interfaces], axis=0)
    share = safe_share(points, cells, total)
    return np.asarray(points + share[:, None] * total)


def vertex_depths(points: Floats, interface: Interface) -> Floats:
    """Return the move (P,) of every point: area-weighted mean depth of its facets, else 0."""
    corners = points[interface.facets]
    centroids = corners.mean(axis=1)
    edges = (corners - np.roll(corners, 1, axis=1)).transpose(1, 0, 2)
    depth = sum(interface.shape.bending(centroids, edge) for edge in edges) / 24.0
    area = triangle_areas(points, interface.facets)
    vertex = interface.facets.ravel()
    weight = np.repeat(area, 3)
    depth_sum = np.bincount(vertex, weight * np.repeat(depth, 3), minlength=len(points))
    area_sum = np.bincount(vertex, weight, minlength=len(points))
    return np.divide(depth_sum, area_sum, out=np.zeros(len(points)), where=area_sum > 0)


def _scaled_moves(points: Floats, interface: Interface) -> Floats:
    """Return displacement vectors (P, 3) after which the enclosed volume is the exact one."""
    depth = vertex_depths(points, interface)
    on = depth > 0
    step = np.zeros_like(points)
    step[on] = depth[on, None] * interface.shape.normals(points[on])
    return step * _factor(points, step, interface)


def _factor(points: Floats, step: Floats, interface: Interface) -> float:
    """Return the multiple of ``step`` that encloses the exact volume.

    The volume is almost linear in the multiple, so its slope between 0 and 1 serves throughout.
    """
    shape, facets = interface.shape, interface.facets
    start = shape.enclosed(points, facets)
    slope = shape.enclosed(points + step, facets) - start
    if not slope > 0:
        raise MeshError("volume correction: the facets do not enclose their own shape")
    factor = (shape.volume - start) / slope
    for _ in range(4):
        factor += (shape.volume - shape.enclosed(points + factor * step, facets)) / slope
    return factor


def safe_share(points: Floats, cells: Ints, moves: Floats) -> Floats:
    """Return the share (P,) of each move that leaves every cell enough of its volume."""
    share = np.ones(len(points))
    touched = cells[np.any(moves[cells] != 0.0, axis=(1, 2))]
    least = _LEAST_SHARE * tetrahedron_volumes(points, touched)
    for _ in range(12):
        spent = tetrahedron_volumes(points + share[:, None] * moves, touched) < least
        if not np.any(spent):
            return share
        share[np.unique(touched[spent])] *= 0.5
    raise MeshError("volume correction: cells would be inverted; choose smaller sizes")
