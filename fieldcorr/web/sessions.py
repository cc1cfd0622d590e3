"""A session as plain values, for the report and for the session page."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fieldcorr.duel.export import entry_rows, rated_answers
from fieldcorr.duel.fields import last_said, stimulation_in
from fieldcorr.duel.raters import answer_seconds
from fieldcorr.duel.terminal import settings_text

if TYPE_CHECKING:
    from fieldcorr.duel.engine import Engine
    from fieldcorr.duel.journal import JournalContent
    from fieldcorr.duel.session import Session
    from fieldcorr.store import Store

TOP = 12
"""Configurations shown of the ranked set."""

LAST = 8
"""Answers shown beside the question."""

Record = dict[str, Any]


def session_record(engine: "Engine", content: "JournalContent") -> Record:
    """Return everything that the report tells of a session."""
    header, progress = content.header, engine.progress
    answers = list(answer_records(engine, content))
    facts = {
        "engine": f"{type(engine).__name__}, seed {engine.seed}",
        "settings": settings_text(engine.settings),
        "begun": f"{header.get('time')}, fieldcorr {header.get('version')}",
        "comparisons": f"{progress.duels} of {progress.horizon} planned",
        "left": f"{progress.left} of {progress.allowed} configurations, "
        f"{progress.excluded} excluded",
        "belief": ", ".join(f"{name} {value}" for name, value in belief(engine).items()),
        "warning": engine.warning or "",
        "kept": ", ".join(f"{key}: {value}" for key, value in header.get("meta", {}).items()),
        "journal": f"{content.lines} lines",
    }
    return {
        "facts": [(name, value) for name, value in facts.items() if value],
        "ranked": ranked_records(engine),
        "left": narrowing(engine),
        "answers": answers,
        "raters": [list(row.values()) for row in rater_records(answers)],
        "figures": engine.rater.lines(answer_seconds(content)),
        "decisions": [decision for row in entry_rows(content) if (decision := _decision(row))],
    }


def _decision(row: Record) -> list[Any] | None:
    """Return an entry that is no answer and no plain note, for a table; None for those."""
    what = {
        "void": f"answer {row['value']} does not count",
        "extend": f"{row['value']} comparisons planned",
        "undo": "the entry before it",
    }.get(row["entry"], row["configurations"])
    if row["impedance_of"]:
        row["entry"], what = "impedance", f"{row['impedance_of']}: {row['impedance_ohm']:g} ohm"
    elif row["entry"] in ("duel", "ranking", "note"):
        return None
    reason = (row["adverse_event"] and f"adverse event: {row['adverse_event']}") or row["reason"]
    name = row["entry"] if row["counts"] or row["entry"] == "undo" else f"{row['entry']} (undone)"
    return [row["line"], row["time"][:19].replace("T", " "), name, what, row["actor"], reason]


def state_record(session: "Session", store: "Store", *, blinded: bool) -> Record:
    """Return what the session page shows; what the engine believes is left out when blinded."""
    engine, journal = session.engine, session.journal
    pair = [] if engine.done else engine.ask()
    kept, events = journal.content.header.get("meta", {}), engine.events
    stimulation = stimulation_in(store, journal.content.header, events)
    record = {
        "journal": journal.path.name,
        "lines": journal.lines,
        "number": engine.answers + 1,
        "pair": [engine.source.label(arm) for arm in pair],
        "done": engine.done,
        "progress": asdict(engine.progress),
        "warning": engine.warning,
        "torn": len(session.torn),
        "rater": last_said("rater", kept, events),
        "actor": last_said("actor", kept, events),
        "impedance_ohm": {} if stimulation is None else dict(stimulation.stimulator.impedance_ohm),
        "history": _history(engine),
        "blinded": blinded,
    }
    if blinded and not engine.done:
        return record
    return record | {
        "ranked": ranked_records(engine),
        "belief": belief(engine),
        "figures": engine.rater.lines(),
    }


def _history(engine: "Engine") -> list[Record]:
    """Return the last answers, the newest first."""
    voided = {int(event.value or 0) for event in engine.events if event.kind == "void"}
    found = [
        {
            "number": number,
            "pair": [engine.source.label(arm) for arm in event.arms],
            "answer": event.answer or "ranking",
            "void": number in voided,
        }
        for number, event in enumerate(engine.history, start=1)
    ]
    return found[: -LAST - 1 : -1]


def ranked_records(engine: "Engine") -> list[Record]:
    """Return the first of the ranked set, with their texts."""
    rows = engine.survivors[:TOP]
    return [asdict(row) | {"text": engine.source.label(row.arm)} for row in rows]


def belief(engine: "Engine") -> dict[str, str]:
    """Return how sure an engine is, in words, as far as it can tell."""
    names = {
        "probability_best": "probability that the leader is the best",
        "remaining_regret": "regret that may remain",
    }
    found = {text: getattr(engine, name, None) for name, text in names.items()}
    return {text: f"{value:.2f}" for text, value in found.items() if isinstance(value, float)}


def narrowing(engine: "Engine") -> list[int]:
    """Return how many configurations were left before the first and after every answer."""
    again = engine.fresh()
    left = [again.progress.left]
    for event in engine.events:
        again.record(event)
        if event.kind in ("duel", "ranking"):
            left.append(again.progress.left)
    return left


def answer_records(engine: "Engine", content: "JournalContent") -> Iterator[Record]:
    """Yield every answer that was not undone."""
    voided = {int(event.value or 0) for event in engine.events if event.kind == "void"}
    for number, record in enumerate(rated_answers(content), start=1):
        said = record.get("meta", {})
        names = record.get("labels", ["", ""])
        yield {
            "number": number,
            "time": record["time"],
            "left": names[0],
            "right": ", ".join(names[1:]),
            "answer": record.get("answer", "ranking, best first"),
            "rater": record["rater"],
            "void": number in voided,
            "more": ", ".join(f"{key} {value}" for key, value in said.items() if key != "rater"),
        }


def rater_records(answers: list[Record]) -> list[Record]:
    """Return how often each rater gave each answer."""
    found: dict[str, Record] = {}
    for answer in answers:
        row = found.setdefault(
            answer["rater"],
            {"rater": answer["rater"] or "not named", "answers": 0}
            | dict.fromkeys(("left", "right", "same", "skip"), 0),
        )
        row["answers"] += 1
        if answer["answer"] in row:
            row[answer["answer"]] += 1
    return list(found.values())
