"""``fieldcorr simulate`` from the command line and from a TOML file."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fieldcorr.cli import build_app
from tests.store.synthetic import make_store, values

SMALL = ["--trials", "4", "--horizon", "12"]


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(build_app(), ["simulate", *map(str, arguments)])


def test_the_paper_experiment_prints_a_table_and_writes_csv(tmp_path: Path) -> None:
    done = invoke("paper", *SMALL, "--side", 6, "--seed", 5, "--csv", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    for text in ("CorrDuel as printed", "Beat-the-Mean", "RUCB", "Sparring-UCB1", "seed 5"):
        assert text in done.stdout
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert "# seed: 5" in lines
    assert any(line.startswith("CorrDuel,12,") for line in lines)


def test_existing_files_are_replaced_only_by_force(tmp_path: Path) -> None:
    file, table, plot = (tmp_path / name for name in ("a.toml", "a.csv", "a.svg"))
    for path in (file, table, plot):
        path.write_text("side = 5\n")
    for name, path in (("--csv", table), ("--plot", plot)):
        assert f"{path.name}: exists already" in invoke("paper", *SMALL, name, path).stderr
        assert path.read_text() == "side = 5\n"
    outputs = ["--csv", table, "--plot", plot, "--settings", file, "--force"]
    assert invoke("paper", *SMALL, *outputs).exit_code == 0
    assert "# seed: 0" in table.read_text()
    assert "<svg" in plot.read_text()
    refused = invoke("paper", *SMALL, "--settings", file, "--csv", file, "--force")
    assert "is being read and cannot be replaced" in refused.stderr
    odd = invoke("paper", *SMALL, "--side", 5, "--plot", tmp_path / "a.odd")
    assert (odd.exit_code, "a.odd: cannot be drawn" in odd.stderr) == (2, True)


def test_the_command_line_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        'trials = 3\nhorizon = 9\nside = 5\nnoise = 1\n[options]\ndelta = 0.7\nradius = "arm"\n'
    )
    done = invoke("paper", "--settings", file, "--delta", "0.8", "--csv", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    text = (tmp_path / "a.csv").read_text()
    for line in ("# trials: 3", "# horizon: 9", "# noise: 1", "# CorrDuel: delta = 0.8"):
        assert line in text
    assert "radius = arm" in text


@pytest.mark.parametrize("utility", ["linear", "smooth", "magnitude"])
def test_a_store_is_played_on(tmp_path: Path, utility: str) -> None:
    store = make_store(tmp_path / "a.h5", values(slim=True))
    done = invoke("store", store, *SMALL, "--utility", utility)
    assert done.exit_code == 0, done.output
    assert f"180 configurations, {utility} utility" in done.stdout


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("trails = 3\n", "trails is not one of trials"),
        ('trials = "3"\n', "has the wrong type"),
        ("trials = = 3\n", "is no TOML"),
        ("[options]\ndleta = 1\n", "'dleta' does not exist"),
    ],
)
def test_a_wrong_file_is_named(tmp_path: Path, content: str, says: str) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(content)
    done = invoke("paper", *SMALL, "--side", 5, "--settings", file)
    assert done.exit_code == 2
    assert says in done.stderr


def test_what_cannot_be_simulated_is_said(tmp_path: Path) -> None:
    assert "cannot be read" in invoke("paper", "--settings", tmp_path / "no.toml").stderr
    assert "not KEY=VALUE" in invoke("paper", *SMALL, "--option", "delta").stderr
    store = make_store(tmp_path / "a.h5", values(slim=True))
    assert "'cubic' is not one of" in invoke("store", store, "--utility", "cubic").stderr
    missing = tmp_path / "no" / "a.csv"
    assert "cannot be written" in invoke("paper", *SMALL, "--side", 5, "--csv", missing).stderr
