"""From arrays to a finished store.

The file is written by h5py in the work folder, always by the same calls in the same order, so that
its bytes depend neither on memory and threads nor on interruptions. The status comes last, when
everything else has reached the disk; then the file gets its name.
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.errors import StoreError
from fieldcorr.progress import Progress, silent
from fieldcorr.store import layout
from fieldcorr.store.blocks import Blocks, Options
from fieldcorr.store.digest import combine, digest_array, digest_block
from fieldcorr.store.disk import QuietFile, storage_errors
from fieldcorr.store.layout import Entry
from fieldcorr.store.work import WorkFolder

Values = Mapping[str, Any]
"""Path of a dataset -> array or text."""

CHUNKS_AT_ONCE = 16
"""Chunks that one call of HDF5 gets: a fixed number, because the layout of the file follows it."""


def write_store(
    folder: WorkFolder,
    values: Values,
    *,
    options: Options | None = None,
    key: str = "",
    run: Callable[[], Mapping[str, Any]] = dict,
    progress: Progress = silent,
) -> None:
    """Build the store in its work folder and give it its name.

    Parameters
    ----------
    folder
        The locked work folder.
    values
        Every dataset that is neither streamed nor made here: path -> array or text.
    options
        How neighbourhoods and matrix are made.
    key
        Code and versions that compute r: blocks that were left by others are made again.
    run
        Called at the end for the record of this run: the only bytes that differ between runs.
    progress
        Called with the stage and the share that is done.
    """
    chosen = options or Options()
    embedding = np.ascontiguousarray(values["/correlation/embedding"], dtype=np.float64)
    with storage_errors(folder.output), kernel_threads(chosen.threads):
        blocks = Blocks(embedding, chosen, folder.path, key=key)
        pointers = blocks.make(progress)
        every = {**values, "/neighbourhoods/indptr": pointers}
        require_space(folder, every, int(pointers[-1]), chosen)
        progress("to disk", 0.0)
        write_file(folder, every, blocks, chosen, run, progress)
    folder.publish()


def require_space(folder: WorkFolder, values: Values, listed: int, options: Options) -> None:
    """Refuse to begin what cannot fit on the disk."""
    count = len(values["/correlation/embedding"])
    need = sum(np.asarray(v).nbytes for v in values.values() if not isinstance(v, str))
    need += 12 * listed + (4 * count**2 if options.matrix else 0)
    free = shutil.disk_usage(folder.path).free
    if need > free:
        raise StoreError(
            f"{folder.output}: the disk is full: {need / 1e6:.0f} MB are needed, "
            f"{free / 1e6:.0f} MB are free; a higher --threshold or --top-k makes the store smaller"
        )


def write_file(
    folder: WorkFolder,
    values: Values,
    blocks: Blocks,
    options: Options,
    run: Callable[[], Mapping[str, Any]],
    progress: Progress,
) -> None:
    """Write the draft: data, digests and run record; when they are on the disk, the status."""
    folder.draft.unlink(missing_ok=True)
    with QuietFile(folder.draft) as disk:
        # No cache of chunks: they are written whole, and would only be copied once more.
        with h5py.File(disk, "w", libver=("v110", "v110"), rdcc_nbytes=0) as file:
            _describe(file, layout.GROUPS[0].encoding)
            file.attrs["fieldcorr-format"] = layout.FORMAT
            file.attrs["fieldcorr-status"] = layout.STATUS_BUILDING
            digests = Writer(file, disk, values, blocks, options, progress).write()
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


class Writer:
    """Writes every group and dataset but the late texts, in the order of their declaration.

    Parameters
    ----------
    file, disk
        The empty HDF5 file, and the file on the disk that it writes to.
    values
        Every dataset that is not streamed.
    blocks
        Rows of r and neighbours.
    options
        Threshold and top-k for the attributes; whether there is a matrix.
    progress
        Called with the share that is done.
    """

    def __init__(
        self,
        file: h5py.File,
        disk: QuietFile,
        values: Values,
        blocks: Blocks,
        options: Options,
        progress: Progress,
    ) -> None:
        self._file = file
        self._disk = disk
        self._values = values
        self._blocks = blocks
        self._options = options
        self._progress = progress

    def write(self) -> dict[str, str]:
        """Write everything and return the digest of each dataset."""
        digests = {}
        for group in layout.GROUPS[1:]:
            members = [e for e in layout.ENTRIES if e.group == group.path and self._has(e)]
            if members:
                made = self._file.create_group(group.path)
                _describe(made, group.encoding)
            for entry in members:
                digests[entry.path] = self._stream(entry) if entry.streamed else self._array(entry)
        count = len(self._values["/correlation/embedding"])
        attributes = self._file["/neighbourhoods"].attrs
        attributes["shape"] = np.array([count, count], dtype=np.int64)
        attributes["threshold"] = np.float64(self._options.threshold)
        attributes["top-k"] = np.int64(self._options.top_k)
        return digests

    def _has(self, entry: Entry) -> bool:
        if entry.streamed:
            return entry.presence == "always" or self._options.matrix
        return entry.path in self._values

    def _array(self, entry: Entry) -> str:
        array = encode(entry, self._values[entry.path])
        item = _create(self._file, entry, array.shape, array.dtype)
        if array.size:
            item[...] = array
        return digest_array(entry, array)

    def _stream(self, entry: Entry) -> str:
        """Write a streamed dataset piece by piece, and digest it on the way."""
        count = len(self._values["/correlation/embedding"])
        matrix = entry.name == "matrix"
        listed = int(self._values["/neighbourhoods/indptr"][-1])
        shape = (count, count) if matrix else (listed,)
        item = _create(self._file, entry, shape, np.dtype(entry.dtype))
        width = (layout.chunk_shape(entry, shape) or (1,))[0]
        pieces = recut(self._blocks.parts("r" if matrix else entry.name), CHUNKS_AT_ONCE * width)
        digests: list[bytes] = []
        done = 0
        with ThreadPoolExecutor(1) as beside:
            for piece in pieces:
                job = beside.submit(_digest_chunks, entry, piece, width)
                item[done : done + len(piece)] = piece
                digests += job.result()
                self._disk.require()
                done += len(piece)
                self._progress("to disk", 0.99 * done / shape[0])
        return combine(entry, shape, digests)


def _digest_chunks(entry: Entry, piece: NDArray[Any], width: int) -> list[bytes]:
    return [digest_block(entry, piece[k : k + width]) for k in range(0, len(piece), width)]


def recut(arrays: Iterable[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Cut a sequence of arrays anew, into pieces of ``size`` rows; only the last may be shorter."""
    waiting: list[NDArray[Any]] = []
    for array in arrays:
        rest = array
        missing = size - sum(map(len, waiting))
        while len(rest) >= missing:
            yield _joined([*waiting, rest[:missing]])
            waiting, rest, missing = [], rest[missing:], size
        if len(rest):
            waiting.append(rest)
    if waiting:
        yield _joined(waiting)


def _joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def encode(entry: Entry, value: Any) -> NDArray[Any]:
    """Turn a value into the array that the file holds: the declared type, text as fixed bytes."""
    if entry.dtype != layout.TEXT:
        return np.ascontiguousarray(value, dtype=entry.dtype).reshape(np.shape(value))
    texts = [str(t).encode() for t in np.atleast_1d(np.asarray(value, dtype=object))]
    kind = h5py.string_dtype("utf-8", max(1, *map(len, texts)))
    array = np.array(texts, dtype=kind)
    return array if entry.dims else array.reshape(())


def _create(
    file: h5py.File, entry: Entry, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> h5py.Dataset:
    chunks = layout.chunk_shape(entry, shape)
    item = file.create_dataset(
        entry.path, shape, dtype, chunks=chunks, fletcher32=chunks is not None, track_times=False
    )
    _describe(item, entry.encoding)
    return item


def _write_text(file: h5py.File, path: str, record: Mapping[str, Any], room: int) -> None:
    entry = layout.BY_PATH[path]
    text = encode(entry, json.dumps(record, sort_keys=True).ljust(room))
    _create(file, entry, (), text.dtype)[...] = text


def _describe(item: h5py.HLObject, encoding: tuple[str, str]) -> None:
    """Set the two attributes by which anndata knows an element."""
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding
