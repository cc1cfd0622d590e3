"""The command line: ``fieldcorr`` and ``python -m fieldcorr``.

What flows in: arguments. What flows out: the chosen command's work and an exit code. Each command
lives in a module of its own that has ``register(app)``; such a module imports what is heavy only
inside its functions, so that help stays fast.
"""

from importlib import import_module
from typing import Annotated

import typer

from fieldcorr import __version__
from fieldcorr.cli._common import ErrorGroup, set_level, show

# In the order of a user's work, which is the order of the help.
COMMANDS = (
    "model",
    "mesh",
    "fields",
    "precompute",
    "info",
    "check",
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
        import_module(f"fieldcorr.cli.{name}").register(app)
    return app


def main() -> None:
    """Run the command line and exit."""
    build_app()(prog_name="fieldcorr")


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
