"""``fieldcorr info``: what a store holds, or what a model would make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldcorr.cli._common import DEFAULT_MODEL, SetOption, open_model, show, show_table
from fieldcorr.cli.sweep import ImpedancesOption, read_calibration, show_sweep, sweep_facts
from fieldcorr.errors import StoreError

if TYPE_CHECKING:
    from fieldcorr.model import Model
    from fieldcorr.store import Store

SIGNATURE = b"\x89HDF\r\n\x1a\n"


def command(
    subject: Annotated[
        str,
        typer.Argument(
            metavar="STORE|MODEL", help="A store, a sweep, a model file or a bundled model."
        ),
    ] = DEFAULT_MODEL,
    changes: SetOption = None,
    impedances: ImpedancesOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a store or a sweep holds, or what a model would give.

    \b
    Examples:
      fieldcorr info my.h5
      fieldcorr info sweep.h5 --impedances measured.csv
      fieldcorr info my.toml
      fieldcorr info lumbosacral-565 --set configurations.preset=up-to-four
    """
    if impedances is not None and not is_sweep(Path(subject)):
        raise StoreError(f"{subject}: --impedances needs a sweep store")
    if is_sweep(Path(subject)):
        from fieldcorr.store.sweeps import open_sweep

        sweep = open_sweep(subject)
        calibration = read_calibration(sweep, impedances)
        if not as_json:
            show_sweep(sweep, calibration)
            return
        facts = sweep_facts(sweep, calibration)
    elif is_store(Path(subject)):
        from fieldcorr.store import open_store

        with open_store(subject) as store:
            facts = store.info
            if not as_json:
                _show_store(store, facts)
                return
    else:
        facts = model_facts(open_model(subject, changes))
        if not as_json:
            show_table(f"Model {facts['model']}", ("what", "value"), model_rows(facts), left=2)
            return
    show(json.dumps(facts, indent=1))


def is_sweep(path: Path) -> bool:
    """Tell a sweep store by its attribute."""
    from fieldcorr.store import sweeps

    return is_store(path) and sweeps.is_sweep(path)


def is_store(path: Path) -> bool:
    """Tell an HDF5 file by its first bytes, or by its name when it is no readable file."""
    try:
        with path.open("rb") as file:
            return file.read(len(SIGNATURE)) == SIGNATURE or path.suffix == ".h5"
    except OSError:
        return path.suffix == ".h5"


def model_facts(model: Model) -> dict[str, object]:
    """Return what a batch of a model would make."""
    from dataclasses import asdict

    from fieldcorr.batch.plan import plan_batch

    return {
        "model": model.name,
        "description": model.description,
        "device": model.device.name,
        "measure": model.measure.kind,
        "drive": model.drive.mode,
        **asdict(plan_batch(model)),
    }


def model_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a person wants to read about a model's batch."""
    yield "description", facts["description"]
    yield "array", f"{facts['device']}, {facts['contacts']} electrodes"
    yield "measure, drive", f"{facts['measure']}, {facts['drive']}"
    yield "all configurations", f"{facts['space']:,}"
    yield "left by the rules", f"{facts['configurations']:,}"
    if facts["table_bytes"]:
        yield "r", f"computed when asked for, from tables of {size_text(facts['table_bytes'])}"
        return
    kept = "stored" if facts["matrix"] else "too large, left out"
    yield "matrix of r", f"{size_text(facts['matrix_bytes'])} ({kept})"
    yield "neighbourhoods, r > 0", f"about {size_text(facts['neighbour_bytes'])}"


def _show_store(store: Store, facts: Mapping[str, Any]) -> None:
    show_table(str(store.path), ("what", "value"), store_rows(facts), left=2)
    counts = [(f"r > {level}", value) for level, value in facts["neighbours_per_row"].items()]
    show_table("Neighbours per configuration, on average", ("above", "number"), counts)
    show_table("Identities", ("identity", "relative error"), facts["identities"].items())
    _show_estimate(facts["error_estimate"])


def _show_estimate(estimate: Mapping[str, Any] | None) -> None:
    if estimate is None:
        show("Error of r: not estimated")
        return
    names = {"companion": "companion mesh", "order_one": "order 1 (loose bound)"}
    rows = [
        (text, values["max"], values["p99"], values["median"])
        for key, text in names.items()
        if (values := estimate[key]) is not None
    ]
    show_table("Error estimate of r, |delta r|", ("from", "largest", "99 %", "median"), rows)
    show(estimate["statement"])


def store_rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a person wants to read about a store."""
    from fieldcorr.notebook.cards import region_text

    yield "model", f"{facts['model']}, device {facts['device']}"
    yield "configurations", f"{facts['configurations']:,} of {facts['contacts']} contacts"
    yield "measure", _inline(facts["measure"])
    yield "drive", _inline(facts["drive"])
    yield "r is compared in", region_text(facts["region"])
    if facts["sweep"]:
        sweep = facts["sweep"]
        yield "r is the mean over", f"{sweep['samples']} samples of {len(sweep['keys'])} inputs"
    if facts["table_bytes"]:
        size = size_text(facts["table_bytes"])
        yield "r", f"computed when asked for, from tables of {size} in memory"
    else:
        yield "embedding", f"rank {facts['rank']}"
        yield from _told_apart(facts["diversity"])
        yield "matrix of r", "stored" if facts["matrix"] else "left out"
        limit = f", at most {facts['top_k']} per row" if facts["top_k"] else ""
        listed = f"{facts['neighbours_stored']:,}, r > {facts['threshold']:g}{limit}"
        yield "neighbourhoods", listed
    low, high = facts["bipole_ohm"]
    yield "bipoles", f"{low:.0f} to {high:.0f} ohm between two contacts, the others off"
    yield "fields", "stored" if facts["fields"] else "left out (slim)"
    yield "solver", _inline(facts["solver"])
    yield "largest residual", f"{facts['largest_residual']:.1e}"
    yield "size", f"{size_text(facts['size_bytes'])}, format {facts['format']}"
    yield "made", f"{facts['run'].get('created', 'unknown')}, {_inline(facts['versions'])}"
    yield "hash", facts["hash"]


def _told_apart(diversity: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield how much r tells apart: little if the dimension is small and mirrors have a large r."""
    yield "effective dimension", f"{diversity['dimension']:.2f} (participation ratio)"
    if diversity["mirrors"]:
        median, least = diversity["mirror_median"], diversity["mirror_least"]
        yield "r of left and right", f"{median:.2f} in the median of mirrors, {least:.2f} at least"


def _inline(values: Mapping[str, object]) -> str:
    shown = {key: value for key, value in values.items() if value is not None}
    return ", ".join(f"{key} {_plain(value)}" for key, value in shown.items())


def _plain(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def size_text(size: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
