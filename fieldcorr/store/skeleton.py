"""The skeleton of a store: everything but the tiles, with room for the tiles at known places.

What flows in: the small arrays and texts, and the shapes of the streamed datasets. What flows
out: an HDF5 file whose metadata is final, and a :class:`Plan` with the byte offsets at which
tiles, digests and the status are to be written. After this step HDF5 never writes to the file
again: tiles go to their places with ``pwrite``, so that a batch killed at any point leaves a file
whose structure is whole, and the same batch always ends in the same bytes.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import StoreError
from fieldcorr.store import layout
from fieldcorr.store.digest import digest_array
from fieldcorr.store.disk import SparseFile, fsync_folder, write_text
from fieldcorr.store.layout import Entry

Values = Mapping[str, Any]
"""Path of a dataset -> array or text."""


@dataclass(frozen=True)
class Plan:
    """Where the bytes that come later belong.

    Attributes
    ----------
    chunks
        Byte offset of every chunk of every streamed dataset, in C order.
    rooms
        Offset and length of the two late texts.
    status
        Offset of the eight status bytes.
    digests
        Digest of every dataset that the skeleton already holds.
    """

    chunks: Mapping[str, NDArray[np.int64]]
    rooms: Mapping[str, tuple[int, int]]
    status: int
    digests: Mapping[str, str]


def build_skeleton(
    path: Path,
    values: Values,
    streams: Mapping[str, tuple[int, ...]],
    attributes: Mapping[str, Mapping[str, Any]],
) -> None:
    """Write the skeleton to ``path``, its side record to ``path`` + ".json".

    Parameters
    ----------
    path
        File to write; it appears under this name only when whole.
    values
        Every dataset that is neither streamed nor late.
    streams
        Shapes of the streamed datasets.
    attributes
        Further attributes of groups, by path.
    """
    draft = path.with_name(path.name + ".new")
    sparse = SparseFile(draft)
    try:
        with h5py.File(sparse, "w", libver=("v110", "v110")) as file:
            status = _start(file, sparse)
            digests = _fill(file, values, streams, attributes)
    finally:
        sparse.close()
    record = {"status": status, "digests": digests}
    write_text(path.with_name(path.name + ".json"), json.dumps(record))
    os.replace(draft, path)
    fsync_folder(path.parent)


def read_plan(path: Path) -> Plan:
    """Read the offsets back from a skeleton that :func:`build_skeleton` wrote."""
    record = json.loads(path.with_name(path.name + ".json").read_text())
    with h5py.File(path, "r", locking=False) as file:
        chunks = {
            e.path: _chunk_offsets(file[e.path])
            for e in layout.ENTRIES
            if e.streamed and e.path in file
        }
        rooms = {p: (file[p].id.get_offset(), file[p].dtype.itemsize) for p in layout.LATE}
    return Plan(chunks, rooms, record["status"], record["digests"])


def _start(file: h5py.File, sparse: SparseFile) -> int:
    """Write the status as the first thing and return where its bytes are.

    HDF5 keeps it in a heap without checksum, so that replacing the eight bytes is a complete and
    legal change of the attribute; while the file holds nothing else, they are found by looking.
    """
    _describe(file, layout.GROUPS[0].encoding)
    file.attrs["fieldcorr-format"] = layout.FORMAT
    file.attrs["fieldcorr-status"] = layout.STATUS_BUILDING
    file.flush()
    sparse.seek(0)
    content = sparse.read(1 << 16)
    marker = layout.STATUS_BUILDING.encode()
    if content.count(marker) != 1:
        raise StoreError(
            f"HDF5 {h5py.version.hdf5_version} does not keep the status where expected"
        )
    return content.index(marker)


def _fill(
    file: h5py.File,
    values: Values,
    streams: Mapping[str, tuple[int, ...]],
    attributes: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    digests = {}
    for group in layout.GROUPS[1:]:
        members = [e for e in layout.ENTRIES if e.group == group.path]
        present = [
            e for e in members if e.path in values or e.path in streams or e.path in layout.LATE
        ]
        if not present:
            continue
        parent = _create_group(file, group, attributes.get(group.path, {}))
        for entry in present:
            if entry.path in streams:
                _create(parent, entry, streams[entry.path], np.dtype(entry.dtype))
            elif entry.path in layout.LATE:
                _write(parent, entry, _room(entry))
            else:
                digests[entry.path] = _write(parent, entry, encode(entry, values[entry.path]))
    return digests


def _room(entry: Entry) -> NDArray[np.bytes_]:
    size = layout.DIGESTS_BYTES if entry.name == "sha256" else layout.RUN_BYTES
    return np.array(b" " * size, dtype=f"S{size}")


def encode(entry: Entry, value: Any) -> NDArray[Any]:
    """Turn a value into the array that the file holds: the declared type, text as fixed bytes."""
    if entry.dtype != layout.TEXT:
        return np.ascontiguousarray(value, dtype=entry.dtype).reshape(np.shape(value))
    texts = [str(t).encode() for t in np.atleast_1d(np.asarray(value, dtype=object))]
    width = max(1, *map(len, texts))
    array = np.array(texts, dtype=f"S{width}")
    return array if entry.dims else array.reshape(())


def _create_group(file: h5py.File, group: layout.Group, extra: Mapping[str, Any]) -> h5py.Group:
    made = file.create_group(group.path)
    _describe(made, group.encoding)
    for name, value in extra.items():
        made.attrs[name] = value
    return made


def _describe(item: h5py.HLObject, encoding: tuple[str, str]) -> None:
    item.attrs["encoding-type"], item.attrs["encoding-version"] = encoding


def _create(
    parent: h5py.Group, entry: Entry, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> h5py.Dataset:
    """Create a dataset with its room reserved and filled with zeros."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_obj_track_times(False)
    plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    plist.set_fill_time(h5py.h5d.FILL_TIME_ALLOC)
    chunks = layout.chunk_shape(entry, shape)
    if chunks is not None:
        plist.set_chunk(chunks)
        plist.set_fletcher32()
    kind = h5py.string_dtype("utf-8", dtype.itemsize) if dtype.kind == "S" else dtype
    space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
    identifier = h5py.h5d.create(
        parent.id, entry.name.encode(), h5py.h5t.py_create(kind, logical=True), space, dcpl=plist
    )
    dataset = h5py.Dataset(identifier)
    _describe(dataset, entry.encoding)
    return dataset


def _write(parent: h5py.Group, entry: Entry, array: NDArray[Any]) -> str:
    dataset = _create(parent, entry, array.shape, array.dtype)
    if array.size:
        # The file's own type on both sides: h5py takes bytes for ASCII, HDF5 does not convert.
        every = h5py.h5s.ALL
        dataset.id.write(every, every, array, dataset.id.get_type())
    return digest_array(entry, array)


def _chunk_offsets(dataset: h5py.Dataset) -> NDArray[np.int64]:
    """Return the byte offset of every chunk, in C order of the chunk grid."""
    if dataset.chunks is None:
        return np.empty(0, dtype=np.int64)
    found: list[tuple[tuple[int, ...], int]] = []
    dataset.id.chunk_iter(lambda info: found.append((info.chunk_offset, info.byte_offset)))
    return np.array([offset for _, offset in sorted(found)], dtype=np.int64)
