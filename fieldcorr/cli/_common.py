"""What every command shares: how much is said, progress, tables, and how a run ends.

Results go to stdout; notes, progress and errors to stderr. Progress is drawn only where stderr is a
terminal.

Exit codes: 0 done, 1 a check found something, 2 an error in the input or the run, 130 interrupted.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fieldcorr.errors import ExportError, FieldcorrError, ModelError
from fieldcorr.progress import say_first_use

if TYPE_CHECKING:
    from fieldcorr.model import Model
    from fieldcorr.progress import Progress

EXIT_FOUND = 1
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

DEFAULT_MODEL = "lumbosacral-565"

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model file (TOML), or the name of a bundled model.",
        show_default=True,
    ),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a value of the model, such as geometry.cord.width_mm=9.0. May be repeated.",
    ),
]
ThreadsOption = Annotated[
    int | None, typer.Option(min=1, help="Threads to use.", show_default="all cores")
]
MeshOption = Annotated[
    str,
    typer.Option(
        metavar="MESH", help="standard, companion or tiny of the model, or a mesh file of your own."
    ),
]
DaskOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Share the work out: local for processes here, or the address of a dask scheduler.",
    ),
]
CacheOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where solved fields are kept ($FIELDCORR_CACHE)."),
]

_GLOBAL_FLAGS = frozenset({"-v", "--verbose", "-q", "--quiet"})
_level = 0


class ErrorGroup(TyperGroup):
    """A group of commands whose deliberate errors end in one line, never in a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let -v and -q stand anywhere on the line, before a lone ``--``."""
        end = args.index("--") if "--" in args else len(args)
        flags = [a for a in args[:end] if a in _GLOBAL_FLAGS]
        others = [a for a in args[:end] if a not in _GLOBAL_FLAGS]
        rest: list[str] = super().parse_args(ctx, flags + others + args[end:])
        return rest

    def invoke(self, ctx: Any) -> Any:
        """Run a command; deliberate errors and interruptions become exit codes."""
        try:
            return super().invoke(ctx)
        except FieldcorrError as error:
            message = " ".join(str(error).splitlines())
            print(f"fieldcorr: error: {message}", file=sys.stderr)
            raise typer.Exit(EXIT_ERROR) from error
        except KeyboardInterrupt as error:
            print("fieldcorr: interrupted", file=sys.stderr)
            raise typer.Exit(EXIT_INTERRUPTED) from error


def command_group(text: str) -> typer.Typer:
    """Return a group of commands with the help ``text``."""
    return typer.Typer(cls=ErrorGroup, help=text, no_args_is_help=True, rich_markup_mode=None)


def set_level(*, verbose: bool, quiet: bool) -> None:
    """Choose how much is said on stderr; quiet wins."""
    global _level
    _level = -1 if quiet else int(verbose)


def note(text: str) -> None:
    """Say something on stderr, unless quiet."""
    if _level >= 0:
        print(text, file=sys.stderr, flush=True)


def detail(text: str) -> None:
    """Say something on stderr when verbose."""
    if _level > 0:
        print(text, file=sys.stderr, flush=True)


def show(text: str) -> None:
    """Print a result on stdout."""
    print(text, flush=True)


def show_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[object]], *, left: int = 1
) -> None:
    """Print a table of results on stdout; the first ``left`` columns are aligned to the left."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < left else "right", overflow="fold")
    for row in rows:
        table.add_row(*(f"{x:.4g}" if isinstance(x, float) else escape(str(x)) for x in row))
    # A pipe has no width: a table must not be folded for it.
    Console(width=None if sys.stdout.isatty() else 160, highlight=False).print(table)


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield a function that draws one bar per stage, where someone is looking.

    Without a terminal nothing is drawn; with -v, the stages are named as they begin.
    """
    if _level >= 0:
        say_first_use()
    if sys.stderr.isatty() and _level >= 0:
        with _drawn_progress() as report:
            yield report
    else:
        yield _named_stages()


def _named_stages() -> Progress:
    seen: set[str] = set()

    def report(stage: str, done: float) -> None:
        if stage not in seen:
            seen.add(stage)
            detail(f"{stage} ...")

    return report


@contextmanager
def _drawn_progress() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    tasks: dict[str, TaskID] = {}
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True)) as bars:

        def report(stage: str, done: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
            bars.update(tasks[stage], completed=min(max(done, 0.0), 1.0))

        yield report


def refuse_picture(path: Path) -> None:
    """Refuse a picture that could not be written, before any work: no matplotlib, or its ending."""
    from fieldcorr.plot.style import Figure

    known = Figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in known:
        endings = ", ".join(f".{name}" for name in known)
        raise ExportError(f"{path}: cannot be drawn: pictures end in {endings}")


def open_model(name: str, changes: Sequence[str] | None = None) -> Model:
    """Load a model and apply ``KEY=VALUE`` changes to it."""
    from fieldcorr.model import load_model

    model = load_model(name)
    return model.replace(dict(map(_parse_change, changes))) if changes else model


def _parse_change(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ModelError(f'--set "{text}": must be KEY=VALUE, such as geometry.cord.width_mm=9.0')
    try:
        parsed = tomllib.loads(f"value = {value}")
    except ValueError:
        parsed = {}
    # A word needs no quotes on the command line.
    return key.strip(), parsed["value"] if list(parsed) == ["value"] else value.strip()
