"""Code blocks of Markdown pages, and how they are run.

A page has fenced blocks; :class:`PageRunner` goes through them from the top, as a
reader would: Python blocks share one namespace, a block ``text title="prints"`` is
what the Python block above it prints, and every line of a shell block is a command that exists.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from fieldcorr.cli import build_app

FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)

CHEAP = {"model", "info", "check", "export", "duel new", "duel status", "duel undo", "duel export"}
"""Commands that are run; others are parsed."""

OTHER_PROGRAMS = {"source", "pip", "git", "cp"}
"""First words of shell lines that are nobody's business here."""


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what follows that, its text and the line it starts at."""

    language: str
    info: str
    text: str
    line: int

    @property
    def is_output(self) -> bool:
        """Whether it shows what the Python block above prints."""
        return 'title="prints"' in self.info


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(m[1], m[2].strip(), m[3], text.count("\n", 0, m.start()) + 2)
        for m in FENCE.finditer(text)
    ]


def shell_commands(block: Block) -> list[list[str]]:
    """Return the words of every command of a shell block, comments left out."""
    joined = block.text.replace("\\\n", " ")
    commands = [shlex.split(line, comments=True) for line in joined.splitlines()]
    return [words for words in commands if words]


@dataclass(frozen=True)
class Command:
    """A parsed ``fieldcorr`` line: the command's full name and its parameters by name."""

    name: str
    parameters: dict[str, Any]


def parse_command(words: list[str]) -> Command | None:
    """Parse a ``fieldcorr`` line as the program itself would; None when it only asks for help."""
    command: Any = typer.main.get_command(build_app())
    rest, names, context = list(words[1:]), [], None
    while hasattr(command, "commands"):
        context = command.make_context("fieldcorr", [], parent=context, resilient_parsing=True)
        if rest[0].startswith("-"):
            break
        names.append(rest.pop(0))
        command = command.commands[names[-1]]
    if "--help" in rest or "-h" in rest:
        return None
    parsed = command.make_context(names[-1] if names else "fieldcorr", rest, parent=context)
    return Command(" ".join(names), dict(parsed.params))


class PageRunner:
    """Runs the blocks of one page in the current folder.

    Parameters
    ----------
    root
        The checkout, where scripts are looked for.
    store, mesh
        What stands in for the results of commands that take long.
    """

    def __init__(self, root: Path, *, store: Path, mesh: Path) -> None:
        self.root = root
        self.store = store
        self.mesh = mesh
        self._names: dict[str, Any] = {"__name__": "__docs__"}
        self._printed = ""

    def run(self, page: Path) -> None:
        """Go through the page."""
        for block in blocks_of(page):
            if block.language == "python":
                self._printed = self._run_python(block, page)
            elif block.is_output:
                assert self._printed == block.text, f"{page.name}:{block.line}: {self._printed}"
            elif block.language in ("sh", "bash", "console", "shell"):
                for words in shell_commands(block):
                    self._run_shell(words)

    def _run_python(self, block: Block, page: Path) -> str:
        # Blank lines above, so that a traceback shows the line of the page.
        code = compile("\n" * (block.line - 1) + block.text, str(page), "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, self._names)
        return printed.getvalue()

    def _run_shell(self, words: list[str]) -> None:
        if words[0].startswith("scripts/"):
            assert os.access(self.root / words[0], os.X_OK), f"{words[0]} is no script"
        elif words[0] == "fieldcorr":
            self._run_fieldcorr(words)
        else:
            assert words[0] in OTHER_PROGRAMS, f"unknown program {words[0]!r}"

    def _run_fieldcorr(self, words: list[str]) -> None:
        target = words[words.index(">") + 1] if ">" in words else None
        words = words[: words.index(">")] if target else words
        command = parse_command(words)
        if command is None:
            return
        if command.name in CHEAP or command.parameters.get("dry_run"):
            result = CliRunner().invoke(build_app(), words[1:])
            assert result.exit_code == 0, f"{shlex.join(words)}: {result.output}"
            if target:
                Path(target).write_text(result.stdout, encoding="utf-8")
        else:
            self._stand_in(command)

    def _stand_in(self, command: Command) -> None:
        """Make the file that a long command would have made."""
        output = command.parameters.get("output")
        made_from = {"precompute": self.store, "mesh": self.mesh}.get(command.name)
        if output is not None and made_from is not None and not Path(output).exists():
            shutil.copy(made_from, output) if command.name == "mesh" else os.link(made_from, output)
