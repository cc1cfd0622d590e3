"""Meshes of boxes without a mesh generator: every brick of a grid is cut into six tetrahedra.

What flows in: the grid lines along x, y, z and two functions that name cells and boundary facets.
What flows out: a conforming :class:`Mesh`. Used for convergence studies and closed forms on slabs.
"""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import NO_TAG, Floats, Ints, Mesh, orient_cells, triangle_normals
from fieldcorr.mesh.topology import boundary_facets

CellTagger = Callable[[Floats], NDArray[np.integer[Any]]]
FacetTagger = Callable[[Floats, Floats], NDArray[np.integer[Any]]]


def box_mesh(
    nx: int,
    ny: int,
    nz: int,
    *,
    bounds: ArrayLike = ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    tissues: Sequence[str] = ("medium",),
    cell_tag: CellTagger | None = None,
    facet_names: Sequence[str] = ("outer",),
    facet_tag: FacetTagger | None = None,
) -> Mesh:
    """Return the box ``bounds`` (3, 2) in m, cut into 6 nx ny nz tetrahedra of equal volume.

    Parameters are those of :func:`grid_mesh`, with nx, ny, nz equal steps along the axes.
    """
    limits = np.asarray(bounds, dtype=np.float64)
    steps = (nx, ny, nz)
    lines = [np.linspace(limits[axis, 0], limits[axis, 1], steps[axis] + 1) for axis in range(3)]
    return grid_mesh(
        *lines, tissues=tissues, cell_tag=cell_tag, facet_names=facet_names, facet_tag=facet_tag
    )


def grid_mesh(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    *,
    tissues: Sequence[str] = ("medium",),
    cell_tag: CellTagger | None = None,
    facet_names: Sequence[str] = ("outer",),
    facet_tag: FacetTagger | None = None,
) -> Mesh:
    """Return the mesh of the bricks between the ascending grid lines x, y, z (m).

    Parameters
    ----------
    x, y, z : (n + 1,) float
        Grid lines along each axis, in m.
    tissues, facet_names : sequence of str
        Names of the tags.
    cell_tag : function of centroids (T, 3) -> tags (T,)
        Defaults to tag 0 everywhere.
    facet_tag : function of centroids (B, 3) and outward unit normals (B, 3) -> tags (B,)
        -1 leaves a facet without a name. Defaults to tag 0 on the whole boundary.
    """
    lines = [_grid_line(values, axis) for values, axis in zip((x, y, z), "xyz", strict=True)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = orient_cells(points, _kuhn_cells(*(len(line) - 1 for line in lines))).astype(np.int32)
    centroids = points[cells].mean(axis=1)
    tags = (
        np.zeros(len(cells), np.int32)
        if cell_tag is None
        else np.asarray(cell_tag(centroids)).astype(np.int32)
    )
    facets, facet_tags = tag_boundary(points, cells, facet_tag)
    origin = {"made-by": "fieldcorr.mesh.structured", "bricks": [len(line) - 1 for line in lines]}
    return Mesh(points, cells, tags, tuple(tissues), facets, facet_tags, tuple(facet_names), origin)


def tag_boundary(points: Floats, cells: Ints, facet_tag: FacetTagger | None) -> tuple[Ints, Ints]:
    """Return the boundary facets (F, 3) that ``facet_tag`` names, and their tags (F,)."""
    facets, _ = boundary_facets(cells)
    if facet_tag is None:
        return facets, np.zeros(len(facets), np.int32)
    normals = triangle_normals(points, facets)
    unit = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    tags = np.asarray(facet_tag(points[facets].mean(axis=1), unit)).astype(np.int32)
    named = tags != NO_TAG
    return facets[named], tags[named]


def _grid_line(values: ArrayLike, axis: str) -> Floats:
    line = np.asarray(values, dtype=np.float64)
    if line.ndim != 1 or len(line) < 2 or not np.all(np.diff(line) > 0):
        raise MeshError(f"grid lines along {axis} must be at least two ascending numbers")
    return line


def _kuhn_cells(nx: int, ny: int, nz: int) -> NDArray[np.int64]:
    """Return the cells (6 nx ny nz, 4): six paths from the low to the high corner of each brick.

    Each path adds one axis after the other; neighbours cut their common face along the same
    diagonal, so the mesh conforms.
    """
    step = np.array([(ny + 1) * (nz + 1), nz + 1, 1])
    corner = np.stack(np.meshgrid(*map(np.arange, (nx, ny, nz)), indexing="ij"), axis=-1)
    low = corner.reshape(-1, 3) @ step
    paths = np.array([np.cumsum([0, *step[list(p)]]) for p in permutations(range(3))])
    cells: NDArray[np.int64] = (low[:, None, None] + paths[None]).reshape(-1, 4)
    return cells
