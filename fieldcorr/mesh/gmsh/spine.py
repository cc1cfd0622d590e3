"""Build the mesh of a model: nested cylinders with a paddle as a void, contacts and case imprinted.

The dura is a few tenths of a millimetre thin and is not given to gmsh: its inner surface is meshed
as the image of its outer one, and the prisms between the two are cut into tetrahedra here. Left to
itself gmsh fills the space between two unlike triangulations with slivers, in eight times the time.
"""

from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from fieldcorr.mesh.data import Floats, Ints, Mesh, orient_cells
from fieldcorr.mesh.gmsh.session import (
    Generated,
    add_formula,
    add_limit,
    add_rims,
    gmsh_session,
    prism_cells,
    set_smallest,
)
from fieldcorr.mesh.gmsh.shapes import QUARTERS, PaddleShell, Tube, add_paddle, add_tube, add_volume
from fieldcorr.mesh.gmsh.sizes import MeshSizes, Stretch, bulk_size_formula, largest_edges
from fieldcorr.mesh.gmsh.volumes import Interface, correct_volumes, elliptic_tube
from fieldcorr.mesh.order import tidy
from fieldcorr.mesh.topology import boundary_facets, locate_facets
from fieldcorr.model import REQUIRED_TISSUES, Model, SizesTable

_FILLS: dict[str, tuple[str, tuple[str, ...]]] = {
    "torso": ("muscle", ("vertebra",)),
    "vertebra": ("bone", ("canal",)),
    "canal": ("fat", ("dura",)),
    "sac": ("csf", ("cord",)),
    "cord": ("white", ("grey-left", "grey-right")),
    "grey-left": ("grey", ()),
    "grey-right": ("grey", ()),
}
_BEYOND_PADDLE_MM = 8.0  # how far the fine region reaches beyond the paddle's ends


@dataclass(frozen=True)
class Spine:
    """Tags of what was added to gmsh, and the map of its z axis."""

    tubes: dict[str, Tube]
    volumes: dict[str, int]
    paddle: PaddleShell
    case: int
    stretch: Stretch


def build_mesh(model: Model, *, sizes: MeshSizes | SizesTable | None = None) -> Mesh:
    """Build the mesh of a model with gmsh; the same input gives the same mesh.

    Its facet sets are every contact by its name, "outer" (the torso's surface with its flat ends,
    without the case) and "case"; the uncovered faces of the paddle carry no name. ``sizes`` are the
    model's own by default.

    Raises
    ------
    MissingExtraError
        gmsh is not installed.
    MeshError
        gmsh cannot mesh the geometry at these sizes.
    """
    chosen = MeshSizes.of(model.mesh.sizes if sizes is None else sizes)
    with gmsh_session(model.name) as gmsh:
        spine = _add_geometry(gmsh.model.geo, model, chosen)
        gmsh.model.geo.synchronize()
        _tie_dura(gmsh, model, spine.tubes)
        _set_sizes(gmsh, model, chosen, spine)
        gmsh.model.mesh.generate(3)
        mesh, interfaces = _collect_spine(Generated(gmsh), model, spine)
    points = correct_volumes(mesh.points, mesh.cells, interfaces.values())
    origin = {
        "made-by": "build_mesh",
        "model": model.name,
        "shape-sha256": model.shape_hash,
        "sizes": asdict(chosen),
        "gmsh": str(gmsh.__version__),
        "volume-error": {
            name: {
                "before": interface.volume_error(mesh.points),
                "after": interface.volume_error(points),
            }
            for name, interface in interfaces.items()
        },
    }
    return tidy(replace(mesh, points=points, origin=origin))


def _collect_spine(
    nodes: Generated, model: Model, spine: Spine
) -> tuple[Mesh, dict[str, Interface]]:
    """Read the generated mesh back, in m, with the dura filled in and the boundary named."""
    points = 1e-3 * nodes.points
    points[:, 2] = 1e-3 * spine.stretch.to_model(nodes.points[:, 2])
    blocks = {name: nodes.elements(3, [volume]) for name, volume in spine.volumes.items()}
    outer = nodes.elements(2, spine.tubes["dura"].surfaces)
    blocks["dura"] = prism_cells(outer, nodes.images(spine.tubes["sac"].surfaces))
    fills = [*(tissue for tissue, _ in _FILLS.values()), "dura"]
    tissues = [REQUIRED_TISSUES.index(tissue) for tissue in fills]
    tags = np.repeat(tissues, [len(cells) for cells in blocks.values()])
    cells = orient_cells(points, np.concatenate(list(blocks.values()))).astype(np.int32)
    facets, facet_tags, facet_names = _name_boundary(nodes, cells, model, spine)
    mesh = Mesh(
        points=points,
        cells=cells,
        cell_tags=tags.astype(np.int32),
        tissues=REQUIRED_TISSUES,
        facets=facets,
        facet_tags=facet_tags,
        facet_names=facet_names,
    )
    return mesh, _interfaces(nodes, points, model, spine)


def _add_geometry(geo: Any, model: Model, sizes: MeshSizes) -> Spine:
    centre = model.array.offset_rostral_mm
    reach = float(np.abs(model.placement.corners_mm[:, 2] - centre).max()) + _BEYOND_PADDLE_MM
    stretch = Stretch(centre, reach, sizes.stretch, sizes.end_stretch)
    ellipses = model.geometry.ellipses()
    half, case = model.geometry.torso.length_mm / 2, model.boundary.case
    low, high = (case.offset_rostral_mm + side * case.height_mm / 2 for side in (-1, 1))
    levels = [stretch.to_generator(z) for z in (-half, low, high, half)]
    tubes = {
        name: add_tube(geo, ellipse, [levels[0], levels[-1]], QUARTERS)
        for name, ellipse in ellipses.items()
        if name != "torso"
    }
    tubes["torso"] = add_tube(geo, ellipses["torso"], levels, _torso_angles(model))
    paddle = add_paddle(geo, *_paddle_points(model, stretch))
    holes = {"canal": [[*paddle.contacts, *paddle.body]]}
    volumes = {
        name: add_volume(geo, tubes[name], [tubes[i] for i in inside], holes.get(name, []))
        for name, (_, inside) in _FILLS.items()
    }
    return Spine(tubes, volumes, paddle, tubes["torso"].sides[1][0], stretch)


def _torso_angles(model: Model) -> Floats:
    """Return where the torso's outline is cut: the case patch is the first arc, four follow.

    The case's angle counts from dorsal (y) towards left (x), the outline's from x towards y.
    """
    case, radius = model.boundary.case, model.geometry.torso.radius_mm
    centre, half = np.pi / 2 - np.deg2rad(case.angle_degree), case.width_mm / radius / 2
    rest = np.linspace(centre + half, centre - half + 2 * np.pi, 5)
    return np.concatenate(([centre - half], rest[:-1]))


def _paddle_points(model: Model, stretch: Stretch) -> tuple[Floats, Floats]:
    """Return the paddle's corners (8, 3) and its contacts' corners (E, 4, 3) for gmsh, in mm."""
    size = model.device.contact
    around = np.array([[-1, 0, -1], [1, 0, -1], [1, 0, 1], [-1, 0, 1]]) / 2
    offsets = around * [size.width_mm, 0.0, size.length_mm]
    rectangles = 1e3 * model.device.positions_m[:, None, :] + offsets
    placed = 1e3 * model.placement.to_model_m(1e-3 * rectangles)
    return _compressed(model.placement.corners_mm, stretch), _compressed(placed, stretch)


def _compressed(points: Floats, stretch: Stretch) -> Floats:
    """Map points around the array; the map is linear there, so plane faces stay plane."""
    result = points.copy()
    result[..., 2] = (points[..., 2] - stretch.centre_mm) / stretch.near
    return result


def _tie_dura(gmsh: ModuleType, model: Model, tubes: dict[str, Tube]) -> None:
    """Mesh the inner dura as the image of the outer one under the scaling of x and y."""
    inner, outer = (model.geometry.ellipses()[name] for name in ("sac", "dura"))
    scale = (inner.half_width / outer.half_width, inner.half_depth / outer.half_depth)
    matrix = np.diag([*scale, 1.0, 1.0])
    matrix[0, 3] = inner.left - scale[0] * outer.left
    matrix[1, 3] = inner.dorsal - scale[1] * outer.dorsal
    gmsh.model.mesh.setPeriodic(
        2, tubes["sac"].surfaces, tubes["dura"].surfaces, matrix.ravel().tolist()
    )


def _set_sizes(gmsh: ModuleType, model: Model, sizes: MeshSizes, spine: Spine) -> None:
    dura = model.geometry.ellipses()["dura"]
    bulk = bulk_size_formula(
        sizes,
        reach=spine.stretch.reach_mm / spine.stretch.near,
        half_width=dura.half_width,
        half_depth=dura.half_depth,
        torso_mm=model.geometry.torso.radius_mm,
    )
    edges = largest_edges(model.geometry.ellipses(), model.placement.corners_mm[:, :2])
    limits = [add_limit(gmsh, spine.tubes[name].surfaces, edge) for name, edge in edges.items()]
    rims = add_rims(gmsh, spine.paddle.rims, sizes.rim_mm, sizes.growth)
    set_smallest(gmsh, [rims, add_formula(gmsh, bulk), *limits])


def _name_boundary(
    nodes: Generated, cells: Ints, model: Model, spine: Spine
) -> tuple[Ints, Ints, tuple[str, ...]]:
    """Return named boundary facets (F, 3), their tags (F,) and the names."""
    facets, _ = boundary_facets(cells)
    names = (*model.device.contact_names, "outer", "case")
    tags = np.full(len(facets), names.index("outer"), dtype=np.int32)
    surfaces = dict(enumerate(spine.paddle.contacts)) | {names.index("case"): spine.case}
    for position, surface in surfaces.items():
        tags[locate_facets(nodes.elements(2, [surface]), facets)] = position
    tags[locate_facets(nodes.elements(2, spine.paddle.body), facets)] = -1
    return facets[tags >= 0], tags[tags >= 0], names


def _interfaces(
    nodes: Generated, points: Floats, model: Model, spine: Spine
) -> dict[str, Interface]:
    """Return every elliptic interface with its facets, oriented outwards."""
    length = 1e-3 * model.geometry.torso.length_mm
    result = {}
    for name, ellipse in model.geometry.ellipses().items():
        outline = (ellipse.left, ellipse.dorsal, ellipse.half_width, ellipse.half_depth)
        x, y, a, b = (1e-3 * value for value in outline)
        facets = nodes.elements(2, spine.tubes[name].surfaces)
        result[name] = Interface.of(points, facets, elliptic_tube(x, y, a, b, length))
    return result
