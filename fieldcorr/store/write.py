"""From arrays to a finished store.

The file is written by h5py in the work folder, always by the same calls in the same order, so that
its bytes depend neither on memory and threads nor on interruptions. The status comes last, when
everything else has reached the disk; then the file gets its name.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.cluster import Crew
from fieldcorr.errors import StoreError
from fieldcorr.files import QuietFile, writing
from fieldcorr.progress import Progress, silent
from fieldcorr.store import layout
from fieldcorr.store.blocks import Blocks, Options
from fieldcorr.store.layout import Entry, combine, digest_array, digest_block
from fieldcorr.store.work import WorkFolder

Values = Mapping[str, object]
"""Path of a dataset -> array or text."""

CHUNKS_AT_ONCE = 16
"""Chunks that one call of HDF5 gets: a fixed number, because the layout of the file follows it."""


def write_store(
    folder: WorkFolder,
    values: Values,
    *,
    options: Options | None = None,
    key: str = "",
    run: Callable[[], Mapping[str, object]] = dict,
    crew: Crew | None = None,
    progress: Progress = silent,
) -> None:
    """Build the store in its locked work folder and give it its name.

    ``values`` holds every dataset that is neither streamed nor made here; without an embedding,
    configurations are not listed and nothing is streamed. ``key`` is the code and
    versions that compute r: blocks that were left by others are made again. ``run`` is called at
    the end for the record of this run, the only bytes that differ between runs. ``crew`` makes the
    blocks of rows where it works.
    """
    chosen = options or Options()
    embedding = values.get("/correlation/embedding")
    with writing(folder.output, StoreError), kernel_threads(chosen.threads):
        blocks = None
        if embedding is not None:
            rows = np.ascontiguousarray(embedding, dtype=np.float64)
            blocks = Blocks(rows, chosen, folder.path, key=key, crew=crew)
        folder.draft.unlink(missing_ok=True)
        with QuietFile(folder.draft) as disk:
            # No cache of chunks: they are written whole, and would only be copied once more.
            with h5py.File(disk, "w", libver=("v110", "v110"), rdcc_nbytes=0) as file:
                _describe(file, layout.GROUPS[0].encoding)
                file.attrs["fieldcorr-format"] = layout.FORMAT
                file.attrs["fieldcorr-status"] = layout.STATUS_BUILDING
                digests = Writer(file, disk, folder, dict(values), blocks, chosen, progress).write()
                file.flush()
                disk.sync()
                progress("to disk", 1.0)
                _write_text(file, "/provenance/sha256", digests, 0)
                _write_text(file, "/provenance/run", run(), layout.RUN_BYTES)
                file.flush()
                disk.sync()
                file.attrs.modify("fieldcorr-status", layout.STATUS_COMPLETE)
            # HDF5 writes once more when it closes its side.
            disk.sync()
    folder.publish()


def require_space(folder: WorkFolder, need: int) -> None:
    """Refuse to begin what cannot fit on the disk."""
    free = shutil.disk_usage(folder.path).free
    if need > free:
        raise StoreError(
            f"{folder.output}: the disk is full: {need / 1e6:.0f} MB are needed, "
            f"{free / 1e6:.0f} MB are free; a higher --threshold or --top-k makes the store smaller"
        )


@dataclass(eq=False)
class Writer:
    """Writes every group and dataset but the late texts, in the order of their declaration.

    Rows of r are made, and their neighbours counted, when the matrix is written; the neighbours
    follow when their number is known.
    """

    file: h5py.File
    disk: QuietFile
    folder: WorkFolder
    values: dict[str, Any]
    blocks: Blocks | None
    options: Options
    progress: Progress

    def write(self) -> dict[str, str]:
        """Write everything and return the digest of each dataset."""
        blocks = self.blocks
        count = 0 if blocks is None else len(self.values["/correlation/embedding"])
        need = sum(np.asarray(v).nbytes for v in self.values.values() if not isinstance(v, str))
        require_space(self.folder, need + (4 * count**2 if self.options.matrix else 0))
        digests: dict[str, str] = {}
        for group in layout.GROUPS[1:]:
            if group.path == "/neighbourhoods" and blocks is not None:
                digests |= self._matrix(count, blocks)
                self.values["/neighbourhoods/indptr"] = blocks.pointers
            members = [e for e in layout.ENTRIES if e.group == group.path]
            present = [e for e in members if e.path in self.values]
            if present:
                _describe(self.file.create_group(group.path), group.encoding)
            digests |= {entry.path: self._array(entry) for entry in present}
            if group.path == "/neighbourhoods" and blocks is not None:
                digests |= self._neighbours(count, blocks)
        return digests

    def _array(self, entry: Entry) -> str:
        array = encode(entry, self.values[entry.path])
        item = _create(self.file, entry, array.shape, array.dtype)
        if array.size:
            item[...] = array
        return digest_array(entry, array)

    def _matrix(self, count: int, blocks: Blocks) -> dict[str, str]:
        """Make all rows of r, and write them if they are wanted."""
        rows = blocks.rows(self.progress)
        if self.options.matrix:
            return self._stream(["/correlation/matrix"], (count, count), ((r,) for r in rows))
        for _ in rows:
            pass
        return {}

    def _neighbours(self, count: int, blocks: Blocks) -> dict[str, str]:
        listed = int(self.values["/neighbourhoods/indptr"][-1])
        require_space(self.folder, 12 * listed)
        attributes = self.file["/neighbourhoods"].attrs
        attributes["shape"] = np.array([count, count], dtype=np.int64)
        attributes["threshold"] = np.float64(self.options.threshold)
        attributes["top-k"] = np.int64(self.options.top_k)
        self.progress("to disk", 0.0)
        names = ["/neighbourhoods/indices", "/neighbourhoods/data"]
        return self._stream(names, (listed,), blocks.neighbours(), stage="to disk")

    def _stream(
        self,
        names: list[str],
        shape: tuple[int, ...],
        parts: Iterable[tuple[NDArray[np.generic], ...]],
        *,
        stage: str = "",
    ) -> dict[str, str]:
        """Write datasets of one shape side by side, piece by piece, and digest them on the way."""
        entries = [layout.BY_PATH[name] for name in names]
        items = [_create(self.file, entry, shape, np.dtype(entry.dtype)) for entry in entries]
        width = (layout.chunk_shape(entries[0], shape) or (1,))[0]
        digests: dict[str, list[bytes]] = {name: [] for name in names}

        def write(done: int, pieces: tuple[NDArray[np.generic], ...]) -> None:
            for item, piece in zip(items, pieces, strict=True):
                item[done : done + len(piece)] = piece
            self.disk.require()

        def digest(pieces: tuple[NDArray[np.generic], ...]) -> None:
            for entry, piece in zip(entries, pieces, strict=True):
                digests[entry.path] += _digest_chunks(entry, piece, width)

        done = 0
        # A piece is written and digested while the next one is computed.
        with ThreadPoolExecutor(2) as beside:
            waiting: list[Future[None]] = []
            for pieces in recut(parts, CHUNKS_AT_ONCE * width):
                for job in waiting:
                    job.result()
                waiting = [beside.submit(write, done, pieces), beside.submit(digest, pieces)]
                done += len(pieces[0])
                if stage:
                    self.progress(stage, 0.99 * done / shape[0])
            for job in waiting:
                job.result()
        return {entry.path: combine(entry, shape, digests[entry.path]) for entry in entries}


def _digest_chunks(entry: Entry, piece: NDArray[np.generic], width: int) -> list[bytes]:
    return [digest_block(entry, piece[k : k + width]) for k in range(0, len(piece), width)]


def recut(
    parts: Iterable[tuple[NDArray[np.generic], ...]], size: int
) -> Iterator[tuple[NDArray[np.generic], ...]]:
    """Regroup arrays that come in parts into pieces of ``size`` rows; the last may be shorter.

    A part may be overwritten when the next but one is asked for: what has to wait is copied.
    """
    waiting: list[tuple[NDArray[np.generic], ...]] = []
    held = 0
    for part in parts:
        start, length = 0, len(part[0])
        while held + length - start >= size:
            stop = start + size - held
            yield _joined([*waiting, tuple(array[start:stop] for array in part)])
            waiting, held, start = [], 0, stop
        if start < length:
            waiting.append(tuple(array[start:].copy() for array in part))
            held += length - start
    if waiting:
        yield _joined(waiting)


def _joined(parts: list[tuple[NDArray[np.generic], ...]]) -> tuple[NDArray[np.generic], ...]:
    return parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))


def encode(entry: Entry, value: Any) -> NDArray[np.generic]:
    """Turn a value into the array that the file holds: the declared type, text as fixed bytes."""
    if entry.dtype != layout.TEXT:
        return np.ascontiguousarray(value, dtype=entry.dtype).reshape(np.shape(value))
    texts = [str(t).encode() for t in np.atleast_1d(np.asarray(value, dtype=object))]
    kind = h5py.string_dtype("utf-8", max(1, *map(len, texts)))
    array = np.array(texts, dtype=kind)
    return array if entry.dims else array.reshape(())


def _create(
    file: h5py.File, entry: Entry, shape: tuple[int, ...], dtype: np.dtype[np.generic]
) -> h5py.Dataset:
    chunks = layout.chunk_shape(entry, shape)
    item = file.create_dataset(
        entry.path, shape, dtype, chunks=chunks, fletcher32=chunks is not None, track_times=False
    )
    _describe(item, entry.encoding)
    return item


def _write_text(file: h5py.File, path: str, record: Mapping[str, object], room: int) -> None:
    entry = layout.BY_PATH[path]
    text = encode(entry, json.dumps(record, sort_keys=True).ljust(room))
    _create(file, entry, (), text.dtype)[...] = text


def _describe(item: h5py.HLObject, encoding: tuple[str, str]) -> None:
    """Set the two attributes by which anndata knows an element."""
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding
