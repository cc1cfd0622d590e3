"""The work folder of a batch: STORE.h5.partial, beside the store that it will become.

What flows in: the name of the store. What flows out: a locked folder in which stages leave what
they have finished, and the move of the finished file to its name. The lock is advisory (``flock``)
and ends with the process that holds it, however it ends.
"""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from fieldcorr.errors import StoreError
from fieldcorr.store.disk import fsync_folder, write_text

_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "part of the path is not a folder",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an operating-system error into a :class:`StoreError` that names the path and reason."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StoreError(f"{path}: cannot be written: {reason}") from error


class WorkFolder:
    """A locked folder for one batch.

    Parameters
    ----------
    output
        The store to be made.
    force
        Replace a store that already has this name.
    """

    def __init__(self, output: Path, *, force: bool = False) -> None:
        self.output = output.absolute()
        self.path = self.output.with_name(self.output.name + ".partial")
        self.force = force
        self._lock = -1

    @property
    def draft(self) -> Path:
        """The HDF5 file while it is being built."""
        return self.path / "store.h5"

    @property
    def _manifest(self) -> Path:
        return self.path / "inputs.json"

    def __enter__(self) -> Self:
        with storage_errors(self.output):
            self._lock = _take_lock(self.path)
        try:
            self._refuse_existing()
        except StoreError:
            # Nothing of ours is in a folder that was only just made: leave no trace.
            self._leave()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if self._lock >= 0:
            _remove_if_empty(self.path)
            os.close(self._lock)
            self._lock = -1

    def _refuse_existing(self) -> None:
        if self.output.exists() and not self.force and not self.is_finished():
            raise StoreError(f"{self.output}: exists already; use --force to replace it")

    def is_finished(self) -> bool:
        """Tell whether the draft already stands under the store's name (killed before tidying)."""
        return self.draft.exists() and self.output.exists() and self.draft.samefile(self.output)

    def claim(self, inputs: str) -> bool:
        """Make the folder belong to a batch with these inputs.

        What another batch has left is thrown away. Returns True when this very batch has finished
        and only the tidying is left to do.
        """
        same = self._manifest.exists() and self._manifest.read_text() == inputs
        if same and self.is_finished() and not self.force:
            return True
        if not same or self.is_finished():
            self.clear()
            self._refuse_existing()
            with storage_errors(self.path):
                write_text(self._manifest, inputs)
        return False

    def clear(self) -> None:
        """Remove everything but the lock; last what tells a finished batch: draft and inputs."""
        last = (self.draft, self._manifest)
        for item in sorted(self.path.iterdir(), key=lambda i: last.index(i) if i in last else -1):
            if item.name == "lock":
                continue
            if item.is_dir() and not item.is_symlink():
                shutil.rmtree(item)
            else:
                item.unlink()

    def publish(self) -> None:
        """Give the finished draft its name and remove the folder.

        Without ``force`` a hard link is made, which fails when the name has been taken meanwhile;
        where links are not supported, the file is renamed.
        """
        with storage_errors(self.output):
            if not self.is_finished():
                self._move()
            fsync_folder(self.output.parent)
            self.clear()

    def _move(self) -> None:
        if self.force:
            os.replace(self.draft, self.output)
            return
        try:
            os.link(self.draft, self.output)
        except FileExistsError as error:
            raise StoreError(f"{self.output}: exists already; use --force to replace it") from error
        except OSError:
            os.rename(self.draft, self.output)


def _take_lock(folder: Path) -> int:
    """Create the folder if needed and lock it; the lock file may vanish under us: then retry."""
    while True:
        folder.mkdir(exist_ok=True)
        name = folder / "lock"
        try:
            lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue
        if _lock(lock, folder) and name.exists() and os.path.samestat(os.fstat(lock), name.stat()):
            return lock
        os.close(lock)


def _lock(lock: int, folder: Path) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        owner = os.pread(lock, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(lock)
        raise StoreError(f"{folder}: another process is writing here (process {owner})") from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return True


def _remove_if_empty(folder: Path) -> None:
    try:
        if {item.name for item in folder.iterdir()} <= {"lock", "inputs.json"}:
            (folder / "inputs.json").unlink(missing_ok=True)
            (folder / "lock").unlink()
            folder.rmdir()
    except OSError:
        # Another process came in between: the folder is its own now.
        return
