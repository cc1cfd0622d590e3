"""Simulated people, and engines that are not of this package."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldcorr.duel import CorrelationSource, Engine
from fieldcorr.duel.peers import KernelSelfSparring, LinearThompson
from fieldcorr.duel.simulate import Player, Sessions, simulate
from fieldcorr.duel.trials import Rater, play
from fieldcorr.duel.worlds import ElectrodeSpace, Grid
from fieldcorr.errors import DuelError
from tests.duel.support import embedding

WORLD = ElectrodeSpace(embedding(60, rank=5))


class Random:
    """The least that is an engine."""

    def __init__(self, source: CorrelationSource, *, horizon: int, seed: int) -> None:
        self.arms, self.rng, self.best = len(source), np.random.default_rng(seed), 0
        self.told: list[tuple[int, int]] = []

    def ask(self) -> tuple[int, int]:
        i, j = self.rng.choice(self.arms, 2, replace=False)
        return int(i), int(j)

    def tell(self, winner: int, loser: int) -> None:
        self.told.append((winner, loser))
        self.best = winner


def share(rater: Rater, left: float, right: float, answer: str) -> float:
    given = Counter(rater.answer(left, right, 3, step) for step in range(4000))
    return given[answer] / 4000  # type: ignore[index]


def phi(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@pytest.mark.parametrize(
    ("rater", "answer", "expected"),
    [
        (Rater(noise=0.5), "left", phi(0.4 / math.sqrt(0.5))),
        (Rater(noise=0.25), "left", phi(0.4 / math.sqrt(0.125))),
        (Rater(lapse=0.5), "left", 0.25 + 0.5 * phi(0.4 / math.sqrt(0.5))),
        (Rater(ties=0.3), "left", phi(0.1 / math.sqrt(0.5))),
        (Rater(ties=0.3), "right", phi(-0.7 / math.sqrt(0.5))),
        (Rater(habit="coin"), "left", 0.5),
        (Rater(habit="left"), "left", 1.0),
    ],
)
def test_a_rater_answers_as_often_as_stated(rater: Rater, answer: str, expected: float) -> None:
    assert share(rater, 1.0, 0.6, answer) == pytest.approx(expected, abs=0.025)


def test_a_drifting_rater_ends_at_the_other_utility() -> None:
    one, other = np.array([1.0, -1.0, 0.0]), np.array([-1.0, 1.0, 0.0])
    engine = Random(WORLD.source(), horizon=9, seed=0)
    engine.arms = 2
    turned = Rater(noise=0.01, drift=100.0 * math.pi / 2.0 / 40.0)
    play(engine, one, turned, seed=1, checkpoints=[41], other=other)
    assert engine.told[0] == (0, 1)
    assert engine.told[40] == (1, 0)


def test_any_object_with_ask_and_tell_plays() -> None:
    made = Random(WORLD.source(), horizon=20, seed=7)
    named = f"{__name__}:Random"
    players = [Player(str(k), algorithm) for k, algorithm in enumerate((Random, named, made))]
    first, second, copied = simulate(
        WORLD, players, trials=2, horizon=20, rater=Rater(ties=0.5)
    ).outcomes
    assert first.eps.tobytes() == second.eps.tobytes()
    assert copied.eps[0].tolist() != first.eps[0].tolist()
    assert made.told == []
    assert np.isnan(first.left).all()


def test_results_do_not_depend_on_processes() -> None:
    sessions = Sessions(Grid(side=5), Player("x", "CorrDuel"), Rater(lapse=0.2), (5, 20), 4)
    alone, several = list(sessions.play(range(3))), list(sessions.play(range(3), processes=2))
    for a, b in zip(alone, several, strict=True):
        assert a.eps.tobytes() == b.eps.tobytes()
        assert a.rows == b.rows


def test_rows_are_one_per_trial_and_checkpoint() -> None:
    experiment = simulate(WORLD, [Player("x", "LinearThompson")], trials=2, horizon=60)
    rows = experiment.rows()
    assert [(row["trial"], row["t"]) for row in rows] == [(0, 50), (0, 60), (1, 50), (1, 60)]
    eps = experiment.outcomes[0].eps
    assert rows[1]["eps"] == pytest.approx(float(eps[0, 50:60].mean()))
    assert rows[1]["regret"] == experiment.outcomes[0].regret[0, 1]


@pytest.mark.parametrize("kind", [LinearThompson, KernelSelfSparring])
def test_peers_find_what_is_linear_in_the_rows(kind: type[Engine]) -> None:
    player = Player("x", kind.__name__)
    (outcome,) = simulate(WORLD, [player], trials=6, horizon=150, seed=2).outcomes
    assert outcome.eps[:, :5].mean() > 0.3
    assert outcome.eps[:, -20:].mean() < 0.26
    assert outcome.returned.mean() < 0.06


@pytest.mark.parametrize("kind", [LinearThompson, KernelSelfSparring])
def test_peers_replay_to_the_same(kind: type[Engine]) -> None:
    engine = kind(WORLD.source(), horizon=30, seed=3)
    for step in range(12):
        engine.answer(("left", "right", "same")[step % 3])
    pair = engine.ask()
    engine.answer("left")
    engine.undo()
    assert engine.ask() == pair
    again = engine.fresh()
    again.replay(engine.events)
    assert again.ask() == pair
    assert again.survivors.estimate.tobytes() == engine.survivors.estimate.tobytes()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Rater(noise=0.0), "noise: 0.0"),
        (lambda: Rater(lapse=1.5), "lapse: 1.5"),
        (lambda: Rater(ties=-0.1), "ties: -0.1"),
        (lambda: Rater(habit="right"), "habit: 'right' is not one of honest, left, coin"),  # type: ignore[arg-type]
        (lambda: Player("x", "Chess").engine(WORLD.source(), horizon=1, seed=0), "'Chess'"),
        (lambda: Player("x", "os:Chess").engine(WORLD.source(), horizon=1, seed=0), "'os:Chess'"),
        (lambda: Player("x", "no_such:A").engine(WORLD.source(), horizon=1, seed=0), "no_such"),
    ],
)
def test_what_is_no_rater_and_no_engine_is_named(make: Any, says: str) -> None:
    with pytest.raises(DuelError, match=says):
        make()


def test_a_table_of_trials_is_never_overwritten_unasked(tmp_path: Path) -> None:
    from tests.simulate.test_simulate_cli import SMALL, invoke

    table = tmp_path / "trials.csv"
    command = ["paper", *SMALL, "--side", 5, "--engine", "CorrDuel", "--rater", "lapse=0.1"]
    done = invoke(*command, "--engine", f"{__name__}:Random", "--table", table, "--threads", 1)
    assert done.exit_code == 0, done.output
    assert len(table.read_text().splitlines()) == 1 + 2 * 4
    assert "exists already" in invoke(*command, "--table", table).stderr
    assert invoke(*command, "--table", table, "--force", "--threads", 1).exit_code == 0
    assert "laps is not one of" in invoke("paper", *SMALL, "--rater", "laps=1").stderr
