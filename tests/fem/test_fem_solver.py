"""The block solver: against a direct solver, at its limits, and when it must refuse."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

from fieldcorr._parallel import threads
from fieldcorr.errors import ConvergenceError
from fieldcorr.fem.amg import Hierarchy, build_hierarchy, dense_inverse, spectral_radius
from fieldcorr.fem.solve import solve_block, solve_direct


def laplacian(n: int) -> scipy.sparse.csr_matrix:
    """Return the seven-point Laplacian of an n x n x n grid with fixed ends."""
    line = scipy.sparse.diags([-np.ones(n - 1), 2.0 * np.ones(n), -np.ones(n - 1)], [-1, 0, 1])
    one = scipy.sparse.eye(n)
    k = scipy.sparse.kron
    return scipy.sparse.csr_matrix(
        k(k(line, one), one) + k(k(one, line), one) + k(k(one, one), line)
    )


def right_hand_sides(n: int, m: int) -> NDArray[np.float64]:
    return np.random.default_rng(m).normal(size=(n, m))


@pytest.mark.parametrize("columns", [1, 16, 19])
def test_block_solution_equals_the_direct_one(columns: int) -> None:
    matrix = laplacian(12)
    rhs = right_hand_sides(matrix.shape[0], columns)
    solution = solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-10)
    direct = solve_direct(matrix, rhs)
    np.testing.assert_allclose(solution.x, direct.x, rtol=0, atol=1e-8 * np.abs(direct.x).max())
    assert solution.residuals.shape == (columns,)
    assert solution.residuals.max() <= 1e-10
    assert direct.residuals.max() < 1e-12


def test_reported_residual_is_the_true_one() -> None:
    matrix = laplacian(10)
    rhs = right_hand_sides(matrix.shape[0], 3)
    solution = solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-6)
    true = np.linalg.norm(rhs - matrix @ solution.x, axis=0) / np.linalg.norm(rhs, axis=0)
    np.testing.assert_allclose(solution.residuals, true, rtol=1e-6)


def test_iterations_grow_little_with_size() -> None:
    counts = []
    for n in (8, 16, 24):
        matrix = laplacian(n)
        rhs = right_hand_sides(matrix.shape[0], 2)
        counts.append(solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-8).iterations)
    assert counts[-1] <= 20
    assert counts[-1] <= counts[0] + 8


def test_a_column_of_zeros_has_the_solution_zero() -> None:
    matrix = laplacian(9)
    rhs = right_hand_sides(matrix.shape[0], 2)
    rhs[:, 1] = 0.0
    solution = solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-8)
    assert np.abs(solution.x[:, 1]).max() == 0.0
    assert solution.residuals[1] == 0.0


def test_tiny_right_hand_sides_do_not_underflow() -> None:
    matrix = laplacian(9)
    rhs = right_hand_sides(matrix.shape[0], 1)
    hierarchy = build_hierarchy(matrix)
    small = solve_block(matrix, hierarchy, 1e-60 * rhs, tolerance=1e-10)
    normal = solve_block(matrix, hierarchy, rhs, tolerance=1e-10)
    np.testing.assert_allclose(1e60 * small.x, normal.x, rtol=1e-6, atol=1e-9)


def test_a_tolerance_out_of_reach_is_an_error_with_the_residual() -> None:
    matrix = laplacian(9)
    with pytest.raises(
        ConvergenceError, match=r"relative residual of .* not the 1\.0e-25"
    ) as caught:
        solve_block(matrix, build_hierarchy(matrix), right_hand_sides(729, 1), tolerance=1e-25)
    assert 0.0 < caught.value.residual < 1e-12
    assert caught.value.iterations > 10


def test_a_direct_solution_that_is_no_solution_is_an_error() -> None:
    matrix = laplacian(4)
    rhs = right_hand_sides(64, 1)
    with pytest.raises(ConvergenceError, match="direct solver left a relative residual"):
        solve_direct(matrix, rhs, tolerance=1e-25)


def test_values_that_are_not_finite_are_an_error() -> None:
    matrix = laplacian(9)
    rhs = right_hand_sides(729, 1)
    rhs[5] = np.nan
    with pytest.raises(ConvergenceError, match="broke down"):
        solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-8)


def dense_cycle(hierarchy: Hierarchy, n: int) -> NDArray[np.float64]:
    """Return the V-cycle as a matrix, sixteen columns at a time."""
    columns = []
    for first in range(0, n, 16):
        block = np.zeros((n, 16), dtype=np.float32)
        width = min(16, n - first)
        block[first : first + width, :width] = np.eye(width)
        columns.append(hierarchy.cycle(block)[:, :width].astype(np.float64).copy())
    return np.concatenate(columns, axis=1)


def test_the_cycle_is_symmetric_and_contracts() -> None:
    matrix = laplacian(8)
    cycle = dense_cycle(build_hierarchy(matrix), matrix.shape[0])
    assert np.abs(cycle - cycle.T).max() < 1e-5 * np.abs(cycle).max()
    error = np.eye(matrix.shape[0]) - cycle @ matrix.toarray()
    assert np.abs(np.linalg.eigvals(error)).max() < 0.6


def test_spectral_radius_is_close_and_repeatable() -> None:
    matrix = laplacian(7)
    inverse = 1.0 / matrix.diagonal()
    scaled = np.sqrt(inverse)[:, None] * matrix.toarray() * np.sqrt(inverse)
    exact = np.linalg.eigvalsh(scaled)[-1]
    estimate = spectral_radius(matrix, inverse)
    assert 0.9 * exact < estimate <= exact * (1.0 + 1e-12)
    assert spectral_radius(matrix, inverse) == estimate


def test_solutions_do_not_depend_on_the_number_of_threads() -> None:
    matrix = laplacian(14)
    rhs = right_hand_sides(matrix.shape[0], 16)
    found = []
    for count in (1, 2):
        with threads(count):
            found.append(solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-8).x)
    assert found[0].tobytes() == found[1].tobytes()


COARSE_BITS = """
import hashlib
import numpy as np, scipy.sparse
from fieldcorr.fem.amg import build_hierarchy
# Whole numbers: this product is the same for any order of summation.
factor = np.random.default_rng(0).integers(-9, 9, size=(400, 400)).astype(float)
matrix = scipy.sparse.csr_matrix(factor @ factor.T + 1e-6 * np.eye(400))
inverse = build_hierarchy(matrix).coarse_inverse
print(hashlib.sha256(b"".join(part.tobytes() for part in inverse)).hexdigest())
"""


@pytest.mark.slow
def test_the_coarse_solve_does_not_depend_on_the_threads_of_blas() -> None:
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
    found = {
        subprocess.run(
            [sys.executable, "-c", COARSE_BITS],
            env={**os.environ, **dict.fromkeys(names, count)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for count in ("1", "2")
    }
    assert len(found) == 1


def test_dense_inverse_is_the_inverse() -> None:
    matrix = laplacian(6).toarray()
    np.testing.assert_allclose(dense_inverse(matrix), np.linalg.inv(matrix), atol=1e-13)


def test_a_matrix_that_is_not_positive_definite_is_an_error() -> None:
    with pytest.raises(ConvergenceError, match="not positive definite"):
        dense_inverse(np.diag([1.0, -1.0]))


def stalled_hierarchy(matrix: scipy.sparse.csr_matrix) -> Hierarchy:
    """Build a hierarchy whose first coarse space is no smaller than the fine one."""
    same = scipy.sparse.eye(matrix.shape[0], format="csr")
    return build_hierarchy(matrix, first_prolongation=same, first_coarse=matrix)


def test_a_level_that_cannot_be_made_coarser_is_not_made_dense() -> None:
    matrix = laplacian(15)
    tracemalloc.start()
    try:
        hierarchy = stalled_hierarchy(matrix)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * matrix.shape[0] ** 2 / 4
    rhs = right_hand_sides(matrix.shape[0], 2)
    assert solve_block(matrix, hierarchy, rhs, tolerance=1e-8).residuals.max() <= 1e-8


def test_a_matrix_without_strong_connections_is_solved() -> None:
    matrix = scipy.sparse.csr_matrix(laplacian(9) + 1000.0 * scipy.sparse.eye(729))
    rhs = right_hand_sides(729, 1)
    assert solve_block(matrix, build_hierarchy(matrix), rhs, tolerance=1e-8).iterations < 10
