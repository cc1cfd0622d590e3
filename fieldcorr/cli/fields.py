"""``fieldcorr fields``: compute the lead fields of a model and show how good they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldcorr.cli._common import (
    DEFAULT_MODEL,
    CacheOption,
    MeshOption,
    ModelArgument,
    SetOption,
    ThreadsOption,
    note,
    open_model,
    progress,
    show,
    show_table,
)
from fieldcorr.errors import ExportError
from fieldcorr.files import refuse_existing, write_beside

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField


def command(
    model: ModelArgument = DEFAULT_MODEL,
    mesh: MeshOption = "standard",
    changes: SetOption = None,
    threads: ThreadsOption = None,
    second_opinion: Annotated[
        bool,
        typer.Option(
            "--second-opinion",
            help="Solve again by a sparse factorisation and show how far apart the two are.",
        ),
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write the arrays to a NumPy file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    cache: CacheOption = None,
) -> None:
    """Compute the lead fields: potential per ampere of a contact.

    Shows the self-impedance of every contact (against all others tied together), the residual
    of its solve, the physical identities with their values, and timings. Solved fields are kept,
    and precompute takes them from there.

    \b
    Examples:
      fieldcorr fields
      fieldcorr fields --mesh tiny --set solver.order=1
      fieldcorr fields --mesh tiny --second-opinion
      fieldcorr fields my.toml --mesh my.msh --output fields.npz
    """
    from fieldcorr.batch.cache import Cache, default_folder
    from fieldcorr.batch.fields import lead_field
    from fieldcorr.leadfield import compute_lead_field
    from fieldcorr.mesh import load_mesh

    if output is not None:  # refused before minutes are spent on it
        if output.suffix != ".npz":
            raise ExportError(f'{output}: the name must end in ".npz"')
        if not output.parent.is_dir():
            raise ExportError(f"{output}: the folder {output.parent} does not exist")
        refuse_existing(output, error=ExportError, force=force)
    chosen = open_model(model, changes)
    grid, path = load_mesh(chosen, mesh)
    with progress() as report:
        field = lead_field(
            chosen,
            grid,
            name=str(path),
            cache=Cache(cache or default_folder()),
            threads=threads,
            report=lambda done: report("lead fields", done),
        )
    columns = ("contact", "left mm", "dorsal mm", "rostral mm", "area mm2", "ohm", "residual")
    show_table(f"Contacts of {chosen.name}", columns, _contacts(field))
    show_table("Identities", ("identity", "relative error"), sorted(field.identities.items()))
    if field.times:
        show_table("Time", ("stage", "seconds"), field.times.items())
    else:
        note("solved before; taken from the cache")
    show(f"{len(field.points)} points in the compared region, {field.iterations} iterations")
    if second_opinion:
        with progress() as report:
            direct = compute_lead_field(
                chosen, grid, method="direct", threads=threads, progress=report
            )
        show_table("Second opinion", ("quantity", "relative gap"), _gaps(field, direct))
    if output is not None:
        _write(field, output, force=force)


def _contacts(field: LeadField) -> Iterator[tuple[object, ...]]:
    for index, name in enumerate(field.contact_names):
        # Adding zero turns a rounded -0.0 into 0.0.
        millimetres = [round(1e3 * float(x), 3) + 0.0 for x in field.contact_positions[index]]
        yield (
            name,
            *millimetres,
            float(1e6 * field.contact_areas[index]),
            float(1.0 / field.admittance[index, index]),
            float(field.residuals[index]),
        )


def _gaps(field: LeadField, direct: LeadField) -> Iterator[tuple[str, float]]:
    """Compare two lead fields: the largest difference over the largest value."""
    import numpy as np

    for name in ("admittance", "gram", "nodal"):
        one, other = getattr(field, name), getattr(direct, name)
        yield name, float(np.abs(one - other).max() / np.abs(one).max())


def _write(field: LeadField, path: Path, *, force: bool) -> None:
    import numpy as np

    with write_beside(path, error=ExportError, force=force) as draft:
        np.savez_compressed(
            draft,
            contact_names=np.array(field.contact_names),
            contact_positions=field.contact_positions,
            points=field.points,
            weight=field.weight,
            potential=field.potential,
            gram=field.gram,
            admittance=field.admittance,
        )
    note(f"wrote {path}")
