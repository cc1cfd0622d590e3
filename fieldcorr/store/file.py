"""A finished store as a verified file.

What flows in: the path of a store. What flows out: its datasets and texts, read on demand and
compared with their recorded digests. What the numbers mean is the matter of
:class:`fieldcorr.store.reader.Store`, which is built on this.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import StoreError
from fieldcorr.store import layout, structure
from fieldcorr.store.layout import Entry


class StoreFile:
    """An open, structurally verified store.

    Parameters
    ----------
    path
        The HDF5 file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = structure.open_file(path)
        self._datasets: dict[str, h5py.Dataset] = {}
        try:
            self._structure = structure.verify_structure(self._file, path)
            self._digests = structure.read_digests(self._file, path)
            with structure.damage_is_store_error(path):
                self._indptr: NDArray[np.int64] = self._file["/neighbourhoods/indptr"][...]
                group = self._file["/neighbourhoods"]
                (self.threshold,) = structure.number_attribute(group, "threshold", 1, path)
                self.top_k = int(structure.number_attribute(group, "top-k", 1, path)[0])
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; arrays already read stay valid."""
        self._file.close()

    @property
    def format(self) -> str:
        """Version of the file format."""
        return self._structure.version

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Declarations of the datasets that this store holds."""
        return self._structure.entries

    @property
    def digests(self) -> Mapping[str, str]:
        """Recorded digest of every dataset, by path."""
        return self._digests

    def size(self, symbol: str) -> int:
        """Return the value of a shape symbol of the format, such as "K" or "D"."""
        return self._structure.sizes[symbol]

    def dataset(self, name: str) -> h5py.Dataset:
        """Return an open, verified dataset for reading in parts; kept, as opening takes longer."""
        if name not in self._datasets:
            self._datasets[name] = self._file[name]
        return self._datasets[name]

    def has_group(self, group: str) -> bool:
        """Tell whether a group of the format is there."""
        return group == "/" or any(entry.group == group for entry in self.entries)

    def members(self, group: str) -> list[str]:
        """Return the names of the links of a group; none when it is not there."""
        with structure.damage_is_store_error(self.path):
            return list(self._file[group]) if self.has_group(group) else []

    def array(self, name: str) -> NDArray[Any]:
        """Read any declared dataset whole, by its path, compared with its digest."""
        if name not in {entry.path for entry in self._structure.entries}:
            raise StoreError(f"{self.path}: {name} is not in this store")
        return self._read(name)

    def text(self, name: str) -> str:
        """Read a text of the provenance, such as "model" or "run"."""
        path = f"/provenance/{name}"
        with structure.damage_is_store_error(self.path):
            if path in layout.LATE:
                return structure.read_text(self.dataset(path))
            return bytes(self._read(path)[()]).decode()

    def record(self, name: str) -> Any:
        """Read a JSON record of the provenance, such as "settings" or "error_estimate"."""
        with structure.damage_is_store_error(self.path):
            return json.loads(self.text(name))

    def _read(self, name: str) -> NDArray[Any]:
        with structure.damage_is_store_error(self.path):
            item = self.dataset(name)
        return structure.read_verified(item, name, self._digests, self.path)

    def _texts(self, name: str) -> list[str]:
        with structure.damage_is_store_error(self.path):
            return [bytes(item).decode() for item in self._read(name)]
