"""Numbering of P1 and P2 nodes, and the basis functions in barycentric coordinates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.lagrange import _kernels

EDGE_ENDS: NDArray[np.int64] = np.array([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])
"""Local vertices at the ends of the six edges of a tetrahedron, in the order of basix."""


def _edges(cells: NDArray[np.int32], n_points: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return (indptr (P + 1), upper (edges)): the sorted larger ends of each vertex's edges."""
    counts = np.zeros(n_points, dtype=np.int64)
    _kernels.count_edge_occurrences(cells, EDGE_ENDS, counts)
    indptr = np.zeros(n_points + 1, dtype=np.int64)
    np.cumsum(counts, out=indptr[1:])
    upper = np.empty(indptr[-1], dtype=np.int32)
    _kernels.sorted_edges_of_vertices(cells, EDGE_ENDS, indptr, upper)
    return indptr, upper[: indptr[-1]]


def cell_dofs(cells: NDArray[np.int32], n_points: int, order: int) -> tuple[NDArray[np.int32], int]:
    """Give the nodes of every cell their numbers.

    Parameters
    ----------
    cells
        (T, 4) vertex numbers, each in ``[0, n_points)``; not checked here.
    n_points
        Number of mesh points.
    order
        1 or 2.

    Returns
    -------
    dofs : (T, 4) or (T, 10) int32
    count : number of nodes of the whole mesh
    """
    if order == 1:
        return np.ascontiguousarray(cells, dtype=np.int32), n_points
    if order != 2:
        raise ValueError(f"order {order} is not 1 or 2")
    cells = np.ascontiguousarray(cells, dtype=np.int32)
    indptr, upper = _edges(cells, n_points)
    dofs = np.empty((cells.shape[0], 10), dtype=np.int32)
    dofs[:, :4] = cells
    edge_numbers = np.empty((cells.shape[0], 6), dtype=np.int32)
    _kernels.number_cell_edges(cells, EDGE_ENDS, indptr, upper, n_points, edge_numbers)
    dofs[:, 4:] = edge_numbers
    return dofs, n_points + upper.size


def edge_vertices(cells: NDArray[np.int32], n_points: int) -> NDArray[np.int32]:
    """Return (edges, 2) the vertices of every edge, smaller first, in the order of the P2 nodes."""
    indptr, upper = _edges(np.ascontiguousarray(cells, dtype=np.int32), n_points)
    lower = np.repeat(np.arange(n_points, dtype=np.int32), np.diff(indptr))
    return np.stack([lower, upper], axis=1)


def node_points(
    points: NDArray[np.float64], cells: NDArray[np.int32], order: int
) -> NDArray[np.float64]:
    """Return the coordinates (n_dofs, 3) of all nodes: vertices, then edge midpoints."""
    if order == 1:
        return points
    ends = edge_vertices(cells, points.shape[0])
    return np.concatenate([points, 0.5 * (points[ends[:, 0]] + points[ends[:, 1]])])


def basis(barycentric: ArrayLike, order: int) -> NDArray[np.float64]:
    """Evaluate the basis functions.

    Vertex functions of P2 are l_i (2 l_i - 1), edge functions 4 l_i l_j.

    Parameters
    ----------
    barycentric
        (N, 4) barycentric coordinates.
    order
        1 or 2.

    Returns
    -------
    (N, 4) or (N, 10) values
    """
    lam = np.asarray(barycentric, dtype=np.float64)
    if order == 1:
        return lam
    ends = EDGE_ENDS
    return np.concatenate(
        [lam * (2.0 * lam - 1.0), 4.0 * lam[:, ends[:, 0]] * lam[:, ends[:, 1]]], axis=1
    )


def basis_gradients(barycentric: ArrayLike, order: int) -> NDArray[np.float64]:
    """Return the derivatives (N, 4 | 10, 4) of the basis with respect to each barycentric."""
    lam = np.asarray(barycentric, dtype=np.float64)
    n = lam.shape[0]
    if order == 1:
        return np.broadcast_to(np.eye(4), (n, 4, 4)).copy()
    out = np.zeros((n, 10, 4))
    for i in range(4):
        out[:, i, i] = 4.0 * lam[:, i] - 1.0
    for e, (i, j) in enumerate(EDGE_ENDS):
        out[:, 4 + e, i] = 4.0 * lam[:, j]
        out[:, 4 + e, j] = 4.0 * lam[:, i]
    return out
