"""The command ``fieldcorr mesh``."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fieldcorr.cli import build_app
from fieldcorr.mesh import read_mesh, tidy, write_mesh
from tests.mesh.boxes import layered_box

COARSE = "--rim-mm 1 --growth 1 --cord-mm 4 --end-mm 4 --far-mm 60 --stretch 3 --end-stretch 12"


def run(line: str) -> Result:
    return CliRunner().invoke(build_app(), ["mesh", *line.split()])


def fails(line: str, message: str) -> None:
    result = run(line)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.gmsh
def test_build_check_and_report(tmp_path: Path) -> None:
    path = tmp_path / "m.fcmesh"
    result = run(f"{COARSE} --set geometry.cord.width_mm=9.0 --output {path}")
    assert result.exit_code == 0, result.output
    mesh = read_mesh(path)
    for text in (f"{mesh.n_cells} tetrahedra", mesh.hash, "grey-left", "dihedral angles", "case"):
        assert text in result.stdout
    again = run(f"--set geometry.cord.width_mm=9.0 --check {path}")
    assert again.exit_code == 0
    assert mesh.hash in again.stdout
    fails(f"lumbosacral-565 --check {path}", "m.fcmesh: was made for another geometry")


def test_convert_a_foreign_mesh(tmp_path: Path) -> None:
    box = tidy(layered_box())
    write_mesh(box, tmp_path / "m.vtu")
    names = "--tissue-tag 1=white --tissue-tag 2=fat --contact-tag 1=0 --contact-tag 2=1"
    line = f"--check {tmp_path}/m.vtu {names} --contact-tag 3=outer --output {tmp_path}/m.fcmesh"
    assert run(line).exit_code == 0
    assert np.array_equal(read_mesh(tmp_path / "m.fcmesh").cells, box.cells)


def test_errors_are_one_line(tmp_path: Path) -> None:
    write_mesh(tidy(layered_box()), tmp_path / "m.fcmesh")
    fails(f"lumbosacral-565 --check {tmp_path}/m.fcmesh", "m.fcmesh: missing tissue 'grey'")
    fails(f"--check {tmp_path}/none.vtu", "none.vtu: no such mesh file")
    fails(f"--check {tmp_path}/m.fcmesh --rim-mm 1", "--rim-mm has no effect with --check")
    fails(f"--check {tmp_path}/m.fcmesh --tissue-tag white", "must be TAG=NAME")
    fails("lumbosacral-565", "--output FILE is needed")
    fails(f"--rim-mm -1 --output {tmp_path}/x.fcmesh", "rim_mm = -1 must be above 0")


def test_an_output_is_replaced_only_by_force_and_an_input_never(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.msh", tmp_path / "other.fcmesh"
    write_mesh(tidy(layered_box()), mine)
    other.write_text("notes")
    fails(f"--check {mine} -o {other}", "other.fcmesh: exists already; use --force")
    fails(f"--check {mine} -o {mine} --force", "mine.msh: is being read and cannot be replaced")
    fails(f"-o {other}", "other.fcmesh: exists already")
    assert other.read_text() == "notes"
    assert run(f"--check {mine} -o {other} --force").exit_code == 0
    assert read_mesh(other).n_cells == 324


@pytest.mark.parametrize("noted", [5, [1], {"cord": 5}, {"cord": {"before": "x", "after": 1}}])
def test_an_origin_that_says_anything(noted: object, tmp_path: Path) -> None:
    mesh = replace(tidy(layered_box()), origin={"volume-error": noted})
    write_mesh(mesh, tmp_path / "m.fcmesh")
    assert run(f"--check {tmp_path}/m.fcmesh").exit_code == 0


def test_gmsh_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmsh", None)
    fails(f"{COARSE} --output {tmp_path}/m.fcmesh", "needs gmsh")
    assert not list(tmp_path.iterdir())
