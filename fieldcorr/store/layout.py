"""What a store holds: the one declaration that writer, reader, checker and FORMAT.md share.

:data:`GROUPS` and :data:`ENTRIES` name every group and dataset with its type, its shape in symbols,
its presence and its unit, :data:`RECORDS` the form of every JSON text; chunk shapes, sizes of the
symbols, families and digests of datasets follow from them.

The digest of a dataset is sha256 of a header line (path, type and shape) followed by the digest of
each block in C order. The blocks follow from path, type and shape alone (:func:`chunk_shape`), so
that a copy in other chunks or with other filters has the same digests, and blocks can be digested
as they are made. A block's digest is its sha256; in the streamed datasets it is its crc32, four
bytes, little-endian (sha256 took longer than computing the block).
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = "1.1"
"""Version written by this package: major.minor. A reader MUST refuse another major version."""

STATUS_BUILDING = "building"
STATUS_COMPLETE = "complete"

BLOCK_ROWS = 8
BLOCK_ELEMENTS = 16384
"""Chunk sizes: (8, K) for the matrix, 16384 elements along the long axis of everything else.

Row reads of a 10^4 matrix take 0.1 ms from (8, K) chunks and 2.3 ms from square ones; CSR rows
0.1 ms from 16 k chunks and 6.5 ms from compressed 262 k ones.
"""

SMALL_BYTES = 65536
"""Datasets up to this size are contiguous, without the checksum filter (the digest covers them)."""

TEXT = "text"
"""Type of a dataset of UTF-8 text of fixed length, padded with zero bytes."""

RUN_BYTES = 4096
"""Room for the record of the run, so that two runs of a batch give files of equal size."""


@dataclass(frozen=True)
class Group:
    """One HDF5 group and what anndata takes it for."""

    path: str
    encoding: tuple[str, str] = ("dict", "0.1.0")
    presence: str = "always"
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """One HDF5 dataset."""

    path: str  # absolute, in the file
    dtype: str  # numpy type string, little-endian, or TEXT
    dims: tuple[str, ...]  # shape in symbols; () is a scalar
    unit: str  # SI, "1" for pure numbers, "" for text
    meaning: str  # one line for FORMAT.md and for people
    presence: str = "always"  # or one of FAMILIES
    streamed: bool = False  # made block of rows by block of rows, never in memory as a whole
    since: str = "1.0"  # format version that brought it

    @property
    def encoding(self) -> tuple[str, str]:
        """The anndata encoding type and version."""
        if self.dtype == TEXT:
            return ("string-array", "0.2.0") if self.dims else ("string", "0.2.0")
        return ("array", "0.2.0") if self.dims else ("numeric-scalar", "0.2.0")

    @property
    def group(self) -> str:
        """Path of the group that holds it."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """Name inside its group."""
        return self.path.rpartition("/")[2]


_ROWS, _SPACE, _COMPANION, _SWEEP = "rows", "space", "companion", "sweep"

GROUPS: tuple[Group, ...] = (
    Group("/", attributes=("fieldcorr-format", "fieldcorr-status")),
    Group("/contacts"),
    Group("/leadfield"),
    Group("/mesh", presence="mesh"),
    Group("/space", presence="space"),
    Group("/configurations", presence="rows"),
    Group("/correlation", presence="rows"),
    Group(
        "/neighbourhoods",
        ("csr_matrix", "0.1.0"),
        presence="rows",
        attributes=("shape", "threshold", "top-k"),
    ),
    Group("/sweep", presence="sweep"),
    Group("/provenance"),
)

ENTRIES: tuple[Entry, ...] = (
    Entry("/contacts/name", TEXT, ("E",), "", "names, in the order of every axis E"),
    Entry("/contacts/position", "<f8", ("E", "3"), "m", "centre of each contact"),
    Entry("/contacts/area", "<f8", ("E",), "m2", "area of each contact", presence="area"),
    Entry("/leadfield/points", "<f8", ("N", "3"), "m", "sample points of the compared region"),
    Entry("/leadfield/weight", "<f8", ("N",), "m3", "volume of each sample times the window"),
    Entry("/leadfield/potential", "<f8", ("E", "N"), "V/A", "lead fields at the sample points"),
    Entry("/leadfield/gram", "<f8", ("E", "E"), "", "Gram matrix of the compared measure"),
    Entry("/leadfield/admittance", "<f8", ("E", "E"), "S", "contact currents per contact voltage"),
    Entry(
        "/leadfield/companion_gram",
        "<f8",
        ("E", "E"),
        "",
        "gram on the companion mesh",
        _COMPANION,
        since="1.1",
    ),
    Entry(
        "/leadfield/companion_admittance",
        "<f8",
        ("E", "E"),
        "S",
        "admittance on the companion mesh",
        _COMPANION,
        since="1.1",
    ),
    Entry("/leadfield/nodal", "<f4", ("E", "D"), "V/A", "lead fields at all nodes", "mesh"),
    Entry("/mesh/points", "<f8", ("P", "3"), "m", "vertices", "mesh"),
    Entry("/mesh/cells", "<i4", ("T", "4"), "1", "vertices of the tetrahedra", "mesh"),
    Entry("/mesh/tags", "<i4", ("T",), "1", "tissue number of each tetrahedron", "mesh"),
    Entry("/mesh/tissues", TEXT, ("S",), "", "tissue names, by number", "mesh"),
    Entry("/space/allowed", "|i1", ("E", "3"), "1", "may be off, +, -", _SPACE, since="1.1"),
    Entry("/space/limits", "<i8", ("6",), "1", "least and most of a kind", _SPACE, since="1.1"),
    Entry("/configurations/id", "<i8", ("K",), "1", "ternary code, strictly ascending", _ROWS),
    Entry("/configurations/polarity", "|i1", ("K", "E"), "1", "-1 cathode, 0 off, +1 anode", _ROWS),
    Entry("/configurations/current", "<f8", ("K", "E"), "A", "delivered for a unit drive", _ROWS),
    Entry("/correlation/embedding", "<f8", ("K", "R"), "1", "unit rows; r_ij = z_i . z_j", _ROWS),
    Entry("/correlation/matrix", "<f4", ("K", "K"), "1", "r", "matrix", streamed=True),
    Entry("/neighbourhoods/indptr", "<i8", ("K+1",), "1", "row i is indptr[i]:indptr[i+1]", _ROWS),
    Entry(
        "/neighbourhoods/indices", "<i8", ("Q",), "1", "neighbours, ascending", _ROWS, streamed=True
    ),
    Entry("/neighbourhoods/data", "<f4", ("Q",), "1", "r of each neighbour", _ROWS, streamed=True),
    Entry("/sweep/gram", "<f8", ("M", "E", "E"), "", "gram of each sample", _SWEEP, since="1.1"),
    Entry(
        "/sweep/admittance",
        "<f8",
        ("M", "E", "E"),
        "S",
        "admittance of each sample",
        _SWEEP,
        since="1.1",
    ),
    Entry("/sweep/weight", "<f8", ("M",), "1", "of each sample; sums to 1", _SWEEP, since="1.1"),
    Entry("/sweep/drive", TEXT, ("M",), "", "JSON: drive of each sample", _SWEEP, since="1.1"),
    Entry("/sweep/values", TEXT, ("M",), "", "JSON: what was varied", _SWEEP, since="1.1"),
    Entry("/provenance/model", TEXT, (), "", "text of the model file"),
    Entry("/provenance/device", TEXT, (), "", "JSON: the device, contact by contact"),
    Entry("/provenance/origin", TEXT, (), "", "JSON: hashes of model and meshes, versions"),
    Entry("/provenance/settings", TEXT, (), "", "JSON: measure, drive, region, solver, rules"),
    Entry("/provenance/solver", TEXT, (), "", "JSON: residuals, iterations, identities"),
    Entry("/provenance/error_estimate", TEXT, (), "", "JSON: error estimate of r, or null"),
    Entry("/provenance/sha256", TEXT, (), "", "JSON: digest of every other dataset but run"),
    Entry("/provenance/run", TEXT, (), "", "JSON: creation time, threads, seconds per stage"),
)

BY_PATH: Mapping[str, Entry] = {entry.path: entry for entry in ENTRIES}

LATE = ("/provenance/sha256", "/provenance/run")
"""Texts that are known when everything else has been written; they have no digest."""

_NUMBER = (int, float)
_ESTIMATE = {"max": _NUMBER, "p99": _NUMBER, "median": _NUMBER}
RECORDS: Mapping[str, Any] = {
    "device": {},
    "origin": {"hashes": {}, "versions": {}},
    "settings": {
        "model": str,
        "device": str,
        "measure": {"kind": str},
        "drive": {"mode": str, "fractions": (list, None)},
        "region": {},
        "solver": {},
        "neighbourhoods": {"threshold": _NUMBER, "top_k": int},
    },
    "solver": {"residuals": [_NUMBER], "identities": {}},
    "error_estimate": (
        {"companion": (_ESTIMATE, None), "order_one": (_ESTIMATE, None), "statement": str},
        None,
    ),
    "run": {},
}
"""Form of the JSON texts of /provenance: a dict names the keys that must be there, a list of one
the form of every item, a tuple several forms of which one must fit."""

FAMILIES = ("area", "companion", "matrix", "mesh", "rows", "space", "sweep")
"""Datasets of a family are all present or all absent: a slim store has no "mesh". Configurations
are listed in "rows" or defined by "space": a store has one of the two. With "sweep", r is the mean
over samples of what is not known exactly."""


def select(families: Iterable[str]) -> Iterator[Entry]:
    """Yield the datasets of a store that holds these optional families."""
    present = {"always", *families}
    return (entry for entry in ENTRIES if entry.presence in present)


def chunk_shape(entry: Entry, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the chunk shape that a dataset of this shape is written with; None for contiguous.

    A copy of the store may have others; digests are over these blocks in every case.
    """
    if entry.dtype == TEXT or 0 in shape:
        return None
    if not entry.streamed and prod(shape) * np.dtype(entry.dtype).itemsize <= SMALL_BYTES:
        return None
    if entry.path == "/correlation/matrix":
        return (min(BLOCK_ROWS, shape[0]), shape[1])
    if len(shape) == 2 and shape[0] < shape[1]:
        return (1, min(BLOCK_ELEMENTS, shape[1]))
    width = prod(shape[1:])
    return (max(1, min(shape[0], BLOCK_ELEMENTS // width)), *shape[1:])


def blocks(chunks: tuple[int, ...] | None, shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield the slices of the chunks in C order, clipped to the shape; one block if contiguous.

    A dataset without elements has no blocks.
    """
    if 0 in shape:
        return
    if chunks is None:
        yield tuple(slice(0, n) for n in shape)
        return
    counts = [-(-n // c) for n, c in zip(shape, chunks, strict=True)]
    for index in np.ndindex(*counts):
        yield tuple(
            slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(index, chunks, shape, strict=True)
        )


def digest_block(entry: Entry, block: NDArray[np.generic]) -> bytes:
    """Return the digest of a block's content in C order: 4 bytes if streamed, else 32."""
    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
    if entry.streamed:
        return zlib.crc32(content).to_bytes(4, "little")
    return hashlib.sha256(content).digest()


def combine(entry: Entry, shape: tuple[int, ...], blocks: Iterable[bytes]) -> str:
    """Return the digest of a dataset from those of its blocks."""
    total = hashlib.sha256(f"{entry.path} {entry.dtype} {tuple(map(int, shape))}\n".encode())
    for block in blocks:
        total.update(block)
    return total.hexdigest()


def digest_array(entry: Entry, array: NDArray[np.generic]) -> str:
    """Return the digest of a dataset that is in memory.

    Text counts without the zero bytes that pad it, which readers do not see.
    """
    if entry.dtype == TEXT:
        content = b"\0".join(np.atleast_1d(array).tolist())
        return combine(entry, array.shape, [hashlib.sha256(content).digest()])
    cut = blocks(chunk_shape(entry, array.shape), array.shape)
    return combine(entry, array.shape, (digest_block(entry, array[b]) for b in cut))


class Symbols:
    """Values of the shape symbols, collected dataset by dataset, contradictions refused."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}

    def mismatch(self, entry: Entry, shape: tuple[int, ...]) -> str | None:
        """Match a shape against the declaration; return what is wrong, or None."""
        if len(shape) != len(entry.dims):
            return f"{entry.path} has {len(shape)} dimensions, not {len(entry.dims)}"
        for symbol, size in zip(entry.dims, shape, strict=True):
            want = self._expected(symbol, size)
            if size != want:
                return f"{entry.path} has shape {shape}, but {symbol} is {want}"
        return None

    def _expected(self, symbol: str, size: int) -> int:
        if symbol.isdigit():
            return int(symbol)
        if symbol == "K+1":
            return self.values.setdefault("K", size - 1) + 1
        return self.values.setdefault(symbol, size)


def misfit(value: object, form: Any, where: str) -> str | None:
    """Compare a JSON value with a form of :data:`RECORDS`; return what is wrong, or None."""
    if isinstance(form, tuple):
        problems = [misfit(value, one, where) for one in form]
        return None if None in problems else problems[0]
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{where} is not an object"
        missing = [key for key in form if key not in value]
        if missing:
            return f"{where} lacks {missing[0]!r}"
        parts = ((value[key], one, f"{where}.{key}") for key, one in form.items())
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is not a list"
        parts = ((item, form[0], f"{where}[{k}]") for k, item in enumerate(value))
    else:
        fits = value is None if form is None else isinstance(value, form)
        # JSON's true and false are no numbers, though Python's are.
        return None if fits and not isinstance(value, bool) else f"{where} is {value!r}"
    return next(filter(None, (misfit(*part) for part in parts)), None)
