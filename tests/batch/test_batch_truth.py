"""r of a batch against the definition on explicitly sampled fields, and against direct solves."""

import basix
import numpy as np
import pytest
from numpy.typing import NDArray

from fieldcorr.batch.embed import compare, spread, summary
from fieldcorr.correlation.embedding import correlation_reference
from fieldcorr.elements import NodalField, basis
from fieldcorr.leadfield import LeadField, solve_configurations
from fieldcorr.model import Model
from fieldcorr.store import Store

Floats = NDArray[np.float64]


def quadrature(field: LeadField) -> tuple[Floats, Floats, NDArray[np.int32]]:
    """Return basis values (Q, 10), weights (N, Q) m3 and nodes (N, 10) over the region.

    Degree 5 integrates the square of a quadratic field times the linear window exactly.
    """
    points, weights = basix.make_quadrature(basix.CellType.tetrahedron, 5)
    barycentric = np.c_[1.0 - points.sum(axis=1), points]
    window = field.region.moments @ barycentric.T
    return basis(barycentric, 2), 6.0 * window * weights, field.space.cell_dofs[field.region.cells]


def sampled(nodal: Floats, field: LeadField) -> tuple[Floats, Floats]:
    """Return fields (K, N Q) at the quadrature points, and the weights (N Q,)."""
    values, weights, nodes = quadrature(field)
    rows = [np.einsum("nk,qk->nq", row[nodes], values).ravel() for row in nodal]
    return np.stack(rows), weights.ravel()


def test_r_is_the_correlation_of_sampled_fields(store: Store, solved: LeadField) -> None:
    rows = np.arange(0, 240, 7)
    samples, weights = sampled(store.current[rows] @ solved.nodal, solved)
    want = correlation_reference(samples, weights)
    z = store.embedding[rows]
    np.testing.assert_allclose(z @ z.T, want, atol=1e-10)
    stored = np.stack([store.row(int(i))[rows] for i in rows])
    np.testing.assert_allclose(stored, want, atol=1e-7)


def test_equal_weights_give_numpy_corrcoef(store: Store, solved: LeadField) -> None:
    """Samples drawn with probability proportional to weight, repeated: plain corrcoef."""
    rows = np.arange(0, 240, 31)
    potential = store.current[rows] @ store.array("/leadfield/potential")
    weight = store.array("/leadfield/weight")
    times = np.round(weight / weight.max() * 50).astype(int)
    want = np.corrcoef(np.repeat(potential, times, axis=1))
    np.testing.assert_allclose(correlation_reference(potential, times), want, atol=1e-12)


@pytest.mark.slow
def test_r_and_currents_agree_with_direct_solves(
    store: Store, solved: LeadField, small_model: Model
) -> None:
    rows = np.array([3, 100, 201])
    direct = solve_configurations(small_model, solved.mesh, store.polarity[rows])
    scale = np.abs(direct.currents).max()
    np.testing.assert_allclose(store.current[rows], direct.currents, atol=1e-7 * scale)
    samples, weights = sampled(direct.nodal, solved)
    z = store.embedding[rows]
    np.testing.assert_allclose(z @ z.T, correlation_reference(samples, weights), atol=1e-6)


def test_stored_potentials_are_those_of_the_direct_solve(
    store: Store, solved: LeadField, small_model: Model
) -> None:
    text = "2- 13+"
    polarity = store.fields.polarity_of(text)
    nodal = solve_configurations(small_model, solved.mesh, polarity[None]).nodal[0]
    points = store.array("/leadfield/points")[::9]
    want = NodalField(solved.space, nodal).potential(points)
    found = store.potential(text, points)
    # A potential is defined up to a constant: the zero is not the same.
    shift = np.mean(want - found)
    np.testing.assert_allclose(found + shift, want, atol=2e-6 * np.ptp(nodal))


def test_the_estimate_is_that_of_all_pairs() -> None:
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(2, 300, 6))
    other = one + 0.05 * other
    one /= np.linalg.norm(one, axis=1)[:, None]
    other /= np.linalg.norm(other, axis=1)[:, None]
    pairs = np.triu_indices(300, 1)
    delta = np.abs(one @ one.T - other @ other.T)[pairs]
    found = compare(one, other)
    assert abs(found["max"] - delta.max()) < 1e-6
    assert abs(found["p99"] - np.quantile(delta, 0.99, method="higher")) < 1e-6
    assert abs(found["median"] - np.median(delta)) < 1e-5
    assert compare(one, one) == {"max": 0.0, "p99": 0.0, "median": 0.0}
    assert compare(one[:1], one[:1])["max"] == 0.0


def test_the_estimate_says_what_it_does_not_see(store: Store) -> None:
    record = store.record("error_estimate")
    assert record["companion"] is None
    assert 0 < record["order_one"]["median"] < record["order_one"]["p99"] < 1
    for word in ("anatomy", "conductivities", "domain"):
        assert word in record["statement"]
    assert record["configurations"] == 240
    assert len(spread(10**6)) == 4096
    assert summary(np.eye(3), companion=np.eye(3), order_one=None)["companion"]["max"] == 0.0
