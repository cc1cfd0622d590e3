"""The compact mesh file, ``.fcmesh``: an HDF5 file of coded integers (see meshes/README.md).

What flows in: a :class:`Mesh`, or a file that may be damaged or hostile. What flows out: a file
that gives back exactly the same arrays, or a mesh whose every number has been checked against the
size of the file and the hash inside it.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats, Ints, Mesh

FORMAT = "1.0"
NANOMETRE = 1e9  # points are written as whole nanometres when that loses nothing
_MAX_RATIO = 1100  # deflate cannot expand by more than 1032 : 1
_MAX_CHUNK = 1 << 26
_FILTERS = {"gzip", "shuffle", "fletcher32"}
_DTYPES = {"points": ("<i4", "<f8"), "cells": ("<i4",), "facets": ("<i4",)}


def write_fcmesh(mesh: Mesh, path: str | os.PathLike[str]) -> None:
    """Write ``mesh`` beside ``path`` and move it into place."""
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    try:
        with h5py.File(partial, "w", libver=("earliest", "v110")) as file:
            _write_arrays(mesh, file)
            _write_attributes(mesh, file)
        partial.replace(target)
    except OSError as error:
        raise MeshError(f"{target}: cannot be written ({_one_line(error)})") from None
    finally:
        partial.unlink(missing_ok=True)


def read_fcmesh(path: str | os.PathLike[str]) -> Mesh:
    """Read a mesh; raise :class:`MeshError` when anything in the file is not as it must be."""
    with _opened(Path(path)) as file:
        _check_format(file, path)
        tissues, facet_names = _names(file, "tissues", path), _names(file, "facet-names", path)
        points = _decode_points(_dataset(file, "points", 3, path))
        cells, cell_tags = _decode_rows(_dataset(file, "cells", 5, path), path)
        facets, facet_tags = _decode_rows(_dataset(file, "facets", 4, path), path)
        origin, digest = _json(file, "origin", dict, path), _text(file, "sha256", path)
    try:
        mesh = Mesh(points, cells, cell_tags, tissues, facets, facet_tags, facet_names, origin)
    except MeshError as error:
        raise MeshError(f"{path}: {error}") from None
    if mesh.hash != digest:
        raise MeshError(f"{path}: damaged: the arrays do not match the sha256 in the file")
    return mesh


def is_fcmesh(path: str | os.PathLike[str]) -> bool:
    """Tell from the name whether the file is one of ours."""
    return Path(path).suffix == ".fcmesh"


def to_nanometres(points: Floats) -> Ints | None:
    """Return the points as whole nanometres, or None when that would change a coordinate."""
    with np.errstate(over="ignore"):
        scaled = np.rint(points * NANOMETRE)
    if not np.all(np.abs(scaled) < 2**31):  # also false for NaN
        return None
    coded = scaled.astype(np.int32)
    same = np.array_equal(
        (coded / NANOMETRE).view(np.int64), points.view(np.int64)
    )  # 0.0 is not -0.0
    return coded if same else None


def round_to_nanometres(points: Floats) -> Floats:
    """Return the points moved to the nearest whole nanometre."""
    rounded: Floats = np.rint(points * NANOMETRE) / NANOMETRE + 0.0  # no negative zero
    return rounded


def encode_rows(rows: Ints, tags: Ints) -> Ints:
    """Code vertex rows (N, V) and tags (N,) as small numbers, (N, V + 1) int32.

    Column 0 is the step of the first vertex from row to row, columns 1..V-1 are differences to the
    first vertex, column V is the step of the tag. After a local numbering most bytes are zero.
    """
    first = rows[:, :1].astype(np.int64)
    parts = (_steps(first), rows[:, 1:] - first, _steps(tags[:, None].astype(np.int64)))
    return np.concatenate(parts, axis=1).astype(np.int32)


def decode_rows(coded: Ints) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Invert :func:`encode_rows`; sums in 64 bits, so that hostile steps cannot wrap round."""
    wide = coded.astype(np.int64)
    rows = wide[:, :-1].copy()
    rows[:, 0] = np.cumsum(wide[:, 0])
    rows[:, 1:] += rows[:, :1]
    return rows, np.cumsum(wide[:, -1])


def _steps(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.diff(values, axis=0, prepend=np.zeros((1, values.shape[1]), np.int64))


def _write_arrays(mesh: Mesh, file: h5py.File) -> None:
    nanometres = to_nanometres(mesh.points)
    if nanometres is None:
        points: NDArray[Any] = mesh.points.astype("<f8")
    else:  # steps may need 33 bits; they wrap round, and wrap back when they are summed
        points = _steps(nanometres.astype(np.int64)).astype(np.uint32).view(np.int32)
    _write_dataset(file, "points", points)
    _write_dataset(file, "cells", encode_rows(mesh.cells, mesh.cell_tags))
    _write_dataset(file, "facets", encode_rows(mesh.facets, mesh.facet_tags))


def _write_dataset(file: h5py.File, name: str, array: NDArray[Any]) -> None:
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


@contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    """Open for reading; every failure of the HDF5 library becomes one line with the file's name."""
    if not path.is_file():
        raise MeshError(f"{path}: no such mesh file")
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise MeshError(f"{path}: not a readable .fcmesh file ({_one_line(error)})") from None


def _check_format(file: h5py.File, path: str | os.PathLike[str]) -> None:
    if "fieldcorr-mesh-format" not in file.attrs:
        raise MeshError(f"{path}: HDF5, but not a fieldcorr mesh (no fieldcorr-mesh-format)")
    version = _text(file, "fieldcorr-mesh-format", path)
    if version.split(".")[0] != FORMAT.split(".")[0]:
        raise MeshError(f"{path}: mesh format {version!r}; this version reads {FORMAT}")


def _dataset(
    file: h5py.File, name: str, columns: int, path: str | os.PathLike[str]
) -> NDArray[Any]:
    """Return a dataset (N, columns) after checking that reading it is safe."""
    if not isinstance(file.get(name, getlink=True), h5py.HardLink):
        raise MeshError(f"{path}: {name} is missing or links elsewhere")
    item = file[name]
    problem = _dataset_problem(item, name, columns, os.path.getsize(path))
    if problem:
        raise MeshError(f"{path}: {name} {problem}")
    return np.ascontiguousarray(item[()].T)


def _dataset_problem(item: Any, name: str, columns: int, file_size: int) -> str:
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
    if item.chunks is not None and int(np.prod(item.chunks, dtype=object)) > _MAX_CHUNK:
        return f"has chunks of {item.chunks}, too large"
    stored = item.id.get_storage_size()
    if stored > file_size or item.nbytes > _MAX_RATIO * max(stored, 1):
        return f"claims {item.nbytes} bytes in a file of {file_size}"
    return ""


def _decode_points(coded: NDArray[Any]) -> Floats:
    if coded.dtype.kind == "f":
        return coded
    with np.errstate(over="ignore"):
        nanometres = np.cumsum(coded, axis=0, dtype=np.int32)
    points: Floats = nanometres / NANOMETRE
    return points


def _decode_rows(coded: Ints, path: str | os.PathLike[str]) -> tuple[NDArray[Any], NDArray[Any]]:
    rows, tags = decode_rows(coded)
    for values in (rows, tags):
        if values.size and (values.min() < 0 or values.max() > np.iinfo(np.int32).max):
            raise MeshError(f"{path}: indices run to {values.min()}..{values.max()}, out of range")
    return rows, tags


def _text(file: h5py.File, name: str, path: str | os.PathLike[str]) -> str:
    value = file.attrs.get(name)
    if not isinstance(value, str):
        raise MeshError(f"{path}: attribute {name} is missing or not a text")
    return value


def _json(file: h5py.File, name: str, kind: type, path: str | os.PathLike[str]) -> Any:
    try:
        value = json.loads(_text(file, name, path))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        raise MeshError(f"{path}: attribute {name} is not a JSON {kind.__name__}")
    return value


def _names(file: h5py.File, name: str, path: str | os.PathLike[str]) -> tuple[str, ...]:
    values = _json(file, name, list, path)
    if not all(isinstance(value, str) for value in values) or len(set(values)) != len(values):
        raise MeshError(f"{path}: attribute {name} must be a list of different names")
    return tuple(values)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
