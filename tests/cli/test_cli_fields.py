"""``fieldcorr fields`` on the tiny mesh."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fieldcorr.cli import build_app

# Linear elements on the tiny mesh: the smallest real solve there is.
SMALL = ("--mesh", "tiny", "--set", "solver.order=1")


def run(*arguments: str) -> Result:
    """Run ``fieldcorr fields`` in this process."""
    return CliRunner().invoke(build_app(), ["fields", *arguments])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Result, Path]:
    """Return a finished run and the file it wrote."""
    folder = tmp_path_factory.mktemp("fields")
    output = folder / "fields.npz"
    return run(*SMALL, "--output", str(output), "--cache", str(folder / "cache")), output


def test_tables_of_contacts_and_identities(done: tuple[Result, Path]) -> None:
    result, output = done
    assert result.exit_code == 0
    assert "Contacts of lumbosacral-565" in result.stdout
    assert "Identities" in result.stdout
    assert result.stderr == f"wrote {output}\n"


def test_solved_fields_are_those_of_the_batch(done: tuple[Result, Path], tmp_path: Path) -> None:
    """The same entry serves both commands, whichever comes first."""
    cache = done[1].parent / "cache"
    before = {path: path.stat().st_ino for path in cache.iterdir()}
    assert len(before) == 1
    options = [*SMALL, "--set", "configurations.preset=up-to-two", "--cache", str(cache)]
    made = CliRunner().invoke(build_app(), ["precompute", "-o", str(tmp_path / "a.h5"), *options])
    assert made.exit_code == 0, made.output
    again = run(*SMALL, "--cache", str(cache))
    assert again.stderr == "solved before; taken from the cache\n"
    assert again.stdout.splitlines()[:18] == done[0].stdout.splitlines()[:18]
    assert {path: path.stat().st_ino for path in cache.iterdir()} == before


def test_a_file_is_replaced_only_by_force(done: tuple[Result, Path]) -> None:
    output = done[1]
    content = output.read_bytes()
    arguments = (*SMALL, "--cache", str(output.parent / "cache"), "--output", str(output))
    refused = run(*arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "exists already; use --force" in refused.stderr
    assert output.read_bytes() == content
    assert run(*arguments, "--force").exit_code == 0
    assert {path.name for path in output.parent.iterdir()} == {"fields.npz", "cache"}


def test_self_impedances_follow_from_the_written_admittance(done: tuple[Result, Path]) -> None:
    result, output = done
    with np.load(output) as arrays:
        admittance = arrays["admittance"]
        assert arrays["potential"].shape == (16, len(arrays["points"]))
    rows = [line.split() for line in result.stdout.splitlines()]
    shown = [float(row[5]) for row in rows if len(row) == 7 and row[0].isdigit()]
    np.testing.assert_allclose(shown, 1.0 / np.diag(admittance), rtol=1e-3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--output", "fields.txt"], 'fields.txt: the name must end in ".npz"'),
        (["--output", "/nowhere/fields.npz"], "the folder /nowhere does not exist"),
        (["--mesh", "absent.fcmesh"], "absent.fcmesh"),
        (["absent.toml"], "absent.toml: no such file"),
        (
            ["--mesh", "tiny", "--set", "geometry.cord.width_mm=9.0"],
            "tiny.fcmesh: was made for another geometry",
        ),
    ],
)
def test_error_comes_before_the_work(arguments: list[str], expected: str) -> None:
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert expected in result.stderr
    assert result.stderr.count("\n") == 1
