"""``fieldcorr model``: validate a model file and show what it says, as tables or as TOML."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldcorr.cli._common import (
    DEFAULT_MODEL,
    ModelArgument,
    SetOption,
    note,
    open_model,
    refuse_picture,
    show,
    show_table,
)
from fieldcorr.errors import ExportError, MisfitError
from fieldcorr.files import write_beside

if TYPE_CHECKING:
    from fieldcorr.model import Model


def command(
    model: ModelArgument = DEFAULT_MODEL,
    changes: SetOption = None,
    toml: Annotated[
        bool, typer.Option("--toml", help="Print the model as TOML, changes included.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png", help="Draw the anatomy and how the array fits (matplotlib)."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing picture.")] = False,
) -> None:
    """Validate a model file and show what it says.

    A file that cannot be used gives one line with the file, the key and the value, and exit
    code 2. --plot draws cross-section, sagittal view and array without meshing or solving, also
    of a paddle that does not fit.

    \b
    Examples:
      fieldcorr model
      fieldcorr model my.toml
      fieldcorr model my.toml --plot my-anatomy.png
      fieldcorr model --set geometry.cord.dorsal_csf_mm=3.5 --toml > my.toml
    """
    if plot is not None:
        refuse_picture(plot)
    try:
        chosen = open_model(model, changes)
    except MisfitError as misfit:
        if plot is not None:
            _draw(misfit, plot, force=force)
        raise
    if plot is not None:
        _draw(chosen, plot, force=force)
    if toml:
        show(chosen.text.rstrip("\n"))
        return
    show(f"{chosen.name}: {chosen.description}")
    show(f"file {chosen.path}")
    show(f"hash {chosen.hash}")
    show_table("Geometry", ("compartment", "value", "nominal", "source"), _geometry(chosen), left=4)
    show_table("Tissues", ("tissue", "S/m", "nominal", "source"), _tissues(chosen), left=4)
    show_table("Choices", ("key", "value"), _choices(chosen), left=2)


def _draw(source: Model | MisfitError, path: Path, *, force: bool) -> None:
    from fieldcorr.plot import anatomy

    with write_beside(path, error=ExportError, force=force) as draft:
        anatomy(source).savefig(draft, dpi=150)
    note(f"wrote {path}")


def _geometry(model: Model) -> Iterator[tuple[str, str, str, str]]:
    tables = {name: getattr(model.geometry, name) for name in type(model.geometry).model_fields}
    tables["array"] = model.array
    for name, table in tables.items():
        values = table.model_dump(exclude={"source", "nominal"})
        text = ", ".join(f"{key} {value}" for key, value in values.items())
        yield name, text, "nominal" if table.nominal else "", table.source


def _tissues(model: Model) -> Iterator[tuple[str, str, str, str]]:
    for name, tissue in model.tissues.items():
        x, _, z = tissue.principal_S_per_m
        text = f"{x:g}" if x == z else f"{z:g} along, {x:g} across"
        yield name, text, "nominal" if tissue.nominal else "", tissue.source


def _choices(model: Model) -> Iterator[tuple[str, str]]:
    device = model.device
    yield "device", f"{device.name}, {len(device.contacts)} contacts: {device.description}"
    for name in ("contacts", "boundary", "drive", "region", "measure", "solver", "configurations"):
        yield from _flat(name, getattr(model, name).model_dump(mode="json", exclude_none=True))


def _flat(key: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield dotted keys with their values as text; empty lists and tables say nothing."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(f"{key}.{name}", inner)
    elif isinstance(value, list):
        if value:
            yield key, ", ".join(map(str, value))
    elif value != "":
        yield key, str(value).lower() if isinstance(value, bool) else str(value)
