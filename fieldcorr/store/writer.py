"""From arrays to a finished store.

What flows in: the small arrays and texts of a store, its embedding, and a locked work folder. What
flows out: the file under its name. The order is: skeleton, tiles, digests, run record, status,
move; whatever is already there from an interrupted run of the same inputs is verified and kept.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.errors import StoreError
from fieldcorr.store import layout
from fieldcorr.store.chunks import ChunkedFile
from fieldcorr.store.disk import Flusher, fsync_folder, write_all
from fieldcorr.store.skeleton import Values, build_skeleton, read_plan
from fieldcorr.store.stream import Neighbourhoods, TileWriter, count_all, tile_rows
from fieldcorr.store.work import WorkFolder, storage_errors

Progress = Callable[[str, float], None]

DEFAULT_MEMORY = 1 << 30


@dataclass(frozen=True)
class Options:
    """How neighbourhoods and matrix are made.

    Attributes
    ----------
    threshold
        Neighbours have r above it.
    top_k
        At most so many neighbours per row; 0 for all.
    matrix
        Whether the K x K matrix is stored.
    memory
        Bytes for tiles; changes nothing in the file.
    threads
        Threads; None for all. Changes nothing in the file.
    """

    threshold: float = 0.0
    top_k: int = 0
    matrix: bool = True
    memory: int = DEFAULT_MEMORY
    threads: int | None = None


def silent(stage: str, done: float) -> None:
    """Report nothing."""


def write_store(
    folder: WorkFolder,
    values: Values,
    *,
    options: Options | None = None,
    run: Callable[[], Mapping[str, Any]] = dict,
    progress: Progress = silent,
) -> None:
    """Build the store in its work folder and give it its name.

    Parameters
    ----------
    folder
        Locked; :meth:`WorkFolder.claim` decides whether what it holds may be used.
    values
        Every dataset that is neither streamed nor made here: path -> array or text.
    options
        How neighbourhoods and matrix are made.
    run
        Called at the end for the record of this run: the only bytes that differ between runs.
    progress
        Called with the stage and the share that is done.
    """
    chosen = options or Options()
    with storage_errors(folder.output), kernel_threads(chosen.threads) as count:
        with ThreadPoolExecutor(count) as pool:
            digests = _build(folder, values, chosen, pool, progress)
        progress("to disk", 0.0)
        _sync(folder)
        progress("to disk", 1.0)
        _complete(folder, digests, run)
    folder.publish()


def _build(
    folder: WorkFolder,
    values: Values,
    options: Options,
    pool: ThreadPoolExecutor,
    progress: Progress,
) -> dict[str, str]:
    """Make skeleton and tiles; return the digests of the streamed datasets."""
    embedding: NDArray[np.float64] = np.ascontiguousarray(values["/correlation/embedding"])
    rule = Neighbourhoods(
        embedding,
        threshold=options.threshold,
        top_k=options.top_k,
        rows=tile_rows(len(embedding), options.memory),
    )
    progress("neighbours", 0.0)
    pointers = count_all(
        rule, folder.path / "counts.bin", pool, lambda done: progress("neighbours", done)
    )
    streams = stream_shapes(len(embedding), int(pointers[-1]), matrix=options.matrix)
    progress("neighbours", 1.0)
    progress("correlation", 0.0)
    if not folder.draft.exists():
        require_space(folder, values, streams)
        every = {**values, "/neighbourhoods/indptr": pointers}
        build_skeleton(folder.draft, every, streams, {"/neighbourhoods": _csr(embedding, options)})
    with open_chunks(folder, streams) as (fd, files), Flusher(fd) as flusher:
        for file in files.values():
            file.verify(pool)

        def report(done: float) -> None:
            flusher.nudge()
            progress("correlation", done)

        TileWriter(
            rule,
            pointers,
            matrix=files.get("/correlation/matrix"),
            indices=files["/neighbourhoods/indices"],
            data=files["/neighbourhoods/data"],
            pool=pool,
        ).run(report)
        return {path: file.digest() for path, file in files.items()}


def stream_shapes(count: int, nnz: int, *, matrix: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the streamed datasets."""
    shapes: dict[str, tuple[int, ...]] = {
        "/neighbourhoods/indices": (nnz,),
        "/neighbourhoods/data": (nnz,),
    }
    if matrix:
        shapes["/correlation/matrix"] = (count, count)
    return shapes


def _csr(embedding: NDArray[np.float64], options: Options) -> dict[str, Any]:
    return {
        "shape": np.array([len(embedding), len(embedding)], dtype=np.int64),
        "threshold": np.float64(options.threshold),
        "top-k": np.int64(options.top_k),
    }


def require_space(
    folder: WorkFolder, values: Values, streams: Mapping[str, tuple[int, ...]]
) -> None:
    """Refuse to begin what cannot fit on the disk."""
    need = sum(np.asarray(v).nbytes for v in values.values() if not isinstance(v, str))
    for path, shape in streams.items():
        entry = layout.BY_PATH[path]
        need += layout.expected_storage(entry, shape, np.dtype(entry.dtype).itemsize)
    free = shutil.disk_usage(folder.path).free
    if need > free:
        raise StoreError(
            f"{folder.output}: the disk is full: {need / 1e6:.0f} MB are needed, "
            f"{free / 1e6:.0f} MB are free; a higher --threshold or --top-k makes the store smaller"
        )


@contextmanager
def open_chunks(
    folder: WorkFolder, streams: Mapping[str, tuple[int, ...]]
) -> Iterator[tuple[int, dict[str, ChunkedFile]]]:
    """Open the draft and its streamed datasets for writing."""
    plan = read_plan(folder.draft)
    fd = os.open(folder.draft, os.O_RDWR)
    files = {
        path: ChunkedFile(fd, layout.BY_PATH[path], shape, plan.chunks[path], _record(folder, path))
        for path, shape in streams.items()
    }
    try:
        yield fd, files
    finally:
        for file in files.values():
            file.close()
        os.close(fd)


def _record(folder: WorkFolder, path: str) -> Any:
    return folder.path / (path.strip("/").replace("/", "-") + ".sha256")


def _sync(folder: WorkFolder) -> None:
    """Bring the tiles to the disk: what takes long is done before the time is recorded."""
    fd = os.open(folder.draft, os.O_RDWR)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _complete(
    folder: WorkFolder, digests: Mapping[str, str], run: Callable[[], Mapping[str, Any]]
) -> None:
    """Write digests and run record, then, when they are on the disk, the status."""
    plan = read_plan(folder.draft)
    fd = os.open(folder.draft, os.O_RDWR)
    try:
        _write_room(fd, plan.rooms["/provenance/sha256"], {**plan.digests, **digests})
        _write_room(fd, plan.rooms["/provenance/run"], run())
        os.fsync(fd)
        write_all(fd, layout.STATUS_COMPLETE.encode(), plan.status)
        os.fsync(fd)
    finally:
        os.close(fd)
    fsync_folder(folder.path)


def _write_room(fd: int, room: tuple[int, int], record: Mapping[str, Any]) -> None:
    offset, size = room
    text = json.dumps(record, sort_keys=True).encode()
    if len(text) > size:
        raise StoreError(f"a record of {len(text)} bytes does not fit into {size}")
    write_all(fd, text.ljust(size), offset)
