"""Every kernel of the block solver against scipy and numpy."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr._parallel import threads
from fieldcorr.fem import _solver_kernels as kernels
from fieldcorr.fem.amg import sweep

# Fewer rows than a block, one block exactly, and a last block that is not full.
SIZES = st.sampled_from(
    [1, 17, kernels.ROW_BLOCK, kernels.ROW_BLOCK + 1, 3 * kernels.ROW_BLOCK - 5]
)


def random_csr(rows: int, columns: int, seed: int) -> scipy.sparse.csr_matrix:
    density = min(1.0, 8.0 / columns)
    matrix = scipy.sparse.random(rows, columns, density, format="csr", random_state=seed)
    return scipy.sparse.csr_matrix(matrix)


def parts(matrix: scipy.sparse.csr_matrix, dtype: type) -> tuple[NDArray[np.generic], ...]:
    return (
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        matrix.data.astype(dtype),
    )


def block(n: int, seed: int, dtype: type = np.float64) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n, kernels.WIDTH)).astype(dtype)


def partial_sums(n: int) -> NDArray[np.float64]:
    return np.full(((n + kernels.ROW_BLOCK - 1) // kernels.ROW_BLOCK, kernels.WIDTH), np.nan)


@settings(max_examples=10)
@given(SIZES, st.integers(0, 1000))
def test_multiply_with_dots(n: int, seed: int) -> None:
    matrix, x, dots = random_csr(n, n, seed), block(n, seed), partial_sums(n)
    y = np.full_like(x, np.nan)
    sweep(kernels.multiply_with_dots, n, parts(matrix, np.float64), x, y, dots)
    np.testing.assert_allclose(y, matrix @ x, atol=1e-13)
    np.testing.assert_allclose(dots.sum(axis=0), np.sum(x * (matrix @ x), axis=0), atol=1e-10)


@settings(max_examples=10)
@given(SIZES, SIZES, st.integers(0, 1000))
def test_combine_takes_rectangular_matrices(n: int, m: int, seed: int) -> None:
    matrix = random_csr(n, m, seed)
    x, base = block(m, seed, np.float32), block(n, seed + 1, np.float32)
    out = np.full_like(base, np.nan)
    sweep(
        kernels.combine,
        n,
        parts(matrix, np.float32),
        x,
        base,
        np.float32(0.5),
        np.float32(-2.0),
        out,
    )
    np.testing.assert_allclose(out, 0.5 * base - 2.0 * (matrix @ x), atol=1e-4)


@settings(max_examples=10)
@given(SIZES, st.integers(0, 1000))
def test_smooth(n: int, seed: int) -> None:
    matrix = random_csr(n, n, seed)
    b, x, d = (block(n, seed + k, np.float32) for k in range(3))
    inverse = np.random.default_rng(seed).random(n).astype(np.float32)
    change = 0.25 * d + 0.5 * inverse[:, None] * (b - matrix @ x)
    expected = x + change
    out = np.full_like(x, np.nan)
    half, quarter = np.float32(0.5), np.float32(0.25)
    sweep(kernels.smooth, n, parts(matrix, np.float32), inverse, b, quarter, half, x, d, out)
    np.testing.assert_allclose(d, change, atol=1e-4)
    np.testing.assert_allclose(out, expected, atol=1e-4)


def test_smooth_without_a_matrix_starts_from_zero() -> None:
    n = 300
    b, x, d = (block(n, k, np.float32) for k in range(3))
    inverse = np.random.default_rng(0).random(n).astype(np.float32)
    nothing = (np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    sweep(kernels.smooth, n, nothing, inverse, b, np.float32(0.0), np.float32(0.5), x, d, x)
    np.testing.assert_allclose(x, 0.5 * inverse[:, None] * b, rtol=1e-6)
    np.testing.assert_array_equal(x, d)


@settings(max_examples=10)
@given(SIZES, st.integers(0, 1000))
def test_advance_turn_and_mixed_dots(n: int, seed: int) -> None:
    x, r, p, q = (block(n, seed + k) for k in range(4))
    alpha, scale = np.random.default_rng(seed).normal(size=(2, kernels.WIDTH))
    new_x, new_r = x + alpha * p, r - alpha * q
    singles, dots = np.zeros((n, kernels.WIDTH), np.float32), partial_sums(n)
    repeated = (np.tile(alpha, kernels.ROW_BLOCK), np.tile(scale, kernels.ROW_BLOCK))
    sweep(kernels.advance, n, *repeated, x, r, p, q, singles, dots)
    np.testing.assert_allclose(x, new_x, atol=1e-13)
    np.testing.assert_allclose(r, new_r, atol=1e-13)
    np.testing.assert_allclose(singles, scale * new_r, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(dots.sum(axis=0), np.sum(new_r**2, axis=0), rtol=1e-12)
    sweep(kernels.mixed_dots, n, r, singles, dots)
    expected = np.sum(r * singles.astype(np.float64), axis=0)
    np.testing.assert_allclose(dots.sum(axis=0), expected, atol=1e-10)
    turned = singles + alpha * p
    sweep(kernels.turn, n, repeated[0], singles, p)
    np.testing.assert_allclose(p, turned, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_not_finite_are_not_lost(bad: float) -> None:
    n = 300
    matrix, x, dots = random_csr(n, n, 1) + scipy.sparse.eye(n), block(n, 1), partial_sums(n)
    x[7, 3] = bad
    y = np.zeros_like(x)
    sweep(kernels.multiply_with_dots, n, parts(matrix.tocsr(), np.float64), x, y, dots)
    assert not np.isfinite(dots.sum(axis=0)[3])


@pytest.mark.slow
def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    n = 5000
    matrix, x = random_csr(n, n, 2), block(n, 2)
    results = []
    for count in (1, 2):
        y, dots = np.zeros_like(x), partial_sums(n)
        with threads(count):
            sweep(kernels.multiply_with_dots, n, parts(matrix, np.float64), x, y, dots)
        results.append((y.tobytes(), dots.tobytes()))
    assert results[0] == results[1]
