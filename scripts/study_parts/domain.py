"""Wrap a mesh in a larger conductor and leave every cell of it as it is.

New cells of "muscle" follow the old ones, out to a larger cylinder. Since the inner mesh is the
same, the change of r is that of the domain alone, without the noise of another mesh.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.mesh import Mesh
from fieldcorr.mesh.data import orient_cells
from fieldcorr.mesh.topology import boundary_facets

MM = 1e-3


def extend_domain(mesh: Mesh, radius_mm: float, length_mm: float, size_mm: float) -> Mesh:
    """Return the mesh inside a larger insulated cylinder of muscle; contacts keep their facets.

    Parameters
    ----------
    mesh : Mesh
        Its facet sets "outer" and "case" are the closed surface of the torso.
    radius_mm, length_mm : float
        The larger cylinder, centred like the old one.
    size_mm : float
        Edge length at its surface.
    """
    skin_tags = [mesh.facet_names.index(name) for name in ("outer", "case")]
    on_skin = np.isin(mesh.facet_tags, skin_tags)
    used, packed = np.unique(mesh.facets[on_skin], return_inverse=True)
    centre = 0.5 * (mesh.points[used].min(axis=0) + mesh.points[used].max(axis=0))
    points, cells = _fill_shell(
        mesh.points[used] / MM, packed.reshape(-1, 3), centre / MM, radius_mm, length_mm, size_mm
    )
    new = len(used)  # the first points of the shell are those of the skin
    numbers = np.concatenate([used, mesh.n_points + np.arange(len(points) - new)])
    all_points = np.concatenate([mesh.points, MM * points[new:]])
    shell = orient_cells(all_points, numbers[cells]).astype(np.int32)
    all_cells = np.concatenate([mesh.cells, shell])
    tags = np.full(len(shell), mesh.tissues.index("muscle"), dtype=np.int32)
    outer, _ = boundary_facets(all_cells)
    outer = outer[(outer >= mesh.n_points).all(axis=1)]
    contact_facets = mesh.facets[~on_skin]
    outer_tag = mesh.facet_names.index("outer")
    return Mesh(
        points=all_points,
        cells=all_cells,
        cell_tags=np.concatenate([mesh.cell_tags, tags]),
        tissues=mesh.tissues,
        facets=np.concatenate([contact_facets, outer]).astype(np.int32),
        facet_tags=np.concatenate(
            [mesh.facet_tags[~on_skin], np.full(len(outer), outer_tag)]
        ).astype(np.int32),
        facet_names=mesh.facet_names,
        origin={"made-by": f"extend_domain({radius_mm:g}, {length_mm:g}, {size_mm:g})"},
    )


def _fill_shell(
    skin: NDArray[np.float64],
    triangles: NDArray[np.int64],
    centre: NDArray[np.float64],
    radius: float,
    length: float,
    size: float,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mesh between a closed triangulated surface and a cylinder (mm); skin points come first."""
    import gmsh

    gmsh.initialize(interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.Renumber", 0)  # or the skin loses its numbers
        gmsh.model.addDiscreteEntity(2, 1)
        tags = np.arange(1, len(skin) + 1)
        gmsh.model.mesh.addNodes(2, 1, tags, skin.ravel())
        gmsh.model.mesh.addElementsByType(1, 2, [], (triangles + 1).ravel())
        inner = gmsh.model.geo.addSurfaceLoop([1])
        outer = _cylinder(gmsh, centre, radius, length, size)
        volume = gmsh.model.geo.addVolume([outer, inner])
        gmsh.model.geo.synchronize()
        gmsh.option.setNumber("Mesh.MeshSizeExtendFromBoundary", 1)
        gmsh.model.mesh.generate(3)
        node_tags, coordinates, _ = gmsh.model.mesh.getNodes()
        _, corners = gmsh.model.mesh.getElementsByType(4, volume)
    finally:
        gmsh.finalize()
    order = np.argsort(node_tags)
    points = np.asarray(coordinates).reshape(-1, 3)[order]
    cells = np.searchsorted(node_tags[order], corners).reshape(-1, 4)
    used = np.union1d(np.arange(len(skin)), cells)
    return points[used], np.searchsorted(used, cells)


def _cylinder(
    gmsh: Any, centre: NDArray[np.float64], radius: float, length: float, size: float
) -> int:
    """Add the surface of a cylinder along z from quarter arcs; return its surface loop."""
    geo = gmsh.model.geo
    bottom = geo.addPoint(centre[0], centre[1], centre[2] - 0.5 * length, size)
    corners = [
        geo.addPoint(centre[0] + radius * x, centre[1] + radius * y, centre[2] - 0.5 * length, size)
        for x, y in ((1, 0), (0, 1), (-1, 0), (0, -1))
    ]
    arcs = [geo.addCircleArc(corners[k], bottom, corners[(k + 1) % 4]) for k in range(4)]
    floor = geo.addPlaneSurface([geo.addCurveLoop(arcs)])
    sides = geo.extrude([(1, arc) for arc in arcs], 0.0, 0.0, length)
    walls = [tag for dimension, tag in sides if dimension == 2]
    tops = [sides[4 * k][1] for k in range(4)]
    roof = geo.addPlaneSurface([geo.addCurveLoop(tops)])
    return int(geo.addSurfaceLoop([floor, roof, *walls]))
