"""Whole trials in one kernel against the engines, step by step; worlds; results."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldcorr.duel import DuelOptions, UpdatePolicy
from fieldcorr.duel.simulate import BASELINES, PRINTED, Experiment, Player, Sessions, simulate
from fieldcorr.duel.trials import Rater
from fieldcorr.duel.worlds import ElectrodeSpace, Grid, Kind, WholeSpace, World, utilities
from fieldcorr.errors import DuelError
from fieldcorr.store import open_store
from tests.duel.support import embedding
from tests.store.synthetic import make_store, values, whole_values

NOISE, SEED, TRIALS, HORIZON = 0.5, 11, 6, 70
WORLDS: dict[str, World] = {
    "grid": Grid(side=7, length=0.2),
    "sphere": ElectrodeSpace(embedding(60, rank=5)),
}
PLAYERS = {
    "default": Player("default", "CorrDuel"),
    "global": Player("global", "CorrDuel", DuelOptions(radius="global", delta=0.95)),
    "deleted": Player("deleted", "CorrDuel", DuelOptions(history="delete")),
    "printed": PRINTED,
    "Beat-the-Mean": BASELINES[0],
    "RUCB": BASELINES[1],
    "Sparring": BASELINES[2],
}


policies = st.builds(
    UpdatePolicy,
    floor=st.sampled_from([1e-6, 0.01, 0.3]),
    clip=st.booleans(),
    require_positive=st.booleans(),
    pin_duelled=st.booleans(),
) | st.builds(
    UpdatePolicy,
    floor=st.sampled_from([-1.0, -0.2, 0.0]),
    clip=st.booleans(),
    require_positive=st.just(value=True),
    pin_duelled=st.booleans(),
)
options = st.builds(
    DuelOptions,
    delta=st.sampled_from([0.3, 0.8, 0.9, 0.95, 0.99]),
    patience=st.sampled_from([None, 0, 5]),
    eliminate=st.sampled_from(["all", "one"]),
    history=st.sampled_from(["keep", "delete"]),
    radius=st.sampled_from(["arm", "global"]),
    policy=policies,
    chain=st.booleans(),
)
players = st.builds(Player, st.just("CorrDuel"), st.just("CorrDuel"), options) | st.builds(
    Player,
    st.just("baseline"),
    st.sampled_from(["BeatTheMean", "RUCB", "SparringUCB1"]),
    alpha=st.sampled_from([0.51, 0.7, 2.0]),
)


def check_trials(player: Player, world: World, seed: int, trials: int) -> None:
    """Compare whole trials in a kernel with an engine that is asked and told, bit for bit."""
    (outcome,) = simulate(
        world, [player], trials=trials, horizon=HORIZON, noise=NOISE, seed=seed
    ).outcomes
    told = Sessions(world, player, Rater(noise=NOISE), outcome.checkpoints, seed)
    for trial, played in enumerate(told.play(range(trials))):
        assert outcome.eps[trial].tolist() == played.eps.tolist()
        assert outcome.regret[trial].tolist() == [row["regret"] for row in played.rows]
        assert outcome.left[trial] == played.rows[-1]["left"]
        assert outcome.kept[trial] == played.rows[-1]["kept"]


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", PLAYERS)
def test_kernel_and_engine_play_the_same_trial(name: str, world: str) -> None:
    check_trials(PLAYERS[name], WORLDS[world], SEED, TRIALS)


@given(player=players, world=st.sampled_from(sorted(WORLDS)), seed=st.integers(0, 2**40))
@settings(max_examples=150)
def test_kernel_and_engine_agree_over_all_options(player: Player, world: str, seed: int) -> None:
    check_trials(player, WORLDS[world], seed, trials=1)


def test_players_meet_the_same_utilities_and_any_trial_can_be_repeated() -> None:
    world = WORLDS["grid"]
    all_at_once = utilities(world, 3, 0, 5)
    np.testing.assert_array_equal(all_at_once[3:], utilities(world, 3, 3, 2))
    assert not np.array_equal(all_at_once[0], all_at_once[1])
    assert not np.array_equal(all_at_once[0], utilities(world, 4, 0, 1)[0])


def test_results_depend_on_the_seed_and_not_on_threads() -> None:
    def run(seed: int, threads: int) -> Experiment:
        players = [PLAYERS["default"], PLAYERS["RUCB"]]
        return simulate(WORLDS["grid"], players, trials=9, horizon=20, seed=seed, threads=threads)

    one, two, other = run(1, 1), run(1, 2), run(2, 2)
    for a, b, c in zip(one.outcomes, two.outcomes, other.outcomes, strict=True):
        assert a.eps.tobytes() == b.eps.tobytes()
        assert a.eps.tobytes() != c.eps.tobytes()


@pytest.mark.parametrize(
    "world",
    [
        Grid(side=6, length=0.3, amplitude=2.0),
        ElectrodeSpace(embedding(30), "linear", amplitude=2.0),
        ElectrodeSpace(embedding(30), "smooth", length=0.8),
        ElectrodeSpace(embedding(30), "matern", length=0.8),
    ],
    ids=lambda world: world.name,
)
def test_utilities_have_the_stated_covariance(world: Grid | ElectrodeSpace) -> None:
    draw = world.draw if isinstance(world, ElectrodeSpace) else world.utility
    draws = np.stack([draw(np.random.default_rng([0, trial])) for trial in range(4000)])
    covariance, expected = draws.T @ draws / 4000, np.asarray(world.correlations(), np.float64)
    if isinstance(world, Grid):
        expected = world.amplitude**2 * expected
    elif world.kind == "smooth":
        expected = np.exp((expected - 1.0) / world.length**2)
    elif world.kind == "matern":
        s = np.sqrt(3.0 * np.maximum(2.0 - 2.0 * expected, 0.0)) / world.length
        expected = (1.0 + s) * np.exp(-s)
    error = np.abs(covariance - expected) / expected[0, 0]
    assert error.max() < 0.12
    assert error.mean() < 0.03


@pytest.mark.parametrize("kind", ["linear", "magnitude", "smooth", "matern", "bumps"])
def test_utilities_are_standardised_over_the_arms(kind: Kind) -> None:
    for value in utilities(ElectrodeSpace(embedding(40), kind, amplitude=2.0), 1, 0, 3):
        assert value.mean() == pytest.approx(0.0, abs=1e-12)
        assert value.std() == pytest.approx(2.0)


@pytest.mark.parametrize("kind", ["target", "recruitment"])
def test_worlds_of_a_store_depend_on_the_field_at_places(kind: Kind, tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "a.h5", values())) as store:
        world = ElectrodeSpace.of_store(store, kind)
        (value,) = utilities(world, 1, 0, 1)
        assert value.std() == pytest.approx(1.0)
        assert world.source().fingerprint() == store.hash
        if kind == "target":  # linear in the currents
            mirror = [store.index_of(text) for text in _mirrored(store.texts)]
            drawn = world.draw(np.random.default_rng(2))
            np.testing.assert_allclose(drawn[mirror], -drawn, atol=1e-9)
        with pytest.raises(DuelError, match="roots leave the tissue"):
            ElectrodeSpace.of_store(store, "roots")
    with pytest.raises(DuelError, match="needs the fields of a store"):
        ElectrodeSpace(embedding(5), kind)


def _mirrored(texts: Sequence[str]) -> list[str]:
    return [text.translate(str.maketrans("+-", "-+")) for text in texts]


def test_the_magnitude_utility_is_blind_to_polarity() -> None:
    z = embedding(20)
    value = ElectrodeSpace(np.vstack([z, -z]), "magnitude").utility(np.random.default_rng(0))
    np.testing.assert_array_equal(value[:20], value[20:])


def test_the_paper_claim_holds_with_the_mended_reading_and_not_with_the_printed_one() -> None:
    mended = Player("CorrDuel", "CorrDuel")
    experiment = simulate(Grid(), [mended, PRINTED, *BASELINES], trials=100, horizon=100, seed=2)
    end = {o.player.name: o.mean[-20:].mean() for o in experiment.outcomes}
    begin = [o.mean[:10].mean() for o in experiment.outcomes]
    assert end["CorrDuel"] < 0.2
    assert all(end[player.name] > 0.42 for player in (PRINTED, *BASELINES))
    assert all(0.42 < value < 0.49 for value in begin)


def test_table_and_csv_say_what_was_done(tmp_path: Path) -> None:
    players = [PLAYERS["default"], PLAYERS["RUCB"]]
    experiment = simulate(WORLDS["grid"], players, trials=5, horizon=30, seed=7)
    heading, rows = experiment.table()
    assert heading[1:6] == ["t = 1", "t = 10", "t = 25", "t = 30", "sd"]
    assert rows[0][4] == f"{experiment.outcomes[0].mean[29]:.3f}"
    experiment.write_csv(tmp_path / "out.csv")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert "# seed: 7" in lines
    assert any("delta = 0.9" in line for line in lines)
    data = [line for line in lines if not line.startswith("#")]
    assert data[0] == "algorithm,t,mean,deviation"
    assert len(data) == 1 + 2 * 30


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"trials": 0}, "trials: 0"),
        ({"horizon": 0}, "horizon: 0"),
        ({"noise": 0.0}, "noise: 0.0"),
        ({"noise": np.nan}, "noise: nan"),
        ({"trials": None}, "trials: None"),
        ({"seed": -1}, "seed: -1"),
    ],
)
def test_wrong_settings_are_named(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DuelError, match=says):
        simulate(WORLDS["grid"], [PRINTED], **({"trials": 1, "horizon": 1} | change))


def test_wrong_players_and_worlds_are_named() -> None:
    with pytest.raises(DuelError, match="'Chess' is not one of"):
        simulate(WORLDS["grid"], [replace(PRINTED, algorithm="Chess")], trials=1, horizon=1)
    with pytest.raises(DuelError, match="side 1"):
        Grid(side=1)
    with pytest.raises(DuelError, match="'cubic' is not one of"):
        ElectrodeSpace(embedding(5), "cubic")  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_space_that_is_not_listed_is_played_on(tmp_path: Path) -> None:
    """The same utilities and questions as on the listed space: only the path to r differs."""
    paths = make_store(tmp_path / "a.h5", values()), make_store(tmp_path / "b.h5", whole_values())
    with open_store(paths[0]) as listed, open_store(paths[1]) as whole:
        world = WholeSpace(whole)
        utility = world.utility(np.random.default_rng(3))
        z = whole.source.whole.unit_rows(listed.polarity[:])
        theta = np.random.default_rng(3).standard_normal(z.shape[1])
        want = z @ theta
        np.testing.assert_allclose(utility, (want - want.mean()) / want.std(), atol=1e-6)
        players = [Player("CorrDuel", "CorrDuel"), Player("BayesDuel", "BayesDuel")]
        experiment = simulate(world, players, trials=2, horizon=60, seed=1)
        again = simulate(pickle.loads(pickle.dumps(world)), players, trials=2, horizon=60, seed=1)
        for one, other in zip(experiment.outcomes, again.outcomes, strict=True):
            np.testing.assert_array_equal(one.eps, other.eps)
            assert ((one.left >= 1) & (one.left <= 180)).all()
        assert experiment.outcomes[1].returned.mean() < 0.15
        with pytest.raises(DuelError, match="'smooth' needs an embedding of all 180"):
            WholeSpace(whole, "smooth")
        with pytest.raises(DuelError, match="not made at once"):
            world.correlations()
