"""``fieldcorr sweep``: how sure r is, given what is not known exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldcorr.cli._common import (
    CacheOption,
    DaskOption,
    ThreadsOption,
    note,
    progress,
    show,
    show_table,
)

if TYPE_CHECKING:
    from fieldcorr.store.sweeps import SweepStore
    from fieldcorr.sweep.calibration import Calibration

ImpedancesOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Measured impedances: a CSV with the columns configuration and ohm, or a .toml with "
        "[stimulator], as a model. Samples that fit them count more.",
    ),
]

WORDS = {
    "spread_rms": "standard deviation of r, rms over pairs",
    "spread_p99": "... of 99 % of the pairs below",
    "spread_max": "... largest",
    "from_nominal_rms": "r of a sample from the model's own, rms",
    "from_nominal_p99": "... of 99 % below",
    "from_nominal_max": "... largest",
    "mean_from_nominal_max": "mean of r from the model's own, largest",
    "kept_mean": "share of the ten nearest neighbours kept, on average",
    "kept_least": "... in the sample that keeps fewest",
}


def command(
    sweep: Annotated[
        str,
        typer.Argument(
            metavar="SWEEP.toml", help='A sweep file, or "default" for the bundled distributions.'
        ),
    ] = "default",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="SWEEP.h5", help="What to write.")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(min=2, help="How many samples, in place of the file's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="In place of the file's.")] = None,
    dask: DaskOption = None,
    threads: ThreadsOption = None,
    cache: CacheOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Solve a model many times, with values drawn from what is not known exactly.

    The sweep file names keys of the model and their distributions. Samples of other shapes get
    meshes of their own (needs gmsh, extra "mesh"), with the sizes of a companion mesh; an
    interrupted sweep goes on where it stopped. What comes out says how far r moves, which inputs
    move it and which neighbours stay, and "fieldcorr precompute --sweep" makes a store of it.

    \b
    Examples:
      fieldcorr sweep --output sweep.h5
      fieldcorr sweep my-sweep.toml --output sweep.h5 --dask local
      fieldcorr info sweep.h5
      fieldcorr precompute --sweep sweep.h5 --output sure.h5
    """
    if output is None:
        raise typer.BadParameter("is needed", param_hint="--output")
    from fieldcorr.sweep import load_sweep, run_sweep

    changes = {"samples": samples, "seed": seed}
    chosen = load_sweep(
        sweep, **{key: value for key, value in changes.items() if value is not None}
    )
    with progress() as report:
        made = run_sweep(
            chosen,
            output,
            force=force,
            threads=threads,
            cache=cache,
            dask=dask,
            progress=report,
        )
    show_sweep(made)
    note("\nNext:")
    note(f"  fieldcorr precompute --sweep {output} --output sure.h5")


def read_calibration(sweep: SweepStore, table: Path | None) -> Calibration | None:
    """Return the weights that measured impedances give the samples, if there are any."""
    if table is None:
        return None
    from fieldcorr.sweep.calibration import calibrate, read_measurements

    return calibrate(sweep, read_measurements(table, sweep.contact_names))


def sweep_facts(sweep: SweepStore, calibration: Calibration | None = None) -> dict[str, Any]:
    """Return what a sweep says, as plain values."""
    from fieldcorr.drive import bipole_impedances
    from fieldcorr.sweep.analysis import summarise, variance_shares

    weight = None if calibration is None else calibration.weight
    pairs = [bipole_impedances(y)[0, 1:].mean() for y in sweep.admittance]
    facts = {
        "path": str(sweep.path),
        "hash": sweep.hash,
        "samples": len(sweep),
        "configurations": len(sweep.polarity),
        "origin": sweep.origin,
        "run": sweep.run,
        "bipole_ohm": [float(min(pairs)), float(max(pairs))],
        "summary": asdict(summarise(sweep, weight=weight)),
        "variance_shares": variance_shares(sweep, weight=weight),
    }
    if calibration is not None:
        shrunk = dict(calibration.shrunk)
        said = {"effective_samples": calibration.size, "statement": calibration.statement}
        facts["calibration"] = {**said, "narrowed": shrunk}
    return facts


def show_sweep(sweep: SweepStore, calibration: Calibration | None = None) -> None:
    """Print what a sweep says."""
    facts = sweep_facts(sweep, calibration)
    tried, lost = facts["origin"]["points_tried"], facts["origin"]["points_given_up"]
    inputs = "1 input" if len(sweep.keys) == 1 else f"{len(sweep.keys)} inputs"
    show(
        f"{sweep.path}: {len(sweep)} samples over {inputs}, "
        f"{facts['configurations']:,} configurations"
    )
    if lost:
        share = 100.0 * lost / tried
        show(f"{lost} of {tried} points ({share:.0f} %) could not be built and were replaced")
        show(f"the first: {_first_failure(sweep)}")
    low, high = facts["bipole_ohm"]
    show(f"bipoles of contact {sweep.contact_names[0]}: {low:.0f} to {high:.0f} ohm on average")
    rows = [(WORDS[key], value) for key, value in facts["summary"].items()]
    show_table("How far r moves", ("what", "value"), rows)
    shares = [(key, 100.0 * value) for key, value in facts["variance_shares"].items()]
    show_table("Which input moves r, alone", ("input", "% of the variance"), shares)
    if calibration is not None:
        show_calibration(facts["calibration"])


def show_calibration(said: Mapping[str, Any]) -> None:
    """Print what measured impedances say, and what they do not."""
    narrowed = [(key, 100.0 * share) for key, share in said["narrowed"].items()]
    show_table("What the impedances narrow", ("input", "% of its spread"), narrowed)
    show(said["statement"])


def _first_failure(sweep: SweepStore) -> str:
    failures = (text for record in sweep.records for text in record["failures"])
    return str(next(failures, "a point of the grid"))
