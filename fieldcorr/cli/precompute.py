"""``fieldcorr precompute``: the whole batch, from a model file to a store."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldcorr.cli._common import (
    DEFAULT_MODEL,
    CacheOption,
    DaskOption,
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
from fieldcorr.cli.info import model_facts, model_rows, size_text
from fieldcorr.cli.sweep import ImpedancesOption, read_calibration
from fieldcorr.errors import StoreError

if TYPE_CHECKING:
    from fieldcorr.store import Store

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_memory(text: str) -> int:
    """Read "2G", "512MiB", "1.5GB" or a number of bytes; units are powers of 1024."""
    upper = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = upper[-1:] if upper[-1:] in "KMGT" else ""
    try:
        return int(float(upper.removesuffix(unit)) * UNITS[unit])
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(f"{text!r} is no amount of memory, such as 2G") from error


def command(
    model: ModelArgument = DEFAULT_MODEL,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="STORE.h5", help="The store to make.")
    ] = None,
    mesh: MeshOption = "standard",
    changes: SetOption = None,
    threshold: Annotated[float, typer.Option(help="Neighbours are pairs with r above this.")] = 0.0,
    top_k: Annotated[
        int, typer.Option("--top-k", min=0, help="At most this many neighbours each; 0 for all.")
    ] = 0,
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory for blocks of r, such as 2G.")
    ] = "1G",
    threads: ThreadsOption = None,
    slim: Annotated[
        bool, typer.Option("--slim", help="Leave out mesh and nodal lead fields.")
    ] = False,
    no_estimate: Annotated[
        bool, typer.Option("--no-estimate", help="Do not estimate the error of r.")
    ] = False,
    sweep: Annotated[
        Path | None,
        typer.Option(
            metavar="SWEEP.h5", help="Make r the mean over the samples of this sweep, with spread."
        ),
    ] = None,
    impedances: ImpedancesOption = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing store.")] = False,
    cache: CacheOption = None,
    dask: DaskOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count configurations and sizes; compute nothing.")
    ] = False,
) -> None:
    """Compute fields and correlations, and write them to a store.

    An interrupted batch goes on where it stopped when the same command is given again. Solved
    fields are kept, so that changed rules or thresholds do not solve again.

    \b
    Examples:
      fieldcorr precompute --output my.h5
      fieldcorr precompute my.toml --output my.h5 --memory 2G
      fieldcorr precompute --output my.h5 --set configurations.preset=up-to-two --force
      fieldcorr precompute --output big.h5 --set configurations.preset=up-to-four --threshold 0.9
      fieldcorr precompute big.toml --output big.h5 --top-k 64 --dask tcp://head-node:8786
      fieldcorr precompute --sweep sweep.h5 --impedances measured.csv --output sure.h5
      fieldcorr precompute my.toml --dry-run
    """
    chosen = open_model(model, changes)
    if dry_run:
        facts = model_facts(chosen)
        show_table(f"Model {facts['model']}", ("what", "value"), model_rows(facts), left=2)
        return
    if output is None:
        raise typer.BadParameter("is needed", param_hint="--output")
    from fieldcorr.batch.run import precompute

    samples, weight = _samples(sweep, impedances)
    started = time.perf_counter()
    with progress() as report:
        store = precompute(
            chosen,
            output,
            mesh=mesh,
            threshold=threshold,
            top_k=top_k,
            memory=parse_memory(memory),
            threads=threads,
            force=force,
            slim=slim,
            estimate=not no_estimate,
            sweep=samples,
            weight=weight,
            cache=cache,
            dask=dask,
            progress=report,
        )
    with store:
        _summarise(store, time.perf_counter() - started)


def _samples(sweep: Path | None, impedances: Path | None) -> tuple[Any, Any]:
    """Open a sweep and weight its samples by measured impedances; None for what is not given."""
    if sweep is None:
        if impedances is not None:
            raise StoreError(f"--impedances {impedances}: needs --sweep, whose samples it weights")
        return None, None
    from fieldcorr.store.sweeps import open_sweep

    samples = open_sweep(sweep)
    calibration = read_calibration(samples, impedances)
    if calibration is None:
        return samples, None
    show(calibration.statement)
    return samples, calibration.weight


def _summarise(store: Store, seconds: float) -> None:
    times = store.record("run")["seconds"]
    show_table("Time", ("stage", "seconds"), times.items())
    estimate = store.record("error_estimate")
    if estimate and estimate["companion"]:
        found = estimate["companion"]
        show(
            f"r is uncertain by about {found['max']:.1e} at most, {found['median']:.0e} in the "
            "median (mesh alone)"
        )
    size = size_text(store.path.stat().st_size)
    show(f"{store.path}: {len(store):,} configurations, {size}, {seconds:.1f} s")
    note("\nNext:")
    note(f"  fieldcorr info {store.path}")
    note(f"  fieldcorr check {store.path}")
    note(f"  fieldcorr duel new session.journal {store.path} --horizon 200")
    note(f"  fieldcorr simulate store {store.path}")
