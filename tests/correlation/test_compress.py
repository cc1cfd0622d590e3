"""Fewer columns: the bound on r holds, equal rows stay equal, bits do not depend on threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.compress import compress_embedding
from tests.correlation.strategies import seeds


def smooth_rows(seed: int, count: int, columns: int, decay: float) -> NDArray[np.float64]:
    """Rows whose directions fade geometrically, some of them equal or mirrored."""
    rng = np.random.default_rng(seed)
    directions = np.linalg.qr(rng.standard_normal((columns, columns)))[0]
    z = (rng.standard_normal((count, columns)) * decay ** np.arange(columns)) @ directions
    z[count // 2] = z[0]
    z[count // 3] = -z[1]
    return np.asarray(z / np.linalg.norm(z, axis=1)[:, None])


@pytest.mark.slow
@given(seeds, st.integers(9, 90), st.sampled_from([0.3, 0.6, 0.8]), st.floats(1e-9, 1e-2))
def test_r_changes_by_no_more_than_the_tolerance(
    seed: int, count: int, decay: float, tolerance: float
) -> None:
    z = smooth_rows(seed, count, 60, decay)
    w = compress_embedding(z, tolerance=tolerance)
    assert np.abs(w @ w.T - z @ z.T).max() <= tolerance + 1e-14
    np.testing.assert_allclose(np.linalg.norm(w, axis=1), 1, rtol=1e-14)
    assert w[count // 2].tobytes() == w[0].tobytes()
    assert np.array_equal(w[count // 3], -w[1])


@pytest.mark.parametrize("rank", [1, 7, 40])
def test_columns_that_are_not_needed_go(rank: int) -> None:
    rng = np.random.default_rng(rank)
    z = rng.standard_normal((300, rank)) @ rng.standard_normal((rank, 200))
    z /= np.linalg.norm(z, axis=1)[:, None]
    w = compress_embedding(z, tolerance=1e-10)
    assert w.shape == (300, rank)
    np.testing.assert_allclose(w @ w.T, z @ z.T, rtol=0, atol=1e-10)


def test_what_cannot_be_compressed_stays_as_it_is() -> None:
    z = np.random.default_rng(1).standard_normal((50, 40))
    z /= np.linalg.norm(z, axis=1)[:, None]
    assert compress_embedding(z, tolerance=1e-6) is z


def test_bits_do_not_depend_on_threads() -> None:
    z = smooth_rows(2, 333, 300, 0.9)
    one, two = (compress_embedding(z, tolerance=1e-6, threads=n) for n in (1, 2))
    assert one.shape[1] < 150
    assert one.tobytes() == two.tobytes()
