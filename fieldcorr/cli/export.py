"""``fieldcorr export``: a store in the formats of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldcorr.cli._common import show


def command(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="The store to export.")],
    output: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Ends in .vtu .xdmf .npz .mat .csv .parquet or .h5ad."),
    ],
    configuration: Annotated[
        list[str] | None,
        typer.Option(
            "--configuration", "-c", metavar="TEXT", help='Such as "0- 5+"; may be repeated.'
        ),
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            help="For .csv and .parquet: configurations, neighbourhoods, matrix; .csv: stimsets."
        ),
    ] = "configurations",
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Of the table neighbourhoods: this many per row, by falling r."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a store in the format of another program.

    .vtu and .xdmf hold the potential of named configurations for ParaView; they need not be rows
    of the store. .npz, .mat and .h5ad hold configurations, r and neighbourhoods; .csv and .parquet
    one table, of the rows that are named or of all; "stimsets" is what OSS-DBS takes.

    \b
    Examples:
      fieldcorr export my.h5 field.vtu -c "0- 5+" -c "3- 8+ 9+"
      fieldcorr export my.h5 all.npz
      fieldcorr export my.h5 neighbours.csv --table neighbourhoods
      fieldcorr export my.h5 StimSets.csv --table stimsets -c "0- 5+" -c "3- 8+ 9+"
      fieldcorr export whole.h5 near.csv --table neighbourhoods -c "0- 5+" --top 100
    """
    from fieldcorr.export import export_store
    from fieldcorr.store import open_store

    with open_store(store) as opened:
        files = export_store(
            opened, output, configurations=configuration or (), table=table, top=top, force=force
        )
    for file in files:
        show(str(file))
