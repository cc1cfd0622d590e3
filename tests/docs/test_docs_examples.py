"""Every example of the documentation runs, in the order in which a reader meets it."""

import os
from pathlib import Path

import pytest

from fieldcorr.model import load_model, resolve_mesh
from tests.docs.blocks import Block, PageRunner, blocks_of, parse_command, shell_commands
from tests.docs.conftest import ROOT
from tests.test_architecture import PIPELINE

PAGES = sorted(
    [ROOT / name for name in ("README.md", "FORMAT.md", "CONTRIBUTING.md")]
    + list((ROOT / "docs").rglob("*.md"))
)
WITH_CODE = [page for page in PAGES if blocks_of(page)]
KNOWN = {"python", "sh", "toml", "text", ""}


@pytest.fixture
def workplace(
    tmp_path: Path, run_store: Path, small_store: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Enter a folder that holds the stores which examples speak of."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    os.link(run_store, tmp_path / "results/lumbosacral-565.h5")
    for name in ("my.h5", "store.h5"):
        os.link(small_store, tmp_path / name)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(
    page: Path,
    workplace: Path,
    small_store: Path,
    field_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FIELDCORR_CACHE", str(field_cache))
    mesh = resolve_mesh(load_model("lumbosacral-565"), "tiny")
    PageRunner(ROOT, store=small_store, mesh=mesh).run(page)


def test_languages_are_known() -> None:
    """A block in a language that nobody runs would never be tested."""
    found = {block.language for page in WITH_CODE for block in blocks_of(page)}
    assert found <= KNOWN


def test_the_order_of_modules_is_the_one_that_holds() -> None:
    (listing,) = [b for b in blocks_of(ROOT / "CONTRIBUTING.md") if " < " in b.text]
    assert tuple(part.strip() for part in listing.text.split("<")) == PIPELINE


def test_pages_have_many_examples() -> None:
    python = [b for page in WITH_CODE for b in blocks_of(page) if b.language == "python"]
    assert len(python) > 20


class TestRunner:
    """The runner itself must be able to fail."""

    def run(self, text: str, folder: Path) -> None:
        page = folder / "page.md"
        page.write_text(text)
        PageRunner(ROOT, store=page, mesh=page).run(page)

    def test_names_are_shared(self, tmp_path: Path) -> None:
        self.run("```python\nx = 1\n```\n\n```python\nassert x == 1\n```\n", tmp_path)

    def test_output_is_compared(self, tmp_path: Path) -> None:
        page = '```python\nprint(1)\n```\n\n```text title="prints"\n2\n```\n'
        with pytest.raises(AssertionError, match=r"page\.md:6"):
            self.run(page, tmp_path)

    @pytest.mark.parametrize(
        "line",
        [
            "scripts/no-such-script",
            "rm -rf /",
            "fieldcorr model --no-such-option",
            "fieldcorr model no-such-model.toml",
            "fieldcorr duel new only-one-argument",
            "fieldcorr no-such-command",
        ],
    )
    def test_wrong_shell_lines_fail(self, line: str, tmp_path: Path) -> None:
        # typer keeps the error classes of its command-line parser to itself.
        with pytest.raises(Exception, match=r"\S"):
            self.run(f"```sh\n{line}\n```\n", tmp_path)

    def test_help_and_redirection(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        self.run(
            "```sh\nfieldcorr simulate --help\nfieldcorr model --toml > m.toml\n```\n", tmp_path
        )
        assert 'name = "lumbosacral-565"' in (tmp_path / "m.toml").read_text()

    def test_commands_are_split(self) -> None:
        block = Block("sh", "", "# nothing\nfieldcorr model \\\n  a.toml  # why\n", 1)
        assert shell_commands(block) == [["fieldcorr", "model", "a.toml"]]
        command = parse_command(["fieldcorr", "duel", "status", "my.journal"])
        assert command is not None
        assert command.name == "duel status"
        assert command.parameters["journal"] == Path("my.journal")
