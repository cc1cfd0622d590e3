"""Every source of correlations leads to the same duel; what is no correlation is refused."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from fieldcorr.duel import (
    CorrDuel,
    CorrelationSource,
    as_source,
    source_from_embedding,
    source_from_kernel,
    source_from_matrix,
    source_from_sparse,
)
from fieldcorr.errors import CorrelationError
from tests.duel.support import STEPS, correlations, embedding, perform

ARMS = 30
Z = embedding(ARMS, rank=5)
R = source_from_embedding(Z)


def rows() -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.stack([R.row(arm) for arm in range(ARMS)])


def gaussian(point: Any, points: Any) -> Any:
    """Return the correlation of a point on a line with others."""
    return np.exp(-((points - point) ** 2) / 0.08)


SOURCES: dict[str, CorrelationSource] = {
    "embedding": R,
    "matrix": as_source(rows()),
    "sparse": as_source(csr_array(np.where(rows() > 0.0, rows(), 0.0))),
    "kernel": source_from_kernel(lambda z, all_z: all_z @ z, Z),
}


@given(
    taken=st.lists(
        st.tuples(st.sampled_from(STEPS), *[st.integers(0, 1000)] * 3), min_size=5, max_size=40
    ),
    seed=st.integers(0, 99),
)
@settings(max_examples=20)
def test_all_sources_agree(taken: list[tuple[str, int, int, int]], seed: int) -> None:
    engines = {name: CorrDuel(source, horizon=40, seed=seed) for name, source in SOURCES.items()}
    for engine in engines.values():
        for step in taken:
            perform(engine, step)
    first = engines.pop("embedding")
    for engine in engines.values():
        assert engine.events == first.events
        assert engine.active.tolist() == first.active.tolist()
        order, other = np.argsort(engine.survivors.arm), np.argsort(first.survivors.arm)
        for name in ("estimate", "count", "radius"):
            mine, theirs = getattr(engine.survivors, name), getattr(first.survivors, name)
            np.testing.assert_allclose(mine[order], theirs[other], rtol=1e-9, atol=1e-12)


def test_rows_agree() -> None:
    for source in SOURCES.values():
        for arm in (0, 7, ARMS - 1):
            expected = np.maximum(R.row(arm), 0.0) if source is SOURCES["sparse"] else R.row(arm)
            np.testing.assert_allclose(source.row(arm), expected, atol=2e-7)
            assert len(source) == ARMS


def test_a_kernel_over_points_works_in_place_of_a_store() -> None:
    points = np.linspace(0.0, 1.0, 60)
    engine = CorrDuel(source_from_kernel(gaussian, points), horizon=100, seed=1)
    while not engine.done:
        i, j = engine.ask()
        engine.tell(max(i, j), min(i, j))
    assert engine.best > 50


def test_rows_of_a_kernel_are_remembered() -> None:
    calls = []

    def counted(point: Any, points: Any) -> Any:
        calls.append(point)
        return gaussian(point, points)

    engine = CorrDuel(source_from_kernel(counted, np.linspace(0, 1, 20)), horizon=9)
    for _ in range(5):
        engine.tell(3, 4)
    assert len(calls) == 2


def test_fingerprints_tell_sources_apart() -> None:
    other = correlations(ARMS, seed=5)
    prints = {source.fingerprint() for source in SOURCES.values()}
    prints |= {as_source(other).fingerprint(), as_source(csr_array(other)).fingerprint()}
    prints |= {source_from_kernel(gaussian, Z, name="other").fingerprint()}
    assert len(prints) == len(SOURCES) + 3
    assert as_source(rows()).fingerprint() == SOURCES["matrix"].fingerprint()


def bad(change: Any) -> Any:
    matrix = correlations(6)
    change(matrix)
    return matrix


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: as_source(bad(lambda m: m.__setitem__((0, 1), np.nan))), "not finite"),
        (lambda: as_source(bad(lambda m: m.__setitem__((0, 1), 1.1))), r"outside \[-1, 1\]"),
        (lambda: as_source(bad(lambda m: m.__setitem__((0, 1), 0.0))), "not symmetric"),
        (lambda: as_source(bad(lambda m: m.__setitem__((2, 2), 0.5))), "diagonal is not 1"),
        (lambda: as_source(np.zeros((3, 4))), "source_from_embedding"),
        (lambda: as_source([1.0, 2.0]), "is not"),
        (lambda: as_source(gaussian), "source_from_kernel"),  # type: ignore[arg-type]
        (lambda: source_from_matrix(np.ones((1, 1))), "K > 1"),
        (lambda: source_from_embedding(np.ones((4, 3))), "not of length 1"),
        (lambda: source_from_embedding(np.ones(4)), "arms, rank"),
        (lambda: source_from_sparse(csr_array(np.triu(np.ones((3, 3))))), "not symmetric"),
        (lambda: source_from_kernel(gaussian, np.float64(3.0)), "hold no arms"),
        (lambda: source_from_kernel(lambda p, q: 2.0 * q + 5.0, Z[:, 0]).row(0), "outside"),
    ],
)
def test_what_is_no_correlation_is_refused(make: Any, says: str) -> None:
    with pytest.raises(CorrelationError, match=says):
        make()


def test_rounding_above_one_is_read_as_one() -> None:
    matrix = correlations(6)
    matrix[0, 1] = matrix[1, 0] = 1.0 + 1e-7
    engine = CorrDuel(matrix, horizon=5)
    engine.tell(0, 1)
    assert (engine.survivors.estimate <= 1.0).all()


def broken(kind: str) -> Any:
    """Return a sparse matrix whose own arrays point outside."""
    matrix: Any = csr_array(correlations(6))
    if kind == "coo":
        matrix = matrix.tocoo()
        matrix.coords[0][3] = 10**8
    elif kind == "indptr":
        matrix.indptr[3] = 10**9
    else:
        matrix = matrix.tocsc() if kind == "csc" else matrix
        matrix.indices[3] = -(10**8) if kind == "negative" else 10**8
    return matrix


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "negative", "indptr"])
def test_a_damaged_sparse_matrix_never_reaches_a_kernel(kind: str) -> None:
    """In a process of its own: what is not noticed there ends it by a signal."""
    program = (
        f"from tests.duel.test_duel_sources import as_source, broken; as_source(broken({kind!r}))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=root
    )
    assert done.returncode == 1, done.returncode
    assert "CorrelationError: sparse correlation: it is damaged" in done.stderr


def test_a_table_with_names_is_a_source_with_labels() -> None:
    frame = pd.DataFrame(np.eye(3), index=["a", "b", "c"], columns=["a", "b", "c"])
    source = as_source(frame)
    assert [source.label(arm) for arm in range(3)] == ["a", "b", "c"]
    assert source.fingerprint() == as_source(np.eye(3)).fingerprint()
    with pytest.raises(CorrelationError, match="not named alike"):
        as_source(frame[["b", "a", "c"]])
    with pytest.raises(CorrelationError, match="the same name"):
        as_source(frame.rename(index={"b": "a"}, columns={"b": "a"}))
