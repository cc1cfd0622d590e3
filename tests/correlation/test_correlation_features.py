"""Features of arms: eigenvectors and factors against NumPy, laws of the groups."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fieldcorr as fc
from fieldcorr.correlation.features import NEAR, THRESHOLDS, _eigen, features_of, models_of
from fieldcorr.correlation.sources import as_source, source_from_matrix
from tests.duel.conftest import small_store as small_store
from tests.duel.support import correlations, line


@given(size=st.integers(1, 12), seed=st.integers(0, 10**6))
def test_eigenvectors_are_those_of_numpy(size: int, seed: int) -> None:
    rows = np.random.default_rng(seed).standard_normal((20, size))
    moments = rows.T @ rows / 20
    values, vectors = _eigen(rows)
    assert np.allclose(values, np.linalg.eigvalsh(moments)[::-1])
    assert np.allclose(moments @ vectors, vectors * values)
    assert np.allclose(vectors.T @ vectors, np.eye(size))


def test_features_of_a_matrix_have_its_kernel() -> None:
    r = correlations(30)
    features = features_of(source_from_matrix(r))
    assert [*features.groups] == ["field", "near", "broad", "even"]
    centre = np.eye(30) - 1.0 / 30
    near = np.exp((r - 1.0) / NEAR)
    broad = near @ centre @ near
    for name, kernel in {"field": r, "near": near, "broad": broad, "even": r**2}.items():
        x = features.values[:, features.groups[name]]
        centred = centre @ kernel @ centre
        assert np.allclose(x @ x.T, centred / np.trace(centred) * 30, atol=1e-3)


def test_every_group_is_centred_and_of_length_one(small_store: Path) -> None:
    with fc.open_store(small_store) as store:
        features = features_of(as_source(store))
        groups = ["field", "near", "broad", "even", "current", "strength", "recruited"]
        assert [*features.groups] == groups
        for columns in features.groups.values():
            x, mixing = features.values[:, columns], features.mixing[:, columns]
            assert np.abs(x.mean(axis=0)).max() < 1e-12
            assert (x**2).sum(axis=1).mean() == pytest.approx(1.0)
            assert np.allclose(mixing.T @ mixing, np.eye(x.shape[1]))


def test_what_a_mirror_shares_and_what_is_recruited_are_among_the_features(
    small_store: Path,
) -> None:
    with fc.open_store(small_store) as store:
        features = features_of(as_source(store))
        place = {row.tobytes(): arm for arm, row in enumerate(store.polarity)}
        mirror = [place[(-row).tobytes()] for row in store.polarity]
        even = features.values[:, features.groups["even"]]
        assert np.allclose(even, even[mirror], atol=1e-6)
        recruited = features.values[:, features.groups["recruited"]]
        potential = store.current @ store.array("/leadfield/potential")
        strong = potential[:, np.argmax(np.abs(potential).max(axis=0))]
        for threshold in THRESHOLDS:
            drive = -(strong - strong.mean()) / strong.std()
            wanted = 1.0 / (1.0 + np.exp(-(drive - threshold) / 0.3))
            wanted -= wanted.mean()
            weights, *_ = np.linalg.lstsq(recruited, wanted, rcond=None)
            assert (wanted - recruited @ weights).std() < 0.1 * wanted.std()


def test_a_model_of_one_of_several_groups_is_left_out() -> None:
    models = models_of({"field": slice(0, 3), "near": slice(3, 5)})
    assert [*models] == ["field", "near"]
    columns, scale = models["near"]
    assert columns.tolist() == [0, 1, 2, 3, 4]
    assert (scale**2).tolist() == pytest.approx([0.3] * 3 + [0.7] * 2)


def test_a_group_has_at_most_its_columns_and_is_made_once() -> None:
    source = source_from_matrix(line(300, 0.005))
    features = features_of(source)
    assert features.groups["near"].stop - features.groups["near"].start <= 50
    assert features_of(source) is features
