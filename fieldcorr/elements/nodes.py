"""The nodes of a simplex, and its basis functions in barycentric coordinates."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

EDGE_ENDS: NDArray[np.int64] = np.array([[2, 3], [1, 3], [1, 2], [0, 3], [0, 2], [0, 1]])
"""Local vertices at the ends of the six edges of a tetrahedron, in the order of basix."""

TRIANGLE_EDGE_ENDS: NDArray[np.int64] = np.array([[1, 2], [0, 2], [0, 1]])
"""Local vertices at the ends of the three edges of a triangle, in the order of basix."""


def basis(barycentric: ArrayLike, order: int) -> NDArray[np.float64]:
    """Return the basis functions (N, 4 | 10) of order 1 or 2 at barycentric coordinates (N, 4).

    Vertex functions of P2 are l_i (2 l_i - 1), edge functions 4 l_i l_j.
    """
    lam = np.asarray(barycentric, dtype=np.float64)
    if order == 1:
        return lam
    one, other = EDGE_ENDS.T
    return np.concatenate([lam * (2.0 * lam - 1.0), 4.0 * lam[:, one] * lam[:, other]], axis=1)


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
