"""``fieldcorr mesh``: build the mesh of a model, or check and convert any mesh.

The report on stdout has counts, volumes, areas and quality.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fieldcorr.cli._common import DEFAULT_MODEL, SetOption, note, open_model, show, show_table
from fieldcorr.errors import MeshError
from fieldcorr.files import refuse_existing

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh, MeshReport
    from fieldcorr.model import Model


def command(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A model file (TOML), or the name of a bundled model.",
            show_default=DEFAULT_MODEL,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Mesh to write: .fcmesh, .msh, .vtu ..."
        ),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check this mesh instead of building one."),
    ] = None,
    changes: SetOption = None,
    rim_mm: Annotated[float | None, typer.Option(help="Edge length at the contact rims.")] = None,
    growth: Annotated[
        float | None, typer.Option(help="Growth of edges per distance from a rim.")
    ] = None,
    cord_mm: Annotated[
        float | None, typer.Option(help="Edge length in cord, CSF and dura around the array.")
    ] = None,
    end_mm: Annotated[
        float | None, typer.Option(help="Edge length in the same tissues far from the array.")
    ] = None,
    far_mm: Annotated[
        float | None, typer.Option(help="Edge length at the torso's surface.")
    ] = None,
    stretch: Annotated[
        float | None, typer.Option(help="Length over width of elements near the array (1).")
    ] = None,
    end_stretch: Annotated[
        float | None, typer.Option(help="Length over width of elements at the ends (3).")
    ] = None,
    unit: Annotated[
        Literal["m", "mm"] | None, typer.Option(help="Unit of the mesh to check (m).")
    ] = None,
    tissue_tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG=NAME", help="Tissue of a cell tag, such as 1=white. Repeatable."),
    ] = None,
    contact_tag: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TAG=NAME", help="Contact of a triangle tag, such as 17=3. Repeatable."
        ),
    ] = None,
    tag_data: Annotated[
        str | None, typer.Option(metavar="NAME", help="Cell data that holds the tags.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Build the mesh of a model, or check and convert a mesh.

    Building needs the extra "mesh" (gmsh). The meshes of the bundled model are shipped, so it is
    needed only after a change of geometry or sizes. With --check any mesh that meshio reads is
    checked; when a MODEL is named, tissues and contacts must be those of the model and lie where it
    puts them. With --output the sound mesh is written again, in m. A mesh that cannot be used gives
    one line and exit code 2.

    \b
    Examples:
      fieldcorr mesh --set geometry.cord.width_mm=9.0 --output narrow.fcmesh
      fieldcorr mesh my.toml --rim-mm 0.1 --cord-mm 2 --end-mm 3 --output coarse.fcmesh
      fieldcorr mesh --check my.msh --unit mm
      fieldcorr mesh my.toml --check my.vtu --tissue-tag 1=white --contact-tag 11=0 -o my.fcmesh
    """
    sizes = {
        "rim_mm": rim_mm,
        "growth": growth,
        "cord_mm": cord_mm,
        "end_mm": end_mm,
        "far_mm": far_mm,
        "stretch": stretch,
        "end_stretch": end_stretch,
    }
    chosen = {key: value for key, value in sizes.items() if value is not None}
    if output is not None:  # refused before minutes are spent on it
        inputs = [Path(path) for path in (model, check) if path]
        refuse_existing(output, error=MeshError, force=force, inputs=inputs)
    if check is None:
        if output is None:
            raise MeshError("--output FILE is needed: where to write the mesh")
        mesh, report = _build(open_model(model or DEFAULT_MODEL, changes), chosen, output)
    else:
        if chosen:
            raise MeshError(f"--{next(iter(chosen)).replace('_', '-')} has no effect with --check")
        reading = {
            "unit": unit,
            "tissue_names": _tag_names(tissue_tag, "--tissue-tag"),
            "facet_names": _tag_names(contact_tag, "--contact-tag"),
            "tag_data": tag_data,
        }
        is_of_model = model is not None or changes
        wanted = open_model(model or DEFAULT_MODEL, changes) if is_of_model else None
        mesh, report = _check(check, wanted, reading)
    if output is not None:
        from fieldcorr.mesh import write_mesh

        write_mesh(mesh, output, force=force)
    _show_report(mesh, report, output or check)


def _build(model: Model, sizes: Mapping[str, float], output: Path) -> tuple[Mesh, MeshReport]:
    from fieldcorr.mesh import MeshSizes, build_mesh, check_mesh

    start = time.perf_counter()
    mesh = build_mesh(model, sizes=MeshSizes.of(model.mesh.sizes, **sizes))
    report = check_mesh(mesh, tissues=tuple(model.tissues), name=str(output))
    note(f"built in {time.perf_counter() - start:.1f} s")
    return mesh, report


def _check(path: Path, model: Model | None, reading: Mapping[str, Any]) -> tuple[Mesh, MeshReport]:
    from fieldcorr.mesh import check_mesh, check_mesh_of_model, measure_mesh, read_mesh

    mesh = read_mesh(path, **reading)
    if model is None:
        return mesh, check_mesh(mesh, name=str(path))
    check_mesh_of_model(model, mesh, name=str(path))
    return mesh, measure_mesh(mesh)


def _tag_names(options: list[str] | None, flag: str) -> dict[str, str]:
    pairs = {}
    for option in options or []:
        tag, equals, name = option.partition("=")
        if not (tag and equals and name):
            raise MeshError(f'{flag} "{option}": must be TAG=NAME, such as 1=white')
        pairs[tag] = name
    return pairs


def _show_report(mesh: Mesh, report: MeshReport, path: Path | None) -> None:
    size, edge = report.size, report.edge
    low, high = report.dihedral_degree
    worst, percentile, median = report.radius_ratio
    show(f"{path}: sound")
    show(f"hash {mesh.hash}")
    show(f"{report.n_cells} tetrahedra, {report.n_points} nodes")
    show(f"size {' x '.join(f'{1e3 * extent:.4g}' for extent in size)} mm")
    show(f"edges {1e3 * edge[0]:.3g} to {1e3 * edge[1]:.3g} mm")
    show(f"dihedral angles {low:.1f} to {high:.1f} degrees")
    show(f"radius ratio at least {worst:.2g}, 1 % below {percentile:.2g}, median {median:.2g}")
    show_table("Tissues", ("tissue", "cells", "volume mm3"), _rows(report.tissues, 1e9))
    show_table("Facets", ("facets", "count", "area mm2"), _rows(report.facets, 1e6))
    errors = list(_volume_errors(mesh.origin.get("volume-error")))
    if errors:
        title = "Volume inside interfaces, relative error"
        show_table(title, ("interface", "flat facets", "corrected"), errors)


def _volume_errors(noted: object) -> Iterator[tuple[str, float, float]]:
    """Yield what the builder noted; a file may say anything there."""
    for name, error in noted.items() if isinstance(noted, dict) else ():
        before, after = (
            error.get(key) if isinstance(error, dict) else None for key in ("before", "after")
        )
        if name.isprintable() and isinstance(before, float) and isinstance(after, float):
            yield name, before, after


def _rows(amounts: Mapping[str, tuple[int, float]], scale: float) -> list[tuple[str, int, float]]:
    return [(name, count, scale * amount) for name, (count, amount) in amounts.items()]
