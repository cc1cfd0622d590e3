"""``fieldcorr verify``: the table, its exit codes, and what it refuses."""

import importlib.util

import pytest
from typer.testing import CliRunner

from fieldcorr.cli import build_app
from fieldcorr.verification import cases
from fieldcorr.verification.cases import Case, impedance_case
from fieldcorr.verification.compare import Comparison

CHEAP = (
    Case("impedance", lambda: impedance_case(1, target=1e-6)),
    Case("impedance, P2", lambda: impedance_case(2), is_judged=False),
)


@pytest.fixture(autouse=True)
def _cheap_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the cases that take no time; all of them run in tests/verification."""
    monkeypatch.setattr(cases, "CASES", CHEAP)


def test_every_figure_stands_beside_its_target() -> None:
    done = CliRunner().invoke(build_app(), ["verify"])
    assert done.exit_code == 0
    (row,) = [line for line in done.stdout.splitlines() if "contact-impedance" in line]
    assert row.split()[-1] == "yes"
    assert "1e-06" in row
    assert "1 of 1 targets met" in done.stderr


def test_all_adds_figures_without_a_target_and_markdown_is_a_table() -> None:
    done = CliRunner().invoke(build_app(), ["verify", "--all", "--markdown"])
    assert done.exit_code == 0
    head, line, *rows = done.stdout.splitlines()
    assert head == "| case | mesh | elements | dofs | quantity | target | reached | met |"
    assert line.count("---") == 8
    assert [row.split("|")[3].strip() for row in rows] == ["P1", "P2"]
    assert [row.split("|")[8].strip() for row in rows] == ["yes", ""]


def test_a_missed_target_is_named_and_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    bad = Comparison("a case", "a mesh", "RDM", 2, 10, 0.02, 1e-3)
    monkeypatch.setattr(cases, "CASES", (*CHEAP, Case("bad", lambda: [bad])))
    done = CliRunner().invoke(build_app(), ["verify"])
    assert done.exit_code == 1
    (row,) = [line for line in done.stdout.splitlines() if "a case" in line]
    assert row.split()[-3:] == ["1e-03", "2.0e-02", "NO"]
    assert "1 of 2 targets met" in done.stderr


def test_mesh_without_peer_is_refused() -> None:
    done = CliRunner().invoke(build_app(), ["verify", "--mesh", "tiny"])
    assert done.exit_code == 2
    assert done.stderr == "fieldcorr: error: --mesh has no effect without --peer\n"


@pytest.mark.skipif(importlib.util.find_spec("ngsolve") is not None, reason="NGSolve is installed")
def test_peer_without_ngsolve_says_so_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> list[Comparison]:
        raise AssertionError("a case ran before NGSolve was looked for")

    monkeypatch.setattr(cases, "CASES", (Case("never", never),))
    done = CliRunner().invoke(build_app(), ["verify", "--peer"])
    assert done.exit_code == 2
    assert "fieldcorr[bench]" in done.stderr
    assert done.stdout == ""


def test_progress_names_every_case() -> None:
    stages: list[tuple[str, float]] = []
    found = list(cases.compare_all(everything=True, progress=lambda *stage: stages.append(stage)))
    assert len(found) == 2
    assert stages == [(case.name, done) for case in CHEAP for done in (0.0, 1.0)]
