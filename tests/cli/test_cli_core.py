"""The command line: help, exit codes, errors in one line, verbosity, progress."""

import io
import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from fieldcorr import __version__
from fieldcorr.cli import COMMANDS, EPILOG, build_app
from fieldcorr.cli._common import detail, note, progress, set_level, show_table
from fieldcorr.errors import ModelError


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m fieldcorr`` in a process of its own."""
    command = [sys.executable, "-m", "fieldcorr", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def failing_app(error: BaseException) -> typer.Typer:
    """Return the application with a command "fail" that raises."""
    app = build_app()

    def fail() -> None:
        raise error

    app.command("fail")(fail)
    return app


def test_help_teaches() -> None:
    done = CliRunner().invoke(build_app(), ["--help"])
    assert done.exit_code == 0
    assert "Examples:" in done.stdout
    assert "not a medical device" in " ".join(done.stdout.split())
    assert "not a medical device" in EPILOG


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    done = CliRunner().invoke(build_app(), [command, "--help"])
    assert done.exit_code == 0
    assert "Examples:" in done.stdout


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"fieldcorr {__version__}\n")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import json, sys, fieldcorr.cli as c; c.build_app(); print(json.dumps([*sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.split(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"numpy", "scipy", "numba", "h5py", "pydantic", "basix", "matplotlib"}


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["model", "--bogus"], ["fields", "--threads", "0"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    done = CliRunner().invoke(build_app(), arguments)
    assert done.exit_code == 2


def test_error_on_purpose_is_one_line_and_exit_code_2() -> None:
    done = run("model", "/nowhere/at/all.toml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "fieldcorr: error: /nowhere/at/all.toml: no such file\n"


def test_error_of_several_lines_is_printed_as_one() -> None:
    done = CliRunner().invoke(failing_app(ModelError("one\ntwo")), ["fail"])
    assert (done.exit_code, done.stderr) == (2, "fieldcorr: error: one two\n")


def test_interruption_is_one_line_and_exit_code_130() -> None:
    done = CliRunner().invoke(failing_app(KeyboardInterrupt()), ["fail"])
    assert (done.exit_code, done.stderr) == (130, "fieldcorr: interrupted\n")


def test_bug_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        CliRunner().invoke(failing_app(ZeroDivisionError()), ["fail"], catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["say"], "note\n"),
        (["-v", "say"], "note\ndetail\n"),
        (["say", "--verbose"], "note\ndetail\n"),
        (["say", "-q"], ""),
        (["-v", "say", "-q"], ""),
    ],
)
def test_verbosity_anywhere_on_the_line(arguments: list[str], expected: str) -> None:
    app = build_app()

    def say() -> None:
        note("note")
        detail("detail")

    app.command("say")(say)
    assert CliRunner().invoke(app, arguments).stderr == expected


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def report_stages() -> None:
    """Go through two stages of work."""
    with progress() as report:
        for done in (0.0, 0.5, 1.0):
            report("assemble", done)
        report("solve", 1.0)


@pytest.mark.parametrize(
    ("verbose", "expected"), [(False, ""), (True, "assemble ...\nsolve ...\n")]
)
def test_progress_is_not_drawn_without_a_terminal(
    capsys: pytest.CaptureFixture[str], verbose: bool, expected: str
) -> None:
    set_level(verbose=verbose, quiet=False)
    report_stages()
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_is_drawn_on_a_terminal_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, quiet: bool
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    set_level(verbose=False, quiet=quiet)
    report_stages()
    assert ("assemble" in terminal.getvalue()) is not quiet


def test_piped_tables_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    show_table("Title", ("name", "value"), [("[x]", 1.23456789), ("w" * 100, 2)])
    out = capsys.readouterr().out
    assert "w" * 100 in out
    assert "[x]" in out
    assert "1.235" in out
