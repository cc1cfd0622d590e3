"""The package as it is shipped: pins within ranges, one version, scripts that parse."""

import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import fieldcorr

ROOT = Path(__file__).resolve().parent.parent
TEST_EXTRAS = ("mesh", "plot", "export", "notebooks", "docs")


def project() -> dict[str, Any]:
    """Return the table ``[project]`` of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def pins(which: str) -> dict[str, str]:
    """Return pinned versions by canonical name, files that are included too."""
    found: dict[str, str] = {}
    for line in (
        (ROOT / f"scripts/requirements-{which}.txt").read_text(encoding="utf-8").split("\n")
    ):
        if line.startswith("-r "):
            found |= pins("run")
        elif "==" in line:
            name, _, pinned = line.partition("==")
            found[canonicalize_name(name)] = pinned
    return found


def unmet(requirements: list[str], pinned: dict[str, str]) -> list[str]:
    """Return the requirements that the pins do not meet."""
    wanted = [Requirement(text) for text in requirements]
    return [
        str(requirement)
        for requirement in wanted
        if requirement.name != "fieldcorr"
        and not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"))
    ]


def test_run_pins_meet_the_dependencies() -> None:
    assert unmet(project()["dependencies"], pins("run")) == []


@pytest.mark.parametrize("extra", TEST_EXTRAS)
def test_test_pins_meet_the_extras(extra: str) -> None:
    assert unmet(project()["optional-dependencies"][extra], pins("test")) == []


def test_one_version() -> None:
    assert version("fieldcorr") == fieldcorr.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fieldcorr.__version__}\n" in citation


@pytest.mark.parametrize(
    "script",
    ["scripts/run", "scripts/test", "scripts/set-up", "scripts/docs", "scripts/figures", ".ci/run"],
)
def test_script_parses_and_may_run(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_readme_lists_every_command() -> None:
    from fieldcorr.cli import COMMANDS

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"fieldcorr {name}" not in text] == []
