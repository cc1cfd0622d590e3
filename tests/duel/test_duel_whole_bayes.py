"""BayesDuel where arms are too many to list: brute force over the rows, and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel import BayesDuel, Session, read_session
from fieldcorr.duel.arms import UnlistedArms
from fieldcorr.errors import DuelError
from fieldcorr.store import open_store
from tests.store.synthetic import make_store, whole_values


def unit_rows(source: WholeSource) -> Any:
    return UnlistedArms(source).rows(np.arange(len(source)))


def played(source: WholeSource, duels: int, *, seed: int = 4, **options: Any) -> BayesDuel:
    """Let somebody answer whose utility is linear, wrong one time in ten."""
    rng = np.random.default_rng(seed)
    rows = UnlistedArms(source)
    wanted = rng.standard_normal(rows.table.shape[1])
    engine = BayesDuel(source, horizon=200, seed=seed, **options)
    for _ in range(duels):
        i, j = engine.ask()
        value = rows.rows(np.array([i, j])) @ wanted
        right = bool(value[0] > value[1]) == bool(rng.random() < 0.9)
        engine.tell(*((i, j) if right else (j, i)))
    return engine


def test_unit_rows_give_r(source: WholeSource) -> None:
    z = unit_rows(source)
    np.testing.assert_allclose(z[:50] @ z.T, source.rows(range(50)), rtol=0.0, atol=2e-7)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.001])
def test_the_best_of_a_direction_is_brute_force(source: WholeSource, share: float) -> None:
    z, rng = unit_rows(source), np.random.default_rng(8)
    arms = UnlistedArms(source)
    for _ in range(20):
        weights = rng.standard_normal(z.shape[1])
        free = rng.random(len(z)) < share
        free[rng.integers(len(z))] = True
        utility = np.where(free, z @ weights, -np.inf)
        found = arms.best(weights, free)
        assert free[found]
        assert utility[found] == pytest.approx(utility.max(), abs=1e-6)
    assert arms.best(np.ones(z.shape[1]), np.zeros(len(z), dtype=np.bool_)) == -1


def test_it_finds_what_is_wanted(source: WholeSource) -> None:
    engine = played(source, 120)
    z = unit_rows(source)
    wanted = np.random.default_rng(4).standard_normal(z.shape[1])
    utility = z @ wanted
    assert (utility > utility[engine.best]).sum() < 60  # of 6050
    mean, _ = engine.posterior([engine.best, *range(40)])
    assert mean[0] == mean.max()
    assert engine.best in engine.survivors.arm
    assert 0.0 <= engine.remaining_regret < 0.2
    assert 0.0 <= engine.probability_best <= 1.0
    assert engine.weights == {"field": 1.0}


def test_undo_and_replay_equal_never_having_answered(source: WholeSource) -> None:
    engine = played(source, 15)
    engine.tell(*engine.ask())
    _ = engine.survivors
    engine.undo()
    other = played(source, 15)
    assert engine.ask() == other.ask()
    assert engine.best == other.best
    assert engine.survivors.arm.tolist() == other.survivors.arm.tolist()
    for one, two in zip(engine.posterior(range(9)), other.posterior(range(9)), strict=True):
        np.testing.assert_array_equal(one, two)
    again = engine.fresh()
    again.replay(engine.events)
    assert again.ask() == other.ask()


def test_what_is_excluded_is_not_asked(source: WholeSource) -> None:
    engine = played(source, 5)
    gone = engine.best
    engine.exclude([gone], neighbours_above=0.9)
    assert engine.best != gone
    assert gone not in engine.survivors.arm
    assert gone not in engine.ask()


def test_a_lesson_is_a_prior(source: WholeSource) -> None:
    taught = played(source, 30)
    engine = BayesDuel(source, horizon=10, prior=taught.lesson)
    taken, own = (one._mean_weights(one._normal) for one in (engine, taught))
    np.testing.assert_allclose(taken, own, atol=1e-6)


def test_what_needs_all_arms_says_so(source: WholeSource) -> None:
    with pytest.raises(DuelError, match=r"6,050 configurations are not looked at at once"):
        played(source, 2).posterior()
    with pytest.raises(DuelError, match=r"stop: 8 samples, .* 6,050 configurations, are too few"):
        BayesDuel(source, horizon=9, stop=(0.9, 0.1))


def test_a_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    with open_store(make_store(tmp_path / "s.h5", whole_values())) as store:
        with Session.new(path, store, horizon=30, seed=2, algorithm="BayesDuel") as session:
            for _ in range(5):
                session.engine.tell(*session.engine.ask())
            asked = session.engine.ask()
        engine, _ = read_session(path, store)
        assert engine.ask() == asked
