"""Tables between markers are filled by a script, and nothing else of a page is touched."""

import re
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from fieldcorr import plot
from tests.docs.conftest import ROOT

PAGE = "a\n\n<!-- table: scripts/x --fast -->\n\n| old |\n\n<!-- end of table -->\n\nb\n"
NEW = "| h |\n|---|\n| 1 |\n"


@pytest.fixture(scope="module")
def script() -> Any:
    """Load the script, which has no ending that Python would know it by."""
    loader = SourceFileLoader("fill_tables", str(ROOT / "scripts/fill-tables"))
    spec = spec_from_loader("fill_tables", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_only_the_named_table_changes(script: Any) -> None:
    assert script.commands(PAGE) == ["scripts/x --fast"]
    assert script.filled(PAGE, {"scripts/y": NEW}) == PAGE
    filled = script.filled(PAGE, {"scripts/x --fast": NEW})
    assert filled == PAGE.replace("| old |\n", NEW)
    assert script.filled(filled, {"scripts/x --fast": NEW}) == filled


def test_rows_can_be_chosen(script: Any) -> None:
    page = PAGE.replace("--fast -->", "--fast, rows with [2-9] \\|$ -->")
    assert script.commands(page) == ["scripts/x --fast"]
    filled = script.filled(page, {"scripts/x --fast": NEW + "| 2 |\n"})
    assert "| h |\n|---|\n| 2 |\n\n<!-- end" in filled
    assert "| 1 |" not in filled


def test_only_lines_of_a_table_are_taken(script: Any) -> None:
    assert script.table_of(f"working ...\n{NEW}done\n", "x") == NEW
    with pytest.raises(SystemExit, match="no table"):
        script.table_of("working ...\n", "x")


def test_every_table_names_a_script(script: Any) -> None:
    texts = {page: page.read_text(encoding="utf-8") for page in script.pages()}
    named = {command for text in texts.values() for command in script.commands(text)}
    assert {"scripts/verify", "scripts/bench"} <= named
    assert [c for c in named if not (ROOT / c.split()[0]).is_file()] == []
    # A marker that is spelt in another way would never be filled.
    assert sum(text.count("<!-- table") for text in texts.values()) == sum(
        len(script.commands(text)) for text in texts.values()
    )


def test_readme_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)#]+)", text) if "://" not in t]
    assert len(targets) > 8
    assert [target for target in targets if not Path(ROOT / target).is_file()] == []


def test_the_readme_is_read_in_a_minute() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 900
    assert sum(line.startswith("|") for line in text.splitlines()) <= 2 + 10
    assert len(re.findall(r"!\[", text)) == 1


def test_the_gallery_shows_every_plot() -> None:
    text = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    assert [name for name in plot.__all__ if f"plot.{name}(" not in text] == []
    pictures = re.findall(r'\]\((images/[^)]+)\)|data="(images/[^"]+)"', text)
    saved = set(re.findall(r'"([\w-]+\.(?:png|svg))"', text)) | {
        f"scene-{what}.png" for what in ("cord", "isosurfaces", "slice")
    }
    shown = {Path(a or b).name for a, b in pictures}
    assert shown == saved
    assert [a or b for a, b in pictures if not (ROOT / "docs" / (a or b)).is_file()] == []


def test_notebooks_name_no_temporary_folder() -> None:
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert "/tmp/" not in path.read_text(encoding="utf-8")
