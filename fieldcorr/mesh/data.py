"""The mesh as plain arrays: one frozen :class:`Mesh` that every later stage reads.

Shapes and index bounds are checked here, because an index out of range would crash a compiled
kernel; everything that needs geometry is the work of :func:`fieldcorr.mesh.check_mesh`.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import MeshError

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Mesh:
    """A conforming mesh of tetrahedra, its tissues, and the boundary triangles that have a name.

    Attributes
    ----------
    points : (P, 3) float64, m
        Vertices: x to the left, y dorsal, z rostral.
    cells : (T, 4) int32
        Positively oriented: det(p1 - p0, p2 - p0, p3 - p0) > 0.
    cell_tags : (T,) int32
        ``tissues[cell_tags[t]]`` is the tissue of cell t.
    facets : (F, 3) int32
        Boundary triangles with a name; the normal of the vertex order points out of the tissue.
    facet_tags : (F,) int32
        ``facet_names[facet_tags[f]]`` is the name of facet f: contacts "0", "1", ..., the surface
        "outer", the stimulator's "case".
    origin : mapping
        How the mesh was made, as JSON values; not part of the hash.
    """

    points: Floats
    cells: Ints
    cell_tags: Ints
    tissues: tuple[str, ...]
    facets: Ints
    facet_tags: Ints
    facet_names: tuple[str, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _freeze(self, "points", np.float64, (None, 3))
        _freeze(self, "cells", np.int32, (None, 4))
        _freeze(self, "cell_tags", np.int32, (len(self.cells),))
        _freeze(self, "facets", np.int32, (None, 3))
        _freeze(self, "facet_tags", np.int32, (len(self.facets),))
        object.__setattr__(self, "tissues", _checked_names("tissues", self.tissues))
        object.__setattr__(self, "facet_names", _checked_names("facet_names", self.facet_names))
        _check_range("cells", self.cells, self.n_points)
        _check_range("facets", self.facets, self.n_points)
        _check_range("cell_tags", self.cell_tags, len(self.tissues))
        _check_range("facet_tags", self.facet_tags, len(self.facet_names))

    @property
    def n_points(self) -> int:
        """Number of points P."""
        return len(self.points)

    @property
    def n_cells(self) -> int:
        """Number of tetrahedra T."""
        return len(self.cells)

    @cached_property
    def hash(self) -> str:
        """Sha256 of the arrays and names, as hexadecimal text."""
        digest = hashlib.sha256()
        for array in (self.points, self.cells, self.cell_tags, self.facets, self.facet_tags):
            digest.update(str(array.shape).encode())
            digest.update(array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())
        for name in (*self.tissues, "", *self.facet_names):
            digest.update(name.encode() + b"\0")
        return digest.hexdigest()

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import mesh_card

        return mesh_card(self)

    def volumes(self) -> Floats:
        """Return the signed volume of every cell, (T,) m3: det(p1 - p0, p2 - p0, p3 - p0) / 6."""
        return tetrahedron_volumes(self.points, self.cells)

    def facet_areas(self) -> Floats:
        """Return the area of every tagged facet, (F,) m2."""
        return triangle_areas(self.points, self.facets)

    def facet_tag(self, name: str) -> int:
        """Return the tag of the facet set ``name``."""
        if name not in self.facet_names:
            known = ", ".join(self.facet_names) or "none"
            raise MeshError(f"mesh: no facet set named {name!r}; it has {known}")
        return self.facet_names.index(name)


def tetrahedron_volumes(points: Floats, cells: NDArray[np.integer]) -> Floats:
    """Return det(p1 - p0, p2 - p0, p3 - p0) / 6 of each cell, (T,), signed."""
    start = points[cells[:, 0]]
    a, b, c = (points[cells[:, k]] - start for k in (1, 2, 3))
    return np.asarray(np.einsum("ij,ij->i", a, np.cross(b, c)) / 6.0)


def triangle_areas(points: Floats, facets: NDArray[np.integer]) -> Floats:
    """Return |(p1 - p0) x (p2 - p0)| / 2 of each triangle, (F,)."""
    return np.asarray(0.5 * np.linalg.norm(triangle_normals(points, facets), axis=1))


def triangle_normals(points: Floats, facets: NDArray[np.integer]) -> Floats:
    """Return (p1 - p0) x (p2 - p0) of each triangle, (F, 3): twice the area vector."""
    start = points[facets[:, 0]]
    return np.cross(points[facets[:, 1]] - start, points[facets[:, 2]] - start)


def orient_cells(points: Floats, cells: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return the cells with two vertices exchanged wherever the volume is negative."""
    oriented = np.array(cells)
    wrong = tetrahedron_volumes(points, cells) < 0
    oriented[wrong, 2], oriented[wrong, 3] = cells[wrong, 3], cells[wrong, 2]
    return oriented


def _freeze(mesh: Mesh, name: str, dtype: type, shape: tuple[int | None, ...]) -> None:
    """Replace an array field by a read-only contiguous one of the right type and shape."""
    array = _as_exact(name, getattr(mesh, name), np.dtype(dtype))
    fits = array.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        raise MeshError(f"mesh: {name} has shape {array.shape}, which does not fit")
    array = np.ascontiguousarray(array)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    object.__setattr__(mesh, name, array)


def _as_exact(name: str, values: ArrayLike, dtype: np.dtype[Any]) -> NDArray[np.generic]:
    """Convert to ``dtype``; refuse when that would change an integer."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiu" and array.size:
        raise MeshError(f"mesh: {name} must be numbers, not {array.dtype}")
    if dtype.kind == "i" and (array.dtype.kind not in "iu" and array.size):
        raise MeshError(f"mesh: {name} must be integers, not {array.dtype}")
    if dtype.kind == "i" and array.size and (array.max() > np.iinfo(dtype).max or array.min() < -1):
        raise MeshError(f"mesh: {name} holds {array.min()}..{array.max()}, out of range")
    return array.astype(dtype, copy=False)


def _checked_names(name: str, values: Iterable[str]) -> tuple[str, ...]:
    names = tuple(values)
    if len(set(names)) != len(names) or not all(text and text.isprintable() for text in names):
        raise MeshError(f"mesh: {name} must be different printable names, not {names!a}")
    return names


def _check_range(name: str, array: Ints, stop: int) -> None:
    if array.size and not (array.min() >= 0 and array.max() < stop):
        raise MeshError(
            f"mesh: {name} holds {array.min()}..{array.max()}, allowed are 0..{stop - 1}"
        )
