"""The laws of CorrUpdate on the store of a real model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldcorr.correlation.rule import UpdatePolicy, kappa_tau_reference
from fieldcorr.correlation.sources import Via
from fieldcorr.duel import CorrDuel
from fieldcorr.store import Store


@settings(max_examples=60)
@given(pair=st.tuples(st.integers(0, 239), st.integers(0, 239)).filter(lambda p: p[0] != p[1]))
def test_laws_of_the_update_hold_for_every_pair(store: Store, pair: tuple[int, int]) -> None:
    winner, loser = pair
    kappa, tau = store.kappa_tau(winner, loser)
    other_kappa, other_tau = store.kappa_tau(loser, winner)
    assert np.all((kappa >= 0.0) & (kappa <= tau) & (tau <= 1.0))
    assert (kappa[winner], tau[winner]) == (1.0, 1.0)
    assert (kappa[loser], tau[loser]) == (0.0, 1.0)
    np.testing.assert_allclose(other_tau, tau, rtol=1e-12)
    np.testing.assert_allclose(kappa + other_kappa, tau, atol=1e-12)


def test_update_equals_the_numpy_definition(store: Store) -> None:
    r = np.array([store.row(i) for i in range(len(store))], dtype=np.float64)
    for winner, loser in ((0, 1), (5, 200), (239, 17)):
        expected = kappa_tau_reference(r, winner, loser, policy=UpdatePolicy())
        for found, wanted in zip(store.kappa_tau(winner, loser), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("via", ["matrix", "neighbours"])
def test_every_way_to_read_the_store_leads_to_the_same_session(store: Store, via: Via) -> None:
    ways: tuple[Via, Via] = ("embedding", via)
    engines = [CorrDuel(store, horizon=40, seed=4, via=how) for how in ways]
    for _ in range(40):
        pairs = [engine.ask() for engine in engines]
        assert pairs[0] == pairs[1]
        for engine in engines:
            engine.tell(min(pairs[0]), max(pairs[0]))
    np.testing.assert_allclose(
        engines[0].survivors.estimate, engines[1].survivors.estimate, atol=1e-9
    )
