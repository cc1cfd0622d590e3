"""Rows of the store: blocks to HDF5, row reads, opening, growth with K, on random unit rows.

The peer of writing is h5py alone, which gets the finished arrays and writes the same datasets,
checksums included.
"""

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_rows import Measured, Row, Task
from bench_rows.correlation import RANK, unit_rows

K = 10_000
READS = 200
CONTACTS = 16


def rows() -> list[Row]:
    """Return the rows of this module."""
    own = _task("fieldcorr", "write_fieldcorr", repeat=3, k=K)
    alone = _task("h5py alone", "write_h5py", repeat=3, k=K)
    half = _task(f"K = {K // 2}", "write_fieldcorr", repeat=3, k=K // 2)
    read = _task("fieldcorr", "read_rows", threads=1, k=K)
    plain = _task("h5py alone", "read_rows_h5py", threads=1, k=K)
    near = _task("fieldcorr", "read_neighbours", threads=1, k=K)
    opened = _task("fieldcorr", "open_store", threads=1, k=2000)
    checked = _task("fieldcorr", "check", repeat=2, k=3600)
    return [
        Row(f"r and neighbours into HDF5, K = {K}", own, (alone,), 1 / 1.5),
        Row(f"growth of a store, K = {K}, per entry", own, (half,), 0.8, scale=4.0),
        Row(f"{READS} rows of r from HDF5, K = {K}", read, (plain,), 0.8),
        Row(f"{READS} neighbourhoods from HDF5, K = {K}", near, budget=0.5e-3 * READS, aim=1.0),
        Row("open a store, 10 times", opened, budget=0.1, aim=1.0),
        Row("check a store, K = 3600", checked, budget=5.0, aim=1.0),
    ]


def _task(name: str, prepare: str, threads: int = 2, repeat: int = 5, **arguments: object) -> Task:
    return Task(name, f"store:{prepare}", arguments, threads=threads, repeat=repeat)


def content(k: int) -> dict[str, Any]:
    """Return the small datasets of a store with k configurations and no fields."""
    rng = np.random.default_rng(3)
    settings = {"neighbourhoods": {"threshold": 0.0, "top_k": 0}}
    texts = ("device", "origin", "solver", "error_estimate")
    return {
        "/contacts/name": [str(e) for e in range(CONTACTS)],
        "/contacts/position": rng.normal(size=(CONTACTS, 3)),
        "/leadfield/points": rng.normal(size=(100, 3)),
        "/leadfield/weight": rng.random(100),
        "/leadfield/potential": rng.normal(size=(CONTACTS, 100)),
        "/leadfield/gram": np.eye(CONTACTS),
        "/leadfield/admittance": np.eye(CONTACTS) - 1.0 / CONTACTS,
        "/configurations/id": np.arange(k),
        "/configurations/polarity": np.zeros((k, CONTACTS), np.int8),
        "/configurations/current": np.zeros((k, CONTACTS)),
        "/correlation/embedding": unit_rows(k, RANK),
        "/provenance/model": "",
        "/provenance/settings": json.dumps(settings),
        **{f"/provenance/{name}": "{}" for name in texts},
    }


def make(path: Path, k: int) -> Path:
    """Write a store; an existing one is replaced."""
    from fieldcorr.store import WorkFolder, write_store

    with WorkFolder(path, force=True) as folder:
        write_store(folder, content(k))
    return path


def _scratch() -> Path:
    # The frame gives every task a process and a TMPDIR of its own, and removes both.
    return Path(tempfile.mkdtemp(prefix="fieldcorr-bench-"))


def write_fieldcorr(k: int) -> Measured:
    """Prepare writing: r, counts, neighbours, checksums, digests, fsync, move."""
    folder = _scratch()
    make(folder / "small.h5", 100)

    def run() -> Mapping[str, float]:
        path = make(folder / "store.h5", k)
        size = float(path.stat().st_size)
        path.unlink()
        return {"bytes": size}

    return run


def write_h5py(k: int) -> Measured:
    """Prepare writing finished arrays with h5py: same shapes, chunks and checksums, and fsync."""
    import h5py

    from fieldcorr.correlation.tiles import correlation_rows, neighbour_counts, neighbour_fill
    from fieldcorr.store import layout

    z = unit_rows(k, RANK)
    r = correlation_rows(z, 0, k)
    indices, data = neighbour_fill(r, 0, neighbour_counts(r, 0))
    arrays: dict[str, NDArray[Any]] = {
        "/correlation/matrix": r,
        "/neighbourhoods/indices": indices.astype(np.int64),
        "/neighbourhoods/data": data,
    }
    path = _scratch() / "plain.h5"

    def run() -> Mapping[str, float]:
        with h5py.File(path, "w") as file:
            for name, array in arrays.items():
                chunks = layout.chunk_shape(layout.BY_PATH[name], array.shape)
                file.create_dataset(name, data=array, chunks=chunks, fletcher32=True)
        with path.open("rb") as written:
            os.fsync(written.fileno())
        size = float(path.stat().st_size)
        path.unlink()
        return {"bytes": size}

    return run


def read_rows(k: int) -> Measured:
    """Prepare reading rows of r here and there."""
    from fieldcorr.store import open_store

    store = open_store(make(_scratch() / "store.h5", k))

    def run() -> Mapping[str, float]:
        total = sum(float(store.row(n * 7919 % k)[0]) for n in range(READS))
        return {"sum": total}

    return run


def read_rows_h5py(k: int) -> Measured:
    """Prepare reading the same rows with h5py alone."""
    import h5py

    matrix = h5py.File(make(_scratch() / "store.h5", k))["/correlation/matrix"]

    def run() -> Mapping[str, float]:
        return {"sum": sum(float(matrix[n * 7919 % k][0]) for n in range(READS))}

    return run


def read_neighbours(k: int) -> Measured:
    """Prepare reading neighbourhoods here and there."""
    from fieldcorr.store import open_store

    store = open_store(make(_scratch() / "store.h5", k))

    def run() -> Mapping[str, float]:
        sizes = [store.neighbours(n * 7919 % k)[0].size for n in range(READS)]
        return {"entries": float(sum(sizes))}

    return run


def open_store(k: int) -> Measured:
    """Prepare opening a store, with its verification."""
    from fieldcorr.store import open_store as opening

    path = make(_scratch() / "store.h5", k)

    def run() -> Mapping[str, float]:
        for _ in range(10):
            opening(path).close()
        return {"configurations": float(k)}

    return run


def check(k: int) -> Measured:
    """Prepare the complete check; the synthetic currents are what it finds."""
    from fieldcorr.store import check_store

    path = make(_scratch() / "store.h5", k)

    def run() -> Mapping[str, float]:
        return {"findings": float(len(check_store(path)))}

    return run
