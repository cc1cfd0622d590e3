"""The command-line reference, from the commands themselves.

The page says for every command its text, its usage, its arguments and options, and what can be
typed in a session.
"""

from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.structure.files import File, Files

from fieldcorr.cli import build_app
from fieldcorr.duel.commands import help_text

PAGE = "reference/command-line.md"
HEAD = "# Command line\n\nMade from the commands themselves; `--help` shows the same text.\n\n"


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=HEAD + "\n".join(command_page())))
    return files


def command_page() -> Iterator[str]:
    """Yield the lines of the page."""
    app: Any = typer.main.get_command(build_app())
    yield from _section(app, ("fieldcorr",))
    yield "## In a session\n\nWhat can be typed at the prompt of `fieldcorr duel run`:\n"
    yield f"```text\n{help_text()}```\n"


def _section(command: Any, names: tuple[str, ...], parent: Any = None) -> Iterator[str]:
    context = command.make_context(names[-1], [], parent=parent, resilient_parsing=True)
    yield f"{'#' * min(4, 1 + len(names))} {' '.join(names)}\n"
    yield f"```text\n{context.get_usage().removeprefix('Usage: ')}\n```\n"
    yield from _text(command.help or "")
    yield from _parameters(command, context)
    if command.epilog:
        yield f"{command.epilog}\n"
    for name, child in getattr(command, "commands", {}).items():
        yield from _section(child, (*names, name), context)


def _text(help_text: str) -> Iterator[str]:
    """Yield paragraphs as they are, and those after a line with backspace as written."""
    for paragraph in help_text.strip().split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield f"```text\n{paragraph[2:]}\n```\n"
        else:
            yield f"{' '.join(line.strip() for line in paragraph.splitlines())}\n"


def _parameters(command: Any, context: Any) -> Iterator[str]:
    rows = [_row(param, context) for param in command.get_params(context) if param.name != "help"]
    shown = [row for row in rows if row is not None]
    if shown:
        yield "| argument or option | meaning |\n|---|---|"
        yield from (f"| `{name}` | {meaning} |" for name, meaning in shown)
        yield ""


def _row(param: Any, context: Any) -> tuple[str, str] | None:
    """Return how a parameter is written, and what its help says; None when it is hidden."""
    record = param.get_help_record(context)
    if record is None:
        return None
    name, meaning = (" ".join(str(text).split()) for text in record)
    return name, meaning.replace("|", "\\|").replace("<", "&lt;")
