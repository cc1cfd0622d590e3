"""Numbering of P1 and P2 nodes, and the basis functions in barycentric coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements import _kernels

EDGE_ENDS: NDArray[np.int64] = np.array([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])
"""Local vertices at the ends of the six edges of a tetrahedron, in the order of basix."""


TRIANGLE_EDGE_ENDS: NDArray[np.int64] = np.array([[1, 2], [0, 2], [0, 1]])
"""Local vertices at the ends of the three edges of a triangle, in the order of basix."""


@dataclass(frozen=True, eq=False)
class Edges:
    """The edges of a tetrahedral mesh, ordered by their smaller and then their larger end.

    Attributes
    ----------
    indptr
        (P + 1) int64: the edges whose smaller end is vertex p are ``indptr[p]:indptr[p + 1]``.
    upper
        (edges,) int32: the larger end of each edge.
    """

    indptr: NDArray[np.int64]
    upper: NDArray[np.int32]

    @classmethod
    def of_mesh(cls, cells: NDArray[np.int32], n_points: int) -> "Edges":
        """Collect the edges of all cells (T, 4)."""
        counts = np.zeros(n_points, dtype=np.int64)
        _kernels.count_edge_occurrences(cells, EDGE_ENDS, counts)
        indptr = np.zeros(n_points + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        upper = np.empty(indptr[-1], dtype=np.int32)
        _kernels.sorted_edges_of_vertices(cells, EDGE_ENDS, indptr, upper)
        return cls(indptr, upper[: indptr[-1]].copy())

    def vertices(self) -> NDArray[np.int32]:
        """Return (edges, 2) the two ends of every edge, smaller first."""
        lower = np.repeat(np.arange(self.indptr.size - 1, dtype=np.int32), np.diff(self.indptr))
        return np.stack([lower, self.upper], axis=1)

    def nodes_of(self, simplices: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the P2 nodes (S, 6 | 10) of triangles (S, 3) or tetrahedra (S, 4) of the mesh."""
        simplices = np.ascontiguousarray(simplices, dtype=np.int32)
        ends = EDGE_ENDS if simplices.shape[1] == 4 else TRIANGLE_EDGE_ENDS
        numbers = np.empty((simplices.shape[0], ends.shape[0]), dtype=np.int32)
        first = self.indptr.size - 1
        _kernels.number_cell_edges(simplices, ends, self.indptr, self.upper, first, numbers)
        return np.concatenate([simplices, numbers], axis=1)


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
