"""Refuse meshes that would give wrong fields, and report on those that would not.

What flows in: a :class:`Mesh`; the tissues and contacts that a model expects. What flows out: a
:class:`MeshReport`, or a :class:`~fieldcorr.errors.MeshError` of one line. Every defect has a
message of its own; what is cheap and what others rest on is looked at first.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.conformity import check_conformity
from fieldcorr.mesh.data import Floats, Ints, Mesh
from fieldcorr.mesh.quality import edge_lengths
from fieldcorr.mesh.report import MeshReport, make_report
from fieldcorr.mesh.topology import Faces, all_faces, locate_facets

EXTENT_M = (2e-3, 5.0)
"""Smallest and largest sensible size of a whole mesh."""
FLAT = 1e-7
"""A cell is flat when its volume is below this share of its longest edge cubed."""


def check_mesh(
    mesh: Mesh,
    *,
    tissues: Collection[str] | None = None,
    contacts: Collection[str] | None = None,
    name: str = "mesh",
) -> MeshReport:
    """Check a mesh and report on it.

    Parameters
    ----------
    mesh : Mesh
    tissues : names, optional
        Tissues that the mesh must have, and no others. By default any.
    contacts : names, optional
        Facet sets that must have faces. By default every facet set that the mesh names.
    name : str
        What messages call the mesh, for example its file.

    Raises
    ------
    MeshError
        Empty, not finite, wrong units, missing or unknown tags, flat or inverted cells, nodes that
        are unused or duplicate, compartments that do not conform or are not connected, contacts
        without faces or with faces inside a conductor.
    """
    try:
        _check_points(mesh)
        _check_tissues(mesh, tissues)
        lengths = edge_lengths(mesh.points, mesh.cells)
        _check_cells(mesh, lengths.max(axis=1))
        faces = all_faces(mesh.cells)
        check_conformity(mesh, faces, shortest_edge=float(lengths.min()))
        _check_facets(mesh, faces, mesh.facet_names if contacts is None else contacts)
    except MeshError as error:
        raise MeshError(f"{name}: {error}") from None
    return make_report(mesh)


def check_extent(extent: float, unit: str) -> None:
    """Refuse a mesh whose size in m makes it likely that its unit was misread."""
    if EXTENT_M[0] <= extent <= EXTENT_M[1]:
        return
    other, factor = ("mm", 1e-3) if unit == "m" else ("m", 1e3)
    raise MeshError(
        f"wrong units? read in {unit} the mesh is {extent:.3g} m large, "
        f"read in {other} it would be {extent * factor:.3g} m"
    )


def _check_points(mesh: Mesh) -> None:
    if not mesh.n_cells:
        raise MeshError("there are no tetrahedra")
    bad = np.flatnonzero(~np.isfinite(mesh.points).all(axis=1))
    if len(bad):
        raise MeshError(
            f"{len(bad)} nodes have coordinates that are not finite, first node {bad[0]}"
        )
    used = np.zeros(mesh.n_points, dtype=bool)
    used[mesh.cells] = True
    unused = np.flatnonzero(~used)
    if len(unused):
        raise MeshError(f"{len(unused)} nodes belong to no cell, first node {unused[0]}")
    check_extent(float(np.ptp(mesh.points, axis=0).max()), "m")


def _check_tissues(mesh: Mesh, tissues: Collection[str] | None) -> None:
    counts = np.bincount(mesh.cell_tags, minlength=len(mesh.tissues))
    present = [name for name, count in zip(mesh.tissues, counts, strict=True) if count]
    wanted = mesh.tissues if tissues is None else tissues
    unknown = [name for name in present if name not in wanted]
    if unknown:
        count = counts[mesh.tissues.index(unknown[0])]
        raise MeshError(
            f"unknown tissue {unknown[0]!r} on {count} cells; known are {', '.join(wanted)}"
        )
    missing = [name for name in wanted if name not in present]
    if missing:
        raise MeshError(f"missing tissue {missing[0]!r}: no cell carries this tag")


def _check_cells(mesh: Mesh, longest: Floats) -> None:
    volumes = mesh.volumes()
    flat = np.flatnonzero(np.abs(volumes) < FLAT * longest**3)
    if len(flat):
        raise MeshError(
            f"{len(flat)} cells are flat, first cell {flat[0]} in {_tissue(mesh, flat)}"
        )
    inverted = np.flatnonzero(volumes < 0)
    if len(inverted):
        raise MeshError(
            f"{len(inverted)} cells are inverted, first cell {inverted[0]} in "
            f"{_tissue(mesh, inverted)}"
        )


def _check_facets(mesh: Mesh, faces: Faces, contacts: Collection[str]) -> None:
    counts = np.bincount(mesh.facet_tags, minlength=len(mesh.facet_names))
    for name in contacts:
        if name not in mesh.facet_names or not counts[mesh.facet_names.index(name)]:
            raise MeshError(f"contact {name!r} has no faces")
    ours = np.isin(mesh.facet_tags, [mesh.facet_names.index(name) for name in contacts])
    tags = mesh.facet_tags[ours]
    found = locate_facets(mesh.facets[ours], faces.vertices)
    _refuse_facets(mesh, tags[found < 0], "that are no face of any cell")
    _refuse_facets(mesh, tags[faces.uses[found] > 1], "inside a conductor, not on its boundary")
    _, first = np.unique(found, return_index=True)
    _refuse_facets(mesh, np.delete(tags, first), "that are listed twice or carry two names")


def _refuse_facets(mesh: Mesh, tags: Ints, what: str) -> None:
    """Raise for the first of the facet sets that have bad facets; ``tags`` are those of all."""
    if len(tags):
        count = np.count_nonzero(tags == tags[0])
        raise MeshError(f"contact {mesh.facet_names[tags[0]]!r} has {count} faces {what}")


def _tissue(mesh: Mesh, cells: NDArray[np.integer[Any]]) -> str:
    return repr(mesh.tissues[mesh.cell_tags[cells[0]]])
