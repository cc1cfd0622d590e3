"""Rows of r and neighbourhoods: exact laws, the definition, and the same bytes however cut."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.sources import EmbeddingSource
from fieldcorr.correlation.tiles import (
    correlation_rows,
    index_dtype,
    largest_neighbours,
    narrow_embedding,
    neighbour_counts,
    neighbour_fill,
    pack_embedding,
    tiles,
)
from fieldcorr.errors import CorrelationError
from tests.correlation.strategies import embeddings


def whole(z: NDArray[np.float64]) -> NDArray[np.float32]:
    return correlation_rows(z, 0, len(z))


def reference_neighbours(
    r: NDArray[np.float32], threshold: float, top: int | None
) -> list[tuple[list[int], list[float]]]:
    """Sort each row by r, largest first and lower column first; cut; put columns in order."""
    result = []
    for i, row in enumerate(r.tolist()):
        near = [(-value, j) for j, value in enumerate(row) if value > threshold and j != i]
        kept = sorted(j for _, j in sorted(near)[:top])
        result.append((kept, [row[j] for j in kept]))
    return result


def neighbours(
    z: NDArray[np.float64], memory: int | None = None, **options: Any
) -> list[tuple[list[int], list[float]]]:
    """Count and fill the neighbours of every configuration, tile by tile."""
    result = []
    for start, stop in tiles(len(z), memory):
        rows = correlation_rows(z, start, stop)
        counts = neighbour_counts(rows, start, **options)
        indices, data = neighbour_fill(rows, start, counts, **options)
        assert indices.dtype == np.int32
        assert data.dtype == np.float32
        cuts = np.cumsum(counts)[:-1]
        for columns, r in zip(np.split(indices, cuts), np.split(data, cuts), strict=True):
            result.append((columns.tolist(), r.tolist()))
    return result


@given(embeddings(least=1))
def test_r_is_the_product_of_the_embedding(z: NDArray[np.float64]) -> None:
    r = whole(z)
    assert r.dtype == np.float32
    np.testing.assert_allclose(r, z @ z.T, rtol=0, atol=6.1e-8)


@given(embeddings(least=1))
def test_exact_laws_of_r(z: NDArray[np.float64]) -> None:
    both = np.concatenate([z, -z])
    r = whole(both)
    count = len(z)
    assert (np.diag(r) == 1.0).all()
    assert np.array_equal(r, r.T)
    assert np.abs(r).max() <= 1.0
    assert np.array_equal(r[:count, count:], -r[:count, :count])


@given(st.data(), embeddings(least=1))
def test_any_rows_are_the_rows_of_the_whole(data: st.DataObject, z: NDArray[np.float64]) -> None:
    start = data.draw(st.integers(0, len(z)))
    stop = data.draw(st.integers(start, len(z)))
    assert correlation_rows(z, start, stop).tobytes() == whole(z)[start:stop].tobytes()


@given(embeddings())
def test_tiles_and_updates_see_the_same_r(z: NDArray[np.float64]) -> None:
    r, source = whole(z), EmbeddingSource(z)
    for i in range(len(z)):
        assert source.row(i).tobytes() == r[i].tobytes()


def test_the_order_of_the_sum_is_the_same_everywhere() -> None:
    """Products that cancel at 1e12 leave a rest that shows in which order they were added."""
    rng = np.random.default_rng(3)
    z = rng.uniform(-0.2, 0.2, (60, 11))
    z[:, [1, 6]] = 1e6 * (1 + rng.random((60, 1)))
    z[30:, 6] *= -1
    r, source = whole(z), EmbeddingSource(z)
    crossing = r[:30, 30:]
    assert np.abs(crossing).max() < 1
    assert not np.array_equal(crossing, (z[:30, ::-1] @ z[30:, ::-1].T).astype(np.float32))
    for i in range(len(z)):
        assert source.row(i).tobytes() == np.where(np.arange(60) == i, 1, r[i]).tobytes()


def test_rows_that_are_too_long_by_rounding_stay_within_one() -> None:
    z = np.array([[0.6, 0.8], [0.6, 0.8], [-0.6, -0.8]]) * (1 + 1e-6)
    wanted = [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]]
    assert whole(z).tolist() == wanted
    assert [EmbeddingSource(z).row(i).tolist() for i in range(3)] == wanted


@pytest.mark.parametrize(("count", "rank"), [(1, 1), (300, 15), (1203, 16), (150, 128), (301, 400)])
def test_bytes_do_not_depend_on_threads_or_tiles(count: int, rank: int) -> None:
    rng = np.random.default_rng(count)
    z = rng.standard_normal((count, rank))
    z /= np.linalg.norm(z, axis=1)[:, None]
    one = correlation_rows(z, 0, count, threads=1)
    np.testing.assert_allclose(one, z @ z.T, rtol=0, atol=6.1e-8)
    assert correlation_rows(z, 0, count, threads=2).tobytes() == one.tobytes()
    packed = pack_embedding(z)
    for memory in (1, 44 * count, 4 * 77 * count):
        parts = [correlation_rows(packed, a, b) for a, b in tiles(count, memory)]
        assert np.concatenate(parts).tobytes() == one.tobytes()


def test_more_than_65536_columns() -> None:
    z = np.random.default_rng(5).standard_normal((5, 70_000))
    z /= np.linalg.norm(z, axis=1)[:, None]
    np.testing.assert_allclose(whole(z), z @ z.T, rtol=0, atol=6.1e-8)


def test_rows_go_where_they_are_told() -> None:
    z = np.eye(20)
    out = np.full((5, 20), 7, np.float32)
    assert correlation_rows(z, 3, 8, out) is out
    assert np.array_equal(out, np.eye(20, dtype=np.float32)[3:8])


@pytest.mark.slow
@given(
    embeddings(least=1),
    st.sampled_from([0.0, -0.5, 0.3, 0.999, -2.0]),
    st.none() | st.integers(1, 12),
)
def test_neighbourhoods_follow_their_definition(
    z: NDArray[np.float64], threshold: float, top: int | None
) -> None:
    found = neighbours(z, threshold=threshold, top=top)
    assert found == reference_neighbours(whole(z), threshold, top)


@pytest.mark.slow
@pytest.mark.parametrize("top", [None, 5])
def test_neighbourhood_bytes_do_not_depend_on_threads_or_memory(top: int | None) -> None:
    rng = np.random.default_rng(9)
    # Few distinct directions: many equal r, so that ties decide.
    z = np.repeat(np.eye(4), 60, axis=0)[rng.permutation(240)]
    z[:100] += 0.1 * rng.standard_normal((100, 4))
    z /= np.linalg.norm(z, axis=1)[:, None]
    wanted = neighbours(z, top=top, threads=1)
    for memory, threads in ((1, 2), (5000, 1), (10**6, 2)):
        assert neighbours(z, memory, top=top, threads=threads) == wanted


def test_a_threshold_between_two_floats_means_what_it_says() -> None:
    # float32(0.3) is above 0.3: an entry of that value is a neighbour.
    rows = np.array([[1.0, 0.3], [0.3, 1.0]], np.float32)
    assert neighbour_counts(rows, 0, threshold=0.3).tolist() == [1, 1]
    assert neighbour_counts(rows, 0, threshold=float(np.float32(0.3))).tolist() == [0, 0]


def test_two_passes_over_given_rows() -> None:
    rows = np.array([[0.5, 1.0, -0.2, 0.0, 0.25]], np.float32)
    counts = neighbour_counts(rows, 1)
    indices, data = neighbour_fill(rows, 1, counts)
    assert indices.tolist() == [0, 4]
    assert data.tolist() == [0.5, 0.25]


@given(st.integers(1, 5000), st.integers(1, 10**6))
def test_tiles_cover_all_rows_once_within_memory(size: int, memory: int) -> None:
    cut = list(tiles(size, memory))
    assert [start for start, _ in cut] == [0, *[stop for _, stop in cut[:-1]]]
    assert cut[-1][1] == size
    assert all((b - a == 1) or 4 * size * (b - a) <= memory for a, b in cut)


def test_indices_are_int32_as_long_as_they_fit() -> None:
    assert index_dtype(2**31) == np.int32
    assert index_dtype(2**31 + 1) == np.int64


def test_wrong_input_is_named() -> None:
    z = np.eye(4)
    rows = whole(z)
    for start, stop in ((-1, 2), (3, 2), (0, 5)):
        with pytest.raises(CorrelationError, match=f"rows {start} to {stop}"):
            correlation_rows(z, start, stop)
    with pytest.raises(CorrelationError, match="out must be"):
        correlation_rows(z, 0, 2, np.empty((2, 3), np.float32))
    with pytest.raises(CorrelationError, match="shape"):
        pack_embedding(np.zeros(3))
    with pytest.raises(CorrelationError, match="row 1"):
        pack_embedding([[1.0], [np.nan]])
    with pytest.raises(CorrelationError, match="top = 0"):
        neighbour_counts(rows, 0, top=0)
    with pytest.raises(CorrelationError, match="threshold = nan"):
        neighbour_counts(rows, 0, threshold=np.nan)
    with pytest.raises(CorrelationError, match="from row 1"):
        neighbour_counts(rows, 1)
    with pytest.raises(CorrelationError, match="first pass"):
        neighbour_fill(rows, 0, np.array([1, 2, 3]))
    with pytest.raises(CorrelationError, match="do not fit"):
        neighbour_fill(rows, 0, np.ones(4, np.int64), data=np.empty(9, np.float32))


def assert_largest(z: NDArray[np.float64], threshold: float, top: int, start: int = 0) -> None:
    """Compare the search with both passes over rows of r."""
    counts, columns, r = largest_neighbours(
        narrow_embedding(z), start, len(z), top=top, threshold=threshold
    )
    rows = correlation_rows(z, start, len(z))
    want = neighbour_counts(rows, start, threshold=threshold, top=top)
    indices, data = neighbour_fill(rows, start, want, threshold=threshold, top=top)
    np.testing.assert_array_equal(counts, want)
    np.testing.assert_array_equal(columns, indices)
    np.testing.assert_array_equal(r, data)


@given(embeddings(least=1), st.sampled_from([-1.0, 0.0, 0.3, 0.99]), st.integers(1, 50), st.data())
def test_the_search_finds_the_largest(
    z: NDArray[np.float64], threshold: float, top: int, data: st.DataObject
) -> None:
    assert_largest(z, threshold, top, data.draw(st.integers(0, len(z))))


@pytest.mark.parametrize("copies", [1, 2, 40])
@pytest.mark.parametrize("top", [1, 64])
def test_the_search_finds_the_largest_of_many(copies: int, top: int) -> None:
    """More than one panel, ties within float32, and more equal ones than there is room for."""
    rng = np.random.default_rng(copies)
    z = rng.standard_normal((13_000 // copies, 7)) * 0.6 ** np.arange(7)
    z[: len(z) // 2] = z[0] + 1e-5 * z[: len(z) // 2]
    z = np.repeat(z / np.linalg.norm(z, axis=1)[:, None], copies, axis=0)
    assert_largest(z, 0.0, top, len(z) - 300)
    assert_largest(z[: len(z) // 2 + 300], 0.0, top, len(z) // 2 - 100)
