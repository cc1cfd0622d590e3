"""Balls and half balls around the origin for gmsh's built-in kernel.

What flows in: radii. What flows out: tags of surfaces and volumes. A sphere is eight patches
between quarter arcs: it has no seam and no pole.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any


@dataclass(frozen=True)
class HalfBall:
    """Volume below z = 0, its curved surfaces, the disc in its flat face and the disc's rim."""

    volume: int
    outer: list[int]
    disc: list[int]
    rim: list[int]


def add_ball(geo: Any, radius: float) -> list[int]:
    """Add a sphere; return its eight surfaces."""
    return _add_octants(geo, radius, (1, -1))[0]


def add_disc_in_half_ball(geo: Any, radius: float, disc_radius: float) -> HalfBall:
    """Add the half ball z <= 0 with a disc of ``disc_radius`` imprinted on its flat face."""
    outer, equator = _add_octants(geo, radius, (-1,))
    centre = geo.addPoint(0.0, 0.0, 0.0)
    points = [geo.addPoint(disc_radius * x, disc_radius * y, 0.0) for x, y in _AROUND]
    rim = [geo.addCircleArc(points[k], centre, points[(k + 1) % 4]) for k in range(4)]
    outline = geo.addCurveLoop(rim)
    disc = geo.addPlaneSurface([outline])
    flat = geo.addPlaneSurface([geo.addCurveLoop(equator), outline])
    volume = geo.addVolume([geo.addSurfaceLoop([*outer, flat, disc])])
    return HalfBall(int(volume), outer, [disc], rim)


_AROUND = ((1, 0), (0, 1), (-1, 0), (0, -1))


def _add_octants(geo: Any, radius: float, sides: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Add the octants on the given sides of z = 0; return surfaces and the arcs of the equator."""
    centre = geo.addPoint(0.0, 0.0, 0.0)
    ring = [geo.addPoint(radius * x, radius * y, 0.0) for x, y in _AROUND]
    poles = {side: geo.addPoint(0.0, 0.0, side * radius) for side in sides}
    equator = [geo.addCircleArc(ring[k], centre, ring[(k + 1) % 4]) for k in range(4)]
    ribs = {
        (side, k): geo.addCircleArc(ring[k], centre, poles[side])
        for side, k in product(sides, range(4))
    }
    surfaces = []
    for side, k in product(sides, range(4)):
        loop = geo.addCurveLoop([equator[k], ribs[side, (k + 1) % 4], -ribs[side, k]])
        surfaces.append(geo.addSurfaceFilling([loop], sphereCenterTag=centre))
    return surfaces, equator
