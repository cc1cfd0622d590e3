"""Results and answers of a session as tables, and as CSV, TSV or JSON files."""

import csv
import io
import json
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.duel.engine import Engine
from fieldcorr.duel.fields import IMPEDANCE_OF, NUMBERS, TEXTS
from fieldcorr.duel.journal import JournalContent
from fieldcorr.duel.raters import answer_seconds, spent_seconds
from fieldcorr.errors import ExportError
from fieldcorr.files import write_beside

if TYPE_CHECKING:
    from fieldcorr.store import Store

Row = dict[str, Any]


MOST_SURVIVORS = 1_000_000
"""A table of more rows than this is not made unless so many are asked for."""


def survivor_rows(engine: Engine, top: int | None = None) -> list[Row]:
    """Return the surviving set, best first, or its first ``top``."""
    ranked = engine.survivors
    if top is None and len(ranked) > MOST_SURVIVORS:
        raise ExportError(
            f"{len(ranked):,} configurations are left, too many for a table: --top N takes the "
            "first N"
        )
    return [
        {
            "rank": rank,
            "arm": row.arm,
            "configuration": engine.source.label(row.arm),
            "estimate": row.estimate,
            "radius": row.radius,
            "count": row.count,
        }
        for rank, row in enumerate(ranked[:top], start=1)
    ]


def duel_rows(engine: Engine, content: JournalContent) -> list[Row]:
    """Return every comparison that was answered and not undone, in order."""
    rows = []
    voided = {int(event.value or 0): event.meta for event in engine.events if event.kind == "void"}
    records = rated_answers(content)
    typed = dict.fromkeys((*NUMBERS, "note"))  # always there, whatever was said
    parameters = typed | dict.fromkeys(key for event in engine.history for key in event.meta)
    parameters.pop("rater", None)
    spent = spent_seconds(content)
    for number, (record, event) in enumerate(zip(records, engine.history, strict=True), start=1):
        pairs = event.comparisons() or [(event.arms[0], event.arms[1], False)]
        for winner, loser, tie in pairs:
            rows.append(
                {
                    "number": number,
                    "line": record["line"],
                    "time": record["time"],
                    "seconds": spent[record["line"]],
                    "first": winner,
                    "second": loser,
                    "first_configuration": engine.source.label(winner),
                    "second_configuration": engine.source.label(loser),
                    "outcome": _outcome(event.answer, tie=tie),
                    "left_configuration": engine.source.label(event.arms[0]),
                    "asked": event.asked,
                    "void": number in voided,
                    "void_actor": voided.get(number, {}).get("actor", ""),
                    "void_reason": voided.get(number, {}).get("reason", ""),
                    "rater": record["rater"],
                    "meta": json.dumps(dict(event.meta), ensure_ascii=False),
                }
            )
            rows[-1] |= {key: event.meta.get(key, "") for key in parameters if key not in rows[-1]}
    return rows


def entry_rows(content: JournalContent) -> list[Row]:
    """Return every entry of a journal, also those that were undone: who, when, what and why."""
    counting = {record["line"] for record in counting_records(content)}
    fields = (*NUMBERS, IMPEDANCE_OF, *TEXTS, "rater", "note")
    rows = []
    for record in content.records:
        meta = record.get("meta", {})
        rows.append(
            {
                "line": record["line"],
                "time": record["time"],
                "entry": record["event"],
                "counts": record["line"] in counting,
                "configurations": " | ".join(record.get("labels", ())) or meta.get("contact", ""),
                "answer": record.get("answer", ""),
                "value": record.get("value", ""),
                **{field: meta.get(field, "") for field in fields},
            }
        )
    return rows


def event_rows(engine: Engine, content: JournalContent) -> list[Row]:
    """Return the answers as BIDS has events: seconds since the session began, then what it was."""
    begun = datetime.fromisoformat(content.header["time"])
    rows = []
    for row in duel_rows(engine, content):
        onset = (datetime.fromisoformat(row["time"]) - begun).total_seconds()
        rows.append({"onset": onset, "duration": "", "trial_type": row["outcome"], **row})
    return rows


def electrode_rows(store: "Store") -> list[Row]:
    """Return the contacts as BIDS has electrodes: x left, y dorsal, z rostral in mm."""
    places = np.round(1e3 * store.contact_positions, 6).tolist()
    return [
        {"name": name, **dict(zip("xyz", place, strict=True)), "size": ""}
        for name, place in zip(store.contact_names, places, strict=True)
    ]


def rated_answers(content: JournalContent) -> list[dict[str, Any]]:
    """Return the records of the answers that were not undone, each with its rater.

    Who rates is said once, with an answer or in a note, and holds until somebody else is named.
    """
    answers, rater = [], str(content.header.get("meta", {}).get("rater", ""))
    for record in counting_records(content):
        rater = str(record.get("meta", {}).get("rater", rater))
        if record["event"] in ("duel", "ranking"):
            answers.append(record | {"rater": rater})
    return answers


def rater_row(engine: Engine, content: JournalContent) -> Row:
    """Return what the answers say about the rater; None where they are too few to say it."""
    figures = engine.rater
    row = asdict(figures) | {"verdict": figures.verdict, "seconds": answer_seconds(content)}
    del row["extremes"]
    return {key: None if value != value else value for key, value in row.items()}


def _outcome(answer: str | None, *, tie: bool) -> str:
    if answer == "skip":
        return "skipped"
    return "equal" if tie else "first better"


def counting_records(content: JournalContent) -> list[dict[str, Any]]:
    """Return the records that were not undone; the same rule as the engine's."""
    counting: list[dict[str, object]] = []
    for record in content.records:
        if record["event"] == "undo":
            last = max(i for i, kept in enumerate(counting) if kept["event"] != "note")
            del counting[last]
        elif record["event"] != "torn":
            counting.append(record)
    return counting


def write_rows(rows: list[Row], path: Path, *, force: bool = False) -> None:
    """Write rows as CSV, TSV or JSON, by the file's ending; ``force`` replaces an existing file.

    What is not known is "n/a" in a TSV file, as BIDS asks.
    """
    text = io.StringIO(newline="")
    if path.suffix == ".json":
        json.dump(rows, text, ensure_ascii=False, indent=1)
    elif path.suffix in (".csv", ".tsv"):
        names, dialect = list(rows[0]) if rows else ["number"], "excel"
        if path.suffix == ".tsv":
            dialect = "excel-tab"
            rows = [{name: "n/a" if row[name] == "" else row[name] for name in row} for row in rows]
        writer = csv.DictWriter(text, fieldnames=names, dialect=dialect)
        writer.writeheader()
        writer.writerows(rows)
    else:
        raise ExportError(f"{path}: the name must end in .csv, .tsv or .json")
    write_file(path, text.getvalue(), force=force)


def write_file(path: Path, text: str, *, force: bool) -> None:
    """Write a text file beside its name and move it there: whole, or not at all."""
    try:
        with write_beside(path, error=ExportError, force=force) as draft:
            draft.write_text(text, encoding="utf-8", newline="")
    except UnicodeError as error:
        raise ExportError(f"{path}: cannot be written: {error}") from error
