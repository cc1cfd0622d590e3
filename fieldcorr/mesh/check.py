"""Refuse meshes that would give wrong fields, and report on those that would not.

Every defect has a message of its own; what is cheap and what others rest on is looked at first.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats, Ints, Mesh, tetrahedron_volumes
from fieldcorr.mesh.topology import FACE_VERTICES, Faces, all_faces, check_conformity, locate_facets

EXTENT_M = (2e-3, 5.0)
"""Smallest and largest sensible size of a whole mesh."""
FLAT = 1e-7
"""A cell is flat when its volume is below this share of its longest edge cubed."""
_EDGES = np.array(list(combinations(range(4), 2)))
_BLOCK = 1 << 13  # cells at a time: temporary arrays stay in the cache


@dataclass(frozen=True)
class MeshReport:
    """Figures of a mesh.

    ``size`` is its extent along x, y, z in m; ``tissues`` has the number of cells and the volume in
    m3 by name, ``facets`` the number of facets and their area in m2. Over all cells,
    ``dihedral_degree`` are the smallest and the largest angle between two faces, ``radius_ratio``
    the smallest, the 1st percentile and the median of 3 r_in / R_out (1 for the regular
    tetrahedron, 0 for a flat one), ``edge`` the shortest and the longest edge in m.
    """

    n_points: int
    n_cells: int
    size: tuple[float, float, float]
    tissues: Mapping[str, tuple[int, float]]
    facets: Mapping[str, tuple[int, float]]
    dihedral_degree: tuple[float, float]
    radius_ratio: tuple[float, float, float]
    edge: tuple[float, float]


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
    refuse_unsound(mesh, tissues=tissues, contacts=contacts, name=name)
    return measure_mesh(mesh)


def refuse_unsound(
    mesh: Mesh,
    *,
    tissues: Collection[str] | None,
    contacts: Collection[str] | None,
    name: str,
) -> None:
    """Raise what :func:`check_mesh` raises; without the report it takes two thirds of the time."""
    try:
        _check_points(mesh)
        _check_tissues(mesh, tissues)
        lengths = _edge_lengths(mesh.points, mesh.cells)
        _check_cells(mesh, lengths.max(axis=1))
        faces = all_faces(mesh.cells)
        check_conformity(mesh, faces, shortest_edge=float(lengths.min()))
        _check_facets(mesh, faces, mesh.facet_names if contacts is None else contacts)
    except MeshError as error:
        raise MeshError(f"{name}: {error}") from None


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
    bad = {"flat": np.abs(volumes) < FLAT * longest**3, "inverted": volumes < 0}
    for what, mask in bad.items():
        cells = np.flatnonzero(mask)
        if len(cells):
            tissue = mesh.tissues[mesh.cell_tags[cells[0]]]
            raise MeshError(f"{len(cells)} cells are {what}, first cell {cells[0]} in {tissue!r}")


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


def measure_mesh(mesh: Mesh) -> MeshReport:
    """Return counts, volumes, areas and quality of a sound mesh."""
    x, y, z = (float(extent) for extent in np.ptp(mesh.points, axis=0))
    blocks = [
        _measure_block(mesh.points, mesh.cells[start : start + _BLOCK])
        for start in range(0, mesh.n_cells, _BLOCK)
    ]
    low, high, ratio, short, long = (np.concatenate(column) for column in zip(*blocks, strict=True))
    lowest, percentile, median = np.percentile(ratio, [0, 1, 50])
    return MeshReport(
        n_points=mesh.n_points,
        n_cells=mesh.n_cells,
        size=(x, y, z),
        tissues=_by_name(mesh.tissues, mesh.cell_tags, mesh.volumes()),
        facets=_by_name(mesh.facet_names, mesh.facet_tags, mesh.facet_areas()),
        dihedral_degree=(float(low.min()), float(high.max())),
        radius_ratio=(float(lowest), float(percentile), float(median)),
        edge=(float(short.min()), float(long.max())),
    )


def _by_name(names: tuple[str, ...], tags: Ints, amounts: Floats) -> dict[str, tuple[int, float]]:
    counts = np.bincount(tags, minlength=len(names))
    sums = np.bincount(tags, amounts, minlength=len(names))
    return {name: (int(counts[k]), float(sums[k])) for k, name in enumerate(names)}


def _measure_block(points: Floats, cells: Ints) -> tuple[Floats, ...]:
    """Return low and high dihedral angle, radius ratio, short and long edge of cells, each (T,)."""
    corners = points[cells]
    first, second, third = (corners[:, FACE_VERTICES[:, k]] for k in range(3))
    normals = np.cross(second - first, third - first)  # outward, twice as long as a face is large
    sizes = np.sqrt(np.einsum("tfi,tfi->tf", normals, normals))
    low, high = _dihedral_range(normals / sizes[:, :, None])
    ratio = _radius_ratios(corners, tetrahedron_volumes(points, cells), 0.5 * sizes.sum(axis=1))
    lengths = _edge_lengths(points, cells)
    return low, high, ratio, lengths.min(axis=1), lengths.max(axis=1)


def _edge_lengths(points: Floats, cells: Ints) -> Floats:
    """Return the lengths (T, 6) of the edges of each cell."""
    corners = points[cells]
    edges = corners[:, _EDGES[:, 1]] - corners[:, _EDGES[:, 0]]
    return np.asarray(np.sqrt(np.einsum("tei,tei->te", edges, edges)))


def _radius_ratios(corners: Floats, volume: Floats, areas: Floats) -> Floats:
    """Return 3 r_in / R_out of each cell, (T,).

    r_in = 3 V / sum of face areas; R_out = |a^2 (b x c) + b^2 (c x a) + c^2 (a x b)| / (12 V) with
    the edges a, b, c from the first vertex.
    """
    a, b, c = (corners[:, k] - corners[:, 0] for k in (1, 2, 3))
    aa, bb, cc = (np.einsum("ij,ij->i", e, e)[:, None] for e in (a, b, c))
    around = aa * np.cross(b, c) + bb * np.cross(c, a) + cc * np.cross(a, b)
    return np.asarray(108.0 * volume**2 / (areas * np.linalg.norm(around, axis=1)))


def _dihedral_range(normals: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest dihedral angle of each cell, degrees."""
    cosine = -np.einsum("tei,tei->te", normals[:, _EDGES[:, 0]], normals[:, _EDGES[:, 1]])
    angles = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angles.min(axis=1), angles.max(axis=1)
