"""The structure of a file, verified before anything is read from it.

What flows in: an open HDF5 file that nobody vouches for. What flows out: the sizes of its symbols
and the families that it holds, or a :class:`StoreError` that names what is wrong. Only types,
shapes and storage are looked at; nothing is allocated from a declared size that the file's own
size does not cover. Links that leave the file, object types, external or virtual storage and
filters other than HDF5's own checksum are refused.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import FieldcorrError, StoreError
from fieldcorr.store import layout
from fieldcorr.store.digest import digest_array
from fieldcorr.store.headers import (
    FIXED_ARRAY,
    SINGLE_CHUNK,
    Messages,
    chunk_index,
    is_self_contained,
    read_messages,
    text_attributes,
)
from fieldcorr.store.layout import Entry, Group, Sizes


@dataclass(frozen=True)
class Structure:
    """What a verified file holds."""

    version: str
    sizes: Mapping[str, int]
    families: frozenset[str]
    entries: tuple[Entry, ...]


@contextmanager
def damage_is_store_error(path: Path) -> Iterator[None]:
    """Turn whatever HDF5 raises on a damaged file into a :class:`StoreError` of one line."""
    try:
        yield
    except FieldcorrError:
        raise
    except Exception as error:
        # h5py raises OSError, RuntimeError, KeyError, ValueError, UnicodeError, ... alike.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(f"{path}: damaged or not a store: {reason}") from error


def open_file(path: Path) -> h5py.File:
    """Open a file for reading.

    With HDF5's shared lock where there is one; without where locks fail (read-only media, some
    network folders), which is safe because a store is never changed under its name.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such file")
    with damage_is_store_error(path):
        try:
            return h5py.File(path, "r")
        except OSError:
            return h5py.File(path, "r", locking=False)


def verify_structure(file: h5py.File, path: Path) -> Structure:
    """Verify groups, datasets, types, shapes, storage and the row pointers."""
    with damage_is_store_error(path), path.open("rb") as raw:
        version = _verify_root(file, raw, path)
        groups = {group.path: _open_group(file, raw, group, path) for group in layout.GROUPS[1:]}
        families = frozenset(f for f in layout.FAMILIES if _has_family(groups, f))
        entries = tuple(layout.select(families))
        sizes = Sizes()
        for entry in entries:
            _verify_dataset(groups[entry.group], raw, entry, sizes, path)
        _verify_sizes(sizes.values, path)
        _verify_pointers(file, sizes.values, path)
    return Structure(version, sizes.values, families, entries)


def _verify_root(file: h5py.File, raw: BinaryIO, path: Path) -> str:
    messages = header_of(file.id, raw)
    if not is_self_contained(messages):
        raise StoreError(f"{path}: not a store: the root group is not kept in its header")
    texts = text_attributes(raw, messages)
    if "fieldcorr-format" not in texts:
        raise StoreError(f"{path}: not a store: no text attribute fieldcorr-format")
    version = texts["fieldcorr-format"]
    if version.split(".")[0] != layout.FORMAT.split(".")[0]:
        raise StoreError(f"{path}: format {version!r} is not readable; this reads {layout.FORMAT}")
    status = texts.get("fieldcorr-status")
    if status != layout.STATUS_COMPLETE:
        raise StoreError(f"{path}: fieldcorr-status is {status!r}, not 'complete'")
    return version


def header_of(item: h5py.h5g.GroupID | h5py.h5d.DatasetID, raw: BinaryIO) -> Messages:
    """Read the header of an open object from the raw file."""
    return read_messages(raw, int(h5py.h5o.get_info(item).addr))


def number_attribute(group: h5py.Group, name: str, count: int, path: Path) -> list[float]:
    """Read a numeric attribute after looking at its type and shape."""
    attribute = group.attrs.get_id(name)
    shape = () if count == 1 else (count,)
    if attribute.shape != shape or attribute.dtype.kind not in "iuf":
        raise StoreError(f"{path}: attribute {name} of {group.name} is not {count} numbers")
    return [value.item() for value in np.atleast_1d(group.attrs[name])]


def _open_group(
    file: h5py.File, raw: BinaryIO, group: Group, path: Path
) -> h5py.h5g.GroupID | None:
    """Open a group of the file itself; None when an optional one is absent."""
    name = group.path.strip("/")
    if group.presence != "always" and not file.id.links.exists(name.encode()):
        return None
    opened = _open_member(file.id, name, path)
    if not isinstance(opened, h5py.h5g.GroupID):
        raise StoreError(f"{path}: {group.path} is not a group")
    if not is_self_contained(header_of(opened, raw)):
        raise StoreError(f"{path}: {group.path} is not kept in its header")
    for attribute in group.attributes:
        if not h5py.h5a.exists(opened, attribute.encode()):
            raise StoreError(f"{path}: {group.path} lacks the attribute {attribute}")
    return opened


def _has_family(groups: Mapping[str, h5py.h5g.GroupID | None], family: str) -> bool:
    """Tell whether any dataset of a family is there; then all must be."""
    members = (e for e in layout.ENTRIES if e.presence == family)
    return any(
        group is not None and group.links.exists(entry.name.encode())
        for entry in members
        for group in (groups[entry.group],)
    )


def _open_member(parent: h5py.h5g.GroupID | None, name: str, path: Path) -> Any:
    """Open a member of a group, refusing soft and external links."""
    encoded = name.encode()
    if parent is None or not parent.links.exists(encoded):
        raise StoreError(f"{path}: {name} is missing")
    if parent.links.get_info(encoded).type != h5py.h5l.TYPE_HARD:
        raise StoreError(f"{path}: {name} is a soft or external link")
    return h5py.h5o.open(parent, encoded)


def _verify_dataset(
    group: h5py.h5g.GroupID | None, raw: BinaryIO, entry: Entry, sizes: Sizes, path: Path
) -> None:
    # HDF5's own identifiers: the convenient layer above them costs several times as much.
    item = _open_member(group, entry.name, path)
    if not isinstance(item, h5py.h5d.DatasetID) or item.shape is None:
        raise StoreError(f"{path}: {entry.path} is not a dataset")
    if item.get_space().get_simple_extent_dims(maxdims=1) != item.shape:
        # HDF5 2.0 crashes on some that claim to grow beyond what their chunk index can hold.
        raise StoreError(f"{path}: {entry.path} is not of fixed size")
    itemsize = _verify_type(item, entry, path)
    if chunk_index(header_of(item, raw)) not in (None, SINGLE_CHUNK, FIXED_ARRAY):
        raise StoreError(f"{path}: {entry.path} has another chunk index than a fixed array")
    problem = sizes.mismatch(entry, item.shape)
    if problem:
        raise StoreError(f"{path}: {problem}")
    _verify_storage(item, entry, itemsize, path)


def _verify_type(item: h5py.h5d.DatasetID, entry: Entry, path: Path) -> int:
    """Compare the type in the file with the declared one; return its size."""
    kind = item.get_type()
    if entry.dtype == layout.TEXT:
        fits = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
    else:
        fits = kind.equal(_file_type(entry.dtype))
    if not fits:
        raise StoreError(f"{path}: {entry.path} has type {item.dtype}, not {entry.dtype}")
    return int(kind.get_size())


@cache
def _file_type(dtype: str) -> h5py.h5t.TypeID:
    return h5py.h5t.py_create(np.dtype(dtype))


def _verify_storage(item: h5py.h5d.DatasetID, entry: Entry, itemsize: int, path: Path) -> None:
    plist = item.get_create_plist()
    kind = plist.get_layout()
    if plist.get_external_count() or kind == h5py.h5d.VIRTUAL:
        raise StoreError(f"{path}: {entry.path} keeps its data outside the file")
    chunks = layout.chunk_shape(entry, item.shape)
    filters = [plist.get_filter(k)[0] for k in range(plist.get_nfilters())]
    if filters != ([] if chunks is None else [h5py.h5z.FILTER_FLETCHER32]):
        raise StoreError(f"{path}: {entry.path} has the filters {filters}")
    found = plist.get_chunk() if kind == h5py.h5d.CHUNKED else None
    if found != chunks:
        raise StoreError(f"{path}: {entry.path} has chunks {found}, not {chunks}")
    _verify_room(item, entry, layout.expected_storage(entry, item.shape, itemsize), path)


def _verify_room(item: h5py.h5d.DatasetID, entry: Entry, want: int, path: Path) -> None:
    """Compare what is declared with what is stored, and both with the size of the file."""
    size = os.path.getsize(path)
    if want > size:
        raise StoreError(
            f"{path}: {entry.path} declares {item.shape}, {want} bytes; the file has {size}"
        )
    stored = item.get_storage_size()
    if stored != want:
        raise StoreError(f"{path}: {entry.path} holds {stored} bytes instead of {want}")
    if want and item.get_create_plist().get_layout() == h5py.h5d.CONTIGUOUS:
        offset = item.get_offset()
        if offset is None or offset + want > size:
            raise StoreError(f"{path}: {entry.path} lies outside the file")


def _verify_sizes(sizes: Mapping[str, int], path: Path) -> None:
    least = {"E": 2, "K": 1, "R": 1, "N": 1}
    for symbol, minimum in least.items():
        if sizes[symbol] < minimum:
            raise StoreError(f"{path}: {symbol} is {sizes[symbol]}, at least {minimum} is needed")


def _verify_pointers(file: h5py.File, sizes: Mapping[str, int], path: Path) -> None:
    """Row pointers start at 0, never fall, end at Q, and give no row more than K - 1 entries."""
    pointers = file["/neighbourhoods/indptr"][...]
    lengths = np.diff(pointers)
    if pointers[0] != 0 or pointers[-1] != sizes["Q"] or lengths.min() < 0:
        raise StoreError(f"{path}: /neighbourhoods/indptr does not rise from 0 to {sizes['Q']}")
    if lengths.max() > sizes["K"] - 1:
        raise StoreError(f"{path}: /neighbourhoods/indptr gives a row {lengths.max()} neighbours")
    declared = number_attribute(file["/neighbourhoods"], "shape", 2, path)
    if declared != [sizes["K"], sizes["K"]]:
        raise StoreError(f"{path}: /neighbourhoods has shape {declared}, not K x K")


def read_text(item: h5py.Dataset) -> str:
    """Read a scalar text."""
    return bytes(item[()]).decode().rstrip(" ")


def read_digests(file: h5py.File, path: Path) -> dict[str, str]:
    """Read the recorded digests."""
    with damage_is_store_error(path):
        recorded = json.loads(read_text(file["/provenance/sha256"]))
    if not isinstance(recorded, dict) or not all(isinstance(v, str) for v in recorded.values()):
        raise StoreError(f"{path}: /provenance/sha256 is not a JSON object of texts")
    return recorded


def read_verified(
    item: h5py.Dataset, name: str, digests: Mapping[str, str], path: Path
) -> NDArray[Any]:
    """Read a whole dataset and compare it with its recorded digest."""
    entry = layout.BY_PATH[name]
    with damage_is_store_error(path):
        array: NDArray[Any] = item[...]
    if digest_array(entry, array) != digests.get(name):
        raise StoreError(f"{path}: {name} does not match its recorded sha256")
    array.flags.writeable = False
    return array


def encoding_of(item: h5py.HLObject, raw: BinaryIO) -> tuple[str | None, str | None]:
    """Return the two attributes by which anndata knows an element."""
    texts = text_attributes(raw, header_of(item.id, raw))
    return texts.get("encoding-type"), texts.get("encoding-version")
