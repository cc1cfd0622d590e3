"""``fieldcorr check``: verify a store completely, and say every finding in a line of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldcorr.cli._common import EXIT_FOUND, ThreadsOption, progress, show


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store, or sweep, to verify.")],
    threads: ThreadsOption = None,
) -> None:
    """Verify everything that a store promises.

    Structure, checksums of all data, ids and polarities, currents against the admittance, unit
    rows, r against the embedding, neighbourhoods against r, fields against samples. Every finding
    is named. Of a sweep: structure and checksums. The file is read in a process of its own: if it
    makes the HDF5 library crash or hang, that is a finding too.

    Exit codes: 0 sound, 1 not sound, 2 no such file.

    \b
    Examples:
      fieldcorr check my.h5
    """
    from fieldcorr.errors import StoreError
    from fieldcorr.store import check_apart

    if not store.is_file():
        raise StoreError(f"{store}: no such file")
    with progress() as report:
        findings = check_apart(store, threads=threads, progress=report)
    for finding in findings:
        show(f"{store}: {finding}")
    if findings:
        raise typer.Exit(EXIT_FOUND)
    show(f"{store}: sound")
