"""``fieldcorr report``: a store, and a session on it, as one page for a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldcorr.cli._common import note
from fieldcorr.errors import ExportError
from fieldcorr.files import refuse_existing


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to report on.")],
    journal: Annotated[
        Path | None, typer.Argument(metavar="[JOURNAL]", help="The journal of a session on it.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="The page to write.")
    ] = Path("report.html"),
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a page about a store that works offline in any browser.

    It tells what the store holds and how good it is, and draws the array, fields and neighbours of
    any pattern that is picked in the page; with a journal, the session too. It prints on A4.

    \b
    Examples:
      fieldcorr report my.h5 -o report.html
      fieldcorr report my.h5 my.journal -o session.html
    """
    from fieldcorr.duel.export import write_file
    from fieldcorr.duel.session import read_session
    from fieldcorr.store import open_store
    from fieldcorr.web.report import report_page

    if output.suffix not in (".html", ".htm"):
        raise ExportError(f'{output}: the name must end in ".html"')
    inputs = (store,) if journal is None else (store, journal)
    refuse_existing(output, error=ExportError, force=force, inputs=inputs)
    with open_store(store) as opened:
        session = None if journal is None else read_session(journal, opened)
        page = report_page(opened, session)
    write_file(output, page, force=force)
    note(f"{output}: {len(page.encode()) / 1e6:.2f} MB")
