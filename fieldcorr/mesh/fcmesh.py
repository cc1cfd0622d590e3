"""The compact mesh file, ``.fcmesh``: an HDF5 file of coded integers (see meshes/README.md).

A file gives back exactly the arrays that were written. It may be damaged or hostile: its checksum
is compared before HDF5 looks at it, sizes are checked against what is stored, and the hash of the
mesh against the arrays. A file that has no checksum, of format 1.0, is first read in a process of
its own, which HDF5 may crash or hang.
"""

import contextlib
import hashlib
import io
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.files import limit_memory
from fieldcorr.mesh.data import Floats, Ints, Longs, Mesh

FORMAT = "1.1"
UNSEALED_FORMAT = "1.0"  # had no checksum of the whole file
PATIENCE = 60.0  # s for reading one of these apart; a mesh of 10 MB takes 2 s
SEAL = b"fieldcorr-mesh-sha256 "
"""Before the checksum at the end of a file; 64 hexadecimal digits and a line end follow."""
SUMS = "sha256sums.txt"
"""Beside files that have no checksum of their own, as the program sha256sum writes it."""
NANOMETRE = 1e9  # points are written as whole nanometres when that loses nothing
_SEAL_SIZE = len(SEAL) + 65
_MAX_RATIO = 100  # of an array to its bytes in the file: ten times that of a large mesh
_ALWAYS_ALLOWED = 1 << 28  # bytes of an array that may be packed as well as deflate can
_MAX_CHUNK = 1 << 26
_FILTERS = {"gzip", "shuffle", "fletcher32"}
_DTYPES = {"points": ("<i4", "<f8"), "cells": ("<i4",), "facets": ("<i4",)}


T = TypeVar("T")


def write_fcmesh(mesh: Mesh, path: Path) -> None:
    """Write a mesh file, replacing any file of that name."""
    made = io.BytesIO()
    with h5py.File(made, "w", libver=("earliest", "v110")) as file:
        _write_arrays(mesh, file)
        _write_attributes(mesh, file)
    content = made.getvalue()
    path.write_bytes(content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n")


def read_fcmesh(source: Path) -> Mesh:
    """Read a mesh; raise :class:`MeshError` when anything in the file is not as it must be."""
    is_sealed, is_listed = _check_seal(source)
    if not (is_sealed or is_listed):
        _read_apart(source)
    return _read(source, is_sealed=is_sealed)


def _read(source: Path, *, is_sealed: bool) -> Mesh:
    with _opened(source) as file:
        _check_format(file, source, is_sealed=is_sealed)
        tissues, facet_names = _names(file, "tissues", source), _names(file, "facet-names", source)
        points = _decode_points(_dataset(file, "points", 3, source))
        cells, cell_tags = decode_rows(_dataset(file, "cells", 5, source))
        facets, facet_tags = decode_rows(_dataset(file, "facets", 4, source))
        origin, digest = _json(file, "origin", dict, source), _text(file, "sha256", source)
    try:
        mesh = Mesh(points, cells, cell_tags, tissues, facets, facet_tags, facet_names, origin)
    except MeshError as error:
        raise MeshError(f"{source}: {error}") from None
    if mesh.hash != digest:
        raise MeshError(f"{source}: damaged: the arrays do not match the sha256 in the file")
    return mesh


def to_nanometres(points: Floats) -> Ints | None:
    """Return the points as whole nanometres, or None when that would change a coordinate."""
    with np.errstate(over="ignore"):
        scaled = np.rint(points * NANOMETRE)
    if not np.all(np.abs(scaled) < 2**31):  # also false for NaN
        return None
    coded = scaled.astype(np.int32)
    back = coded / NANOMETRE
    return coded if back.tobytes() == points.tobytes() else None  # 0.0 is not -0.0


def round_to_nanometres(points: Floats) -> Floats:
    """Return the points moved to the nearest whole nanometre."""
    return np.asarray(np.rint(points * NANOMETRE) / NANOMETRE + 0.0)  # no negative zero


def encode_rows(rows: Ints, tags: Ints) -> Ints:
    """Code vertex rows (N, V) and tags (N,) as small numbers, (N, V + 1) int32.

    Column 0 is the step of the first vertex from row to row, columns 1..V-1 are differences to the
    first vertex, column V is the step of the tag. After a local numbering most bytes are zero.
    """
    first = rows[:, :1].astype(np.int64)
    parts = (_steps(first), rows[:, 1:] - first, _steps(tags[:, None].astype(np.int64)))
    return np.concatenate(parts, axis=1).astype(np.int32)


def decode_rows(coded: Ints) -> tuple[NDArray[Any], NDArray[Any]]:
    """Invert :func:`encode_rows`; sums in 64 bits, so that hostile steps cannot wrap round."""
    rows = coded[:, :-1].astype(np.int64)
    rows[:, 0] = np.cumsum(rows[:, 0])
    rows[:, 1:] += rows[:, :1]
    return rows, np.cumsum(coded[:, -1], dtype=np.int64)


def _steps(values: Longs) -> Longs:
    return np.diff(values, axis=0, prepend=np.zeros((1, values.shape[1]), np.int64))


def _write_arrays(mesh: Mesh, file: h5py.File) -> None:
    nanometres = to_nanometres(mesh.points)
    if nanometres is None:
        points: NDArray[np.generic] = mesh.points.astype("<f8")
    else:  # steps may need 33 bits; they wrap round, and wrap back when they are summed
        points = _steps(nanometres.astype(np.int64)).astype(np.uint32).view(np.int32)
    _write_dataset(file, "points", points)
    _write_dataset(file, "cells", encode_rows(mesh.cells, mesh.cell_tags))
    _write_dataset(file, "facets", encode_rows(mesh.facets, mesh.facet_tags))


def _write_dataset(file: h5py.File, name: str, array: NDArray[np.generic]) -> None:
    """Store by columns: numbers of one kind lie together, which compresses a fifth better."""
    columns = np.ascontiguousarray(array.T)
    chunk = (1, max(1, min(columns.shape[1], 1 << 20)))
    file.create_dataset(
        name, data=columns, chunks=chunk, compression="gzip", compression_opts=9, shuffle=True
    )


def _write_attributes(mesh: Mesh, file: h5py.File) -> None:
    file.attrs["fieldcorr-mesh-format"] = FORMAT
    file.attrs["tissues"] = json.dumps(list(mesh.tissues))
    file.attrs["facet-names"] = json.dumps(list(mesh.facet_names))
    file.attrs["origin"] = json.dumps(dict(mesh.origin), sort_keys=True)
    file.attrs["sha256"] = mesh.hash


def _check_seal(path: Path) -> tuple[bool, bool]:
    """Compare the checksum at the end of a file, or the one listed beside; tell which it has."""
    if not path.is_file():
        raise MeshError(f"{path}: no such mesh file")
    try:
        content = path.read_bytes()
        seal = content[-_SEAL_SIZE:]
        is_sealed = seal.startswith(SEAL)
        wanted = seal[len(SEAL) : -1].decode("ascii", "replace") if is_sealed else _listed(path)
    except OSError as error:
        raise MeshError(f"{path}: cannot be read ({error.strerror})") from None
    body = content[:-_SEAL_SIZE] if is_sealed else content
    if wanted not in (None, hashlib.sha256(body).hexdigest()):
        raise MeshError(f"{path}: damaged: the file does not match its checksum")
    return is_sealed, not is_sealed and wanted is not None


def _read_apart(path: Path) -> None:
    """Read a file in another process, and refuse one on which that crashes or hangs."""
    code = "import sys; from fieldcorr.mesh.fcmesh import try_file; try_file(sys.argv[1])"
    command = [sys.executable, "-c", code, str(path)]
    try:
        done = subprocess.run(command, timeout=PATIENCE, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        raise MeshError(f"{path}: damaged: HDF5 hangs on it ({PATIENCE:g} s)") from None
    if done.returncode != 0:
        raise MeshError(f"{path}: damaged: HDF5 crashes on it (exit code {done.returncode})")


def try_file(path: str) -> None:
    """Read a file to see whether that ends; mistakes in it are reported elsewhere."""
    limit_memory()
    with contextlib.suppress(MeshError):
        _read(Path(path), is_sealed=False)


def _listed(path: Path) -> str | None:
    """Return the checksum of a file in the list beside it, where there is one."""
    listed = path.with_name(SUMS)
    text = listed.read_text(encoding="utf-8", errors="replace") if listed.is_file() else ""
    return next((s[:64] for s in text.splitlines() if s[64:].strip(" *") == path.name), None)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Open for reading; every failure of the HDF5 library becomes one line with the file's name."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, ValueError, LookupError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise MeshError(f"{path}: not a readable .fcmesh file ({reason})") from None


def _check_format(file: h5py.File, path: Path, *, is_sealed: bool) -> None:
    if "fieldcorr-mesh-format" not in file.attrs:
        raise MeshError(f"{path}: HDF5, but not a fieldcorr mesh (no fieldcorr-mesh-format)")
    version = _text(file, "fieldcorr-mesh-format", path)
    if version.split(".")[0] != FORMAT.split(".")[0]:
        raise MeshError(f"{path}: mesh format {version!r}; this version reads {FORMAT}")
    if not is_sealed and version != UNSEALED_FORMAT:
        raise MeshError(f"{path}: damaged: the checksum at its end is missing")


def _dataset(file: h5py.File, name: str, columns: int, path: Path) -> NDArray[Any]:
    """Return a dataset (N, columns) after checking that reading it is safe."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise MeshError(f"{path}: {name} is missing or links elsewhere")
    item = file[name]
    problem = _dataset_problem(item, name, columns, path.stat().st_size)
    if problem:
        raise MeshError(f"{path}: {name} {problem}")
    return np.ascontiguousarray(item[()].T)


def _dataset_problem(item: object, name: str, columns: int, file_size: int) -> str:
    """Say what forbids reading the dataset, or return an empty text."""
    if not isinstance(item, h5py.Dataset):
        return "is not an array"
    if item.dtype.str not in _DTYPES[name]:
        return f"has type {item.dtype}, expected {' or '.join(_DTYPES[name])}"
    if item.ndim != 2 or item.shape[0] != columns:
        return f"has shape {item.shape}, expected ({columns}, N)"
    if item.is_virtual or item.external is not None:
        return "keeps its numbers in another file"
    if not set(item._filters) <= _FILTERS:
        return f"uses filters that are not allowed ({', '.join(item._filters)})"
    if item.chunks is not None and math.prod(item.chunks) > _MAX_CHUNK:
        return f"has chunks of {item.chunks}, too large"
    stored = item.id.get_storage_size()
    if stored > file_size or item.nbytes > max(_MAX_RATIO * stored, _ALWAYS_ALLOWED):
        return f"claims {item.nbytes} bytes in a file of {file_size}"
    if item.chunks is not None:
        whole = math.prod(-(-n // chunk) for n, chunk in zip(item.shape, item.chunks, strict=True))
        if item.id.get_num_chunks() != whole:
            return f"claims {item.nbytes} bytes, of which some are missing"
    return ""


def _decode_points(coded: NDArray[Any]) -> Floats:
    if coded.dtype.kind == "f":
        return coded
    with np.errstate(over="ignore"):
        nanometres = np.cumsum(coded, axis=0, dtype=np.int32)
    return np.asarray(nanometres / NANOMETRE)


def _text(file: h5py.File, name: str, path: Path) -> str:
    value = file.attrs.get(name)
    if not isinstance(value, str):
        raise MeshError(f"{path}: attribute {name} is missing or not a text")
    return value


def _json(file: h5py.File, name: str, kind: type[T], path: Path) -> T:
    try:
        value = json.loads(_text(file, name, path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise MeshError(f"{path}: attribute {name} is not a JSON {kind.__name__}")
    return value


def _names(file: h5py.File, name: str, path: Path) -> tuple[str, ...]:
    values = _json(file, name, list, path)
    if not all(isinstance(value, str) for value in values):
        raise MeshError(f"{path}: attribute {name} must be a list of names")
    return tuple(values)
