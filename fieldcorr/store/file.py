"""A finished store as a verified file.

Nobody vouches for the file. Opening it verifies groups, types, shapes and storage; data are
compared with their recorded digests when they are read whole. Only what the format declares is
looked at, and nothing is followed or loaded from outside the file. How HDF5 keeps the data
(chunks, compression, checksums) is free, so that a copy made by h5py or h5repack is a store too.

HDF5's own reading of its metadata is trusted here: a parser of our own in front of it would refuse
such copies, and would have to know as much as HDF5 does. Who does not trust a file asks
``fieldcorr check``, which looks in a process of its own.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from math import prod
from pathlib import Path
from types import EllipsisType
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import StoreError
from fieldcorr.files import Closing
from fieldcorr.store import layout
from fieldcorr.store.layout import Entry, Group, Symbols

FILTERS = {
    h5py.h5z.FILTER_DEFLATE,
    h5py.h5z.FILTER_SHUFFLE,
    h5py.h5z.FILTER_FLETCHER32,
    h5py.h5z.FILTER_SZIP,
    h5py.h5z.FILTER_LZF,
}
"""Filters that come with h5py; HDF5 would load any other as code from elsewhere."""

MOST_COMPRESSION = 1100
"""Bytes that one stored byte can become: deflate, the best of them, reaches 1032. So the size of a
file bounds what it can make a reader allocate."""

LEAST = {"E": 2, "K": 1, "R": 1, "N": 1, "M": 1}


@contextmanager
def hdf5_errors(path: Path) -> Iterator[None]:
    """Turn what h5py raises on a damaged file into a :class:`StoreError` of one line.

    Only calls of h5py belong inside: the same exceptions from elsewhere are mistakes of ours.
    """
    try:
        yield
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise StoreError(f"{path}: damaged or not a store: {reason}") from error
    except MemoryError as error:
        raise StoreError(f"{path}: does not fit into memory") from error


class StoreFile(Closing):
    """An open store whose structure has been verified; a context manager.

    It has the ``format``, the ``entries`` that it holds and their recorded ``digests`` by path;
    ``threshold`` and ``top_k`` (0: all) of a neighbourhood.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._datasets: dict[str, h5py.Dataset] = {}
        self._symbols = Symbols()
        self._file = open_file(path)
        try:
            self.format = self._verified_format()
            groups = {group.path: self._open_group(group) for group in layout.GROUPS}
            self.families = frozenset(f for f in layout.FAMILIES if self._has(f, groups))
            if ("rows" in self.families) == ("space" in self.families):
                raise StoreError(f"{path}: needs either /space or /configurations")
            if "sweep" in self.families and "rows" not in self.families:
                raise StoreError(f"{path}: has /sweep but no /configurations")
            self.entries = tuple(layout.select(self.families))
            for entry in self.entries:
                self._datasets[entry.path] = self._open_dataset(groups[entry.group], entry)
            self._verify_sizes()
            self.digests = self._read_digests()
            self.threshold, self.top_k = 0.0, 0
            if "rows" in self.families:
                self.threshold = float(self._number("threshold", ()))
                self.top_k = int(self._number("top-k", ()))
                self._pointers = self._verified_pointers()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; arrays already read stay valid."""
        self._file.close()

    # -- reading ----------------------------------------------------------------------------------

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Row pointers (K+1,) of the neighbourhoods."""
        self.dataset("/neighbourhoods/indptr")
        return self._pointers

    def size(self, symbol: str) -> int:
        """Return the value of a shape symbol of the format, such as "K" or "D"."""
        return self._symbols.values[symbol]

    def dataset(self, name: str) -> h5py.Dataset:
        """Return an open, verified dataset for reading in parts."""
        if not self._file:
            raise StoreError(f"{self.path}: the store is closed")
        if name not in self._datasets:
            raise StoreError(f"{self.path}: {name} is not in this store")
        return self._datasets[name]

    def part(self, name: str, rows: slice | EllipsisType) -> NDArray[Any]:
        """Read some rows of a dataset, without their digest."""
        item = self.dataset(name)
        with hdf5_errors(self.path):
            found: NDArray[np.generic] = item[rows]
        return found

    def array(self, name: str) -> NDArray[Any]:
        """Read any declared dataset whole, by its path, compared with its digest."""
        item = self.dataset(name)
        with hdf5_errors(self.path):
            array: NDArray[np.generic] = item[...]
        if layout.digest_array(layout.BY_PATH[name], array) != self.digests.get(name):
            raise StoreError(f"{self.path}: {name} does not match its recorded sha256")
        array.flags.writeable = False
        return array

    def text(self, name: str) -> str:
        """Read a text of the provenance, such as "model" or "run"."""
        path = f"/provenance/{name}"
        array = self.part(path, ...) if path in layout.LATE else self.array(path)
        return self._decoded(bytes(array[()]), path).rstrip(" ")

    def record(self, name: str) -> Any:
        """Read a JSON record of the provenance, such as "settings" or "error_estimate"."""
        return self.parsed(self.text(name), f"/provenance/{name}", layout.RECORDS.get(name, {}))

    def parsed(self, text: str, where: str, form: object) -> Any:
        """Return the value of a JSON text; raise if it is not JSON, or not of the given form."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}: {where} is no JSON: {error}") from error
        problem = layout.misfit(value, form, where)
        if problem:
            raise StoreError(f"{self.path}: {problem}")
        return value

    def _texts(self, name: str) -> list[str]:
        return [self._decoded(bytes(item), name) for item in self.array(name)]

    def _decoded(self, content: bytes, name: str) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StoreError(f"{self.path}: {name} is not UTF-8") from error

    # -- attributes and members, for the check ----------------------------------------------------

    def members(self, group: str) -> list[str]:
        """Return the names of the links of a group; none when it is not there."""
        with hdf5_errors(self.path):
            return list(self._file[group]) if group in self._file else []

    def encoding(self, name: str) -> tuple[object, object]:
        """Return the two attributes by which anndata knows an element, None if missing."""
        with hdf5_errors(self.path):
            attributes = self._file[name].attrs
            return attributes.get("encoding-type"), attributes.get("encoding-version")

    # -- opening ----------------------------------------------------------------------------------

    def _verified_format(self) -> str:
        found = {}
        for name in ("fieldcorr-format", "fieldcorr-status"):
            with hdf5_errors(self.path):
                found[name] = self._file.attrs.get(name)
        version, status = found.values()
        if not isinstance(version, str):
            raise StoreError(f"{self.path}: not a store: no text attribute fieldcorr-format")
        if version.split(".")[0] != layout.FORMAT.split(".")[0]:
            raise StoreError(
                f"{self.path}: format {version!r} is not readable; this reads {layout.FORMAT}"
            )
        if not isinstance(status, str) or status != layout.STATUS_COMPLETE:
            raise StoreError(
                f"{self.path}: fieldcorr-status is {str(status)[:40]!r}, not 'complete'"
            )
        return version

    def _has(self, family: str, groups: Mapping[str, h5py.Group | None]) -> bool:
        """Tell whether any dataset of a family is there; then all must be."""
        members = ((groups[e.group], e.name) for e in layout.ENTRIES if e.presence == family)
        return any(group is not None and self._has_link(group, name) for group, name in members)

    def _has_link(self, group: h5py.Group, name: str) -> bool:
        """Tell whether a link is there, wherever it may lead."""
        with hdf5_errors(self.path):
            return bool(group.id.links.exists(name.encode()))

    def _open_group(self, group: Group) -> h5py.Group | None:
        """Open a group of the file itself; None when an optional one is absent."""
        name = group.path.strip("/")
        if not name:
            return self._file
        if group.presence != "always" and not self._has_link(self._file, name):
            return None
        opened = self._member(self._file, name)
        if not isinstance(opened, h5py.h5g.GroupID):
            raise StoreError(f"{self.path}: {group.path} is not a group")
        return h5py.Group(opened)

    def _member(self, parent: h5py.Group, name: str) -> h5py.h5g.GroupID | h5py.h5d.DatasetID:
        """Open a member of a group, refusing soft and external links.

        Through HDF5's own identifiers: the convenient layer above them takes twice as long.
        """
        if not self._has_link(parent, name):
            raise StoreError(f"{self.path}: {name} is missing")
        with hdf5_errors(self.path):
            if parent.id.links.get_info(name.encode()).type != h5py.h5l.TYPE_HARD:
                raise StoreError(f"{self.path}: {name} is a soft or external link")
            return h5py.h5o.open(parent.id, name.encode())

    def _open_dataset(self, group: h5py.Group | None, entry: Entry) -> h5py.Dataset:
        if group is None:
            raise StoreError(f"{self.path}: {entry.path} is missing")
        item = self._member(group, entry.name)
        with hdf5_errors(self.path):
            if not isinstance(item, h5py.h5d.DatasetID) or item.shape is None:
                raise StoreError(f"{self.path}: {entry.path} is not a dataset")
            self._verify_type(item.get_type(), entry)
            problem = self._symbols.mismatch(entry, item.shape)
            if problem:
                raise StoreError(f"{self.path}: {problem}")
            self._verify_storage(item, entry)
            # Read-only, h5py prepares a dataset once and not for every read.
            return h5py.Dataset(item, readonly=True)

    def _verify_type(self, kind: h5py.h5t.TypeID, entry: Entry) -> None:
        if entry.dtype == layout.TEXT:
            fits = isinstance(kind, h5py.h5t.TypeStringID) and not kind.is_variable_str()
        else:
            fits = kind.equal(_file_type(entry.dtype))
        if not fits:
            raise StoreError(f"{self.path}: {entry.path} has another type than {entry.dtype}")

    def _verify_storage(self, item: h5py.h5d.DatasetID, entry: Entry) -> None:
        """Refuse data outside the file, code from outside, and sizes that the file cannot hold."""
        plist = item.get_create_plist()
        if plist.get_external_count() or plist.get_layout() == h5py.h5d.VIRTUAL:
            raise StoreError(f"{self.path}: {entry.path} keeps its data outside the file")
        filters = {plist.get_filter(k)[0] for k in range(plist.get_nfilters())}
        if filters - FILTERS:
            raise StoreError(f"{self.path}: {entry.path} has the filters {sorted(filters)}")
        chunk = plist.get_chunk() if plist.get_layout() == h5py.h5d.CHUNKED else ()
        size = prod(item.shape)
        need = max(size, prod(chunk) if chunk else 0) * item.get_type().get_size()
        stored = item.get_storage_size()
        compressed = filters - {h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32}
        if stored > os.path.getsize(self.path):
            raise StoreError(f"{self.path}: {entry.path} is larger than the file")
        if size and need > stored * (MOST_COMPRESSION if compressed else 1):
            raise StoreError(
                f"{self.path}: {entry.path} declares {item.shape}, {need} bytes, and holds {stored}"
            )

    def _verify_sizes(self) -> None:
        for symbol, least in LEAST.items():
            if self._symbols.values.get(symbol, least) < least:
                raise StoreError(
                    f"{self.path}: {symbol} is {self.size(symbol)}, at least {least} is needed"
                )

    def _number(self, name: str, shape: tuple[int, ...]) -> Any:
        """Read a numeric attribute of /neighbourhoods after looking at its type and shape."""
        with hdf5_errors(self.path):
            attributes = self._file["/neighbourhoods"].attrs
            found = attributes.get_id(name)
            fits = found.shape == shape and found.dtype.kind in "iuf"
            value = attributes[name] if fits else np.nan
        if not np.isfinite(value).all():
            raise StoreError(f"{self.path}: attribute {name} of /neighbourhoods is no number")
        return value

    def _read_digests(self) -> Mapping[str, str]:
        try:
            recorded = json.loads(self.text("sha256"))
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}: /provenance/sha256 is no JSON: {error}") from error
        if not isinstance(recorded, dict) or not all(isinstance(v, str) for v in recorded.values()):
            raise StoreError(f"{self.path}: /provenance/sha256 is not a JSON object of texts")
        return recorded

    def _verified_pointers(self) -> NDArray[np.int64]:
        """Read the row pointers: from 0 to Q, never falling, at most K - 1 entries per row."""
        pointers: NDArray[np.int64] = self.array("/neighbourhoods/indptr")
        lengths = np.diff(pointers)
        count, listed = self.size("K"), self.size("Q")
        if pointers[0] != 0 or pointers[-1] != listed or lengths.min() < 0:
            raise StoreError(
                f"{self.path}: /neighbourhoods/indptr does not rise from 0 to {listed}"
            )
        if lengths.max() > count - 1:
            raise StoreError(
                f"{self.path}: /neighbourhoods/indptr gives a row {lengths.max()} neighbours"
            )
        declared = self._number("shape", (2,)).tolist()
        if declared != [count, count]:
            raise StoreError(f"{self.path}: /neighbourhoods has shape {declared}, not K x K")
        return pointers


def open_file(path: Path) -> h5py.File:
    """Open a file for reading.

    With HDF5's shared lock where there is one; without where locks fail (read-only media, some
    network folders), which is safe because a store is never changed under its name.
    """
    if not path.is_file():
        raise StoreError(f"{path}: no such file")
    with hdf5_errors(path):
        try:
            return h5py.File(path, "r")
        except OSError:
            return h5py.File(path, "r", locking=False)


@cache
def _file_type(dtype: str) -> h5py.h5t.TypeID:
    return h5py.h5t.py_create(np.dtype(dtype))
