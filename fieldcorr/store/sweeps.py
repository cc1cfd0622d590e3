"""The sweep store: the circuits of all samples of a sweep, in one small HDF5 file.

It is read as a whole when it is opened and compared with its digests; mean, spread and
probabilities of r are computed from it row by row. FORMAT.md specifies the file.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.ensemble import Ensemble
from fieldcorr.correlation.whole import Circuit
from fieldcorr.errors import StoreError
from fieldcorr.files import QuietFile, write_beside
from fieldcorr.store import layout
from fieldcorr.store.file import hdf5_errors, open_file
from fieldcorr.store.layout import RECORDS, TEXT, Entry, Symbols, digest_array
from fieldcorr.store.write import encode

FORMAT = "1.0"

ENTRIES: tuple[Entry, ...] = (
    Entry("/contacts/name", TEXT, ("E",), "", "names, in the order of every axis E"),
    Entry("/configurations/polarity", "|i1", ("K", "E"), "1", "-1 cathode, 0 off, +1 anode"),
    Entry("/inputs/key", TEXT, ("D",), "", "varied keys of the model file"),
    Entry("/inputs/law", TEXT, ("D",), "", "JSON: distribution of each key"),
    Entry("/samples/point", "<f8", ("M", "D"), "1", "place in each distribution, 0 to 1"),
    Entry("/samples/gram", "<f8", ("M", "E", "E"), "", "Gram matrix of the compared measure"),
    Entry("/samples/admittance", "<f8", ("M", "E", "E"), "S", "currents per contact voltage"),
    Entry("/samples/record", TEXT, ("M",), "", "JSON: values, drive, mesh, residual, failures"),
    Entry("/nominal/gram", "<f8", ("E", "E"), "", "of the model as it is, on the samples' mesh"),
    Entry("/nominal/admittance", "<f8", ("E", "E"), "S", "of the model as it is"),
    Entry("/nominal/record", TEXT, (), "", "JSON: drive, mesh, residual"),
    Entry("/provenance/model", TEXT, (), "", "text of the model file"),
    Entry("/provenance/sweep", TEXT, (), "", "text of the sweep file"),
    Entry("/provenance/origin", TEXT, (), "", "JSON: hashes, versions, what was given up"),
)

_MATRICES = ("gram", "admittance")
_RECORD = {"drive": RECORDS["settings"]["drive"], "values": {}, "failures": [str]}


def write_sweep(
    path: Path, values: Mapping[str, object], *, run: Mapping[str, object], force: bool
) -> None:
    """Write a sweep store; ``values`` has every dataset of ENTRIES by path."""
    with write_beside(path, error=StoreError, force=force) as draft, QuietFile(draft) as disk:
        with h5py.File(disk, "w", libver=("v110", "v110")) as file:
            _set_text(file, "fieldcorr-sweep-format", FORMAT)
            digests = {}
            for entry in ENTRIES:
                array = encode(entry, values[entry.path])
                file.create_dataset(entry.path, data=array, track_times=False)
                digests[entry.path] = digest_array(entry, array)
            _set_text(file, "sha256", json.dumps(digests, sort_keys=True))
            _set_text(file, "run", json.dumps(run))
        disk.sync()


def _set_text(file: h5py.File, name: str, text: str) -> None:
    """Set an attribute of fixed length, which has a checksum.

    Texts of variable length are in a heap without one, and HDF5 hangs on a heap that was blanked.
    """
    file.attrs[name] = np.bytes_(text.encode())


def is_sweep(path: str | Path) -> bool:
    """Tell whether a file is a sweep store, by its attribute alone."""
    try:
        with hdf5_errors(Path(path)), h5py.File(path, "r") as file:
            return "fieldcorr-sweep-format" in file.attrs
    except StoreError:
        return False


def open_sweep(path: str | Path) -> "SweepStore":
    """Read a sweep store."""
    return SweepStore(Path(path))


class SweepStore:
    """Circuits of M samples over D varied keys, for K configurations of E contacts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, NDArray[Any]] = {}
        file = open_file(path)
        with file, hdf5_errors(path):
            version = self._attribute(file, "fieldcorr-sweep-format")
            if version.split(".")[0] != FORMAT.split(".")[0]:
                raise StoreError(f"{path}: not a sweep store of format {FORMAT}")
            self.digests: Mapping[str, str] = self._checked(
                self._attribute(file, "sha256"), "sha256", {}
            )
            self.run: Mapping[str, object] = self._checked(self._attribute(file, "run"), "run", {})
            symbols = Symbols()
            for entry in ENTRIES:
                self._arrays[entry.path] = self._read(file, entry, symbols)
        self._verify()

    def _attribute(self, file: h5py.File, name: str) -> str:
        """Return a text attribute of fixed or, from earlier writers, of variable length."""
        value = file.attrs.get(name)
        if not isinstance(value, str | bytes):
            raise StoreError(f"{self.path}: not a sweep store: no text attribute {name}")
        return value if isinstance(value, str) else self._decoded(value)

    def _read(self, file: h5py.File, entry: Entry, symbols: Symbols) -> NDArray[np.generic]:
        link = file.get(entry.path, getlink=True)
        item = file.get(entry.path) if isinstance(link, h5py.HardLink) else None
        if not isinstance(item, h5py.Dataset) or item.external or item.is_virtual:
            raise StoreError(f"{self.path}: {entry.path} is missing or kept outside the file")
        if item.nbytes > self.path.stat().st_size or item.shape is None:
            raise StoreError(f"{self.path}: {entry.path} declares more than the file holds")
        problem = symbols.mismatch(entry, item.shape)
        text = item.dtype.kind == "S"
        if problem or text != (entry.dtype == TEXT) or (not text and item.dtype != entry.dtype):
            raise StoreError(f"{self.path}: {problem or f'{entry.path} has another type'}")
        array: NDArray[np.generic] = item[()] if item.shape else np.array(item[()], item.dtype)
        if digest_array(entry, array) != self.digests.get(entry.path):
            raise StoreError(f"{self.path}: {entry.path} does not match its recorded sha256")
        return array

    def _verify(self) -> None:
        """Refuse what no sweep writes; kernels take polarities and matrices as they are."""
        if not (len(self) and len(self.polarity) and np.isin(self.polarity, (-1, 0, 1)).all()):
            raise StoreError(f"{self.path}: has no samples, or polarities other than -1, 0, 1")
        for name in (
            "/samples/gram",
            "/samples/admittance",
            "/nominal/gram",
            "/nominal/admittance",
        ):
            if not np.isfinite(self._arrays[name]).all():
                raise StoreError(f"{self.path}: {name} has a value that is not finite")
        for record in (*self.records, self._parsed("/nominal/record", {"drive": _RECORD["drive"]})):
            if not isinstance(record, dict):
                raise StoreError(f"{self.path}: a record of a sample is no object")

    def __len__(self) -> int:
        """Return the number of samples M."""
        return len(self._arrays["/samples/point"])

    def __repr__(self) -> str:
        return f"SweepStore({str(self.path)!r}: {len(self)} samples over {len(self.keys)} keys)"

    @cached_property
    def hash(self) -> str:
        """Sha256 of everything that the sweep found, dates and durations left out."""
        return hashlib.sha256(json.dumps(self.digests, sort_keys=True).encode()).hexdigest()

    @cached_property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts."""
        return tuple(self._texts("/contacts/name"))

    @property
    def polarity(self) -> NDArray[np.int8]:
        """(K, E) configurations of the model's rules."""
        return self._arrays["/configurations/polarity"]

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The varied keys of the model file, D of them."""
        return tuple(self._texts("/inputs/key"))

    @cached_property
    def laws(self) -> tuple[Mapping[str, Any], ...]:
        """The distribution of each varied key."""
        texts = self._texts("/inputs/law")
        return tuple(self._checked(text, "/inputs/law", {}) for text in texts)

    @property
    def points(self) -> NDArray[np.float64]:
        """(M, D) places of the samples in the distributions, from 0 to 1."""
        return self._arrays["/samples/point"]

    @property
    def gram(self) -> NDArray[np.float64]:
        """(M, E, E) Gram matrices."""
        return self._arrays["/samples/gram"]

    @property
    def admittance(self) -> NDArray[np.float64]:
        """(M, E, E) S."""
        return self._arrays["/samples/admittance"]

    @cached_property
    def records(self) -> tuple[Mapping[str, Any], ...]:
        """Values, drive, mesh and failures of each sample."""
        texts = self._texts("/samples/record")
        return tuple(self._checked(text, "/samples/record", _RECORD) for text in texts)

    @property
    def values(self) -> tuple[Mapping[str, object], ...]:
        """The varied values of each sample, by key."""
        return tuple(record["values"] for record in self.records)

    @property
    def origin(self) -> Mapping[str, object]:
        """Hashes, versions, and how many points could not be built."""
        return dict(self._parsed("/provenance/origin", {"hashes": {}, "versions": {}}))

    def text(self, name: str) -> str:
        """Return the text of the "model" file or of the "sweep" file."""
        return self._decoded(bytes(self._arrays[f"/provenance/{name}"][()]))

    def ensemble(self, weight: NDArray[np.float64] | None = None) -> Ensemble:
        """Return the samples with equal weights, or with those given (M,), made to sum to 1."""
        chosen = np.ones(len(self)) if weight is None else np.asarray(weight, dtype=np.float64)
        return Ensemble(self.polarity, self.circuits, chosen / chosen.sum())

    @cached_property
    def circuits(self) -> tuple[Circuit, ...]:
        """What r of each sample depends on."""
        parts = zip(self.gram, self.admittance, self.records, strict=True)
        return tuple(Circuit(gram, y, **record["drive"]) for gram, y, record in parts)

    def nominal(self) -> Ensemble:
        """Return the model as it is, on the samples' mesh, as an ensemble of one."""
        gram, admittance = (self._arrays[f"/nominal/{name}"] for name in _MATRICES)
        record = self._parsed("/nominal/record", {"drive": _RECORD["drive"]})
        return Ensemble(self.polarity, [Circuit(gram, admittance, **record["drive"])], np.ones(1))

    def _texts(self, path: str) -> list[str]:
        return [self._decoded(bytes(item)) for item in self._arrays[path]]

    def _decoded(self, content: bytes) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise StoreError(f"{self.path}: holds text that is not UTF-8") from error

    def _parsed(self, path: str, form: object) -> Any:
        return self._checked(self._decoded(bytes(self._arrays[path][()])), path, form)

    def _checked(self, text: str, path: str, form: object) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}: {path} is no JSON: {error}") from error
        problem = layout.misfit(value, form if isinstance(form, dict) else {}, path)
        if problem:
            raise StoreError(f"{self.path}: {problem}")
        return value
