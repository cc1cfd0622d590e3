"""What answers say about the person: evidence, warnings, planned repeats; when CorrDuel waits."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import multivariate_normal

from fieldcorr.duel import CorrDuel, DuelOptions, Engine, Session, as_source
from fieldcorr.duel._rater_kernels import explain
from fieldcorr.duel.export import duel_rows, rater_row
from fieldcorr.duel.options import steady_count
from fieldcorr.duel.raters import LEAST, MOST, rater_figures
from fieldcorr.duel.session import ALGORITHMS
from fieldcorr.duel.trials import Rater
from fieldcorr.errors import DuelError
from tests.duel.support import correlations, embedding

Z = embedding(400, rank=3)
SOURCE = as_source(np.clip(Z @ Z.T, -1.0, 1.0))
BOTH = ("BayesDuel", "CorrDuel")


def make(name: str, **options: Any) -> Engine:
    """Return an engine; intervals of CorrDuel are so wide that there is always something to ask."""
    own = {"delta": 0.5} if name == "CorrDuel" else {}
    return ALGORITHMS[name](SOURCE, **{"horizon": 100} | own | options)


def run(engine: Engine, rater: Rater, answers: int, seed: int = 1) -> Engine:
    utility = 1.7 * Z @ np.array([1.0, -0.6, 0.3])
    for _ in range(answers):
        i, j = engine.ask()
        engine.answer(rater.answer(utility[i], utility[j], seed, engine.answers))
    return engine


# -- evidence -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_evidence_is_the_probability_of_an_orthant(seed: int) -> None:
    """P(all answers) = P(f + e > 0) with f ~ N(0, C), e ~ N(0, 1), and the mean of f is C alpha."""
    half = np.random.default_rng(seed).standard_normal((4, 3))
    covariance = half @ half.T + 0.1 * np.eye(4)
    alpha, without = np.empty((2, 4))
    found = explain(covariance, alpha, without)
    total = covariance + np.eye(4)
    exact = multivariate_normal(np.zeros(4), total, seed=1).cdf(np.zeros(4))
    assert found == pytest.approx(math.log(exact), abs=0.02)
    mean, left_out = _sampled(covariance)
    np.testing.assert_allclose(covariance @ alpha, mean, atol=0.05)
    np.testing.assert_allclose(_phi(without), left_out, atol=0.02)


def _sampled(covariance: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the posterior mean, and P(answer i | the others), by weighing prior samples."""
    root = np.linalg.cholesky(covariance)
    f = root @ np.random.default_rng(9).standard_normal((4, 200_000))
    likelihood = _phi(f)
    weight = likelihood.prod(axis=0)
    others = weight / likelihood
    return f @ weight / weight.sum(), weight.sum() / others.sum(axis=1)


def _phi(x: NDArray[np.float64]) -> NDArray[np.float64]:
    below = np.vectorize(lambda value: 0.5 * math.erfc(-value / math.sqrt(2.0)))
    return np.asarray(below(x))


# -- warnings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_a_coin_and_a_side_are_called_out_and_an_honest_rater_is_not(name: str) -> None:
    def called(habit: Any, seed: int, within: int = 40) -> str | None:
        engine = make(name, horizon=100, seed=seed, repeats=0.05)
        rater = Rater(habit=habit)
        for _ in range(within):
            run(engine, rater, 1, seed)
            if engine.rater.verdict:
                return engine.rater.verdict
        return None

    assert [called("left", seed) for seed in range(6)] == ["one side"] * 6
    # Three directions tell a coin later than a store does: see "scripts/study duel --show raters".
    assert sum(called("coin", seed, MOST) is not None for seed in range(10)) == 10
    assert sum(called("honest", seed) is not None for seed in range(10)) == 0


@pytest.mark.parametrize("name", BOTH)
def test_the_warning_says_what_the_answers_look_like(name: str) -> None:
    engine = make(name, horizon=60, seed=2)
    assert "look like" not in (run(engine, Rater(), 15).warning or "")
    engine = make(name, horizon=60, seed=2)
    warning = run(engine, Rater(habit="left"), 20).warning
    assert "one side: 20 of 20 were for the left one" in (warning or "")


def test_few_answers_say_nothing_and_ties_are_not_counted_as_sides() -> None:
    shown: list[Any] = [(k, k + 1, "left") for k in range(LEAST - 1)]
    figures = rater_figures(SOURCE, [*shown, (0, 20, "same")])
    assert (figures.answers, figures.same, figures.left) == (LEAST, 1, LEAST - 1)
    assert math.isnan(figures.log_odds_chance)
    assert figures.verdict is None
    assert not figures.doubtful


def test_agreement_counts_pairs_that_were_compared_again() -> None:
    figures = rater_figures(
        SOURCE, [(0, 1, "left"), (1, 0, "right"), (2, 3, "left"), (3, 2, "left"), (4, 5, "same")]
    )
    assert (figures.repeated, figures.agreed) == (2, 1)


# -- planned repeats ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOTH)
def test_repeats_are_earlier_pairs_with_sides_swapped_and_replay(name: str) -> None:
    engine = make(name, horizon=400, seed=3, repeats=0.3)
    run(engine, Rater(noise=0.1), 50)
    pairs = [event.arms for event in engine.history]
    again = [k for k, pair in enumerate(pairs) if pair[::-1] in pairs[:k]]
    assert 5 <= len(again) <= 28
    assert engine.rater.repeated >= len(again)
    other = engine.fresh()
    other.replay(engine.events)
    assert other.ask() == engine.ask()
    pair = engine.ask()
    engine.answer("left")
    engine.undo()
    assert engine.ask() == pair


def test_no_pair_is_repeated_unasked_or_with_an_excluded_arm() -> None:
    plain = run(CorrDuel(SOURCE, horizon=100, seed=3, delta=0.5), Rater(habit="coin"), 60)
    assert plain.rater.repeated == 0
    engine = CorrDuel(SOURCE, horizon=100, seed=3, delta=0.5, repeats=0.5)
    run(engine, Rater(habit="coin"), 12)
    banned = {arm for event in engine.history for arm in event.arms}
    engine.exclude(banned)
    for _ in range(10):
        assert not banned & set(engine.ask())
        engine.answer("left")


@pytest.mark.parametrize("repeats", [-0.1, 1.0, math.nan])
def test_a_share_is_between_0_and_1(repeats: float) -> None:
    with pytest.raises(DuelError, match="repeats"):
        CorrDuel(SOURCE, horizon=5, repeats=repeats)


# -- journals -------------------------------------------------------------------------------------


def test_the_journal_keeps_repeats_and_the_time_of_answers(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    given: dict[str, Any] = {"horizon": 60, "seed": 4, "algorithm": "CorrDuel", "repeats": 0.3}
    with Session.new(path, SOURCE, **given) as session:
        run(session.engine, Rater(), 20)
        pair = session.engine.ask()
    with Session.open(path, SOURCE) as session:
        assert session.engine.repeats == 0.3
        assert session.engine.ask() == pair
        row = rater_row(session.engine, session.journal.content)
        assert row["answers"] == 20
        assert row["seconds"] >= 0.0
        rows = duel_rows(session.engine, session.journal.content)
        assert all(entry["seconds"] >= 0.0 for entry in rows)


# -- patience -------------------------------------------------------------------------------------


@given(delta=st.floats(0.01, 0.999))
def test_patience_is_when_one_contrary_answer_stays_inside(delta: float) -> None:
    def stays(n: int) -> bool:
        return 1.0 - n / (n + 1) <= math.sqrt(math.log(1.0 / delta) / n) * (1.0 + 1e-12)

    n = steady_count(delta)
    assert stays(n)
    assert n == 1 or not stays(n - 1)


def test_nothing_is_eliminated_before_patience_ends() -> None:
    engine = CorrDuel(correlations(80), horizon=60, seed=1)
    assert engine.options.patience == 8
    left = []
    for _ in range(12):
        engine.answer("left")
        left.append(len(engine.active))
    assert left[:7] == [80] * 7
    assert left[-1] < 80
    eager = CorrDuel(correlations(80), horizon=60, seed=1, patience=0)
    eager.answer("left")
    assert len(eager.active) < 80
    assert DuelOptions.paper().patience == 0
    assert "too few" in (CorrDuel(correlations(80), horizon=7).warning or "")
