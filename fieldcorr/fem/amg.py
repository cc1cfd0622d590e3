"""The preconditioner: P2 to P1, then smoothed aggregation, in float32 for sixteen vectors at once.

A symmetric positive definite matrix becomes a hierarchy that applies one symmetric V-cycle to a
(n, 16) float32 block. pyamg finds strong connections and aggregates; the prolongator smoothing and
the cycle are our own, because pyamg estimates spectral radii from numpy's global random state, and
because its cycles take one vector at a time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
import scipy.sparse
from numpy.typing import NDArray
from pyamg.aggregation.aggregate import standard_aggregation
from pyamg.strength import symmetric_strength_of_connection

from fieldcorr._parallel import run_ranges
from fieldcorr.errors import ConvergenceError
from fieldcorr.fem import _solver_kernels as kernels
from fieldcorr.fem._solver_kernels import Csr

CHEBYSHEV_RATIO = 10.0
"""The smoother damps eigenvalues of D^-1 A from rho / ratio to rho."""

COARSEST = 400
"""Rows up to which a level is solved by a dense inverse."""

STRENGTH = 0.05
"""Threshold of strong connections, |a_ij| > theta sqrt(a_ii a_jj)."""

LEAST_BLOCKS = 4
"""Blocks of rows that are worth a thread of their own: coarse levels stay with the caller."""

Singles = NDArray[np.float32]

_NO_MATRIX: Csr = (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
"""What the first smoothing step, from zero, takes in place of the matrix."""


def sweep(kernel: Callable[..., None], rows: int, *args: object) -> None:
    """Run a kernel of the solver over all blocks of ``rows`` rows."""
    blocks = -(-rows // kernels.ROW_BLOCK)
    run_ranges(kernel, blocks, *args, least=LEAST_BLOCKS)


def csr_arrays(matrix: scipy.sparse.csr_matrix, real: type[np.floating] = np.float32) -> Csr:
    """Return a matrix's CSR arrays, typed as the kernels expect them."""
    return (
        np.ascontiguousarray(matrix.indptr, dtype=np.int64),
        np.ascontiguousarray(matrix.indices, dtype=np.int32),
        np.ascontiguousarray(matrix.data, dtype=real),
    )


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return a . b without BLAS, whose order of summation depends on its number of threads."""
    return float(np.einsum("i,i->", a, b))


def spectral_radius(matrix: scipy.sparse.csr_matrix, inverse: NDArray[np.float64]) -> float:
    """Estimate the largest eigenvalue of D^-1/2 A D^-1/2 by fifteen Lanczos steps.

    The start vector comes from a fixed seed, so the estimate is the same in every run.
    """
    root = np.sqrt(inverse)
    v = np.random.default_rng(20).standard_normal(matrix.shape[0])
    v /= np.sqrt(_dot(v, v))
    before = np.zeros_like(v)
    diagonal: list[float] = []
    beside: list[float] = []
    beta = 0.0
    for _ in range(min(15, matrix.shape[0])):
        w = root * (matrix @ (root * v)) - beta * before
        alpha = _dot(w, v)
        w -= alpha * v
        diagonal.append(alpha)
        beta = float(np.sqrt(_dot(w, w)))
        if beta < 1e-12 * abs(alpha):
            break
        beside.append(beta)
        before, v = v, w / beta
    between = beside[: len(diagonal) - 1]
    return float(scipy.linalg.eigh_tridiagonal(diagonal, between, eigvals_only=True)[-1])


@dataclass(eq=False)
class Level:
    """One level: its matrix, its smoother, the way to the next, and room to work in."""

    matrix: Csr
    inverse: Singles
    radius: float
    prolong: Csr
    restrict: Csr
    work: dict[str, Singles] = field(default_factory=dict)

    def room(self, name: str, *, coarse: bool = False) -> Singles:
        """Return a named work array, (rows, WIDTH) or as long as the next level's vectors."""
        if name not in self.work:
            rows = self.restrict[0].size - 1 if coarse else len(self.inverse)
            self.work[name] = np.zeros((rows, kernels.WIDTH), dtype=np.float32)
        return self.work[name]

    def chebyshev(self) -> tuple[float, float, float]:
        """Return (first step, momentum, second step) of the degree-2 Chebyshev iteration.

        The interval is [rho / CHEBYSHEV_RATIO, 1.1 rho]; with centre theta and half-width delta the
        steps are 1 / theta, then rho_1 rho_0 and 2 rho_1 / delta with rho_0 = delta / theta and
        rho_1 = 1 / (2 theta / delta - rho_0).
        """
        high, low = 1.1 * self.radius, self.radius / CHEBYSHEV_RATIO
        theta, delta = 0.5 * (high + low), 0.5 * (high - low)
        rho0 = delta / theta
        rho1 = 1.0 / (2.0 * theta / delta - rho0)
        return 1.0 / theta, rho1 * rho0, 2.0 * rho1 / delta


def _smoothed_prolongator(
    matrix: scipy.sparse.csr_matrix, inverse: NDArray[np.float64], radius: float
) -> scipy.sparse.csr_matrix:
    """Aggregate strongly connected rows and smooth the piecewise constants once."""
    strong = symmetric_strength_of_connection(matrix, theta=STRENGTH)
    tentative = scipy.sparse.csr_matrix(standard_aggregation(strong)[0], dtype=np.float64)
    damping = scipy.sparse.diags((4.0 / 3.0 / radius) * inverse)
    return scipy.sparse.csr_matrix(tentative - damping @ (matrix @ tentative))


@dataclass(eq=False)
class Hierarchy:
    """Levels from fine to coarse and the inverse of the coarsest matrix."""

    levels: list[Level]
    coarse_inverse: Csr
    sizes: tuple[int, ...]

    def cycle(self, b: Singles, depth: int = 0) -> Singles:
        """Apply one V-cycle to ``b`` (n, WIDTH) from level ``depth`` on.

        The result lives in the room of that level.
        """
        zero, one = np.float32(0.0), np.float32(1.0)
        if depth == len(self.levels):
            out = np.empty_like(b)
            sweep(kernels.combine, len(b), self.coarse_inverse, b, b, zero, one, out)
            return out
        level = self.levels[depth]
        first, momentum, second = (np.float32(v) for v in level.chebyshev())
        x, other, d = level.room("x"), level.room("y"), level.room("d")
        below = level.room("c", coarse=True)
        n, smoother, diagonal = len(x), kernels.smooth, (level.inverse, b)
        sweep(smoother, n, _NO_MATRIX, *diagonal, zero, first, x, d, x)
        sweep(smoother, n, level.matrix, *diagonal, momentum, second, x, d, other)
        # The smoother's change is not needed until it starts anew: its room holds the residual.
        sweep(kernels.combine, n, level.matrix, other, b, one, -one, d)
        sweep(kernels.combine, len(below), level.restrict, d, below, zero, one, below)
        correction = self.cycle(below, depth + 1)
        sweep(kernels.combine, n, level.prolong, correction, other, one, one, x)
        sweep(smoother, n, level.matrix, *diagonal, zero, first, x, d, other)
        sweep(smoother, n, level.matrix, *diagonal, momentum, second, other, d, x)
        return x


def dense_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert a symmetric positive definite matrix (n, n) by Gauss-Jordan steps, without pivots.

    Plain products of columns and rows: LAPACK's bits depend on the number of BLAS threads.
    """
    inverse = matrix.copy()
    for k in range(len(inverse)):
        pivot = inverse[k, k]
        if not pivot > 0.0:
            raise ConvergenceError(
                "the matrix of the field is not positive definite: is part of the mesh cut off?",
                residual=1.0,
                iterations=0,
            )
        row, column = inverse[k] / pivot, inverse[:, k].copy()
        inverse -= column[:, None] * row
        inverse[k], inverse[:, k] = row, -column / pivot
        inverse[k, k] = 1.0 / pivot
    return 0.5 * (inverse + inverse.T)


def build_hierarchy(
    matrix: scipy.sparse.csr_matrix,
    *,
    first_prolongation: scipy.sparse.csr_matrix | None = None,
    first_coarse: scipy.sparse.csr_matrix | None = None,
) -> Hierarchy:
    """Build the multigrid hierarchy of a symmetric positive definite CSR matrix (n, n).

    Where ``first_prolongation`` (n, m) is given, the first coarse space is its range (P1 inside P2)
    instead of aggregates; ``first_coarse`` (m, m) is the Galerkin matrix that belongs to it.
    """
    levels: list[Level] = []
    sizes = [int(matrix.shape[0])]
    while matrix.shape[0] > COARSEST:
        inverse = 1.0 / matrix.diagonal()
        radius = spectral_radius(matrix, inverse)
        if not levels and first_prolongation is not None and first_coarse is not None:
            prolong, coarse = first_prolongation, first_coarse
        else:
            prolong = _smoothed_prolongator(matrix, inverse, radius)
            coarse = scipy.sparse.csr_matrix(prolong.T @ (matrix @ prolong))
        if coarse.nnz == 0 or coarse.shape[0] > 0.9 * matrix.shape[0]:
            # Nothing to aggregate: this level, smoothed, is the last, and no coarse space corrects
            # it. Conjugate gradients need more steps then, but no dense matrix of this size.
            prolong = scipy.sparse.csr_matrix((matrix.shape[0], 0))
            coarse = scipy.sparse.csr_matrix((0, 0))
        restrict = scipy.sparse.csr_matrix(prolong.T)
        fine, down, up = csr_arrays(matrix), csr_arrays(restrict), csr_arrays(prolong)
        levels.append(Level(fine, inverse.astype(np.float32), radius, up, down))
        matrix = coarse
        sizes.append(int(matrix.shape[0]))
    # Kept as a full CSR matrix: the same kernel applies it, in the same order for any thread count.
    inverse = scipy.sparse.csr_matrix(dense_inverse(matrix.toarray()))
    return Hierarchy(levels, csr_arrays(inverse), tuple(sizes))
