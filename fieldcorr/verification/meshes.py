"""Meshes for comparison with closed forms.

The volumes inside their curved surfaces are right or, for comparison, their points lie on the
exact surfaces ("uncorrected"). They are shipped in ``meshes/verification``, so that only building
them again needs gmsh. Boxes need none: they have graded grid lines.

==========  =======================================================================================
sphere      radii 78, 80, 86, 92 mm: brain, csf, skull, scalp; facets "outer"
cylinder    radii 4.5, 8, 10, 20 mm along z from -20 to 20 mm: white, csf, fat, muscle; facets
            "outer" on the side
disc        half z <= 0 of the spheroid with half axes 10, 10, sqrt(99) mm: medium; facets "disc"
            (radius 1 mm, in the flat face) and "outer" (the curved surface, which is confocal to
            the disc and so an equipotential of its field)
==========  =======================================================================================
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import ModuleType

import numpy as np
from scipy.integrate import cumulative_trapezoid

from fieldcorr.errors import MeshError
from fieldcorr.mesh import read_mesh
from fieldcorr.mesh.data import Floats, Ints, Mesh, orient_cells
from fieldcorr.mesh.gmsh.session import (
    Generated,
    add_formula,
    add_rims,
    gmsh_session,
    prism_cells,
    set_smallest,
)
from fieldcorr.mesh.gmsh.shapes import (
    QUARTERS,
    add_ball,
    add_disc_in_half_ball,
    add_tube,
    add_volume,
)
from fieldcorr.mesh.gmsh.volumes import Interface, Quadric, correct_volumes, elliptic_tube
from fieldcorr.mesh.order import tidy
from fieldcorr.mesh.structured import FacetChooser, name_boundary
from fieldcorr.model import Ellipse, bundled_folder

SPHERE_MM = {"brain": 78.0, "csf": 80.0, "skull": 86.0, "scalp": 92.0}
CYLINDER_MM = {"white": 4.5, "csf": 8.0, "fat": 10.0, "muscle": 20.0}
"""Outer radius of each tissue, from the inside."""
CYLINDER_HALF_LENGTH_MM = 20.0
DISC_RADIUS_MM = 1.0
DISC_OUTER_MM = (10.0, 10.0, float(np.sqrt(99.0)))


def shipped_mesh(name: str) -> Mesh:
    """Read a mesh of ``meshes/verification``."""
    return read_mesh(bundled_folder() / "verification" / f"{name}.fcmesh")


def graded_line(
    stops: tuple[float, ...],
    fine: dict[float, float],
    *,
    growth: float = 0.5,
    coarse: float = np.inf,
) -> Floats:
    """Return grid lines through every stop, with steps min(fine + growth * distance, coarse).

    ``stops`` ascend and include both ends; ``fine`` is the step wanted at some positions. Between
    two stops the lines are spaced evenly in the integral of 1 / step, so that the steps follow the
    wish and the last one fits.
    """
    where = np.array(list(fine))
    wish = np.array(list(fine.values()))
    lines = [np.array(stops[:1])]
    for low, high in pairwise(stops):
        t = np.linspace(low, high, 2001)
        step = np.minimum((wish + growth * np.abs(t[:, None] - where)).min(axis=1), coarse)
        passed = cumulative_trapezoid(1 / step, t, initial=0.0)
        count = max(1, round(float(passed[-1])))
        lines.append(np.interp(np.linspace(0.0, passed[-1], count + 1)[1:], passed, t))
        lines[-1][-1] = high
    return np.concatenate(lines)


@dataclass(frozen=True, eq=False)
class _Raw:
    """What a recipe reads back from gmsh: points in m on the exact surfaces."""

    points: Floats
    blocks: Mapping[str, Ints]
    surfaces: Sequence[tuple[Ints, Quadric]]
    facets: Mapping[str, FacetChooser]


def verification_mesh(name: str, *, corrected: bool = True, scale: float = 1.0) -> Mesh:
    """Build "sphere", "cylinder" or "disc" with gmsh; ``scale`` is a factor on all sizes.

    Enclosed volumes are right or, if not ``corrected``, points lie on the exact surfaces.
    """
    if name not in _RECIPES:
        raise MeshError(f"no verification mesh {name!r}; there are {', '.join(_RECIPES)}")
    with gmsh_session(name) as gmsh:
        raw = _RECIPES[name](gmsh, scale)
    cells = orient_cells(raw.points, np.concatenate(list(raw.blocks.values()))).astype(np.int32)
    tags = np.repeat(np.arange(len(raw.blocks)), [len(block) for block in raw.blocks.values()])
    facets, facet_tags = name_boundary(raw.points, cells, raw.facets)
    mesh = Mesh(
        points=raw.points,
        cells=cells,
        cell_tags=tags.astype(np.int32),
        tissues=tuple(raw.blocks),
        facets=facets,
        facet_tags=facet_tags,
        facet_names=tuple(raw.facets),
        origin={
            "made-by": f"verification_mesh({name!r}, corrected={corrected}, scale={scale:g})",
            "gmsh": str(gmsh.__version__),
        },
    )
    if corrected:
        interfaces = [Interface.of(raw.points, rows, shape) for rows, shape in raw.surfaces]
        mesh = replace(mesh, points=correct_volumes(raw.points, cells, interfaces))
    return tidy(mesh, like=raw.points)


def _sphere(gmsh: ModuleType, scale: float) -> _Raw:
    """Mesh the spheres; the thin csf is a layer of prisms between two tied surfaces."""
    geo = gmsh.model.geo
    balls = [add_ball(geo, radius) for radius in SPHERE_MM.values()]
    loops = [geo.addSurfaceLoop(ball) for ball in balls]
    volumes = {
        "brain": geo.addVolume([loops[0]]),
        "skull": geo.addVolume([loops[2], loops[1]]),
        "scalp": geo.addVolume([loops[3], loops[2]]),
    }
    geo.synchronize()
    shrink = np.diag([SPHERE_MM["brain"] / SPHERE_MM["csf"]] * 3 + [1.0])
    gmsh.model.mesh.setPeriodic(2, balls[0], balls[1], shrink.ravel().tolist())
    set_smallest(gmsh, [add_formula(gmsh, f"{scale!r}*(14.5-5.7*Sqrt(x*x+y*y+z*z)/78)")])
    gmsh.model.mesh.generate(3)
    nodes = Generated(gmsh)
    cells = {name: nodes.elements(3, [volume]) for name, volume in volumes.items()}
    csf = prism_cells(nodes.elements(2, balls[1]), nodes.images(balls[0]))
    return _Raw(
        points=1e-3 * nodes.points,
        blocks={name: cells.get(name, csf) for name in SPHERE_MM},
        surfaces=[
            (nodes.elements(2, ball), _spheroid((radius,) * 3, share=1.0))
            for radius, ball in zip(SPHERE_MM.values(), balls, strict=True)
        ],
        facets={"outer": lambda centroids: np.full(len(centroids), fill_value=True)},
    )


def _cylinder(gmsh: ModuleType, scale: float) -> _Raw:
    geo, half = gmsh.model.geo, CYLINDER_HALF_LENGTH_MM
    tubes = [
        add_tube(geo, Ellipse(0.0, 0.0, r, r), [-half, half], QUARTERS)
        for r in CYLINDER_MM.values()
    ]
    volumes = {
        name: add_volume(geo, tube, tubes[max(k - 1, 0) : k])
        for k, (name, tube) in enumerate(zip(CYLINDER_MM, tubes, strict=True))
    }
    geo.synchronize()
    radius = "Sqrt(x*x+y*y)"
    beyond = "({0}-{1}+Fabs({0}-{1}))/2"
    steps = f"1.28+0.21*{beyond.format(radius, 8)}-0.08*{beyond.format(radius, 10)}"
    set_smallest(gmsh, [add_formula(gmsh, f"{scale!r}*({steps})")])
    gmsh.model.mesh.generate(3)
    nodes = Generated(gmsh)
    ends = 1e-3 * half
    return _Raw(
        points=1e-3 * nodes.points,
        blocks={name: nodes.elements(3, [volume]) for name, volume in volumes.items()},
        surfaces=[
            (
                nodes.elements(2, tube.surfaces),
                elliptic_tube(0.0, 0.0, 1e-3 * r, 1e-3 * r, 2 * ends),
            )
            for r, tube in zip(CYLINDER_MM.values(), tubes, strict=True)
        ],
        facets={"outer": lambda centroids: np.abs(centroids[:, 2]) < ends - 1e-9},
    )


def _disc(gmsh: ModuleType, scale: float) -> _Raw:
    """Mesh half a ball and flatten it to half a spheroid; its rim encloses the disc's area."""
    geo = gmsh.model.geo
    volume, outer, disc, rim = add_disc_in_half_ball(geo, DISC_OUTER_MM[0], DISC_RADIUS_MM)
    geo.synchronize()
    rims = add_rims(gmsh, rim, 0.012 * scale, 0.37)
    set_smallest(gmsh, [rims, add_formula(gmsh, repr(2.0 * scale))])
    gmsh.model.mesh.generate(3)
    nodes = Generated(gmsh)
    points = 1e-3 * nodes.points * [1.0, 1.0, DISC_OUTER_MM[2] / DISC_OUTER_MM[0]]
    return _Raw(
        points=_with_disc_area(points, nodes.elements(2, [disc])),
        blocks={"medium": nodes.elements(3, [volume])},
        surfaces=[(nodes.elements(2, outer), _spheroid(DISC_OUTER_MM, share=0.5))],
        facets={
            "disc": lambda centroids: (
                (centroids[:, 2] > -1e-12)
                & (np.hypot(centroids[:, 0], centroids[:, 1]) < 1e-3 * DISC_RADIUS_MM)
            ),
            "outer": lambda centroids: centroids[:, 2] < -1e-12,
        },
    )


def _with_disc_area(points: Floats, disc: Ints) -> Floats:
    """Return points with the rim of the disc moved outwards until the disc's area is right."""
    area = np.pi * (1e-3 * DISC_RADIUS_MM) ** 2
    rim = np.unique(disc)
    rim = rim[np.hypot(points[rim, 0], points[rim, 1]) > 1e-3 * DISC_RADIUS_MM * (1 - 1e-6)]
    angle = np.sort(np.arctan2(points[rim, 1], points[rim, 0]))
    steps = np.diff(np.append(angle, angle[0] + 2 * np.pi))
    polygon = np.sum(np.sin(steps)) / 2 * (1e-3 * DISC_RADIUS_MM) ** 2
    moved = points.copy()
    moved[rim, :2] *= np.sqrt(area / polygon)
    return moved


def _spheroid(half_axes_mm: tuple[float, float, float], *, share: float) -> Quadric:
    """Return an ellipsoid about the origin of which a share, cut through the centre, is meshed."""
    a, b, c = (1e-3 * axis for axis in half_axes_mm)
    return Quadric((0.0, 0.0, 0.0), (a, b, c), share * 4 / 3 * np.pi * a * b * c)


_RECIPES = {"sphere": _sphere, "cylinder": _cylinder, "disc": _disc}
