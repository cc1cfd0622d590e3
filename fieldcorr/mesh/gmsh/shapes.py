"""Nested elliptic cylinders, a paddle and balls, surface by surface, for gmsh's built-in kernel.

Every function returns tags. Neighbouring volumes share their common surface, so the mesh conforms
by construction and no boolean operation is needed. Outlines are made of arcs below 180 degrees:
full ellipses with a seam often fail to mesh.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from fieldcorr.mesh.data import Floats
from fieldcorr.model import Ellipse

QUARTERS: Floats = np.linspace(0.0, 2 * np.pi, 5)[:-1]
_AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))
# Corners of the faces of a box, the ventral one first.
_BOX_FACES = ((0, 1, 5, 4), (2, 3, 7, 6), (0, 1, 3, 2), (4, 5, 7, 6), (0, 4, 6, 2), (1, 5, 7, 3))


@dataclass(frozen=True)
class Tube:
    """An elliptic cylinder cut into bands along z and arcs around it.

    ``sides[band][arc]`` are surfaces; ``loops[level]`` are outlines at each level.
    """

    sides: list[list[int]]
    loops: list[int]

    @property
    def surfaces(self) -> list[int]:
        """All lateral surfaces."""
        return [surface for band in self.sides for surface in band]


def add_tube(geo: Any, ellipse: Ellipse, levels: Sequence[float], angles: Floats) -> Tube:
    """Add the lateral surface of a cylinder between ``levels``, its arcs cut at ``angles``."""
    rings = [_add_ring(geo, ellipse, level, angles) for level in levels]
    sides = [_add_band(geo, low, high) for low, high in pairwise(rings)]
    return Tube(sides, [geo.addCurveLoop(arcs) for _, arcs in rings])


def add_volume(
    geo: Any, tube: Tube, inside: Sequence[Tube], holes: Sequence[Sequence[int]] = ()
) -> int:
    """Add the volume between a tube, the tubes inside it, and closed shells (``holes``)."""
    caps = [
        geo.addPlaneSurface([tube.loops[end], *(inner.loops[end] for inner in inside)])
        for end in (0, -1)
    ]
    shell = [*caps, *tube.surfaces, *(s for inner in inside for s in inner.surfaces)]
    loops = [geo.addSurfaceLoop(shell), *(geo.addSurfaceLoop(list(hole)) for hole in holes)]
    return int(geo.addVolume(loops))


@dataclass(frozen=True)
class PaddleShell:
    """Surfaces of the paddle: its contacts, in order, and the insulating rest; rim curves."""

    contacts: list[int]
    body: list[int]
    rims: list[int]


def add_paddle(geo: Any, corners: Floats, rectangles: Floats) -> PaddleShell:
    """Add a box and imprint contacts on its ventral face.

    ``corners`` (8, 3) are ordered as the product of (right, left), (ventral, dorsal), (caudal,
    rostral), ``rectangles`` (E, 4, 3) are the corners of each contact, in order around it.
    """
    points = [geo.addPoint(*corner) for corner in corners]
    edges: dict[tuple[int, int], int] = {}
    faces = [_quad_loop(geo, points, edges, quad) for quad in _BOX_FACES]
    rims = []
    for rectangle in rectangles:
        around = [geo.addPoint(*point) for point in rectangle]
        rims.append([geo.addLine(p, q) for p, q in _around(around)])
    outlines = [geo.addCurveLoop(rim) for rim in rims]
    contacts = [geo.addPlaneSurface([outline]) for outline in outlines]
    ventral = geo.addPlaneSurface([faces[0], *outlines])
    body = [ventral, *(geo.addPlaneSurface([face]) for face in faces[1:])]
    return PaddleShell(contacts, body, [curve for rim in rims for curve in rim])


def add_ball(geo: Any, radius: float) -> list[int]:
    """Add a sphere as eight patches, without seam or pole; return its surfaces."""
    return _add_octants(geo, radius, (1, -1))[0]


def add_disc_in_half_ball(
    geo: Any, radius: float, disc_radius: float
) -> tuple[int, list[int], int, list[int]]:
    """Add the half ball z <= 0 with a disc of ``disc_radius`` imprinted on its flat face.

    Return the volume, its curved surfaces, the disc and the curves of the disc's rim.
    """
    outer, equator = _add_octants(geo, radius, (-1,))
    centre = geo.addPoint(0.0, 0.0, 0.0)
    points = [geo.addPoint(disc_radius * x, disc_radius * y, 0.0) for x, y in _AROUND]
    rim = [geo.addCircleArc(p, centre, q) for p, q in _around(points)]
    outline = geo.addCurveLoop(rim)
    disc = geo.addPlaneSurface([outline])
    flat = geo.addPlaneSurface([geo.addCurveLoop(equator), outline])
    volume = geo.addVolume([geo.addSurfaceLoop([*outer, flat, disc])])
    return int(volume), outer, int(disc), rim


def _add_ring(
    geo: Any, ellipse: Ellipse, level: float, angles: Floats
) -> tuple[list[int], list[int]]:
    """Add the outline at one level; return its points and its arcs."""
    a, b, x, y = ellipse.half_width, ellipse.half_depth, ellipse.left, ellipse.dorsal
    centre = geo.addPoint(x, y, level)
    major = geo.addPoint(x + a, y, level) if a >= b else geo.addPoint(x, y + b, level)
    points = [geo.addPoint(x + a * np.cos(t), y + b * np.sin(t), level) for t in angles]
    return points, [geo.addEllipseArc(p, centre, major, q) for p, q in _around(points)]


def _add_band(
    geo: Any, low: tuple[list[int], list[int]], high: tuple[list[int], list[int]]
) -> list[int]:
    """Add the surfaces between two outlines."""
    risers = [geo.addLine(p, q) for p, q in zip(low[0], high[0], strict=True)]
    return [
        geo.addSurfaceFilling([geo.addCurveLoop([below, right, -above, -left])])
        for below, above, (left, right) in zip(low[1], high[1], _around(risers), strict=True)
    ]


def _quad_loop(
    geo: Any, points: list[int], edges: dict[tuple[int, int], int], quad: Sequence[int]
) -> int:
    """Add the outline of a quadrilateral, sharing edges with those added before."""
    curves = []
    for start, end in _around(quad):
        key = (min(start, end), max(start, end))
        if key not in edges:
            edges[key] = geo.addLine(points[key[0]], points[key[1]])
        curves.append(edges[key] if start < end else -edges[key])
    return int(geo.addCurveLoop(curves))


def _around(items: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield every item with the one that follows it in the circle."""
    return pairwise([*items, items[0]])


def _add_octants(geo: Any, radius: float, sides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Add the octants on the given sides of z = 0; return surfaces and the arcs of the equator."""
    centre = geo.addPoint(0.0, 0.0, 0.0)
    ring = [geo.addPoint(radius * x, radius * y, 0.0) for x, y in _AROUND]
    poles = {side: geo.addPoint(0.0, 0.0, side * radius) for side in sides}
    equator = [geo.addCircleArc(p, centre, q) for p, q in _around(ring)]
    ribs = {side: [geo.addCircleArc(p, centre, poles[side]) for p in ring] for side in sides}
    surfaces = []
    for side in sides:
        for arc, (left, right) in zip(equator, _around(ribs[side]), strict=True):
            loop = geo.addCurveLoop([arc, right, -left])
            surfaces.append(geo.addSurfaceFilling([loop], sphereCenterTag=centre))
    return surfaces, equator
