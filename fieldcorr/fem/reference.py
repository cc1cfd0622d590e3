"""Integrals over the reference tetrahedron and triangle, from basix tabulation and quadrature.

Small dense tensors, which the kernels combine with the geometry of each (affine) cell or facet.
"""

from functools import cache

import basix
import numpy as np
from numpy.typing import NDArray

SYMMETRIC_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Order of the six entries of a symmetric 3 x 3 tensor, here and in the kernels."""


Floats = NDArray[np.float64]


def _quadrature(cell: basix.CellType, degree: int) -> tuple[Floats, Floats]:
    """Return points and weights that sum to 1, exact for polynomials up to ``degree``."""
    rule = basix.make_quadrature(cell, degree)
    points, weights = (np.asarray(part, dtype=np.float64) for part in rule)
    return points, weights / weights.sum()


def _tabulate(cell: basix.CellType, order: int, points: Floats, derivatives: int = 0) -> Floats:
    """Return the Lagrange basis (and its derivatives) at ``points``: (1 | 4, Q, nd)."""
    element = basix.create_element(
        basix.ElementFamily.P, cell, order, basix.LagrangeVariant.equispaced
    )
    return np.asarray(element.tabulate(derivatives, points)[:, :, :, 0], dtype=np.float64)


TETRAHEDRON_VOLUME = 1.0 / 6.0


@cache
def stiffness_tensor(order: int) -> Floats:
    """Return R (nd, nd, 6) with K_ij = sum_c C_c R_ijc.

    R_ij,ab = integral of d_a phi_i d_b phi_j over the reference tetrahedron; the off-diagonal pairs
    are symmetrised because C is symmetric.
    """
    cell = basix.CellType.tetrahedron
    points, weights = _quadrature(cell, max(1, 2 * (order - 1)))
    table = _tabulate(cell, order, points, 1)[1:]
    full = TETRAHEDRON_VOLUME * np.einsum("q,aqi,bqj->ijab", weights, table, table)
    columns = [
        full[:, :, a, b] if a == b else full[:, :, a, b] + full[:, :, b, a]
        for a, b in SYMMETRIC_PAIRS
    ]
    return np.ascontiguousarray(np.stack(columns, axis=2))


@cache
def window_mass_tensor(order: int) -> Floats:
    """Return M (4, nd, nd): the mean of l_k phi_i phi_j over a cell (integral / volume)."""
    cell = basix.CellType.tetrahedron
    points, weights = _quadrature(cell, 2 * order + 1)
    phi, lam = _tabulate(cell, order, points)[0], _tabulate(cell, 1, points)[0]
    return np.ascontiguousarray(np.einsum("q,qk,qi,qj->kij", weights, lam, phi, phi))


@cache
def facet_mass_tensor(order: int) -> Floats:
    """Return (nf, nf) the mean of psi_i psi_j over a triangle (integral / area)."""
    points, weights = _quadrature(basix.CellType.triangle, 2 * order)
    psi = _tabulate(basix.CellType.triangle, order, points)[0]
    return np.ascontiguousarray(np.einsum("q,qi,qj->ij", weights, psi, psi))


@cache
def facet_load_vector(order: int) -> Floats:
    """Return (nf,) the mean of psi_i over a triangle (integral / area)."""
    points, weights = _quadrature(basix.CellType.triangle, order)
    psi = _tabulate(basix.CellType.triangle, order, points)[0]
    return np.ascontiguousarray(np.einsum("q,qi->i", weights, psi))


def cell_quadrature(degree: int) -> tuple[Floats, Floats]:
    """Return barycentric points (Q, 4) and weights (Q,) that sum to 1."""
    points, weights = _quadrature(basix.CellType.tetrahedron, degree)
    return np.concatenate([1.0 - points.sum(axis=1, keepdims=True), points], axis=1), weights
