"""Pictures of duels and of accuracy: curves equal the data they are drawn from."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fieldcorr import plot
from fieldcorr.duel import CorrDuel
from fieldcorr.duel.simulate import Experiment, Player, simulate
from fieldcorr.duel.worlds import Grid
from fieldcorr.errors import DuelError, FieldcorrError
from fieldcorr.plot.duel_view import course
from fieldcorr.plot.study_view import observed_order
from fieldcorr.store import Store


def axes_of(figure: Figure) -> list[Any]:
    return list(figure.axes)


@pytest.fixture(scope="module")
def experiment() -> Experiment:
    players = [Player("CorrDuel", "CorrDuel"), Player("RUCB", "RUCB")]
    return simulate(Grid(side=6), players, trials=8, horizon=15, seed=1)


def test_regret_curves_are_the_means(experiment: Experiment) -> None:
    (ax,) = axes_of(plot.regret(experiment))
    for line, outcome in zip(ax.lines, experiment.outcomes, strict=False):
        np.testing.assert_allclose(line.get_ydata(), outcome.mean)
        np.testing.assert_array_equal(line.get_xdata(), np.arange(1, 16))
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[0] == f"CorrDuel: {experiment.outcomes[0].mean[-1]:.3f}"
    assert "standard deviation" in ax.get_title()


def test_regret_from_its_file(experiment: Experiment, tmp_path: Path) -> None:
    path = tmp_path / "regret.csv"
    experiment.write_csv(path)
    (ax,) = axes_of(plot.regret(path, band=0.0))
    np.testing.assert_allclose(ax.lines[1].get_ydata(), experiment.outcomes[1].mean, atol=1e-6)
    assert not ax.collections


def test_a_file_that_holds_no_curves_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(DuelError, match=r"x\.csv"):
        plot.regret(path)
    path.write_text("algorithm,t,mean,deviation\n")
    with pytest.raises(DuelError, match="no regret curve"):
        plot.regret(path)
    with pytest.raises(DuelError, match="cannot be read"):
        plot.regret(tmp_path / "absent.csv")


@pytest.fixture
def engine(store: Store) -> CorrDuel:
    """Return an engine after 40 duels, one skip, one undo and an exclusion."""
    engine = CorrDuel(store, horizon=60, seed=3, delta=0.8)
    utility = store.embedding @ np.random.default_rng(5).standard_normal(store.rank)
    for step in range(40):
        i, j = engine.ask()
        if step == 7:
            engine.skip()
            i, j = engine.ask()
        winner, loser = (i, j) if utility[i] > utility[j] else (j, i)
        engine.tell(winner, loser)
        if step == 11:
            engine.undo()
    engine.exclude([int(engine.active[0])])
    return engine


def test_course_is_what_the_session_was(engine: CorrDuel) -> None:
    went = course(engine, follow=3)
    assert went.duels[0] == 0
    assert went.left[0] == 240
    assert went.duels[-1] == engine.duels == 39
    assert went.left[-1] == engine.progress.left
    np.testing.assert_array_equal(went.arms, engine.survivors.arm[:3])
    np.testing.assert_allclose(went.estimate[-1], engine.survivors.estimate[:3])
    np.testing.assert_allclose(went.radius[-1], engine.survivors.radius[:3])
    assert np.isnan(went.estimate[0]).all()


def test_course_leaves_the_engine_alone(engine: CorrDuel) -> None:
    before = engine.events, engine.ask(), engine.survivors.estimate.copy()
    course(engine)
    assert engine.events == before[0]
    assert engine.ask() == before[1]
    np.testing.assert_array_equal(engine.survivors.estimate, before[2])


def test_narrowing_shows_the_course(engine: CorrDuel, store: Store) -> None:
    went = course(engine, follow=2)
    upper, lower = axes_of(plot.narrowing(engine, follow=2))
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), went.left)
    np.testing.assert_allclose(lower.lines[0].get_ydata(), went.estimate[:, 0])
    names = [text.get_text() for text in lower.get_legend().get_texts()]
    assert names == [store.texts[arm] for arm in went.arms]


def test_followed_arms_end_when_they_are_eliminated(engine: CorrDuel) -> None:
    gone = int(np.setdiff1d(np.arange(240), engine.active)[0])
    went = course(engine, arms=[gone])
    assert np.isnan(went.estimate[-1, 0])


def test_narrowing_before_the_first_duel(store: Store) -> None:
    upper, _ = axes_of(plot.narrowing(CorrDuel(store, horizon=5)))
    np.testing.assert_array_equal(upper.lines[0].get_ydata(), [240])


STUDY = {
    "variants": [
        {
            "variant": {"name": "rims", "effect": "contact rims halved", "aim": [5e-3, 1e-4]},
            "spread": {
                "voltage": {"maximum": 2e-3, "p99": 7e-4, "median": 5e-5},
                "current": {"maximum": 1e-3, "p99": 3e-4, "median": 4e-5},
            },
        },
        {
            "variant": {"name": "twin", "effect": "another mesh", "aim": None},
            "spread": {
                "voltage": {"maximum": 1e-3, "p99": 6e-4, "median": 3e-5},
                "current": {"maximum": 9e-4, "p99": 2e-4, "median": 2e-5},
            },
        },
    ]
}


def test_mesh_study_shows_every_variant(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    path.write_text(json.dumps(STUDY))
    (ax,) = axes_of(plot.mesh_study(path, drive="current"))
    assert [t.get_text() for t in ax.get_yticklabels()] == ["contact rims halved", "another mesh"]
    assert ax.yaxis_inverted()
    points = np.concatenate([np.asarray(c.get_offsets()) for c in ax.collections])
    np.testing.assert_allclose(points[:, 0], [4e-5, 3e-4, 1e-3, 2e-5, 2e-4, 9e-4])
    np.testing.assert_allclose(points[:, 1], [0, 0, 0, 1, 1, 1])


def test_mesh_study_without_variants_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FieldcorrError, match="no variants"):
        plot.mesh_study({})
    with pytest.raises(FieldcorrError, match="cannot be read"):
        plot.mesh_study(tmp_path / "absent.json")


def test_convergence_reads_the_order() -> None:
    h = np.array([0.1, 0.2, 0.4])
    errors = {"L2": 3 * h**3, "H1": 2 * h**2}
    (ax,) = axes_of(plot.convergence(h, errors, theory={"L2": 3.0}))
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["L2, order 3.00", "H1, order 2.00"]
    assert observed_order(h, errors["L2"]) == pytest.approx(3.0)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), errors["L2"])  # theory through the finest
    assert len(ax.lines) == 3
