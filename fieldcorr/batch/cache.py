"""Solved lead fields, kept between batches.

What flows in: a lead field and the key of everything that it depends on. What flows out: the same
lead field, bit for bit, when the same key is asked for again: a batch whose rules, drive or region
have changed does not solve again. The folder is $FIELDCORR_CACHE, or fieldcorr in the user's cache
folder; entries that have not been used for longest are removed when it grows too large.
"""

import hashlib
import json
import os
import sys
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fieldcorr
from fieldcorr.store.disk import fsync_folder

LIMIT_BYTES = 4 << 30
"""The cache is kept below this size."""

Arrays = dict[str, NDArray[Any]]


def default_folder() -> Path:
    """Return the cache folder of this user."""
    chosen = os.environ.get("FIELDCORR_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fieldcorr"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fieldcorr"


@cache
def code_hash() -> str:
    """Return the sha256 of the sources that a lead field comes from.

    A changed solver must not meet fields of the old one.
    """
    package = Path(fieldcorr.__file__).parent
    parts = ("fem", "elements", "leadfield", "contacts.py", "tissue.py")
    files = [f for part in parts for f in sorted(_sources(package / part))]
    total = hashlib.sha256(fieldcorr.__version__.encode())
    for file in files:
        total.update(file.relative_to(package).as_posix().encode() + file.read_bytes())
    return total.hexdigest()


def _sources(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.glob("**/*.py"))


def key_of(inputs: Mapping[str, Any]) -> str:
    """Return the key of a set of inputs, as hexadecimal text."""
    text = json.dumps({**inputs, "code": code_hash()}, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Cache:
    """A folder of array files.

    Parameters
    ----------
    folder
        Where they are; made when first needed.
    fallback
        Folder that is used when ``folder`` cannot be written.
    """

    def __init__(self, folder: Path, *, fallback: Path) -> None:
        self._folders = (folder, fallback)

    def load(self, key: str) -> Arrays | None:
        """Return the arrays of a key; None when they are absent or damaged."""
        for folder in self._folders:
            path = folder / f"{key}.npz"
            try:
                with np.load(path, allow_pickle=False) as file:
                    arrays = {name: file[name] for name in file.files}
                os.utime(path)
            except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
                continue
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


def _write(folder: Path, key: str, arrays: Arrays) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"{key}.{os.getpid()}.new"
    try:
        with draft.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, folder / f"{key}.npz")
    finally:
        draft.unlink(missing_ok=True)
    fsync_folder(folder)


def _prune(folder: Path, *, keep: str) -> None:
    """Remove what has not been used for longest until the folder is below the limit."""
    files = [*folder.glob("*.npz"), *folder.glob("*.new")]
    known = sorted(((f.stat().st_mtime, f.stat().st_size, f) for f in files), reverse=True)
    total = 0
    for _, size, file in known:
        total += size
        if total > LIMIT_BYTES and file.name != keep:
            file.unlink(missing_ok=True)
