"""Results and answers of a session as tables, and as CSV or JSON files."""

import csv
import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fieldcorr.duel.engine import Engine
from fieldcorr.duel.journal import JournalContent
from fieldcorr.duel.raters import answer_seconds, spent_seconds
from fieldcorr.errors import ExportError
from fieldcorr.files import write_beside

Row = dict[str, Any]


def survivor_rows(engine: Engine) -> list[Row]:
    """Return the surviving set, best first."""
    return [
        {
            "rank": rank,
            "arm": row.arm,
            "configuration": engine.source.label(row.arm),
            "estimate": row.estimate,
            "radius": row.radius,
            "count": row.count,
        }
        for rank, row in enumerate(engine.survivors, start=1)
    ]


def duel_rows(engine: Engine, content: JournalContent) -> list[Row]:
    """Return every comparison that was answered and not undone, in order."""
    rows = []
    voided = {int(event.value or 0) for event in engine.events if event.kind == "void"}
    records = [r for r in counting_records(content) if r["event"] in ("duel", "ranking")]
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
                    "asked": event.asked,
                    "void": number in voided,
                    "meta": json.dumps(dict(event.meta), ensure_ascii=False),
                }
            )
    return rows


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
    counting: list[dict[str, Any]] = []
    for record in content.records:
        if record["event"] == "undo":
            last = max(i for i, kept in enumerate(counting) if kept["event"] != "note")
            del counting[last]
        elif record["event"] != "torn":
            counting.append(record)
    return counting


def write_rows(rows: list[Row], path: Path, *, force: bool = False) -> None:
    """Write rows as CSV or JSON, by the file's ending; ``force`` replaces an existing file."""
    text = io.StringIO(newline="")
    if path.suffix == ".json":
        json.dump(rows, text, ensure_ascii=False, indent=1)
    elif path.suffix == ".csv":
        writer = csv.DictWriter(text, fieldnames=list(rows[0]) if rows else ["number"])
        writer.writeheader()
        writer.writerows(rows)
    else:
        raise ExportError(f"{path}: the name must end in .csv or .json")
    write_file(path, text.getvalue(), force=force)


def write_file(path: Path, text: str, *, force: bool) -> None:
    """Write a text file beside its name and move it there: whole, or not at all."""
    try:
        with write_beside(path, error=ExportError, force=force) as draft:
            draft.write_text(text, encoding="utf-8", newline="")
    except UnicodeError as error:
        raise ExportError(f"{path}: cannot be written: {error}") from error
