"""``fieldcorr duel``: a session with a person, whose journal is the only state."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from fieldcorr.cli._common import command_group, note, show
from fieldcorr.errors import ConfigurationError, DuelError, ExportError
from fieldcorr.files import refuse_existing

if TYPE_CHECKING:
    from fieldcorr.duel import Engine
    from fieldcorr.duel.journal import JournalContent
    from fieldcorr.store import Store

HELP = """Run a session with a person: two configurations at a time.

The journal is a text file with one line per answer, on the disk before the answer is acknowledged.
Interrupt a session as you like; "run" goes on where the journal ends.

\b
Examples:
  fieldcorr duel new my.journal my.h5 --horizon 200   begin a session
  fieldcorr duel run my.journal                       ask, until you quit
  fieldcorr duel serve my.journal                     the same in a browser, on this machine
  fieldcorr duel status my.journal                    how far it has come
  fieldcorr duel undo my.journal                      take back the last entry
  fieldcorr duel export my.journal -o result.csv      the ranked set

New sessions use the engine "bayes": in most kinds of simulated sessions its recommendation
after 100 answers was better than that of the paper's CorrDuel after 400. "--engine corrduel" and
"--paper" take that.

Research software, not a medical device: check every configuration before it is delivered.
"""

group = command_group(HELP)

JournalArgument = Annotated[Path, typer.Argument(metavar="JOURNAL", help="The session's journal.")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="STORE", help="The store, if it is not where it was."),
]


@group.command()
def new(
    journal: JournalArgument,
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to duel on.")],
    horizon: Annotated[int, typer.Option(min=1, help="Planned number of duels.")],
    seed: Annotated[
        int | None, typer.Option(min=0, help="Chooses the pairs.", show_default="drawn")
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            "--algorithm",
            help="bayes, corrduel, beatthemean, rucb or sparringucb1.",
            show_default="bayes",
        ),
    ] = None,
    stop: Annotated[
        str | None,
        typer.Option(
            metavar="P,EPS",
            help="Stop when, with probability P, none wins more than 1/2 + EPS of its duels with "
            "the first.",
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="What an earlier session taught: an exported lesson."),
    ] = None,
    prior_weight: Annotated[
        float | None,
        typer.Option(help="What an answer of that session counts, 0 to 1.", show_default="1"),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Sets the width of the intervals of corrduel, and chooses it.", show_default="0.9"
        ),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Run the paper's listing exactly as printed.")
    ] = False,
    damped: Annotated[
        bool,
        typer.Option(
            "--damped",
            help="Learn from r less its spread over the samples of a sweep; chooses corrduel.",
        ),
    ] = False,
    chain: Annotated[
        bool, typer.Option("--chain", help="Compare what was just tried with one new one.")
    ] = False,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Any option of the algorithm. May be repeated."),
    ] = None,
    only: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Propose only these: one configuration per line."),
    ] = None,
    repeats: Annotated[
        float, typer.Option(help="Share of pairs asked again, sides swapped, to know the rater.")
    ] = 0.05,
    stimulator: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Its [stimulator], and limits in [configurations], in place of the store's.",
        ),
    ] = None,
    rater: Annotated[str, typer.Option(help="Who answers.")] = "",
    actor: Annotated[str, typer.Option(help="Who leads the session.")] = "",
    remark: Annotated[str, typer.Option("--note", help="A remark to keep.")] = "",
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Anything to keep. May be repeated."),
    ] = None,
) -> None:
    """Begin a session in a new journal.

    \b
    Examples:
      fieldcorr duel new my.journal my.h5 --horizon 200 --rater "A. B."
      fieldcorr duel new my.journal my.h5 --horizon 200 --stop 0.9,0.05 --chain
      fieldcorr duel new my.journal my.h5 --horizon 200 --prior first.json --prior-weight 0.3
      fieldcorr duel new my.journal my.h5 --horizon 100 --engine corrduel --option radius=global
      fieldcorr duel new my.journal sure.h5 --horizon 200 --damped
      fieldcorr duel new my.journal my.h5 --horizon 200 --stimulator today.toml --actor "C. D."
    """
    from fieldcorr.duel import DuelOptions, Session
    from fieldcorr.duel.lesson import read_lesson
    from fieldcorr.store import open_store

    settings = DuelOptions.paper().record() if paper else {}
    settings |= parse_pairs(
        option,
        chain=chain or None,
        delta=delta,
        stop=None if stop is None else _stopping(stop),
        prior=None if prior is None else read_lesson(prior),
        prior_weight=prior_weight,
    )
    kept = {"rater": rater, "actor": actor, "note": remark, **parse_pairs(meta)}
    with open_store(store) as opened:
        stimulation = None if stimulator is None else _stimulation(stimulator, opened)
        allowed = None if only is None else _whitelist(only, opened)
        if stimulation is not None:
            allowed = _within_limits(stimulation, opened, allowed)
        session = Session.new(
            journal,
            opened,
            horizon=horizon,
            seed=secrets.randbits(32) if seed is None else seed,
            algorithm=None if engine is None else _algorithm(engine),
            settings=settings,
            whitelist=allowed,
            stimulation=stimulation,
            store_name=_relative(store, journal),
            meta={key: value for key, value in kept.items() if value != ""},
            via="damped" if damped else "auto",
            repeats=repeats,
        )
        with session:
            warning = session.engine.warning
            count = len(session.engine.active)
    show(f"{journal}: {count} configurations, {horizon} duels planned")
    if warning:
        note(f"Warning: {warning}.")
    note(f"Go on with: fieldcorr duel run {journal}")


@group.command()
def run(
    journal: JournalArgument,
    store: StoreOption = None,
    answers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Lines to take instead of typing.", show_default="stdin"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Talk in JSON lines, for another program.")
    ] = False,
    rater: Annotated[str, typer.Option(help="Who answers from now on.")] = "",
    actor: Annotated[str, typer.Option(help="Who leads the session from now on.")] = "",
) -> None:
    """Ask for comparisons until the session ends or someone quits.

    Without a terminal, lines come from a pipe or a file; the first line that cannot be used ends
    the run. "12: left" answers duel 12 and no other, so a line may be repeated after a crash.

    \b
    Examples:
      fieldcorr duel run my.journal
      fieldcorr duel run my.journal --answers answers.txt
      my-program | fieldcorr duel run my.journal --json
    """
    from fieldcorr.duel.session import Session
    from fieldcorr.duel.terminal import (
        Front,
        JsonFront,
        TextFront,
        converse,
        discard_typed,
        read_lines,
    )

    person = answers is None and sys.stdin.isatty()
    with (
        nullcontext(sys.stdin) if answers is None else _open_text(answers) as stream,
        _store_of(journal, store) as opened,
        Session.open(journal, opened) as session,
    ):
        front: Front = JsonFront(_say) if as_json else TextFront(opened, _say, prompt=person)
        if named := {key: name for key, name in (("rater", rater), ("actor", actor)) if name}:
            session.engine.note(named)
        try:
            if person:
                note("Working ...")  # the first question compiles what it needs
            lines, forget = read_lines(stream), discard_typed if person else lambda: None
            converse(session, opened, lines, front, forgiving=person, discard=forget)
        except KeyboardInterrupt:
            _say("\n")
        note(
            f"Everything recorded is in {journal}, {session.journal.end}; "
            f"go on with: fieldcorr duel run {journal}"
        )


@group.command()
def serve(
    journal: JournalArgument,
    store: StoreOption = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine; 0 is any free one.")
    ] = 0,
    blinded: Annotated[
        bool, typer.Option("--blinded", help="Hide what the engine believes until the end.")
    ] = False,
) -> None:
    """Show the session in a browser on this machine, until interrupted.

    The printed link holds a secret and works on this machine alone. The journal stays the only
    state: "run" and "serve" are two fronts of one session, one at a time.

    \b
    Examples:
      fieldcorr duel serve my.journal
      fieldcorr duel serve my.journal --port 8765 --blinded
    """
    from fieldcorr.duel.session import Session
    from fieldcorr.web.server import SessionPage, link, new_token, open_port
    from fieldcorr.web.server import serve as serve_page

    with (
        _store_of(journal, store) as opened,
        Session.open(journal, opened) as session,
        open_port(port) as listening,
    ):
        note("Working ...")
        page, token = SessionPage(session, opened, blinded=blinded), new_token()
        page.state()  # compiles what the first question needs
        show(f"Open {link(listening, token)}")
        note("Stop with Ctrl-C. Research software, not a medical device.")
        with suppress(KeyboardInterrupt):
            serve_page(page, listening, token)
        note(f"Everything recorded is in {journal}, {session.journal.end}")


@group.command()
def status(
    journal: JournalArgument,
    store: StoreOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="As one JSON object.")] = False,
) -> None:
    """Show how far a session has come; reads only, also while it runs.

    \b
    Examples:
      fieldcorr duel status my.journal
      fieldcorr duel status my.journal --json
    """
    from fieldcorr.duel.journal import is_locked
    from fieldcorr.duel.raters import answer_seconds
    from fieldcorr.duel.session import read_session
    from fieldcorr.duel.terminal import printable, result_text, settings_text

    with _store_of(journal, store) as opened:
        engine, content = read_session(journal, opened)
        running = is_locked(journal)
        if as_json:
            show(json.dumps(_status_record(engine, content, running=running)))
            return
        name = content.header["store"].get("name")
        show(printable(f"{type(engine).__name__} on {name}, seed {engine.seed}"))
        show(settings_text(engine.settings))
        show(printable(result_text(engine)))
        if said := engine.rater.lines(answer_seconds(content)):
            show(f"Rater: {'; '.join(said)}.")
        lines = f"{content.lines} line{'s' * (content.lines > 1)}"
        show(f"The journal has {lines}, check {content.check}.")
        if content.header["store"].get("hash") != engine.source.fingerprint():
            show("The store was computed again since; what defines r agrees.")
    if engine.warning:
        show(f"Warning: {engine.warning}.")
    if content.torn and not running:
        show(f"The last line is unfinished ({len(content.torn)} bytes) and does not count.")
    if running:
        show("The session is running in another process.")


@group.command()
def undo(
    journal: JournalArgument,
    store: StoreOption = None,
    count: Annotated[int, typer.Option(min=1, help="How many entries.")] = 1,
    actor: Annotated[str, typer.Option(help="Who takes them back.")] = "",
    reason: Annotated[str, typer.Option(help="Why.")] = "",
) -> None:
    """Take back the last entries; the journal keeps them too.

    \b
    Examples:
      fieldcorr duel undo my.journal
      fieldcorr duel undo my.journal --count 3
    """
    from fieldcorr.duel.commands import Actions, Command
    from fieldcorr.duel.session import Session
    from fieldcorr.duel.terminal import printable

    with _store_of(journal, store) as opened, Session.open(journal, opened) as session:
        actions = Actions(session, opened)
        said = {key: text for key, text in (("actor", actor), ("reason", reason)) if text}
        for _ in range(count):
            show(printable(actions.perform(Command("undo", meta=dict(said)))))


@group.command()
def export(
    journal: JournalArgument,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A .csv, .tsv or .json file.")
    ],
    what: Annotated[
        str, typer.Option(help="survivors, duels, entries, events, electrodes, rater or lesson.")
    ] = "survivors",
    top: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Only the first N survivors.")
    ] = None,
    store: StoreOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write the ranked set, the answers, or a lesson to a file.

    "entries" are all lines of the journal, also voids and undos with actor and reason; "events" and
    "electrodes" are the answers and the contacts in the columns of BIDS.

    \b
    Examples:
      fieldcorr duel export my.journal -o ranked.csv
      fieldcorr duel export my.journal -o first.json --what lesson
      fieldcorr duel export my.journal -o answers.json --what duels
      fieldcorr duel export my.journal -o sub-01_events.tsv --what events
    """
    from fieldcorr.duel import BayesDuel
    from fieldcorr.duel.export import (
        duel_rows,
        electrode_rows,
        entry_rows,
        event_rows,
        rater_row,
        survivor_rows,
        write_file,
        write_rows,
    )
    from fieldcorr.duel.session import read_session

    known = ("survivors", "duels", "entries", "events", "electrodes", "rater", "lesson")
    if what not in known:
        raise ExportError(f"--what {what}: not one of {', '.join(known)}")
    with _store_of(journal, store) as opened:
        refuse_existing(output, error=ExportError, force=force, inputs=(journal, opened.path))
        engine, content = read_session(journal, opened)
        if what == "lesson":
            if not isinstance(engine, BayesDuel):
                raise ExportError(f"{journal}: {type(engine).__name__} learns no utility to export")
            write_file(output, json.dumps(engine.lesson), force=force)
            note(f"{output}: {engine.duels} comparisons")
            return
        if what == "electrodes":
            rows = electrode_rows(opened)
        elif what == "rater":
            rows = [rater_row(engine, content)]
        elif what == "entries":
            rows = entry_rows(content)
        elif what == "survivors":
            rows = survivor_rows(engine, top)
        else:
            rows = (event_rows if what == "events" else duel_rows)(engine, content)
        write_rows(rows, output, force=force)
    note(f"{output}: {len(rows)} rows")


def _store_of(journal: Path, given: Path | None) -> Store:
    """Open the store that a journal names, or the one given."""
    from fieldcorr.duel.journal import read_journal
    from fieldcorr.store import open_store

    if given is not None:
        return open_store(given)
    kept = read_journal(journal).header.get("store")
    name = kept.get("name") if isinstance(kept, dict) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise DuelError(f"{journal}: names no store; name it with --store")
    # From where the journal really is; and from its folder as it was typed, for links.
    folders = Path(os.path.realpath(journal)).parent, Path(os.path.abspath(journal)).parent
    places = [Path(os.path.normpath(folder / name)) for folder in folders]
    for place in places:
        if place.is_file():
            return open_store(place)
    raise DuelError(f"{journal}: its store {str(places[0])!r} is not there; name it with --store")


def _relative(store: Path, journal: Path) -> str:
    """Return where the store is, seen from the journal's folder: both may move together."""
    target = os.path.realpath(store)
    try:
        return os.path.relpath(target, Path(os.path.realpath(journal)).parent)
    except ValueError:  # another drive
        return target


def _status_record(engine: Engine, content: JournalContent, *, running: bool) -> dict[str, object]:
    from fieldcorr.duel.export import rater_row

    return {
        "header": content.header,
        "progress": asdict(engine.progress),
        "answers": engine.answers,
        "lines": content.lines,
        "check": content.check,
        "done": engine.done,
        "outlook": engine.outlook,
        "warning": engine.warning,
        "rater": rater_row(engine, content),
        "torn": len(content.torn),
        "running": running,
        "best": {"arm": engine.best, "text": engine.source.label(engine.best)},
    }


def _algorithm(name: str) -> str:
    """Return the class of an engine by its name in any case; "duel" at its end may be left out."""
    from fieldcorr.duel.session import ALGORITHMS

    known = {algorithm.lower(): algorithm for algorithm in ALGORITHMS}
    found = known.get(name.lower()) or known.get(f"{name.lower()}duel")
    if found is None:
        raise DuelError(f"--engine {name}: not one of {', '.join(known)}")
    return found


def _stopping(text: str) -> list[float]:
    """Read "0.9,0.05", a probability and a regret."""
    try:
        level, eps = (float(part) for part in text.split(","))
    except ValueError as error:
        raise DuelError(f"--stop {text}: not P,EPS such as 0.9,0.05") from error
    return [level, eps]


def _whitelist(path: Path, store: Store) -> list[int]:
    with _open_text(path) as file:
        try:
            lines = [line.strip() for line in file]
        except UnicodeDecodeError as error:
            raise DuelError(f"{path}: is not UTF-8: {error}") from error
    return [store.index_of(line) for line in lines if line and not line.startswith("#")]


def _stimulation(path: Path, store: Store) -> dict[str, object]:
    """Read the stimulator of a session, checked as that of a model."""
    from fieldcorr.model.load import load_stimulation
    from fieldcorr.stimulation import check_impedances

    found = load_stimulation(path)
    try:
        check_impedances(found["stimulator"]["impedance_ohm"], store.contact_names)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: stimulator.impedance_ohm: {error}") from error
    return found


def _within_limits(
    record: dict[str, Any], store: Store, allowed: list[int] | None
) -> list[int] | None:
    """Return the rows that the limits of a session allow, None for all."""
    from fieldcorr.stimulation import stimulation_of

    if not record["limits"]:
        return allowed
    if store.is_whole and allowed is None:
        raise DuelError(
            f"--stimulator: {len(store):,} configurations are not listed, so that limits cannot "
            "be applied to all of them; choose some with --only"
        )
    stimulation = stimulation_of(store, record["stimulator"], limits=record["limits"])
    rows = list(range(len(store))) if allowed is None else allowed
    if stimulation is not None:
        kept = stimulation.within_limits(store.polarity[rows], store.current[rows])
        rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
    if not rows:
        raise DuelError("--stimulator: no configuration is known to be within the limits")
    note(f"{len(rows)} configurations are within the limits of the stimulator")
    return rows


def _open_text(path: Path) -> TextIO:
    try:
        return path.open(encoding="utf-8")
    except OSError as error:
        raise DuelError(f"{path}: cannot be read: {error.strerror}") from error


def parse_pairs(texts: Sequence[str] | None, **others: object) -> dict[str, Any]:
    """Read KEY=VALUE words; numbers, true and false are what they look like.

    ``others`` that are not None are added, and win.
    """
    pairs: dict[str, object] = {}
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not equals:
            raise DuelError(f"{text!r}: not KEY=VALUE")
        try:
            pairs[key] = json.loads(value)
        except ValueError:
            pairs[key] = value
    return pairs | {key: value for key, value in others.items() if value is not None}


def _say(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
