"""Meshes of boxes without a mesh generator: every brick of a grid is cut into six tetrahedra.

For convergence studies and closed forms on slabs.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats, Ints, Mesh, orient_cells
from fieldcorr.mesh.topology import boundary_facets

CellTagger = Callable[[Floats], NDArray[np.generic]]
FacetChooser = Callable[[Floats], NDArray[np.generic]]


def box_mesh(
    nx: int,
    ny: int,
    nz: int,
    *,
    bounds: ArrayLike = ((0.0, 1.0), (0.0, 1.0), (0.0, 1.0)),
    tag: CellTagger | None = None,
    tissues: Sequence[str] = ("medium",),
    facets: Mapping[str, FacetChooser] | None = None,
) -> Mesh:
    """Return the box ``bounds`` (3, 2) in m, cut into 6 nx ny nz tetrahedra of equal volume.

    The other parameters are those of :func:`grid_mesh`.
    """
    limits = np.asarray(bounds, dtype=np.float64)
    steps = (nx, ny, nz)
    x, y, z = (np.linspace(limits[k, 0], limits[k, 1], steps[k] + 1) for k in range(3))
    return grid_mesh(x, y, z, tag=tag, tissues=tissues, facets=facets)


def grid_mesh(
    x: ArrayLike,
    y: ArrayLike,
    z: ArrayLike,
    *,
    tag: CellTagger | None = None,
    tissues: Sequence[str] = ("medium",),
    facets: Mapping[str, FacetChooser] | None = None,
) -> Mesh:
    """Return the mesh of the bricks between the ascending grid lines x, y, z.

    Parameters
    ----------
    x, y, z : (n + 1,) float, m
        Grid lines along each axis, at any spacing.
    tag : function of centroids (T, 3) -> integer tags (T,)
        Positions in ``tissues``; by default 0 everywhere.
    facets : name -> function of centroids (B, 3) -> mask (B,)
        Which facets of the boundary carry a name; the first name that claims a facet has it. By
        default the whole boundary is "outer".
    """
    lines = [_grid_line(values, axis) for values, axis in zip((x, y, z), "xyz", strict=True)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = orient_cells(points, _kuhn_cells(*(len(line) - 1 for line in lines))).astype(np.int32)
    tags = np.zeros(len(cells)) if tag is None else tag(points[cells].mean(axis=1))
    everywhere = {"outer": lambda centroids: np.ones(len(centroids), dtype=bool)}
    chosen = everywhere if facets is None else facets
    triangles, facet_tags = name_boundary(points, cells, chosen)
    return Mesh(
        points=points,
        cells=cells,
        cell_tags=np.asarray(tags).astype(np.int32),
        tissues=tuple(tissues),
        facets=triangles,
        facet_tags=facet_tags,
        facet_names=tuple(chosen),
        origin={"made-by": "grid_mesh", "bricks": [len(line) - 1 for line in lines]},
    )


def name_boundary(
    points: Floats, cells: Ints, choosers: Mapping[str, FacetChooser]
) -> tuple[Ints, Ints]:
    """Return the boundary facets (F, 3) that have a name, and the position (F,) of that name."""
    facets, _ = boundary_facets(cells)
    centroids = points[facets].mean(axis=1)
    tags = np.full(len(facets), -1, dtype=np.int32)
    for position, choose in enumerate(choosers.values()):
        tags[np.asarray(choose(centroids), dtype=bool) & (tags < 0)] = position
    return facets[tags >= 0], tags[tags >= 0]


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
    return np.asarray((low[:, None, None] + paths[None]).reshape(-1, 4))
