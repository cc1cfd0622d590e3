"""r over samples of circuits: every number against its definition over the samples' matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.compress import compress_embedding
from fieldcorr.correlation.ensemble import Ensemble, effective_size
from fieldcorr.correlation.error_bars import NOISE_SHARE, SCALE, ErrorBars
from fieldcorr.errors import CorrelationError
from tests.correlation.circuits import Case, circuit, definition, everything

Floats = NDArray[np.float64]


def ensemble(seed: int, samples: int = 5, contacts: int = 4) -> tuple[Ensemble, Floats]:
    """Return an ensemble of unlike circuits and r (M, K, K) of its samples by definition."""
    modes = ["voltage", "current"]
    circuits = [circuit(contacts, seed + k, modes[k % 2]) for k in range(samples)]
    case = everything(contacts, circuits[0])
    r = np.array([definition(Case(case.space, one, case.polarity)) for one in circuits])
    weight = np.random.default_rng(seed).uniform(0.1, 1.0, samples)
    return Ensemble(case.polarity, circuits, weight / weight.sum()), r


@given(st.integers(0, 10**6), st.integers(2, 9))
@settings(max_examples=25)
def test_rows_mean_and_spread_are_those_of_the_samples(seed: int, samples: int) -> None:
    made, r = ensemble(seed, samples)
    i = seed % len(made.polarity)
    mean = np.tensordot(made.weight, r, 1)
    variance = np.tensordot(made.weight, (r - mean) ** 2, 1)
    np.testing.assert_allclose(made.rows(i), r[:, i], atol=1e-12)
    np.testing.assert_allclose(made.mean(i), mean[i], atol=1e-12)
    np.testing.assert_allclose(made.spread(i) ** 2, variance[i], atol=1e-12)


@given(st.integers(0, 10**6), st.integers(1, 6))
@settings(max_examples=25)
def test_probabilities_count_samples_by_weight(seed: int, n: int) -> None:
    made, r = ensemble(seed)
    i = seed % len(made.polarity)
    above = sum(w * (one[i] > 0.3) for w, one in zip(made.weight, r, strict=True))
    np.testing.assert_allclose(made.above(i, 0.3), above, atol=1e-12)
    near = np.zeros(len(made.polarity))
    for w, one in zip(made.weight, r, strict=True):
        order = sorted(set(range(len(one))) - {i}, key=lambda k: -one[i, k])
        near[order[:n]] += w
    found = made.among_nearest(i, n)
    assert found.sum() == pytest.approx(n)
    # Mirrored pairs tie to rounding; their probabilities are the same whichever comes first.
    np.testing.assert_allclose(np.sort(found), np.sort(near), atol=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_quantiles_are_samples_at_which_the_weight_is_reached(seed: int) -> None:
    made, r = ensemble(seed)
    levels = [0.0, 0.2, 0.5, 1.0]
    found = made.quantiles(1, levels)
    for k in range(0, len(made.polarity), 7):
        for level, value in zip(levels, found[:, k], strict=True):
            below = made.weight[r[:, 1, k] < value - 1e-9].sum()
            up_to = made.weight[r[:, 1, k] <= value + 1e-9].sum()
            assert below < level + 1e-9
            assert up_to >= level - 1e-9
    with pytest.raises(CorrelationError, match="not between 0 and 1"):
        made.quantiles(1, 1.5)


def test_the_mean_has_unit_rows_and_can_be_compressed() -> None:
    made, r = ensemble(3, samples=40, contacts=4)
    rows = made.mean_embedding()
    np.testing.assert_allclose(np.einsum("kr,kr->k", rows, rows), 1.0, atol=1e-12)
    mean = np.tensordot(made.weight, r, 1)
    np.testing.assert_allclose(rows @ rows.T, mean, atol=1e-12)
    short = compress_embedding(rows, tolerance=1e-5)
    assert short.shape[1] < rows.shape[1] / 2
    assert np.abs(short @ short.T - mean).max() <= 1e-5


def test_any_configuration_has_a_row() -> None:
    made, _ = ensemble(5)
    np.testing.assert_allclose(made.rows_of(made.polarity[7]), made.rows(7), atol=1e-12)


def test_more_samples_than_memory_are_refused() -> None:
    made, _ = ensemble(5)
    many = np.broadcast_to(made.polarity[:1], (10**8, made.polarity.shape[1]))
    with pytest.raises(CorrelationError, match="use rules that leave fewer"):
        Ensemble(many, made.circuits, made.weight)


def test_effective_size_counts_equal_weights() -> None:
    assert effective_size([0.25] * 4) == pytest.approx(4.0)
    assert effective_size([1.0, 0.0, 0.0]) == pytest.approx(1.0)


@given(st.integers(0, 10**6))
@settings(max_examples=25)
def test_error_bars_are_the_pairs_own_difference_and_the_typical_one(seed: int) -> None:
    made, r = ensemble(seed, samples=2)
    bars = ErrorBars(*made.embeddings)
    difference = r[0] - r[1]
    typical = np.sqrt((difference**2).mean(axis=1))
    np.testing.assert_allclose(bars.typical, typical, atol=1e-7)
    i = seed % len(r[0])
    noise = NOISE_SHARE**2 * (1.0 - r[0, i] ** 2) * (typical[i] ** 2 + typical**2)
    want = SCALE * np.sqrt(difference[i] ** 2 + noise)
    want[i] = 0.0
    np.testing.assert_allclose(bars.row(i), want, atol=1e-6)
