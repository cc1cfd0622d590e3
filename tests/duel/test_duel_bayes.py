"""BayesDuel: inference against quadrature and long chains, laws of its state, lessons."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fieldcorr as fc
from fieldcorr.correlation.features import BANK
from fieldcorr.duel import BayesDuel, source_from_embedding, source_from_kernel
from fieldcorr.duel import _bayes_kernels as kernels
from fieldcorr.duel.statement import Answers, Explanation
from fieldcorr.duel.terminal import progress_line, result_text
from fieldcorr.errors import DuelError
from tests.duel.problems import Float64s, Problem, chance, normal_below
from tests.duel.support import answer_by, correlations, embedding, line

# -- inference -------------------------------------------------------------------------------------


@given(
    mean=st.floats(-3.0, 3.0),
    variance=st.floats(0.01, 4.0),
    kind=st.sampled_from([kernels.WIN, kernels.TIE]),
    noise=st.floats(0.3, 1.5),
    lapse=st.floats(0.0, 0.9),
    band=st.floats(0.05, 1.0),
)
def test_moments_are_those_of_quadrature(
    mean: float, variance: float, kind: int, noise: float, lapse: float, band: float
) -> None:
    node = np.linspace(-9.0, 9.0, 2001)  # of a smooth function that vanishes: exact to rounding
    weight = np.exp(-0.5 * node**2)
    weight /= weight.sum()
    u = mean + math.sqrt(variance) * node
    p = weight * chance(u, kind, noise, lapse, band)
    z = p.sum()
    centre = (p @ u) / z
    spread, lean, flat = (p @ (u - centre) ** power / z for power in (2, 3, 4))
    found = kernels.moments(mean, variance, kind, noise, lapse, band)
    log_z, first, second, third, fourth = found
    assert log_z == pytest.approx(math.log(z), abs=1e-9)
    assert mean + variance * first == pytest.approx(centre, abs=1e-7)
    assert variance + variance**2 * second == pytest.approx(spread, abs=1e-7)
    assert variance**3 * third == pytest.approx(lean, abs=1e-6)
    assert variance**4 * fourth == pytest.approx(flat - 3.0 * spread**2, abs=1e-6)


@given(seed=st.integers(0, 10**6), share=st.floats(-0.9, 5.0), nu=st.floats(-2.0, 2.0))
def test_a_site_changes_mean_and_root_as_it_changes_the_precision(
    seed: int, share: float, nu: float
) -> None:
    rng = np.random.default_rng(seed)
    root, mean, d = rng.standard_normal((4, 4)), rng.standard_normal(4), rng.standard_normal(4)
    root += 3.0 * np.eye(4)
    tau = share / (d @ root @ root.T @ d)  # down to -1 / variance the precision stays positive
    precision = np.linalg.inv(root @ root.T)
    shift = precision @ mean
    kernels.change_site(mean, root, d, tau, nu, np.empty(4))
    after = precision + tau * np.outer(d, d)
    assert np.allclose(root @ root.T @ after, np.eye(4), atol=1e-6)
    assert np.allclose(after @ mean, shift + nu * d, atol=1e-6)


@given(
    mean=st.floats(-2.0, 2.0),
    deviation=st.floats(0.1, 2.0),
    noise=st.floats(0.3, 1.5),
    weight=st.floats(0.1, 1.0),
)
def test_information_is_that_of_quadrature(
    mean: float, deviation: float, noise: float, weight: float
) -> None:
    def entropy(p: Float64s) -> Float64s:
        q = np.clip(p, 1e-15, 1.0 - 1e-15)
        return np.asarray(-q * np.log(q) - (1.0 - q) * np.log(1.0 - q))

    node = np.linspace(-9.0, 9.0, 2001)
    share = np.exp(-0.5 * node**2) / np.exp(-0.5 * node**2).sum()
    p = normal_below((mean + deviation * node) / noise)
    exact = entropy(share @ p) - share @ entropy(p)
    score = np.zeros((2, 2))
    arms, one = np.array([1, 0]), np.ones(1)
    told = np.array([[0.0], [1.0]]), np.zeros(1, dtype=np.int64), one, arms
    kernels.information(*told, weight, noise, mean * one, deviation * np.eye(1), score)
    assert score[0, 1] == pytest.approx(weight * exact, abs=0.015)
    assert np.count_nonzero(score) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("lapse", [0.0, 0.05, 0.15, 0.4])
def test_means_and_deviations_agree_with_long_chains(seed: int, lapse: float) -> None:
    problem = Problem.made(seed, lapse)
    chains = problem.walked()
    expected, deviation = chains.mean(axis=(1, 2)), chains.std(axis=(1, 2))
    parts = chains.reshape(8, 20, -1).std(axis=2)  # of 20 walks each
    error = parts.std(axis=1, ddof=1) / math.sqrt(20.0)
    assert (error < 0.01 * deviation).all()
    centre, spread, counting = problem.weighed(200_000)  # what the others are compared with
    assert counting > 10_000
    assert np.abs(centre - expected).max() < 0.03 * deviation.max()
    assert np.abs(spread / deviation - 1.0).max() < 0.03
    agree(problem, expected, deviation)


@pytest.mark.slow
@pytest.mark.parametrize("lapse", [0.0, 0.05, 0.15, 0.4])
def test_means_and_deviations_are_exact_within_five_percent(lapse: float) -> None:
    for seed in range(24):
        problem = Problem.made(seed, lapse)
        centre, spread, counting = problem.weighed(100_000)
        assert counting > 5_000
        agree(problem, centre, spread)


def agree(problem: Problem, centre: Float64s, spread: Float64s) -> None:
    mean, deviation = problem.stated()
    assert np.abs(mean - centre).max() < 0.05 * np.abs(centre).max()
    assert np.abs(deviation / spread - 1.0).max() < 0.05


@settings(deadline=None, max_examples=20)
@given(
    kinds=st.lists(st.sampled_from([kernels.WIN, kernels.TIE]), min_size=2, max_size=6),
    swapped=st.integers(0, 63),
    lapse=st.floats(0.05, 0.6),
    late=st.integers(0, 2),
)
def test_an_answer_was_meant_as_probably_as_by_quadrature(
    kinds: list[int], swapped: int, lapse: float, late: int
) -> None:
    """Two arms, so that weights are one number; the first answers are FIXED and told before."""
    count, rater = len(kinds), (0.5, lapse, 0.2)
    arms = np.array([(0, 1) if swapped >> n & 1 else (1, 0) for n in range(count)])
    answers = Answers(np.array([[0.7], [-0.7]]), np.arange(1), np.ones(1), arms, np.ones(count))
    told = np.array(kinds), np.tile(rater, (count, 1))
    mean, root, sites = np.zeros(1), np.eye(1), np.zeros((count, 2))
    for n in range(min(late, count - 1)):
        told[0][n], sites[n] = kernels.FIXED, (0.4, 0.3)
        kernels.change_site(mean, root, answers.directions[n], *sites[n], np.empty(1))
    seen = answers.features, answers.columns, answers.scale, arms
    kernels.refresh(0, 40 * count, *seen, *told, answers.keep, sites, mean, root)
    normal = Explanation(answers, mean, root, sites, *told)
    meant, lapsed = normal.split()
    (doubted,) = np.flatnonzero(lapsed.kinds != normal.kinds)

    w = np.linspace(-9.0, 9.0, 4001)
    density = np.exp(-0.5 * w**2)
    for m, direction in enumerate(answers.directions[:, 0]):
        if told[0][m] == kernels.FIXED:
            density *= np.exp(0.3 * direction * w - 0.2 * (direction * w) ** 2)
        elif m != doubted:
            density *= chance(direction * w, kinds[m], *rater)
    sober = chance(answers.directions[doubted, 0] * w, kinds[doubted], 0.5, 0.0, 0.2)
    idle = chance(np.zeros(1), kinds[doubted], 0.5, 0.0, 0.2)[0]
    odds = (1.0 - lapse) * (density @ sober) / (lapse * idle * density.sum())
    assert meant.evidence - lapsed.evidence == pytest.approx(math.log(odds), abs=0.1)


@settings(deadline=None, max_examples=10)
@given(
    seed=st.integers(0, 10**6),
    lapse=st.sampled_from([0.0, 0.05, 0.15, 0.4]),
    forgetting=st.sampled_from([0.0, 0.05]),
    fixed=st.integers(0, 5),
)
def test_the_covariance_is_how_the_means_respond_to_a_tilt(
    seed: int, lapse: float, forgetting: float, fixed: int
) -> None:
    problem = Problem.made(seed, lapse)
    sites = problem.propagated(np.zeros(4), np.zeros((30, 2))).sites
    kinds = np.where(np.arange(30) < fixed, kernels.FIXED, problem.kinds)
    keep = (1.0 - forgetting) ** np.arange(29.0, -1.0, -1.0)
    problem = replace(problem, kinds=kinds, keep=keep)
    normal = problem.propagated(np.zeros(4), sites)
    found = normal.responding_root

    def centre(tilt: Float64s) -> Float64s:
        return problem.propagated(tilt, normal.sites).mean

    slope = np.array([centre(t) - centre(-t) for t in 1e-4 * np.eye(4)]) / 2e-4
    assert np.allclose(found @ found.T, 0.5 * (slope + slope.T), atol=1e-6)


def test_samples_have_the_moments_of_the_posterior() -> None:
    engine = session(correlations(12), 15)
    mean, _ = engine.posterior()
    for _ in range(2):
        engine.tell(int(mean.argmin()), int(mean.argmax()))  # meant, or a lapse
    bank, generators = engine._stated, map(np.random.default_rng, range(8))
    assert len(bank) > len(engine.weights)
    weights = [engine._sampled(rng, 500, bank)[0] for rng in generators]
    draws = engine._arms.table @ np.concatenate(weights, axis=1)
    mean, deviation = engine.posterior()
    assert np.abs(draws.mean(axis=1) - mean).max() < 0.08 * deviation.max()
    assert np.abs(draws.std(axis=1) / deviation - 1.0).max() < 0.06


def session(r: Any, duels: int, **options: Any) -> BayesDuel:
    """Return an engine after some answers by a person with a linear utility."""
    engine, rng = BayesDuel(r, horizon=1000, seed=2, **options), np.random.default_rng(1)
    utility = (
        1.5
        * engine._arms.table
        @ np.random.default_rng(0).standard_normal(engine._arms.table.shape[1])
    )
    for _ in range(duels):
        answer_by(utility, engine, rng)
    return engine


# -- what it is for --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["matrix", "sparse", "kernel", "embedding"])
def test_it_finds_the_best_of_any_kind_of_source(kind: str) -> None:
    from scipy.sparse import csr_matrix

    points = np.linspace(0.0, 1.0, 60)
    r = line(60)
    sources: dict[str, Any] = {
        "matrix": r,
        "sparse": csr_matrix(np.where(r > 0.01, r, 0.0)),
        "kernel": source_from_kernel(lambda x, y: np.exp(-((x - y) ** 2) / 0.08), points),
        "embedding": source_from_embedding(embedding(60)),
    }
    source = sources[kind]
    engine = BayesDuel(source, horizon=80, seed=1)
    utility = 3.0 * (embedding(60)[:, 0] if kind == "embedding" else np.sin(4.0 * points))
    rng = np.random.default_rng(0)
    while not engine.done:
        answer_by(utility, engine, rng)
    assert utility.max() - utility[engine.best] < 0.3
    assert engine.best in engine.survivors.arm


def test_a_utility_of_the_current_is_told_from_one_of_the_field(small_store: Path) -> None:
    with fc.open_store(small_store) as store:
        engine, rng = BayesDuel(store, horizon=200, seed=1), np.random.default_rng(0)
        value = store.current @ np.array([3.0, -1.0, 0.5, 0.0, -2.0])
        utility = 2.0 * (value - value.mean()) / value.std()
        for _ in range(60):
            answer_by(utility, engine, rng)
        assert [*engine.weights] == [*BANK]
        assert engine.weights["current"] > engine.weights["field"]
        assert sum(engine.weights.values()) == pytest.approx(1.0)


def test_every_rater_has_a_lapse_rate() -> None:
    r, rng = correlations(12), np.random.default_rng(0)
    engine = BayesDuel(r, horizon=1000, seed=1)
    utility = 4.0 * embedding(12)[:, 0]
    for _ in range(60):
        for rater in ("careful", "coin"):
            i, j = engine.ask()
            right = rng.random() < 0.5 if rater == "coin" else utility[j] > utility[i]
            engine.answer("right" if right else "left", meta={"rater": rater})
    lapses = engine.raters
    assert set(lapses) == {"careful", "coin"}
    assert lapses["careful"]["lapse"] < 0.1 < 0.4 < lapses["coin"]["lapse"]


def test_a_note_says_who_answers_from_then_on() -> None:
    engine = BayesDuel(correlations(12), horizon=50)
    engine.answer("left")
    engine.note({"rater": "B"})
    engine.answer("left")
    assert [*engine.raters] == ["", "B"]
    again = engine.fresh()
    again.replay(engine.events)
    assert again.raters == engine.raters


def test_a_forgetful_belief_follows_a_rater_who_changed() -> None:
    means = []
    for forgetting in (0.0, 0.1):
        engine = BayesDuel(correlations(12), horizon=500, seed=1, forgetting=forgetting)
        for t in range(80):
            engine.tell(*((3, 5) if t < 50 else (5, 3)))
        mean, _ = engine.posterior([3, 5])
        means.append(mean[1] - mean[0])
    assert means[0] < means[1]
    assert means[1] > 0.0


def test_ties_bring_two_arms_together() -> None:
    engine = BayesDuel(correlations(12), horizon=50)
    before = engine.posterior([0, 1])[0]
    engine.tell(0, 1)
    for _ in range(10):
        engine.tie(0, 1)
    after = engine.posterior([0, 1])[0]
    assert before.tolist() == [0.0, 0.0]
    assert 0.0 < after[0] - after[1] < 0.3


# -- laws of the state -----------------------------------------------------------------------------


@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_relabelling_arms_relabels_every_question(seed: int) -> None:
    r, order = correlations(30, seed), np.random.default_rng(seed).permutation(30)
    engine = BayesDuel(r, horizon=50, seed=7)
    other = BayesDuel(r[np.ix_(order, order)], horizon=50, seed=7)
    rng = np.random.default_rng(seed)
    for _ in range(15):
        pair = engine.ask()
        assert tuple(order[list(other.ask())]) == pair
        answer = rng.choice(["left", "right", "same", "skip"])
        engine.answer(answer)
        other.answer(answer)
    assert order[other.best] == engine.best
    assert set(order[other.survivors.arm]) == set(engine.survivors.arm)
    for one, two in zip(other.posterior(), engine.posterior(), strict=True):
        assert np.allclose(one, two[order], atol=1e-9)


def test_a_question_has_two_arms_even_if_nothing_can_be_learnt() -> None:
    engine = session(correlations(12), 3)
    for posterior in engine._learnt.posteriors:
        posterior.root *= 1e-3  # all is known: the formula's error of 1 % is all that is left
    left, right = engine._telling(np.array([2, 7, 5]), fixed=False)
    assert left != right


def test_a_chain_brings_one_new_arm_per_duel() -> None:
    engine = session(correlations(12), 10, chain=True)
    pairs = [event.arms for event in engine.history]
    assert all(left[1] == right[0] for left, right in pairwise(pairs))


def test_a_batch_begins_with_the_pending_pair_and_repeats_no_arm() -> None:
    engine = session(correlations(12), 5)
    batch = engine.ask_batch(4)
    assert batch[0] == engine.ask()
    assert len({arm for pair in batch for arm in pair}) == 8
    with pytest.raises(DuelError, match="a batch of 7 pairs needs 14 arms"):
        engine.ask_batch(7)


# -- what is believed ------------------------------------------------------------------------------


def test_a_wider_level_is_a_larger_set_and_the_leader_is_in_it() -> None:
    narrow, wide = (session(correlations(40), 15, level=level) for level in (0.5, 0.99))
    assert set(narrow.survivors.arm) < set(wide.survivors.arm)
    assert narrow.survivors.arm[0] == wide.survivors.arm[0] == narrow.best
    assert (wide.survivors.radius[0] > narrow.survivors.radius[0]).all()
    assert narrow.progress.left == len(narrow.survivors)


def test_before_the_first_answer_every_configuration_is_left() -> None:
    engine = session(correlations(40), 0)
    assert len(engine.survivors) < engine.progress.allowed == engine.progress.left == 40
    assert progress_line(engine) == "duel 1: 0 of 1000 done; 40 configurations"
    standing, told = result_text(engine).splitlines()
    assert standing == "0 of 1000 duels; 40 configurations."
    assert told == "Nothing is ranked: no comparison tells one from another yet."
    engine.answer("left")
    assert "\n   1  " in result_text(engine)


def test_what_is_believed_hangs_together() -> None:
    engine = session(correlations(40), 25)
    assert 0.0 < engine.probability_best < 1.0
    assert 0.0 < engine.remaining_regret < 0.5
    sure = [engine.sure_within(eps) for eps in (0.01, 0.1, 0.2, 0.499)]
    assert sure == sorted(sure)
    assert engine.probability_best <= sure[0]
    mean, deviation = engine.posterior()
    assert engine.best == int(np.argmax(mean))
    assert (deviation > 0.0).all()
    assert np.allclose(engine.posterior([3, 5])[0], mean[[3, 5]])


def test_it_stops_when_it_is_sure_enough() -> None:
    engine = session(correlations(12), 3, stop=(0.8, 0.1))
    utility, rng = 4.0 * embedding(12)[:, 0], np.random.default_rng(0)
    first = engine.outlook["answers_to_go"]
    while not engine.done:
        answer_by(utility, engine, rng)
    assert engine.duels < engine.horizon
    assert engine.sure_within(0.1) >= 0.8
    assert first > engine.outlook["answers_to_go"] == 0
    engine.force(0, 1)
    assert engine.ask() == (0, 1)


# -- lessons ---------------------------------------------------------------------------------------


def test_a_lesson_at_full_weight_is_the_whole_belief(small_store: Path) -> None:
    with fc.open_store(small_store) as store:
        teacher = session(store, 20)
        pupil = BayesDuel(store, horizon=10, prior=teacher.lesson)
        taught, learnt = (engine._mean_weights(engine._normal) for engine in (teacher, pupil))
        assert np.allclose(taught, learnt, atol=1e-5)
        posteriors = zip(teacher._learnt.posteriors, pupil._learnt.posteriors, strict=True)
        for own, other in posteriors:
            assert np.allclose(own.root @ own.root.T, other.root @ other.root.T, atol=1e-5)
        assert pupil.survivors.count.sum() == 0.0
        half = BayesDuel(store, horizon=10, prior=teacher.lesson, prior_weight=0.3)
        nothing = BayesDuel(store, horizon=10, prior=teacher.lesson, prior_weight=0.0)
        blank = BayesDuel(store, horizon=10)
        deviations = [e.posterior()[1].mean() for e in (pupil, half, nothing)]
        assert deviations == sorted(deviations)
        assert np.array_equal(nothing.posterior()[1], blank.posterior()[1])


def test_a_lesson_that_knows_less_can_be_taken_at_any_weight() -> None:
    lesson = session(correlations(12), 8).lesson
    lesson["sites"] = {
        model: [[tau if n else -0.2, nu] for n, (tau, nu) in enumerate(sites)]
        for model, sites in lesson["sites"].items()
    }
    for weight in (0.3, 1.0):
        pupil = BayesDuel(correlations(12), horizon=10, prior=lesson, prior_weight=weight)
        assert np.isfinite(pupil.posterior()).all()


def test_a_lesson_of_other_features_is_refused_by_name(small_store: Path) -> None:
    with fc.open_store(small_store) as store:
        lesson = session(correlations(12), 5).lesson
        with pytest.raises(DuelError, match="the features here give field, current, near, broad, "):
            BayesDuel(store, horizon=10, prior=lesson)
        other = session(store, 5).lesson
        other["pairs"][2][0] = "0- 77+"
        with pytest.raises(DuelError, match=r"prior: .*77"):
            BayesDuel(store, horizon=10, prior=other)
    with pytest.raises(DuelError, match="other correlations"):
        BayesDuel(correlations(13), horizon=10, prior=lesson)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "fieldcorr-lesson 9"},
        {"pairs": [["0", "1"], 3]},
        {"pairs": [["0", "99"]] * 5},
        {"pairs": [["0", "0"]] * 5},
        {"sites": {"field": [[1.0]], "near": [], "even": []}},
        {"evidence": {"field": 0.0}},
        {"evidence": {"field": math.nan, "near": 0.0, "even": 0.0}},
    ],
)
def test_a_damaged_lesson_is_one_error(change: dict[str, Any]) -> None:
    r = correlations(12)
    lesson = session(r, 5).lesson | change
    with pytest.raises(DuelError, match="prior: "):
        BayesDuel(r, horizon=10, prior=lesson)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"level": 1.0}, "level: 1.0 is not between 0 and 1"),
        ({"level": "high"}, "level: 'high' is not a number"),
        ({"stop": (0.9, 0.6)}, "stop: 0.6 is not between 0 and 0.5"),
        ({"stop": 0.9}, "stop: 0.9 is not a probability and a regret"),
        ({"forgetting": 1.0}, "forgetting: 1.0 is not in"),
        ({"chain": "yes"}, "chain: 'yes' is not true or false"),
        ({"prior_weight": 2}, "prior weight: 2 is not in"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DuelError) as error:
        BayesDuel(correlations(6), horizon=5, **options)
    assert str(error.value).startswith(says)
