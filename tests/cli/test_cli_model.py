"""``fieldcorr model``: show, change, write and refuse model files."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fieldcorr.cli import build_app
from fieldcorr.model import Model, load_model


def run(*arguments: str) -> Result:
    """Run ``fieldcorr model`` in this process."""
    return CliRunner().invoke(build_app(), ["model", *arguments])


def test_bundled_model_is_shown_with_sources(bundled_model: Model) -> None:
    done = run()
    assert done.exit_code == 0
    assert bundled_model.hash in done.stdout
    assert "Capogrosso 2013" in done.stdout
    assert "0.6 along, 0.083 across" in done.stdout
    assert "nominal" in done.stdout


def test_changed_model_is_written_as_toml(tmp_path: Path, bundled_model: Model) -> None:
    done = run("--toml", "--set", "geometry.cord.width_mm=9", "--set", "drive.mode=current")
    path = tmp_path / "my.toml"
    path.write_text(done.stdout, encoding="utf-8")
    mine = load_model(path)
    assert (mine.geometry.cord.width_mm, mine.drive.mode) == (9.0, "current")
    changes = {"geometry.cord.width_mm": 9.0, "drive.mode": "current"}
    assert mine.hash == bundled_model.replace(changes).hash


def test_toml_of_the_bundled_model_is_its_text(bundled_model: Model) -> None:
    assert run("--toml").stdout == bundled_model.text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("geometry.cord.width_mm", '--set "geometry.cord.width_mm": must be KEY=VALUE'),
        ("=3", '--set "=3": must be KEY=VALUE'),
        ("geometry.cord.widht_mm=3", 'did you mean "width_mm"?'),
        ("geometry.cord.width_mm=abc", 'geometry.cord.width_mm = "abc": must be a number'),
        ("geometry.cord.width_mm=nan", "geometry.cord.width_mm = nan: must be a finite number"),
        ("drive.mode=1\nb=2", r'drive.mode = "1\nb=2": must be'),
    ],
)
def test_bad_change_is_exit_code_2(change: str, expected: str) -> None:
    done = run("--set", change)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("fieldcorr: error: ")
    assert done.stderr.count("\n") == 1
    assert expected in done.stderr


def test_a_picture_is_drawn_and_not_replaced(tmp_path: Path) -> None:
    picture = tmp_path / "anatomy.png"
    assert run("--plot", str(picture)).exit_code == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    again = run("--plot", str(picture))
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_what_does_not_fit_is_drawn_and_refused(tmp_path: Path) -> None:
    picture = tmp_path / "misfit.svg"
    done = run("--set", "array.gap_to_dura_mm=1.5", "--plot", str(picture))
    assert done.exit_code == 2
    assert picture.exists()
    assert "0.21 mm outside geometry.canal" in done.stderr
    assert "array.gap_to_dura_mm = 1.2 or geometry.canal.depth_mm = 20.1" in done.stderr


def test_an_unknown_kind_of_picture_is_refused_first(tmp_path: Path) -> None:
    done = run("--plot", str(tmp_path / "anatomy.xyz"))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "pictures end in" in done.stderr
