"""Boundary-value problems with any load: nodal potentials, and their values at chosen cells.

Assembly, multigrid and solver are those of :mod:`fieldcorr.fem`; only the loads, which the lead
fields never need in this generality, are computed here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import basix
import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fieldcorr.elements import Space, basis, basis_gradients
from fieldcorr.fem import Pattern, stiffness_matrix
from fieldcorr.fem.amg import build_hierarchy
from fieldcorr.fem.reference import cell_quadrature
from fieldcorr.fem.solve import solve_block
from fieldcorr.mesh.data import tetrahedron_volumes
from fieldcorr.verification._checks import FloatArray

ScalarField = Callable[[FloatArray], FloatArray]
TOLERANCE = 1e-11
"""Relative residual of verification solves: far below every discretisation error."""


@dataclass(frozen=True)
class Samples:
    """Values at quadrature points: points (N, 3) m, weight (N,) m3, value (N,), gradient (N, 3)."""

    points: FloatArray
    weight: FloatArray
    value: FloatArray
    gradient: FloatArray


def stiffness(space: Space, sigma: FloatArray) -> scipy.sparse.csr_matrix:
    """Return the stiffness matrix of tensors (T, 6) (xx, yy, zz, xy, xz, yz) in S/m."""
    pattern = Pattern.of_elements(space.cell_dofs, space.n_dofs)
    return stiffness_matrix(pattern, space.vertices, space.cells, sigma, space.order)


def diagonal_tensors(space: Space, sigma: dict[str, tuple[float, float, float]]) -> FloatArray:
    """Return tensors (T, 6) from the diagonal entries (S/m) of each tissue."""
    table = np.zeros((len(space.mesh.tissues), 6))
    for tag, name in enumerate(space.mesh.tissues):
        table[tag, :3] = sigma[name]
    return table[space.mesh.cell_tags]


def facet_load(
    space: Space, facets: NDArray[np.int32], density: ScalarField, *, degree: int = 6
) -> FloatArray:
    """Return the integrals (n_dofs,) of density times each basis function over triangles (F, 3)."""
    points, weights, table = _triangle_rule(space.order, degree)
    a, b, c = (space.mesh.points[facets[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)  # twice, as the weights sum to 1/2
    spots = a[:, None] + points[:, :1] * (b - a)[:, None] + points[:, 1:] * (c - a)[:, None]
    values = density(spots.reshape(-1, 3)).reshape(len(facets), -1) * area[:, None]
    local = np.einsum("fq,q,qi->fi", values, weights, table)
    return _gather(space.facet_dofs(facets), local, space.n_dofs)


def _triangle_rule(order: int, degree: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return points (Q, 2), weights (Q,) that sum to 1/2, and the basis (Q, 3 | 6) there."""
    rule = basix.make_quadrature(basix.CellType.triangle, degree)
    points, weights = (np.asarray(part, dtype=np.float64) for part in rule)
    element = basix.create_element(
        basix.ElementFamily.P, basix.CellType.triangle, order, basix.LagrangeVariant.equispaced
    )
    return points, weights, np.asarray(element.tabulate(0, points))[0, :, :, 0]


def _gather(nodes: NDArray[np.int32], local: FloatArray, count: int) -> FloatArray:
    """Add element vectors (T, n) at their node numbers (T, n)."""
    return np.asarray(np.bincount(nodes.ravel(), local.ravel(), count), dtype=np.float64)


def cell_load(space: Space, source: ScalarField, *, degree: int = 6) -> FloatArray:
    """Return the integrals (n_dofs,) of a volume source (A/m3) times each basis function."""
    bary, weights = cell_quadrature(degree)
    corners = space.mesh.points[space.mesh.cells]
    spots = np.einsum("qk,tkd->tqd", bary, corners)
    values = source(spots.reshape(-1, 3)).reshape(len(corners), -1)
    scaled = values * tetrahedron_volumes(space.vertices, space.cells)[:, None]
    local = np.einsum("tq,q,qi->ti", scaled, weights, basis(bary, space.order))
    return _gather(space.cell_dofs, local, space.n_dofs)


def solve_with_known(
    space: Space,
    matrix: scipy.sparse.csr_matrix,
    load: FloatArray,
    known: NDArray[np.int64],
    values: FloatArray,
) -> FloatArray:
    """Solve A u = b (n_dofs,) with u given at some nodes: their numbers and potentials (M,)."""
    result = np.zeros(space.n_dofs)
    result[known] = values
    free = np.ones(space.n_dofs, dtype=bool)
    free[known] = False
    inner = scipy.sparse.csr_matrix(matrix[free][:, free])
    transfer, coarse = _vertex_level(space, inner, free) if space.order == 2 else (None, None)
    hierarchy = build_hierarchy(inner, first_prolongation=transfer, first_coarse=coarse)
    rhs = (load - matrix @ result)[free]
    result[free] = solve_block(inner, hierarchy, rhs[:, None], tolerance=TOLERANCE).x[:, 0]
    return result


def _vertex_level(
    space: Space, matrix: scipy.sparse.csr_matrix, free: NDArray[np.bool_]
) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
    """Return P1 inside P2 on the free nodes, and its matrix: the first coarse level."""
    parents, weights = space.vertex_transfer
    n_points = len(space.mesh.points)
    rows = np.repeat(np.arange(space.n_dofs), 2)
    transfer = scipy.sparse.csr_matrix(
        (weights.ravel(), (rows, parents.ravel())), shape=(space.n_dofs, n_points)
    )[free][:, free[:n_points]]
    transfer.eliminate_zeros()
    return transfer, scipy.sparse.csr_matrix(transfer.T @ (matrix @ transfer))


def solve_insulated(
    space: Space, matrix: scipy.sparse.csr_matrix, load: FloatArray, *, pin: int = 0
) -> FloatArray:
    """Solve an insulated problem with a balanced load; the potential is zero at node ``pin``."""
    return solve_with_known(space, matrix, load, np.array([pin]), np.zeros(1))


def sample(
    space: Space, nodal: FloatArray, cells: NDArray[np.int64], *, degree: int = 2
) -> Samples:
    """Evaluate a nodal field (n_dofs,) at quadrature points of some cells, in their order."""
    bary, weights = cell_quadrature(degree)
    corners = space.mesh.points[space.mesh.cells[cells]]
    local = nodal[space.cell_dofs[cells]]
    by_bary = np.einsum("ti,qik->tqk", local, basis_gradients(bary, space.order))
    # Row k of the inverse holds the gradient of barycentric k + 1; the first follows from sum 1.
    inverse = np.linalg.inv((corners[:, 1:] - corners[:, :1]).transpose(0, 2, 1))
    gradient = np.einsum("tqk,tkd->tqd", by_bary[..., 1:] - by_bary[..., :1], inverse)
    return Samples(
        points=np.einsum("qk,tkd->tqd", bary, corners).reshape(-1, 3),
        weight=np.outer(tetrahedron_volumes(space.vertices, space.cells)[cells], weights).ravel(),
        value=(local @ basis(bary, space.order).T).ravel(),
        gradient=gradient.reshape(-1, 3),
    )
