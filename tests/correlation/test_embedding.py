"""The embedding: r of the Gram way equals the definition on sampled fields."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.embedding import (
    correlation_reference,
    embedding_from_features,
    embedding_from_gram,
    embedding_from_samples,
)
from fieldcorr.correlation.sampling import choose_samples
from fieldcorr.errors import CorrelationError
from tests.correlation.strategies import seeds


def gram_of(lead: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = lead - (lead @ weight / weight.sum())[:, None]
    return np.asarray((centred * weight) @ centred.T)


def problem(
    seed: int, contacts: int = 8, points: int = 200, count: int = 30
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Balanced currents, lead fields, weights."""
    rng = np.random.default_rng(seed)
    currents = rng.standard_normal((count, contacts))
    currents -= currents.mean(axis=1)[:, None]
    return currents, rng.standard_normal((contacts, points)), rng.uniform(0.1, 1, points)


@given(seeds, st.integers(2, 16))
def test_gram_way_equals_the_definition(seed: int, contacts: int) -> None:
    currents, lead, weight = problem(seed, contacts)
    z = embedding_from_gram(currents, gram_of(lead, weight))
    assert z.shape[1] <= contacts - 1
    np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1, rtol=1e-14)
    wanted = correlation_reference(currents @ lead, weight)
    np.testing.assert_allclose(z @ z.T, wanted, rtol=0, atol=1e-10)
    equal_weights = embedding_from_gram(currents, gram_of(lead, np.ones_like(weight)))
    np.testing.assert_allclose(
        equal_weights @ equal_weights.T, np.corrcoef(currents @ lead), rtol=0, atol=1e-10
    )


@given(seeds)
def test_mirrored_currents_give_exactly_the_mirrored_row(seed: int) -> None:
    currents, lead, weight = problem(seed)
    gram = gram_of(lead, weight)
    assert np.array_equal(
        embedding_from_gram(-currents, gram), -embedding_from_gram(currents, gram)
    )


@given(seeds)
def test_a_row_does_not_depend_on_its_company(seed: int) -> None:
    currents, lead, weight = problem(seed)
    gram = gram_of(lead, weight)
    whole = embedding_from_gram(currents, gram)
    assert embedding_from_gram(currents[7:9], gram).tobytes() == whole[7:9].tobytes()


def test_sixteen_contacts_need_fifteen_columns() -> None:
    currents, lead, weight = problem(3, contacts=16)
    lead -= lead.mean(axis=0)  # lead fields that sum to zero, as those of an insulated body
    assert embedding_from_gram(currents, gram_of(lead, weight)).shape == (30, 15)


def test_dependent_lead_fields_give_fewer_columns() -> None:
    currents, lead, weight = problem(4, contacts=6)
    lead[3:] = lead[:3]
    z = embedding_from_gram(currents, gram_of(lead, weight))
    assert z.shape[1] == 2  # differences of three fields
    wanted = correlation_reference(currents @ lead, weight)
    np.testing.assert_allclose(z @ z.T, wanted, rtol=0, atol=1e-12)


def test_currents_that_do_not_balance_use_all_of_the_gram_matrix() -> None:
    currents, lead, weight = problem(5, contacts=4)
    currents[0] += 1.0
    z = embedding_from_gram(currents, gram_of(lead, weight))
    assert z.shape[1] == 4
    wanted = correlation_reference(currents @ lead, weight)
    np.testing.assert_allclose(z @ z.T, wanted, rtol=0, atol=1e-12)


def test_a_configuration_without_field_is_named() -> None:
    currents, lead, weight = problem(6)
    gram = gram_of(lead, weight)
    currents[4] = 0.0
    with pytest.raises(CorrelationError, match="row 4"):
        embedding_from_gram(currents, gram)
    names = [f"c{k}" for k in range(len(currents))]
    with pytest.raises(CorrelationError, match="'c4' makes a field without variance"):
        embedding_from_gram(currents, gram, labels=names)
    with pytest.raises(CorrelationError, match="'c4'"):
        embedding_from_gram(currents, gram, labels=lambda k: names[k])


def test_a_constant_field_is_named() -> None:
    currents, lead, weight = problem(7)
    lead[1] = lead[0] + 3.0  # a bipole of contacts 0 and 1 makes a constant
    currents[2] = 0.0
    currents[2, :2] = 1.0, -1.0
    with pytest.raises(CorrelationError, match="row 2"):
        embedding_from_gram(currents, gram_of(lead, weight))


def test_wrong_gram_input_is_named() -> None:
    currents, lead, weight = problem(8)
    gram = gram_of(lead, weight)
    with pytest.raises(CorrelationError, match="shape"):
        embedding_from_gram(currents, gram[:3])
    with pytest.raises(CorrelationError, match="positive semidefinite"):
        embedding_from_gram(currents, 20.0 * gram - 19.0 * np.diag(np.diag(gram)))
    with pytest.raises(CorrelationError, match="zero"):
        embedding_from_gram(currents, np.zeros_like(gram))
    with pytest.raises(CorrelationError, match="not finite"):
        embedding_from_gram(currents, np.full_like(gram, np.nan))
    lopsided = gram.copy()
    lopsided[0, 1] *= 2
    with pytest.raises(CorrelationError, match="symmetric"):
        embedding_from_gram(currents, lopsided)
    currents[3, 0] = np.inf
    with pytest.raises(CorrelationError, match="row 3"):
        embedding_from_gram(currents, gram)


@given(seeds)
def test_magnitude_over_all_points_equals_the_definition(seed: int) -> None:
    currents, _, weight = problem(seed, contacts=5, points=60, count=12)
    field = np.random.default_rng(seed + 1).standard_normal((5, 60, 3))
    found = embedding_from_samples(currents, field, weight, count=60, tolerance=0)
    magnitude = np.linalg.norm(np.einsum("ka,anx->knx", currents, field), axis=2)
    wanted = correlation_reference(magnitude, weight)
    np.testing.assert_allclose(found.embedding @ found.embedding.T, wanted, rtol=0, atol=1e-12)
    mirrored = embedding_from_samples(-currents, field, weight, count=60, tolerance=0)
    assert np.array_equal(mirrored.embedding, found.embedding)


def test_magnitude_bits_do_not_depend_on_threads() -> None:
    currents, _, weight = problem(11, contacts=5, points=300, count=40)
    field = np.random.default_rng(1).standard_normal((5, 300, 3))
    one, two = (
        embedding_from_samples(currents, field, weight, count=100, threads=n) for n in (1, 2)
    )
    assert one.embedding.tobytes() == two.embedding.tobytes()
    assert one.embedding.shape[1] <= len(one.samples.index) <= 100


def test_samples_come_close_to_all_points() -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(-1, 1, (20_000, 3))
    sources = np.array([[2.0, 0, 0], [-2, 0, 0], [0, 2, 0], [0, 0, 2]])
    away = points - sources[:, None]
    field = away / np.linalg.norm(away, axis=2)[..., None] ** 3
    currents = np.array([[1.0, -1, 0, 0], [0, 1, -1, 0], [1, 0, 0, -1], [0, 0, 1, -1]])
    weight = np.full(len(points), 4e-4)
    all_points = embedding_from_samples(currents, field, weight, count=20_000).embedding
    few = embedding_from_samples(currents, field, weight, count=1000, points=points).embedding
    assert np.abs(few @ few.T - all_points @ all_points.T).max() < 0.03
    every = embedding_from_samples(
        currents, field, weight, count=1000, points=points, tolerance=0
    ).embedding
    assert few.shape[1] <= len(currents)
    np.testing.assert_allclose(few @ few.T, every @ every.T, rtol=0, atol=1e-5)


def test_zero_current_has_no_magnitude() -> None:
    currents, _, weight = problem(12, contacts=5, points=60)
    field = np.random.default_rng(1).standard_normal((5, 60, 3))
    currents[9] = 0
    with pytest.raises(CorrelationError, match="row 9"):
        embedding_from_samples(currents, field, weight)
    with pytest.raises(CorrelationError, match="field has shape"):
        embedding_from_samples(currents, field[:4], weight)


def test_features_with_more_than_65536_samples() -> None:
    rng = np.random.default_rng(13)
    features, weight = rng.standard_normal((4, 70_000)) + 5.0, rng.uniform(0, 1, 70_000)
    z = embedding_from_features(features, weight)
    np.testing.assert_allclose(z @ z.T, correlation_reference(features, weight), rtol=0, atol=1e-12)
    with pytest.raises(CorrelationError, match="row 1"):
        embedding_from_features([[1.0, 2.0], [3.0, 3.0]], [1.0, 1.0])
    with pytest.raises(CorrelationError, match="weight"):
        embedding_from_features([[1.0, 2.0]], [1.0, -1.0])


@given(seeds, st.integers(2, 50))
def test_samples_keep_the_volume_and_follow_it(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0, 1, 80) * (rng.random(80) < 0.8)
    weight[3] = 30.0  # most of the volume
    found = choose_samples(weight, count, seed=seed)
    assert found.weight.sum() == pytest.approx(weight.sum())
    assert (weight[found.index] > 0).all()
    assert (np.diff(found.index) > 0).all()
    step = weight.sum() / count
    if np.count_nonzero(weight) > count:
        # Systematic sampling: each point is hit as often as its volume says, to within one.
        assert abs(found.weight[found.index == 3].sum() - weight[3]) <= step * (1 + 1e-9)


def test_samples_are_chosen_by_seed_alone() -> None:
    weight = np.ones(1000)
    first, again, other = (choose_samples(weight, 10, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.index, again.index)
    assert not np.array_equal(first.index, other.index)


@pytest.mark.parametrize("weight", [[0.0, 0.0], [1.0, -1.0], [1.0, np.nan], [[1.0]]])
def test_wrong_weights_are_refused(weight: list[float]) -> None:
    with pytest.raises(CorrelationError, match="weight"):
        choose_samples(weight, 10, seed=1)
    with pytest.raises(CorrelationError, match="samples = 1"):
        choose_samples([1.0, 1.0], 1, seed=1)


def test_the_definition_on_fields_anyone_can_check() -> None:
    r = correlation_reference(np.array([[1, 2, 3], [2, 4, 6], [3, 2, 1]]), np.ones(3))
    np.testing.assert_allclose(r, [[1, 1, -1], [1, 1, -1], [-1, -1, 1]], atol=1e-15)
    # A point of weight 2 counts as two points.
    np.testing.assert_allclose(
        correlation_reference(np.array([[0, 1, 5], [1, 0, 2]]), np.array([1, 2, 1])),
        np.corrcoef([[0.0, 1, 1, 5], [1, 0, 0, 2]]),
    )
