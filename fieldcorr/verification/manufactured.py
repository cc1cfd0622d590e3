r"""Convergence orders on a manufactured solution with a conductivity jump and full anisotropy.

On the unit cube the plane x = 1/2 separates two media with full tensors. With s = x - 1/2 and
g = exp(b y + c z) the solution is

.. math:: u = g\,(\cos 2s + H_k \sin s), \qquad
          H_k = \frac{q - b\,\sigma^k_{xy} - c\,\sigma^k_{xz}}{\sigma^k_{xx}},

continuous, with the same normal current q g on both sides of the plane, and smooth on each side.
The source is -div(sigma grad u), and u is prescribed on the boundary.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements import Space
from fieldcorr.mesh.structured import box_mesh
from fieldcorr.mesh.topology import boundary_facets
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification.compare import Comparison
from fieldcorr.verification.problem import cell_load, sample, solve_with_known, stiffness

ORDER_STEPS = {1: (8, 16), 2: (4, 8)}
"""Grid steps per edge between which the orders of P1 and of P2 elements are measured."""
B, C, Q = 0.9, -0.7, 1.3
TENSORS = np.array(
    [
        [[0.6, 0.1, -0.05], [0.1, 0.083, 0.02], [-0.05, 0.02, 0.2]],
        [[1.7, -0.3, 0.2], [-0.3, 1.1, 0.1], [0.2, 0.1, 2.3]],
    ]
)
"""Conductivity (S/m) on the low and the high side of the plane: jumps up to a factor 13."""
STEEPNESS = (Q - B * TENSORS[:, 0, 1] - C * TENSORS[:, 0, 2]) / TENSORS[:, 0, 0]


def _side(points: FloatArray) -> NDArray[np.int64]:
    """Return 0 or 1: the side of the plane each point (N, 3) lies on."""
    return (points[:, 0] > 0.5).astype(np.int64)


def _profile(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return u, du/dx and d2u/dx2 (N,) at points (N, 3)."""
    s, h = points[:, 0] - 0.5, STEEPNESS[_side(points)]
    g = np.exp(B * points[:, 1] + C * points[:, 2])
    value = g * (np.cos(2 * s) + h * np.sin(s))
    first = g * (-2 * np.sin(2 * s) + h * np.cos(s))
    return value, first, -g * (4 * np.cos(2 * s) + h * np.sin(s))


def solution(points: FloatArray) -> FloatArray:
    """Return u (N,)."""
    return _profile(points)[0]


def gradient(points: FloatArray) -> FloatArray:
    """Return grad u (N, 3)."""
    value, first, _ = _profile(points)
    return np.stack([first, B * value, C * value], axis=1)


def source(points: FloatArray) -> FloatArray:
    """Return -div(sigma grad u) (N,), the contraction of the tensor with the Hessian."""
    value, first, second = _profile(points)
    hessian = np.array(
        [
            [second, B * first, C * first],
            [B * first, B * B * value, B * C * value],
            [C * first, B * C * value, C * C * value],
        ]
    )
    return np.asarray(-np.einsum("nij,ijn->n", TENSORS[_side(points)], hessian))


@dataclass(frozen=True)
class Errors:
    """Errors on one grid: steps per edge, nodes, L2 norm and H1 seminorm."""

    steps: int
    dofs: int
    l2: float
    h1: float


def solve_and_compare(order: int, steps: int) -> Errors:
    """Solve on a cube of 6 steps^3 tetrahedra (steps even) and return the errors."""
    mesh = box_mesh(steps, steps, steps, tag=_side, tissues=("low", "high"))
    space = Space(mesh, order)
    pairs = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    tensors = np.array([[tensor[i, j] for i, j in pairs] for tensor in TENSORS])
    matrix = stiffness(space, tensors[mesh.cell_tags])
    edge = np.unique(space.facet_dofs(boundary_facets(mesh.cells)[0])).astype(np.int64)
    nodal = solve_with_known(
        space, matrix, cell_load(space, source), edge, solution(space.points[edge])
    )
    found = sample(space, nodal, np.arange(mesh.n_cells), degree=6)
    off = found.value - solution(found.points)
    slope = found.gradient - gradient(found.points)
    return Errors(
        steps,
        space.n_dofs,
        float(np.sqrt(found.weight @ off**2)),
        float(np.sqrt(found.weight @ (slope**2).sum(axis=1))),
    )


def order_case(order: int) -> list[Comparison]:
    """Compare the orders at which the L2 and H1 errors fall between two grids with theory."""
    coarse, fine = (solve_and_compare(order, steps) for steps in ORDER_STEPS[order])
    names = ("manufactured: jump, full tensors", f"cubes {coarse.steps}³ and {fine.steps}³")
    figures = (
        ("L2 order", coarse.l2 / fine.l2, order + 1),
        ("H1 order", coarse.h1 / fine.h1, order),
    )
    return [
        Comparison(
            *names,
            quantity,
            order,
            fine.dofs,
            reached=float(np.log(gain) / np.log(fine.steps / coarse.steps)),
            target=0.1,
            theory=float(theory),
        )
        for quantity, gain, theory in figures
    ]
