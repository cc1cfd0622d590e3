"""The command line: ``fieldcorr`` and ``python -m fieldcorr``.

Each command lives in a module of its own, as its ``command`` or its ``group`` of commands; such a
module imports what is heavy only inside its functions, so that help stays fast.
"""

import atexit
import os
import shutil
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from fieldcorr import __version__
from fieldcorr.cli._common import ErrorGroup, set_level, show
from fieldcorr.files import user_cache

# In the order of a user's work, which is the order of the help.
COMMANDS = (
    "model",
    "mesh",
    "fields",
    "precompute",
    "sweep",
    "info",
    "check",
    "report",
    "export",
    "duel",
    "simulate",
    "verify",
)

HELP = """Fields of epidural electrode configurations, their correlations, and duels on them.

A model file goes in; a store with the correlation of every pair of configurations comes out; a
duel finds the configurations that suit a person best, in few comparisons.

\b
Examples:
  fieldcorr model                              look at the bundled model
  fieldcorr precompute --output my.h5          the whole batch for the bundled model
  fieldcorr precompute my.toml --output my.h5  the same for a model of your own
  fieldcorr info my.h5                         what a store holds
  fieldcorr check my.h5                        verify a store (exit 0 sound, 1 not)
  fieldcorr simulate --help                    try the duel on simulated preferences
  fieldcorr verify                             check this installation (exit 0 sound, 1 not)

\b
Exit codes: 0 done, 1 a check found something, 2 error, 130 interrupted.
"""

EPILOG = (
    "For research only. fieldcorr is not a medical device and must not be used to choose or "
    "deliver stimulation in patients outside an approved study."
)


def build_app() -> typer.Typer:
    """Return the application with every command registered."""
    app = typer.Typer(
        name="fieldcorr",
        cls=ErrorGroup,
        help=HELP,
        epilog=EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_options)
    for name in COMMANDS:
        module = import_module(f"fieldcorr.cli.{name}")
        if hasattr(module, "group"):
            app.add_typer(module.group, name=name)
        else:
            app.command(name)(module.command)
    return app


def main() -> None:
    """Run the command line and exit."""
    _find_room_for_kernels()
    build_app()(prog_name="fieldcorr")


def _find_room_for_kernels() -> None:
    """Let this process keep its compiled kernels in a folder of its own where nothing is writable.

    numba refuses to compile when it can write neither beside the sources nor in the user's cache.
    """
    places = [Path(__file__).parent / "__pycache__"]
    if "NUMBA_CACHE_DIR" in os.environ:
        places.append(Path(os.environ["NUMBA_CACHE_DIR"]))
    if (user := user_cache()) is not None:
        places.append(user)
    if not any(map(_is_writable, places)):
        folder = tempfile.mkdtemp(prefix="fieldcorr-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["NUMBA_CACHE_DIR"] = folder


def _is_writable(folder: Path) -> bool:
    """Tell whether a folder can be written to, or made and then written to."""
    there = next(path for path in (folder, *folder.absolute().parents) if os.path.exists(path))
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


def _print_version(value: bool) -> None:
    if value:
        show(f"fieldcorr {__version__}")
        raise typer.Exit


def _options(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say more.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only results and errors.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    set_level(verbose=verbose, quiet=quiet)


_options.__doc__ = HELP
