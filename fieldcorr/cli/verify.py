"""``fieldcorr verify``: check an installation against known solutions."""

from __future__ import annotations

from typing import Annotated

import typer

from fieldcorr.cli._common import EXIT_FOUND, ThreadsOption, note, progress, show, show_table
from fieldcorr.errors import MeshError


def command(
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also elements of order 1 and uncorrected meshes, to compare."),
    ] = False,
    peer: Annotated[
        bool, typer.Option("--peer", help="Also r against NGSolve, which must be installed.")
    ] = False,
    mesh: Annotated[
        str | None,
        typer.Option(
            metavar="MESH",
            help="Mesh of the bundled model for --peer: tiny, companion or standard.",
            show_default="tiny",
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table as Markdown.")
    ] = False,
    threads: ThreadsOption = None,
) -> None:
    """Check this installation against solutions known exactly.

    Finite-element potentials and currents of a layered slab, concentric spheres, layered
    cylinders, an equipotential disc and contacts with impedance are compared with their closed
    forms, and a manufactured solution shows whether errors fall as fast as theory says. RDM is the
    error of a field's shape, ln MAG of its size; P1 and P2 are elements of order 1 and 2. It takes
    about ten seconds, and a minute the first time, while kernels are compiled.

    Exit codes: 0 every target is met, 1 one is missed, 2 error.

    \b
    Examples:
      fieldcorr verify
      fieldcorr verify --all --markdown
      fieldcorr verify --peer --mesh companion
    """
    from fieldcorr._parallel import threads as kernel_threads
    from fieldcorr.verification import compare_all, markdown_table
    from fieldcorr.verification.compare import HEAD

    if mesh is not None and not peer:
        raise MeshError("--mesh has no effect without --peer")
    peer_mesh = (mesh or "tiny") if peer else None
    with kernel_threads(threads), progress() as report:
        found = list(compare_all(everything=everything, peer_mesh=peer_mesh, progress=report))
    if markdown:
        show(markdown_table(found))
    else:
        show_table("Accuracy", HEAD, [comparison.cells() for comparison in found], left=3)
    judged = [comparison for comparison in found if comparison.target is not None]
    met = sum(comparison.is_met for comparison in judged)
    note(f"{met} of {len(judged)} targets met")
    if met < len(judged):
        raise typer.Exit(EXIT_FOUND)
