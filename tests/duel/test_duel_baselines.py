"""The baselines against plain statements of their listings."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fieldcorr.correlation.rule import kappa_tau_reference
from fieldcorr.duel import RUCB, BeatTheMean, SparringUCB1
from fieldcorr.errors import DuelError
from tests.duel.support import answer_by, correlations

ARMS = 10


class DenseRUCB:
    """RUCB on the full K x K matrix of wins, as its listing writes it."""

    def __init__(self, r: NDArray[np.float64], alpha: float, *, spread: bool) -> None:
        self.r, self.alpha, self.spread = r, alpha, spread
        self.wins = np.zeros(r.shape)
        self.favourite: set[int] = set()

    def optimism(self, t: int) -> NDArray[np.float64]:
        plays = self.wins + self.wins.T
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = self.wins / plays + np.sqrt(self.alpha * math.log(t) / plays)
        bound[plays == 0.0] = 2.0
        np.fill_diagonal(bound, 0.5)
        return bound

    def champions(self, t: int) -> set[int]:
        return {c for c in range(len(self.r)) if (self.optimism(t)[c] >= 0.5).all()}

    def check(self, pair: tuple[int, int], t: int) -> None:
        """Assert that a proposal is one that the listing could make."""
        champions, (champion, rival) = self.champions(t), pair
        assert champion in champions or not champions
        value = self.optimism(t)[:, champion]
        value[champion] = -1.0
        assert value[rival] == pytest.approx(value.max(), rel=1e-12)

    def tell(self, winner: int, loser: int) -> None:
        self.wins[winner, loser] += 1.0
        if self.spread:
            kappa, tau = kappa_tau_reference(self.r, winner, loser)
            for k in set(range(len(self.r))) - {winner, loser}:
                self.wins[k, loser] += kappa[k]
                self.wins[winner, k] += tau[k] - kappa[k]


@pytest.mark.parametrize("update", ["none", "corr"])
def test_rucb_proposes_what_its_listing_could(update: str) -> None:
    r = correlations(5)
    engine = RUCB(r, horizon=400, seed=3, update=update)  # type: ignore[arg-type]
    dense = DenseRUCB(r, engine.alpha, spread=update == "corr")
    rng, utility = np.random.default_rng(0), np.linspace(-2.0, 2.0, 5)
    champions = []
    for t in range(1, 401):
        dense.check(engine.ask(), t)
        champions.append(engine.ask()[0])
        answer_by(utility, engine, rng)
        winner, loser, _ = engine.history[-1].comparisons()[0]
        dense.tell(winner, loser)
    score = np.sign(dense.wins - dense.wins.T).sum(axis=1)
    assert engine.survivors.estimate[0] == score.max()
    plays = (dense.wins + dense.wins.T).sum(axis=1)
    np.testing.assert_allclose(
        engine.survivors.count[np.argsort(engine.survivors.arm)], plays, rtol=1e-9
    )
    if update == "none":
        assert engine.best == 4
        assert np.mean(np.array(champions[-100:]) == 4) > 0.8


def test_a_tie_in_rucb_is_half_a_win_for_each() -> None:
    engine = RUCB(correlations(ARMS), horizon=20)
    engine.tie(2, 5)
    assert engine.survivors.count[:2].tolist() == [1.0, 1.0]
    assert set(engine.survivors.arm[:2].tolist()) == {2, 5}
    assert engine.survivors.estimate[0] == 0.0


def test_beat_the_mean_plays_the_arm_with_the_fewest_plays() -> None:
    engine = BeatTheMean(np.eye(ARMS), horizon=500, seed=1)
    plays = np.zeros(ARMS)
    for _ in range(25):
        first, _ = engine.ask()
        assert plays[first] == plays.min()
        plays[first] += 1
        engine.answer("left")


def test_beat_the_mean_removes_the_worst_and_its_comparisons() -> None:
    engine = BeatTheMean(np.eye(4), horizon=4000, seed=1, delta=0.9, gamma=1.0)
    rng, utility = np.random.default_rng(0), np.array([-2.0, 0.0, 0.2, 2.0])
    order = []
    while not engine.done:
        before = set(engine.active.tolist())
        answer_by(utility, engine, rng)
        order += sorted(before - set(engine.active.tolist()))
        against = {arm for arm in order for row in engine._learnt.duels if row[1] == arm}
        assert not against
        wins = np.zeros(4)
        for arm, _, won in engine._learnt.duels:
            wins[arm] += won
        np.testing.assert_array_equal(engine._learnt.tally.wins, wins)
    assert engine.active.tolist() == [3]
    assert order[0] == 0


def test_beat_the_mean_credits_both_arms_of_a_pair_from_elsewhere() -> None:
    engine = BeatTheMean(np.eye(ARMS), horizon=50)
    a, b, *_ = (arm for arm in range(ARMS) if arm not in engine.ask())
    engine.tell(a, b)
    assert engine._learnt.tally.plays[[a, b]].tolist() == [1.0, 1.0]
    assert engine._learnt.tally.wins[[a, b]].tolist() == [1.0, 0.0]


def test_sparring_pays_each_side_and_tries_every_arm_first() -> None:
    engine = SparringUCB1(np.eye(ARMS), horizon=500, seed=2)
    left, right = set(), set()
    for _ in range(ARMS - 1):
        i, j = engine.ask()
        assert i not in left
        assert j not in right
        left.add(i)
        right.add(j)
        engine.answer("right")
    assert engine._learnt.wins[0].sum() == 0.0
    assert engine._learnt.wins[1].sum() == ARMS - 1
    rng, utility = np.random.default_rng(0), np.linspace(-2.0, 2.0, ARMS)
    while not engine.done:
        answer_by(utility, engine, rng)
    assert engine.best >= ARMS - 2


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RUCB(np.eye(4), horizon=5, alpha=0.5), "above 1/2"),
        (lambda: RUCB(np.eye(4), horizon=5, update="some"), "not one of none, corr"),  # type: ignore[arg-type]
        (lambda: BeatTheMean(np.eye(4), horizon=5, delta=1.5), "between 0 and 1"),
        (lambda: SparringUCB1(np.eye(4), horizon=5, alpha=0.0), "not positive"),
    ],
)
def test_wrong_options_of_the_baselines_are_named(make, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DuelError, match=says):
        make()
