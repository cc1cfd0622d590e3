"""Writing to the disk so that nothing is lost or half there.

Every error of an fsync is fatal: after one the system may have dropped what it could not write,
and a second fsync would not say so.
"""

import errno
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fieldcorr.errors import StoreError

_REASONS = {
    errno.ENOSPC: "the disk is full",
    getattr(errno, "EDQUOT", -1): "the disk quota is used up",
    errno.EFBIG: "the file would be larger than allowed here",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "part of the path is not a folder",
    errno.ELOOP: "part of the path is a symbolic link",
}


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn an operating-system error into a :class:`StoreError` that names the path and reason."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or " ".join(str(error).split()))
        raise StoreError(f"{path}: cannot be written: {reason}") from error


def write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Make a file that is either absent or whole: written beside its name, synced, then moved."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    with draft.open("xb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def fsync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk; only POSIX needs, and can do, this."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class QuietFile(io.FileIO):
    """A new file for HDF5 to write to, which keeps its first error instead of raising it.

    HDF5 crashes when it closes a file whose last writes have failed, on a full disk for one. Here
    it never learns of it: nothing more is written, and :meth:`require` raises the error.

    Parameters
    ----------
    path
        A name that is free; a link of that name is not followed.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "x+")
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write all bytes at the position."""
        view = memoryview(data).cast("B")
        end = self.tell() + len(view)
        while len(view) and self.error is None:
            try:
                view = view[super().write(view) :]
            except OSError as error:
                self.error = error
        self.seek(end)
        return memoryview(data).nbytes

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer from the position on; what could not be written reads as zeros."""
        view = memoryview(buffer).cast("B")
        read = super().readinto(view) or 0
        view[read:] = bytes(len(view) - read)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return self.tell() if size is None else size

    def require(self) -> None:
        """Raise the first error there was."""
        if self.error is not None:
            raise self.error

    def sync(self) -> None:
        """Bring everything that was written to the disk, or raise what kept it from there."""
        self.require()
        os.fsync(self.fileno())
