"""Which cell of a tetrahedral mesh holds a point, and where in the cell it lies."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements import _kernels
from fieldcorr.errors import FieldError

INSIDE_SLACK = 1e-9
"""How negative a barycentric coordinate may be for a point to count as inside (on a face)."""

WALK_LIMIT = 100_000
"""Cells that a walk may look at before all cells are searched: a few times what sound meshes need.
In a broken mesh all cells can share a vertex; walks would then look at all of them at each step."""


@dataclass(frozen=True, eq=False)
class Located:
    """Points of a mesh: cells (N,) that hold them, -1 outside, and barycentrics (N, 4) there."""

    cell: NDArray[np.int64]
    barycentric: NDArray[np.float64]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which points lie in the mesh, (N,)."""
        return self.cell >= 0


class CellLocator:
    """Finds the cell that holds a point.

    A kd-tree over the vertices gives a start, a walk across faces does the rest; the few points
    whose walk ends at a hole of the domain are looked for in all cells. Flat cells hold no point.

    Parameters
    ----------
    points
        (P, 3) finite coordinates.
    cells
        (T, 4) int32 vertices of the cells, each in ``[0, P)``; not checked here.
    """

    def __init__(self, points: NDArray[np.float64], cells: NDArray[np.int32]) -> None:
        from scipy.spatial import cKDTree

        self._points = np.ascontiguousarray(points, dtype=np.float64)
        self._cells = np.ascontiguousarray(cells, dtype=np.int32)
        self._vertices = np.unique(self._cells)
        used = self._points[self._vertices]
        self._tree = cKDTree(used)
        self._low, self._high = used.min(axis=0, initial=np.inf), used.max(axis=0, initial=-np.inf)
        # The cells around vertex v are around[indptr[v]:indptr[v + 1]], ascending.
        corners = self._cells.ravel()
        self._around = (np.argsort(corners, kind="stable") // 4).astype(np.int32)
        counts = np.bincount(corners, minlength=len(self._points))
        self._indptr = np.concatenate([[0], np.cumsum(counts)])

    def locate(self, queries: ArrayLike) -> Located:
        """Find the cells of points (N, 3); what is not finite lies outside."""
        x = _as_points(queries)
        cell = np.full(x.shape[0], -1, dtype=np.int64)
        bary = np.zeros((x.shape[0], 4))
        pad = INSIDE_SLACK * (self._high - self._low)
        # The box also keeps distances finite, without which the tree knows no nearest vertex.
        near = np.flatnonzero(((x >= self._low - pad) & (x <= self._high + pad)).all(axis=1))
        if near.size:
            start = self._vertices[self._tree.query(x[near])[1]]
            mesh, around = (self._points, self._cells), (self._indptr, self._around)
            _kernels.walk_to_points(
                *mesh, *around, x, INSIDE_SLACK, near, start, WALK_LIMIT, cell, bary
            )
            todo = near[cell[near] < 0]
            if todo.size:
                _kernels.search_all_cells(*mesh, x, INSIDE_SLACK, todo, cell, bary)
        return Located(cell, bary)


def _as_points(queries: ArrayLike) -> NDArray[np.float64]:
    """Return points as a new (N, 3) float64 array; a single point may be given as (3,)."""
    try:
        x = np.array(queries, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise FieldError(f"points: numbers (N, 3) in m are needed: {error}") from None
    if x.size == 0:
        return np.empty((0, 3))
    if x.ndim not in (1, 2) or x.shape[-1] != 3:
        raise FieldError(f"points: shape (N, 3) is needed, not {x.shape}")
    return np.atleast_2d(x)
