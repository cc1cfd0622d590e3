"""RDM and lnMAG."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.verification import lnmag, rdm, without_mean

RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(2, 100))
W = RNG.uniform(0.1, 1.0, size=100)


@given(st.floats(1e-3, 1e3))
def test_shape_ignores_size_and_size_ignores_shape(scale: float) -> None:
    assert rdm(scale * A, A, W) == pytest.approx(0.0, abs=1e-12)
    assert lnmag(scale * A, A, W) == pytest.approx(np.log(scale), abs=1e-12)


def test_rdm_is_the_chord_of_the_correlation() -> None:
    a, b = without_mean(A, W), without_mean(B, W)
    r = np.sum(W * a * b) / np.sqrt(np.sum(W * a * a) * np.sum(W * b * b))
    assert rdm(a, b, W) == pytest.approx(np.sqrt(2.0 - 2.0 * r))
    assert rdm(a, -a, W) == pytest.approx(2.0)


def test_weights_count_samples() -> None:
    counts = np.array([1, 2, 3])
    a, b = RNG.normal(size=(2, 3))
    repeated = rdm(np.repeat(a, counts), np.repeat(b, counts))
    assert rdm(a, b, counts.astype(float)) == pytest.approx(repeated)
    assert np.average(without_mean(a, counts.astype(float)), weights=counts) == pytest.approx(0.0)
