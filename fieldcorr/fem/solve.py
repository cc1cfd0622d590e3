"""Block conjugate gradients with one multigrid hierarchy for all right-hand sides.

Solutions come with their true relative residuals; a tolerance that is not reached is a
:class:`ConvergenceError` that carries the residual. A direct solver gives a second opinion.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from numpy.typing import NDArray

from fieldcorr.errors import ConvergenceError
from fieldcorr.fem import _solver_kernels as kernels
from fieldcorr.fem.amg import Hierarchy, csr_arrays, sweep

Floats = NDArray[np.float64]
OnStep = Callable[[int, float], None]
"""Called after every iteration with its number and the largest relative residual."""

MAX_ITERATIONS = 200
RESTARTS = 3


@dataclass(frozen=True, eq=False)
class Solution:
    """Solutions of a block of systems."""

    x: Floats  # (n, m)
    residuals: Floats  # (m,) true relative ones, |b - A x| / |b|, computed afresh at the end
    iterations: int  # conjugate-gradient steps of the slowest block


def _partial_sums(rows: int) -> Floats:
    """Return room for one sum per column and block of rows."""
    return np.empty((-(-rows // kernels.ROW_BLOCK), kernels.WIDTH))


def _quotient(top: Floats, bottom: Floats) -> Floats:
    """Return top / bottom, and 0 where both vanish (a column that is already solved)."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom != 0.0)


def _repeated(values: Floats) -> Floats:
    """Repeat one number per column for every row of a block, as the kernels read them."""
    return np.tile(values, kernels.ROW_BLOCK)


def _conjugate_gradients(
    csr: kernels.Csr,
    hierarchy: Hierarchy,
    vectors: tuple[Floats, ...],
    target: Floats,
    norms: Floats,
    progress: OnStep | None,
    done: int,
) -> int:
    """Run CG until every column's residual is below ``target``; return the number of steps.

    ``vectors`` are x, the residual r of x, and room for the direction p and its image q = A p.
    """
    x, r, p, q = vectors
    p[:] = 0.0
    n, dots = len(x), _partial_sums(len(x))
    # The residual is scaled to unit size before it is rounded to float32: no underflow late on.
    size = np.sqrt(np.einsum("ij,ij->j", r, r))
    scale = _quotient(np.ones_like(size), size)
    repeated_scale = _repeated(scale)
    r32 = (r * scale).astype(np.float32)
    rho = np.zeros(kernels.WIDTH)
    unscale = size
    for step in range(1, MAX_ITERATIONS - done + 1):
        z = hierarchy.cycle(r32)
        sweep(kernels.mixed_dots, n, r, z, dots)
        new_rho = dots.sum(axis=0) * unscale
        beta = _quotient(new_rho, rho)
        rho = new_rho
        # Directions are kept in units of the scaled residual: P = Z + (beta) P.
        sweep(kernels.turn, n, _repeated(beta), z, p)
        sweep(kernels.multiply_with_dots, n, csr, p, q, dots)
        alpha = _quotient(rho, dots.sum(axis=0) * unscale)
        sweep(kernels.advance, n, _repeated(alpha), repeated_scale, x, r, p, q, r32, dots)
        now = np.sqrt(dots.sum(axis=0))
        worst = float(np.max(_quotient(now, norms)))
        if progress is not None:
            progress(done + step, worst)
        if not np.isfinite(worst):
            raise ConvergenceError(
                f"the solver broke down after {done + step} iterations: residual {worst}",
                residual=worst,
                iterations=done + step,
            )
        if np.all(now <= target):
            return step
    return MAX_ITERATIONS - done


def _solve_block(
    matrix: scipy.sparse.csr_matrix,
    hierarchy: Hierarchy,
    b: Floats,
    tolerance: float,
    progress: OnStep | None,
) -> tuple[Floats, Floats, int]:
    """Solve for WIDTH columns; restart from the true residual where rounding has drifted."""
    csr = csr_arrays(matrix, np.float64)
    x, r, p, q = np.zeros_like(b), b.copy(), np.empty_like(b), np.empty_like(b)
    dots = _partial_sums(len(b))
    norms = np.sqrt(np.einsum("ij,ij->j", b, b))
    iterations = 0
    residuals = np.where(norms > 0.0, 1.0, 0.0)
    for _ in range(RESTARTS):
        # A little below the tolerance, so that the true residual, recomputed, meets it as well.
        target = 0.9 * tolerance * norms
        iterations += _conjugate_gradients(
            csr, hierarchy, (x, r, p, q), target, norms, progress, iterations
        )
        sweep(kernels.multiply_with_dots, len(x), csr, x, q, dots)
        np.subtract(b, q, out=r)
        residuals = _quotient(np.sqrt(np.einsum("ij,ij->j", r, r)), norms)
        if np.all(residuals <= tolerance):
            return x, residuals, iterations
    worst = float(residuals.max())
    raise ConvergenceError(
        f"the solver reached a relative residual of {worst:.2e} after {iterations} iterations,"
        f" not the {tolerance:.1e} asked for",
        residual=worst,
        iterations=iterations,
    )


def solve_block(
    matrix: scipy.sparse.csr_matrix,
    hierarchy: Hierarchy,
    rhs: Floats,
    *,
    tolerance: float,
    progress: OnStep | None = None,
) -> Solution:
    """Solve A X = B for all columns of B through one hierarchy.

    The ``matrix`` (n, n) is symmetric positive definite, and the ``hierarchy`` its own, from
    :func:`fieldcorr.fem.amg.build_hierarchy`. Columns of ``rhs`` (n, m) are taken sixteen at a time
    until the true relative residual |b - A x| / |b| of each is at most ``tolerance``; a
    ConvergenceError that carries the residual says that it is not reached.
    """
    n, m = rhs.shape
    if m == kernels.WIDTH:
        # The usual case, without copies: sixteen vectors are most of the memory in use.
        full = np.ascontiguousarray(rhs, dtype=np.float64)
        return Solution(*_solve_block(matrix, hierarchy, full, tolerance, progress))
    out = np.empty((n, m))
    residuals = np.empty(m)
    iterations = 0
    for first in range(0, m, kernels.WIDTH):
        last = min(m, first + kernels.WIDTH)
        block = np.zeros((n, kernels.WIDTH))
        block[:, : last - first] = rhs[:, first:last]
        x, res, steps = _solve_block(matrix, hierarchy, block, tolerance, progress)
        out[:, first:last] = x[:, : last - first]
        residuals[first:last] = res[: last - first]
        iterations = max(iterations, steps)
    return Solution(out, residuals, iterations)


def solve_direct(
    matrix: scipy.sparse.csr_matrix, rhs: Floats, *, tolerance: float = 1e-8
) -> Solution:
    """Solve A X = B by a sparse factorisation: the second opinion on :func:`solve_block`.

    Uses MKL's PARDISO where pypardiso is installed, and scipy's SuperLU otherwise, which needs
    much more time and memory. A true relative residual above ``tolerance`` is a ConvergenceError
    that carries it.
    """
    try:
        import pypardiso

        x = np.asarray(pypardiso.spsolve(scipy.sparse.csr_matrix(matrix), np.asfortranarray(rhs)))
    except ImportError:
        factors = scipy.sparse.linalg.splu(
            scipy.sparse.csc_matrix(matrix),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        x = factors.solve(np.ascontiguousarray(rhs))
    x = np.ascontiguousarray(x.reshape(rhs.shape))
    gap = np.linalg.norm(rhs - matrix @ x, axis=0)
    residuals = _quotient(gap, np.linalg.norm(rhs, axis=0))
    worst = float(residuals.max(initial=0.0))
    if not worst <= tolerance:
        raise ConvergenceError(
            f"the direct solver left a relative residual of {worst:.2e}, not the {tolerance:.1e}"
            " asked for",
            residual=worst,
            iterations=0,
        )
    return Solution(x, residuals, 0)
