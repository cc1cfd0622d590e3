"""Point location in a tetrahedral mesh, and interpolation of nodal values there."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements import _kernels
from fieldcorr.elements.nodes import basis

INSIDE_SLACK = 1e-9
"""How negative a barycentric coordinate may be for a point to count as inside (on a face)."""


class CellLocator:
    """Finds the cell that holds a point.

    A kd-tree over the vertices gives a start, a walk across faces does the rest; the few points
    whose walk ends at a hole of the domain are looked for in all cells.

    Parameters
    ----------
    points
        (P, 3) coordinates.
    cells
        (T, 4) int32 vertices of the cells, each in ``[0, P)``; not checked here.
    """

    def __init__(self, points: NDArray[np.float64], cells: NDArray[np.int32]) -> None:
        from scipy.spatial import cKDTree

        self._points = np.ascontiguousarray(points, dtype=np.float64)
        self._cells = np.ascontiguousarray(cells, dtype=np.int32)
        used = np.unique(self._cells)
        self._vertices = used
        self._tree = cKDTree(self._points[used])
        counts = np.bincount(self._cells.ravel(), minlength=self._points.shape[0])
        self._indptr = np.zeros(counts.size + 1, dtype=np.int64)
        np.cumsum(counts, out=self._indptr[1:])
        self._around = np.empty(self._indptr[-1], dtype=np.int32)
        _kernels.cells_of_vertices(self._cells, self._indptr, self._around)

    def locate(self, queries: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the cell (N,) of each query (N, 3), -1 outside, and its barycentrics (N, 4)."""
        x = np.ascontiguousarray(queries, dtype=np.float64).reshape(-1, 3)
        cell = np.full(x.shape[0], -1, dtype=np.int64)
        bary = np.zeros((x.shape[0], 4))
        finite = np.flatnonzero(np.isfinite(x).all(axis=1))
        if finite.size:
            found, lam = self._locate_finite(np.ascontiguousarray(x[finite]))
            cell[finite], bary[finite] = found, lam
        return cell, bary

    def _locate_finite(
        self, x: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        cell = np.full(x.shape[0], -1, dtype=np.int64)
        bary = np.zeros((x.shape[0], 4))
        start = self._vertices[self._tree.query(x)[1]]
        mesh = (self._points, self._cells)
        _kernels.walk_to_points(
            *mesh, self._indptr, self._around, start, x, INSIDE_SLACK, 500, cell, bary
        )
        todo = np.flatnonzero(cell < 0)
        if todo.size:
            _kernels.search_all_cells(*mesh, x, INSIDE_SLACK, todo, cell, bary)
        return cell, bary


def interpolate(
    nodal: NDArray[np.floating],
    dofs: NDArray[np.int32],
    cell: NDArray[np.int64],
    barycentric: NDArray[np.float64],
    order: int,
) -> NDArray[np.float64]:
    """Evaluate fields at located points; NaN where ``cell`` is -1.

    Parameters
    ----------
    nodal
        (E, n_dofs) values at the nodes, one row per field.
    dofs
        (T, 4 | 10) node numbers of the cells.
    cell, barycentric
        What :meth:`CellLocator.locate` returned.
    order
        1 or 2.

    Returns
    -------
    (E, N) values
    """
    values = basis(barycentric, order)
    out = np.full((nodal.shape[0], cell.size), np.nan)
    inside = cell >= 0
    picked = dofs[cell[inside]]
    for row in range(nodal.shape[0]):
        out[row, inside] = np.einsum("nk,nk->n", nodal[row][picked], values[inside])
    return out
