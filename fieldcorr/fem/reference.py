"""Integrals over the reference tetrahedron and triangle, from basix tabulation and quadrature.

What flows in: an element order. What flows out: small dense tensors that the kernels combine with
the geometry of each (affine) cell or facet.
"""

from functools import cache

import basix
import numpy as np
from numpy.typing import NDArray

SYMMETRIC_PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Order of the six entries of a symmetric 3 x 3 tensor, here and in the kernels."""


def _element(cell: basix.CellType, order: int) -> basix.finite_element.FiniteElement:
    return basix.create_element(
        basix.ElementFamily.P, cell, order, basix.LagrangeVariant.equispaced
    )


@cache
def stiffness_tensor(order: int) -> NDArray[np.float64]:
    """Return R (nd, nd, 6) with K_ij = sum_c C_c R_ijc.

    R_ij,ab = integral of d_a phi_i d_b phi_j over the reference tetrahedron; the off-diagonal pairs
    are symmetrised because C is symmetric.
    """
    cell = basix.CellType.tetrahedron
    points, weights = basix.make_quadrature(cell, max(1, 2 * (order - 1)))
    table = _element(cell, order).tabulate(1, points)[1:4, :, :, 0]
    full = np.einsum("q,aqi,bqj->ijab", weights, table, table)
    columns = [
        full[:, :, a, b] if a == b else full[:, :, a, b] + full[:, :, b, a]
        for a, b in SYMMETRIC_PAIRS
    ]
    return np.ascontiguousarray(np.stack(columns, axis=2))


@cache
def window_mass_tensor(order: int) -> NDArray[np.float64]:
    """Return M (4, nd, nd): the mean of l_k phi_i phi_j over a cell (integral / volume)."""
    cell = basix.CellType.tetrahedron
    points, weights = basix.make_quadrature(cell, 2 * order + 1)
    phi = _element(cell, order).tabulate(0, points)[0, :, :, 0]
    lam = _element(cell, 1).tabulate(0, points)[0, :, :, 0]
    volume = float(np.sum(weights))
    return np.ascontiguousarray(np.einsum("q,qk,qi,qj->kij", weights, lam, phi, phi) / volume)


@cache
def facet_mass_tensor(order: int) -> NDArray[np.float64]:
    """Return (nf, nf) the mean of psi_i psi_j over a triangle (integral / area)."""
    points, weights = basix.make_quadrature(basix.CellType.triangle, 2 * order)
    psi = _element(basix.CellType.triangle, order).tabulate(0, points)[0, :, :, 0]
    return np.ascontiguousarray(np.einsum("q,qi,qj->ij", weights, psi, psi) / np.sum(weights))


@cache
def facet_load_vector(order: int) -> NDArray[np.float64]:
    """Return (nf,) the mean of psi_i over a triangle (integral / area)."""
    points, weights = basix.make_quadrature(basix.CellType.triangle, order)
    psi = _element(basix.CellType.triangle, order).tabulate(0, points)[0, :, :, 0]
    return np.ascontiguousarray(np.einsum("q,qi->i", weights, psi) / np.sum(weights))


@cache
def cell_load_vector(order: int) -> NDArray[np.float64]:
    """Return (nd,) the mean of phi_i over a tetrahedron (integral / volume)."""
    points, weights = basix.make_quadrature(basix.CellType.tetrahedron, order)
    phi = _element(basix.CellType.tetrahedron, order).tabulate(0, points)[0, :, :, 0]
    return np.ascontiguousarray(np.einsum("q,qi->i", weights, phi) / np.sum(weights))


def cell_quadrature(degree: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return barycentric points (Q, 4) and weights (Q,) that sum to 1."""
    points, weights = basix.make_quadrature(basix.CellType.tetrahedron, degree)
    lam = np.concatenate([1.0 - points.sum(axis=1, keepdims=True), points], axis=1)
    return lam, weights / weights.sum()
