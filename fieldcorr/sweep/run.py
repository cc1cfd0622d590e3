"""The sweep as a whole: samples, one task each, and the file that holds what they found.

Finished samples are kept in the work folder beside the output, so that a sweep that was interrupted
goes on from there. Where and in which order tasks run changes nothing in the result.
"""

import hashlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.batch.cache import Cache, default_folder, field_code_hash, versions
from fieldcorr.batch.plan import contacts_of
from fieldcorr.cluster import Crew, workers
from fieldcorr.configurations.rules import count, enumerate_configurations
from fieldcorr.errors import ModelError
from fieldcorr.progress import Progress, silent
from fieldcorr.store.sweeps import SweepStore, open_sweep, write_sweep
from fieldcorr.store.work import WorkFolder
from fieldcorr.sweep.design import points
from fieldcorr.sweep.file import Sweep, load_sweep
from fieldcorr.sweep.solve import SolvedSample, nominal_circuit, solve_sample

MOST_CONFIGURATIONS = 200_000
"""More configurations than this cannot be swept: r of every sample is looked at."""


def run_sweep(
    sweep: Sweep | str | Path,
    output: str | Path,
    *,
    force: bool = False,
    threads: int | None = None,
    cache: Path | None = None,
    dask: str | None = None,
    progress: Progress = silent,
) -> SweepStore:
    """Solve all samples of a sweep, write its store and open it.

    Parameters
    ----------
    sweep
        A sweep, or the path of a sweep file, or "default".
    output
        The sweep store to be written; an existing one is refused unless ``force``.
    threads
        Threads, or processes with ``dask="local"``; None for all. The result does not depend on it.
    cache
        Folder of built meshes; by default that of the user.
    dask
        Where samples are solved: None here, "local" in new processes, or a scheduler's address.
    progress
        Called with (stage, share done).
    """
    chosen = sweep if isinstance(sweep, Sweep) else load_sweep(sweep)
    contacts = contacts_of(chosen.model)
    total = count(chosen.model.rules, contacts)
    if total > MOST_CONFIGURATIONS:
        raise ModelError(
            f"{chosen.path}: the rules leave {total:,} configurations, of which a sweep takes at "
            f"most {MOST_CONFIGURATIONS:,}; set active_max or another preset in the model"
        )
    began = time.perf_counter()
    with WorkFolder(Path(output), force=force) as folder:
        with kernel_threads(threads), workers(dask, count=threads, progress=progress) as crew:
            circuits = list(_circuits(chosen, Cache(folder.fields), cache, crew, progress))
        nominal, *samples = circuits
        found = [sample for sample in samples if sample is not None]
        if nominal is None or len(found) < 2:
            raise ModelError(f"{chosen.path}: fewer than two samples of the grid can be built")
        values = {
            "/contacts/name": chosen.model.electrode_names,
            "/configurations/polarity": enumerate_configurations(chosen.model.rules, contacts),
            **_content(chosen, nominal, found, dropped=len(samples) - len(found)),
        }
        run = {
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - began, 3),
        }
        write_sweep(folder.output, values, run=run, force=force)
        folder.clear()
    return open_sweep(output)


def _circuits(
    sweep: Sweep,
    done: Cache,
    cache: Path | None,
    crew: Crew,
    progress: Progress,
) -> Iterator[SolvedSample | None]:
    """Yield the circuit of the model itself, then those of the samples; None: cannot be built."""
    firsts = points(sweep)
    keys = [_key(sweep, number) for number in range(-1, len(firsts))]
    left = [place for place, key in enumerate(keys) if done.load(key) is None]
    progress("samples", 1.0 - len(left) / len(keys))
    tasks = [(sweep, place - 1, None if place == 0 else firsts[place - 1], cache) for place in left]
    for finished, (number, arrays) in enumerate(crew.results(task, tasks), start=1):
        done.save(keys[left[number]], arrays)
        progress("samples", 1.0 - (len(left) - finished) / len(keys))
    for key in keys:
        kept = done.load(key)
        if kept is None:
            raise ModelError(f"{sweep.path}: a finished sample was removed from the work folder")
        yield SolvedSample.of(kept) if kept else None


def task(sweep: Sweep, number: int, first: Any, cache: Path | None) -> dict[str, Any]:
    """Solve one sample, or the model itself for number -1; what a worker does.

    Returns the circuit as arrays; none for a point of a grid that cannot be built.
    """
    meshes = Cache(cache or default_folder())
    if number < 0:
        return nominal_circuit(sweep, meshes).arrays()
    circuit = solve_sample(sweep, number, first, meshes)
    return {} if circuit is None else circuit.arrays()


def _key(sweep: Sweep, number: int) -> str:
    """Return the name of a finished sample in the work folder."""
    text = f"{sweep.hash} {number} {field_code_hash()}"
    return hashlib.sha256(text.encode()).hexdigest()


def _content(
    sweep: Sweep, nominal: SolvedSample, samples: list[SolvedSample], *, dropped: int
) -> dict[str, object]:
    def dumped(value: object) -> str:
        return json.dumps(value, sort_keys=True)

    given_up = sum(len(sample.record["failures"]) for sample in samples) + dropped
    laws = [law.model_dump(mode="json", exclude_none=True) for law in sweep.vary.values()]
    return {
        "/inputs/key": sweep.keys,
        "/inputs/law": [dumped(law) for law in laws],
        "/samples/point": np.array([sample.point for sample in samples]),
        "/samples/gram": np.array([sample.gram for sample in samples]),
        "/samples/admittance": np.array([sample.admittance for sample in samples]),
        "/samples/record": [dumped(sample.record) for sample in samples],
        "/nominal/gram": nominal.gram,
        "/nominal/admittance": nominal.admittance,
        "/nominal/record": dumped(nominal.record),
        "/provenance/model": sweep.model.text,
        "/provenance/sweep": sweep.text,
        "/provenance/origin": dumped(
            {
                "hashes": {"model": sweep.model.hash, "sweep": sweep.hash},
                "versions": versions(),
                "method": sweep.file.method,
                "mesh": sweep.file.mesh,
                "sizes": vars(sweep.sizes),
                "points_tried": len(samples) + given_up,
                "points_given_up": given_up,
            }
        ),
    }
