"""Solved lead fields, kept between batches: other rules, drives or regions need no new solution.

An entry is found again by the key of everything that it depends on, the code and the versions of
the libraries included. The folder is $FIELDCORR_CACHE, or fieldcorr in the user's cache folder;
entries that have not been used for longest are removed when it grows too large.
"""

import hashlib
import io
import json
import os
import platform
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
from numpy.typing import NDArray

import fieldcorr
from fieldcorr.files import fsync_folder, user_cache, write_durably

LIMIT_BYTES = 4 << 30
"""The cache is kept below this size."""

PACKAGES = ("numpy", "scipy", "numba", "h5py", "fenics-basix", "pyamg")

FIELD_SOURCES = ("fem", "elements", "leadfield", "contacts.py", "tissue.py")
"""The part of the package that lead fields come from."""

OTHER_SOURCES = ("analytic", "cli", "duel", "export", "notebook", "plot", "verification", "web")
"""The part of the package that no number of a store comes from."""

Arrays = Mapping[str, NDArray[np.generic]]


def default_folder() -> Path:
    """Return the cache folder of this user."""
    chosen = os.environ.get("FIELDCORR_CACHE")
    return Path(chosen) if chosen else (user_cache() or Path(tempfile.gettempdir())) / "fieldcorr"


def versions() -> dict[str, str]:
    """Return the versions of what computes a store."""
    found = {"fieldcorr": fieldcorr.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


@cache
def code_hash() -> str:
    """Return the sha256 of all that decides the numbers of a store, its inputs apart.

    That is every source of the package that computes, the versions of the libraries, and the kind
    of processor that the kernels are compiled for: a changed program, or the same on another
    machine, must not go on with what another one left.
    """
    package = Path(fieldcorr.__file__).parent
    return _hash_of(p for p in package.iterdir() if p.stem not in OTHER_SOURCES)


@cache
def field_code_hash() -> str:
    """Return the sha256 of all that decides a lead field: as :func:`code_hash`, for its sources."""
    package = Path(fieldcorr.__file__).parent
    return _hash_of(package / name for name in FIELD_SOURCES)


def _hash_of(paths: Iterable[Path]) -> str:
    """Return the sha256 of the sources below ``paths``, the versions and the processor."""
    package = Path(fieldcorr.__file__).parent
    machine = {**versions(), "processor": llvmlite.binding.get_host_cpu_name()}
    total = hashlib.sha256(json.dumps(machine, sort_keys=True).encode())
    for path in sorted(paths):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            if file.suffix == ".py":
                content = file.read_bytes()
                total.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode())
                total.update(content)
    return total.hexdigest()


def key_of(inputs: Mapping[str, object]) -> str:
    """Return the key of the lead field with the given inputs, as hexadecimal text."""
    text = json.dumps({**inputs, "code": field_code_hash()}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """A folder of NumPy files, each with a digest of its key and content as its last 32 bytes.

    Nothing in it is believed: an entry that is damaged, that belongs to another user or that others
    may write to counts as absent. The folder is made when first needed; where it cannot be written,
    ``fallback`` is used.
    """

    def __init__(self, folder: Path, *, fallback: Path | None = None) -> None:
        self._folders = (folder,) if fallback is None else (folder, fallback)

    def load(self, key: str) -> dict[str, NDArray[Any]] | None:
        """Return the arrays of a key; None when there are none that can be trusted."""
        for folder in self._folders:
            path = folder / f"{key}.npz"
            try:
                content = _own_bytes(path)
                if content[-32:] != _digest(key, content[:-32]):
                    continue
                with np.load(io.BytesIO(content), allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
            except (OSError, ValueError, EOFError, zipfile.BadZipFile):
                continue
            with suppress(OSError):  # a folder that can be read but not written
                os.utime(path)
            return arrays
        return None

    def save(self, key: str, arrays: Arrays) -> None:
        """Keep arrays under a key, in the first folder that takes them."""
        for folder in self._folders:
            try:
                _write(folder, key, arrays)
            except OSError:
                continue
            _prune(folder, keep=f"{key}.npz")
            return


def _digest(key: str, content: bytes) -> bytes:
    return hashlib.sha256(key.encode() + content).digest()


def _own_bytes(path: Path) -> bytes:
    """Read a file that this user owns and nobody else can write to; others count as unreadable."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            raise PermissionError(f"{path}: another user can write to it")
        return file.read()


def _write(folder: Path, key: str, arrays: Arrays) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    np.savez(packed, **arrays)  # type: ignore[arg-type]
    content = packed.getvalue()
    digest = _digest(key, content)
    write_durably(folder / f"{key}.npz", lambda file: file.write(content + digest))
    fsync_folder(folder)


def _prune(folder: Path, *, keep: str) -> None:
    """Remove what has not been used for longest until the folder is below the limit.

    Other processes do the same at the same time: what is gone is gone.
    """
    known = []
    for file in (*folder.glob("*.npz"), *folder.glob("*.new")):
        with suppress(OSError):
            status = file.stat()
            known.append((status.st_mtime, status.st_size, file))
    total = 0
    for _, size, file in sorted(known, reverse=True):
        total += size
        if total > LIMIT_BYTES and file.name != keep:
            with suppress(OSError):
                file.unlink()
