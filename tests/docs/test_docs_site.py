"""The site builds without warnings, needs no network, and shows all that is public."""

import os
import re
import subprocess
import sys
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

import fieldcorr as fc
from fieldcorr.cli import build_app
from fieldcorr.model.schema import ModelFile
from tests.docs.conftest import ROOT

pytestmark = pytest.mark.slow

PACKAGES = (
    "fieldcorr.model",
    "fieldcorr.mesh",
    "fieldcorr.leadfield",
    "fieldcorr.configurations.rules",
    "fieldcorr.batch",
    "fieldcorr.store",
    "fieldcorr.duel",
    "fieldcorr.verification",
    "fieldcorr.plot",
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site strictly and return its folder."""
    folder = tmp_path_factory.mktemp("site")
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert build.returncode == 0, build.stderr
    assert "WARNING" not in build.stdout + build.stderr
    return folder


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_no_page_fetches_from_elsewhere(site: Path) -> None:
    """Scripts, styles, fonts and pictures come from the site itself."""
    remote = re.compile(r'(?:src|srcset)="(?:https?:)?//|<link[^>]+href="(?:https?:)?//')
    styles = re.compile(r"url\([\"']?(?:https?:)?//|@import")
    assert [page for page in pages(site) if remote.search(page.read_text(encoding="utf-8"))] == []
    sheets = list(site.rglob("*.css"))
    assert sheets
    assert [sheet for sheet in sheets if styles.search(sheet.read_text(encoding="utf-8"))] == []


def test_formulas_are_mathml(site: Path) -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages(site)]
    assert sum(text.count("<math") for text in texts) > 80
    assert [text[:80] for text in texts if "arithmatex" in text or r"\(" in text] == []


def test_formulas_are_numbered_without_gaps(site: Path) -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages(site / "mathematics")]
    numbers = sorted(int(n) for text in texts for n in re.findall(r'id="eq-(\d+)"', text))
    assert numbers == list(range(1, len(numbers) + 1))


def documented(site: Path) -> set[str]:
    """Return the names in the site's inventory of Python objects."""
    raw = (site / "objects.inv").read_bytes()
    body = zlib.decompress(raw.split(b"\n", 4)[4]).decode()
    return {line.split(" ", 1)[0] for line in body.splitlines()}


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_documented(package: str, site: Path) -> None:
    module = import_module(package)
    names = {f"{package}.{name}" for name in module.__all__ if callable(getattr(module, name))}
    assert names
    assert names - documented(site) == set()


def test_names_of_the_package_are_documented(site: Path) -> None:
    homes = {
        f"{getattr(fc, n).__module__}.{n}" for n in fc.__all__ if n[0] != "_" and n != "errors"
    }
    assert homes - documented(site) == set()
    errors = {f"fieldcorr.errors.{n}" for n in vars(fc.errors) if n.endswith("Error")}
    assert errors - documented(site) == set()


def commands(command: Any, name: str) -> dict[str, Any]:
    """Return all commands below one, by full name."""
    found = {name: command}
    for child, inner in getattr(command, "commands", {}).items():
        found |= commands(inner, f"{name} {child}")
    return found


def test_every_command_and_option_is_shown(site: Path) -> None:
    text = (site / "reference/command-line.html").read_text(encoding="utf-8")
    for name, command in commands(typer.main.get_command(build_app()), "fieldcorr").items():
        assert f'id="{name.replace(" ", "-")}"' in text
        options = [option for param in command.params for option in param.opts if option[0] == "-"]
        assert [option for option in options if option not in text] == []


def test_every_key_of_a_model_file_is_shown(site: Path) -> None:
    text = (site / "reference/model-file.html").read_text(encoding="utf-8")
    schema = ModelFile.model_json_schema()
    keys = {key for table in schema["$defs"].values() for key in table.get("properties", {})}
    assert len(keys) > 50
    assert [
        key for key in keys if f"<code>{key}</code>" not in text and f".{key}" not in text
    ] == []


def test_search_needs_no_server(site: Path) -> None:
    """Opened from the disk, the index comes as a script and the worker as a frame."""
    assert (
        (site / "search/search_index.js").read_text(encoding="utf-8").startswith("var __index = ")
    )
    for page in pages(site):
        assert "iframe-worker.js" in page.read_text(encoding="utf-8")


def test_notebooks_are_shown_with_their_pictures(site: Path) -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        text = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        pictures = re.findall(r'<img[^>]+src="([^"]+)"', text)
        assert pictures
        assert [name for name in pictures if not (site / "notebooks" / name).is_file()] == []
