"""Writing to the disk so that nothing is lost or half there.

What flows in: bytes and names. What flows out: files whose content and names have reached the
disk, and a sparse file object for HDF5.
"""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import numpy as np


class SparseFile:
    """A file object for h5py that leaves holes where HDF5 writes long runs of zeros.

    HDF5 fills the room that it reserves; with gigabytes of tiles to come that would write every
    byte twice. Holes read back as the same zeros.

    HDF5 does not survive an exception from here (it cannot close the file then): the first error
    is kept, nothing more is written, and :meth:`close` raises it.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        self._position = 0
        self._error: OSError | None = None

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move, as files do."""
        base = (0, self._position, os.fstat(self._fd).st_size)[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int) -> bytes:
        """Read at the position; beyond the end of the file are zeros not yet written."""
        data = os.pread(self._fd, size, self._position).ljust(size, b"\0")
        self._position += size
        return data

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer from the position on."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def write(self, buffer: memoryview) -> int:
        """Write at the position, unless it is a long run of zeros."""
        size = len(buffer)
        if size < 4096 or not _is_zero(buffer):
            self._attempt(lambda: write_all(self._fd, buffer, self._position))
        self._position += size
        return size

    def truncate(self, size: int | None = None) -> int:
        """Set the length of the file."""
        length = self._position if size is None else size
        self._attempt(lambda: os.ftruncate(self._fd, length))
        return length

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def close(self) -> None:
        """Bring the file to the disk and close it; raise the first error there was."""
        self._attempt(lambda: os.fsync(self._fd))
        os.close(self._fd)
        if self._error is not None:
            raise self._error

    def _attempt(self, action: Callable[[], object]) -> None:
        if self._error is None:
            try:
                action()
            except OSError as error:
                self._error = error


class Flusher:
    """Brings a file to the disk in the background, while more is being written to it.

    Otherwise the last fsync of a large store waits for all of it. A context manager.

    Parameters
    ----------
    fd
        The open file.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pool = ThreadPoolExecutor(1)
        self._job: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)

    def nudge(self) -> None:
        """Begin to flush what has been written so far, unless that is under way."""
        if self._job is not None and not self._job.done():
            return
        if self._job is not None:
            self._job.result()  # an error of the disk shows here
        self._job = self._pool.submit(os.fdatasync, self._fd)


def _is_zero(buffer: memoryview) -> bool:
    """Tell whether a buffer is all zeros, eight bytes at a time."""
    words = len(buffer) // 8
    head = np.frombuffer(buffer, np.uint64, words)
    return not head.any() and not any(buffer[8 * words :])


def write_all(fd: int, buffer: Any, offset: int) -> None:
    """Write a whole buffer at an offset; ``pwrite`` alone may write less."""
    view = memoryview(buffer).cast("B")
    while len(view):
        done = os.pwrite(fd, view, offset)
        view, offset = view[done:], offset + done


def write_text(path: Path, text: str) -> None:
    """Write a small file durably: beside its name, then moved into place."""
    draft = path.with_name(path.name + ".new")
    with draft.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)


def fsync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
