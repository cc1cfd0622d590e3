"""``fieldcorr check``: verify a store completely.

What flows in: a store. What flows out: one line per finding and exit code 1, or 0 when it is sound.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldcorr.cli._common import EXIT_FOUND, ThreadsOption, progress, show


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("check")(check_command)


def check_command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to verify.")],
    threads: ThreadsOption = None,
) -> None:
    """Verify everything that a store promises.

    Structure, checksums of all data, ids and polarities, currents against the admittance, unit
    rows, r against the embedding, symmetry and bounds, neighbourhoods against r, fields against
    samples. Every finding is named.

    Exit codes: 0 sound, 1 not sound, 2 no such file.

    \b
    Examples:
      fieldcorr check my.h5
    """
    from fieldcorr.errors import StoreError
    from fieldcorr.store import check_store

    if not store.is_file():
        raise StoreError(f"{store}: no such file")
    with progress() as report:
        findings = check_store(store, threads=threads, progress=report)
    for finding in findings:
        show(f"{store}: {finding}")
    if findings:
        raise typer.Exit(EXIT_FOUND)
    show(f"{store}: sound")
