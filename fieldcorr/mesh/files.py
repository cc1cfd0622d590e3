"""Read and write meshes: ``.fcmesh``, and every format of other programs that meshio knows.

A foreign file has integer tags on its tetrahedra and on the triangles of its contacts; here the
tags have names and lengths are in m.
"""

import contextlib
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.files import write_beside
from fieldcorr.mesh.check import check_extent
from fieldcorr.mesh.data import Floats, Mesh, tetrahedron_volumes
from fieldcorr.mesh.fcmesh import read_fcmesh, write_fcmesh

if TYPE_CHECKING:
    import meshio

Unit = Literal["m", "mm"]
Names = Mapping[str, str]
T = TypeVar("T")

_SCALE = {"m": 1.0, "mm": 1e-3}
_FLAT_KINDS = {"vertex", "line", "line3", "triangle"}
_PHYSICAL = "gmsh:physical"


def read_mesh(
    path: str | os.PathLike[str],
    *,
    unit: Unit | None = None,
    tissue_names: Names | None = None,
    facet_names: Names | None = None,
    tag_data: str | None = None,
) -> Mesh:
    """Read a mesh; the file is checked as a file, the mesh is not (see ``check_mesh``).

    Parameters
    ----------
    path : path
        ``.fcmesh``, or anything that meshio reads with tetrahedra, tags on them, and tagged
        triangles for the contacts.
    unit : "m" or "mm", optional
        Unit of a foreign file's coordinates; m by default.
    tissue_names, facet_names : tag or name in the file -> name here, optional
        Names of the tags; by default those in the file (Gmsh's physical names).
    tag_data : str, optional
        Which cell data of a foreign file holds the tags; by default Gmsh's physical tags, or the
        only integer data there is.

    Raises
    ------
    MeshError
        The file is missing, damaged or hostile, its tags have no names, or its size does not fit
        the unit.
    """
    if unit is not None and unit not in _SCALE:
        raise MeshError(f'{path}: unit = {unit!r}: must be "m" or "mm"')
    source = Path(path)
    if source.suffix == ".fcmesh":
        if unit == "mm" or tissue_names or facet_names or tag_data:
            raise MeshError(
                f"{path}: unit and names are part of a .fcmesh file and cannot be given"
            )
        return read_fcmesh(source)
    raw = _read_with_meshio(source)
    try:
        mesh = _convert(raw, unit or "m", tissue_names or {}, facet_names or {}, tag_data)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None
    return replace(mesh, origin={"read-from": source.name, "unit": unit or "m"})


def write_mesh(mesh: Mesh, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a mesh: ``.fcmesh``, or any format of meshio's by the ending of the name.

    An existing file is refused, unless ``force``; it stays until the new one is complete.
    """
    target = Path(path)
    with write_beside(target, error=MeshError, force=force) as draft:
        if target.suffix == ".fcmesh":
            write_fcmesh(mesh, draft)
        else:
            _guarded(target, "cannot be written", lambda: _write_foreign(mesh, draft))


def _write_foreign(mesh: Mesh, path: Path) -> None:
    """Write a mesh in m with tags and names as Gmsh keeps them, in any format of meshio's."""
    import meshio

    blocks, tags = [("tetra", mesh.cells)], [mesh.cell_tags + 1]
    if len(mesh.facets):
        blocks.append(("triangle", mesh.facets))
        tags.append(mesh.facet_tags + 1)
    names = {name: np.array([k + 1, 3]) for k, name in enumerate(mesh.tissues)}
    names |= {name: np.array([k + 1, 2]) for k, name in enumerate(mesh.facet_names)}
    data = {_PHYSICAL: tags, "gmsh:geometrical": tags}
    content = meshio.Mesh(mesh.points, blocks, cell_data=data, field_data=names)
    # The newest .msh format has no place for tags without the geometry they belong to.
    kind = "gmsh22" if path.suffix == ".msh" else None
    meshio.write(path, content, kind)


def _read_with_meshio(path: Path) -> "meshio.Mesh":
    import meshio

    if not path.is_file():
        raise MeshError(f"{path}: no such mesh file")
    return _guarded(path, "cannot be read as a mesh", lambda: meshio.read(path))


def _guarded(path: Path, what: str, action: Callable[[], T]) -> T:
    """Run a function of meshio, which prints its errors and ends the program on some of them."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            return action()
    except (Exception, SystemExit) as error:
        reason = " ".join((str(error) if str(error) != "1" else said.getvalue()).split())[:200]
        raise MeshError(f"{path}: {what} ({reason or type(error).__name__})") from None


def _convert(
    raw: "meshio.Mesh", unit: Unit, tissue_names: Names, facet_names: Names, tag_data: str | None
) -> Mesh:
    _check_kinds(raw)
    data = _tag_data(raw, tag_data)
    cells, cell_values = _block(raw, "tetra", data)
    triangles, triangle_values = _block(raw, "triangle", data)
    tagged = triangle_values != 0
    tissues, cell_tags = _named(cell_values, _names(raw, 3, tissue_names), "cells", "tissue")
    facets, facet_tags = _named(
        triangle_values[tagged], _names(raw, 2, facet_names), "triangles", "contact"
    )
    points, tetrahedra, contacts = _compact(
        _points_in_m(raw.points, unit), cells, triangles[tagged]
    )
    return Mesh(
        points=points,
        cells=_one_orientation(points, tetrahedra),
        cell_tags=cell_tags,
        tissues=tissues,
        facets=contacts,
        facet_tags=facet_tags,
        facet_names=facets,
    )


def _check_kinds(raw: "meshio.Mesh") -> None:
    kinds = {block.type for block in raw.cells}
    other = sorted(kinds - _FLAT_KINDS - {"tetra"})
    if other:
        raise MeshError(f"cells of type {other[0]!r}; only straight tetrahedra can be used")
    if "tetra" not in kinds:
        raise MeshError(f"there are no tetrahedra, only {', '.join(sorted(kinds)) or 'points'}")


def _tag_data(raw: "meshio.Mesh", wanted: str | None) -> str:
    """Return the name of the cell data that holds the tags."""
    whole = sorted(
        str(name)
        for name, blocks in raw.cell_data.items()
        if all(np.issubdtype(np.asarray(block).dtype, np.integer) for block in blocks)
    )
    if wanted is not None:
        if wanted not in whole:
            raise MeshError(f"no integer cell data {wanted!r}; it has {', '.join(whole) or 'none'}")
        return wanted
    if _PHYSICAL in whole:
        return _PHYSICAL
    if len(whole) != 1:
        raise MeshError(
            f"missing tags: of the integer cell data ({', '.join(whole) or 'none'}) name the one "
            "that holds the tissues"
        )
    return whole[0]


def _block(raw: "meshio.Mesh", kind: str, data: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and the tags of all blocks of one kind."""
    rows = np.asarray(raw.get_cells_type(kind), dtype=np.int64)
    tags = raw.get_cell_data(data, kind) if len(rows) else np.zeros(0)
    return rows, np.asarray(tags).astype(np.int64).ravel()


def _names(raw: "meshio.Mesh", dimension: int, chosen: Names) -> dict[int, str]:
    """Return tag -> name: names in the file, changed by ``chosen``.

    A key of ``chosen`` that is a whole number is a tag, any other a name in the file.
    """
    names = {
        int(tag): str(name)
        for name, (tag, size) in ((n, np.ravel(v)[:2]) for n, v in raw.field_data.items())
        if int(size) == dimension
    }
    by_tag = {int(key): name for key, name in chosen.items() if key.lstrip("-").isdigit()}
    by_name = {key: name for key, name in chosen.items() if not key.lstrip("-").isdigit()}
    return {tag: by_name.get(name, name) for tag, name in names.items()} | by_tag


def _named(
    values: NDArray[np.int64], names: Mapping[int, str], what: str, role: str
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the names in use and the position (N,) of each value's name among them."""
    used, inverse = np.unique(values, return_inverse=True)
    unnamed = [int(tag) for tag in used if int(tag) not in names]
    if unnamed:
        count = int(np.count_nonzero(values == unnamed[0]))
        raise MeshError(
            f"missing name: {count} {what} carry the tag {unnamed[0]}; say which "
            f"{role} it is (--{role}-tag {unnamed[0]}=NAME)"
        )
    known = tuple(dict.fromkeys(names[int(tag)] for tag in used))
    position = np.array([known.index(names[int(tag)]) for tag in used], dtype=np.int32)
    return known, position[inverse] if len(used) else np.zeros(0, np.int32)


def _points_in_m(points: NDArray[np.generic], unit: Unit) -> Floats:
    flat = np.asarray(points, dtype=np.float64)
    if flat.ndim != 2 or flat.shape[1] != 3:
        raise MeshError(f"points have shape {flat.shape}; three coordinates are needed")
    scaled: Floats = flat * _SCALE[unit]
    if len(scaled) and np.all(np.isfinite(scaled)):
        check_extent(float(np.ptp(scaled, axis=0).max()), unit)
    return scaled


def _compact(
    points: Floats, cells: NDArray[np.int64], triangles: NDArray[np.int64]
) -> tuple[Floats, NDArray[np.int32], NDArray[np.int32]]:
    """Drop nodes that neither cells nor facets use, such as centres of arcs."""
    for rows in (cells, triangles):
        if rows.size and (rows.min() < 0 or rows.max() >= len(points)):
            raise MeshError(f"cells use node {rows.max()}, but there are {len(points)} nodes")
    used = np.zeros(len(points), dtype=bool)
    used[cells], used[triangles] = True, True
    number = np.cumsum(used, dtype=np.int32) - 1
    return points[used], number[cells], number[triangles]


def _one_orientation(points: Floats, cells: NDArray[np.int32]) -> NDArray[np.int32]:
    """Flip all cells if every one is negative: the file has the other order of vertices."""
    if len(cells) and np.all(tetrahedron_volumes(points, cells) < 0):
        return cells[:, [0, 1, 3, 2]]
    return cells
