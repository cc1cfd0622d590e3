"""Output files that appear complete or not at all, and never in the place of something else.

Every error of an fsync is fatal: after one the system may have dropped what it could not write,
and a second fsync would not say so.
"""

import errno
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Self

from fieldcorr.errors import FieldcorrError

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
def writing(path: Path, error: type[FieldcorrError]) -> Iterator[None]:
    """Turn an operating-system error into one line that names the path and the reason."""
    try:
        yield
    except OSError as problem:
        reason = _REASONS.get(
            problem.errno or 0, problem.strerror or " ".join(str(problem).split())
        )
        raise error(f"{path}: cannot be written: {reason}") from problem


@contextmanager
def write_beside(
    target: Path,
    *,
    error: type[FieldcorrError],
    force: bool = False,
    inputs: Iterable[Path] = (),
) -> Iterator[Path]:
    """Yield a path to write to; it takes the target's place when the block ends well.

    The path lies in a new folder beside the target. Whatever is written into that folder is moved
    next to the target, so that a format may keep its numbers in a second file. An ``error`` of one
    line says that it cannot be written, or what :func:`refuse_existing` refuses.
    """
    kept = list(inputs)
    refuse_existing(target, error=error, force=force, inputs=kept)
    with (
        writing(target, error),
        tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder,
    ):
        yield Path(folder) / target.name
        # The file of the target's name comes last: it refers to the others.
        written = sorted(Path(folder).iterdir(), key=lambda file: file.name == target.name)
        for file in written:
            refuse_existing(target.parent / file.name, error=error, force=force, inputs=kept)
        for file in written:
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
            os.replace(file, target.parent / file.name)
        fsync_folder(target.parent)


def refuse_existing(
    target: Path, *, error: type[FieldcorrError], force: bool, inputs: Iterable[Path] = ()
) -> None:
    """Refuse to replace a file that exists, unless ``force``, and one that is read in any case."""
    if any(target.exists() and file.exists() and target.samefile(file) for file in inputs):
        raise error(f"{target}: is being read and cannot be replaced; choose another name")
    if os.path.lexists(target) and not force:
        raise error(f"{target}: exists already; use --force to replace it")


def write_durably(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Make a file that is either absent or whole: written beside its name, synced, then moved.

    Several processes may do so at once: each has a draft of its own, which only its user can read.
    """
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f"{path.name}.", suffix=".new")
    draft = Path(name)
    try:
        with open(fd, "wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def user_cache() -> Path | None:
    """Return the folder where this user's programs keep what they can make again; None without."""
    try:
        home = Path.home()
    except RuntimeError:  # no HOME, and nobody in the list of users
        return None
    usual = home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or usual)


def fsync_folder(folder: Path) -> None:
    """Bring the names of a folder to the disk; only POSIX needs, and can do, this."""
    if os.name != "posix":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def limit_memory() -> None:
    """Allow this process no more memory than the machine has, where that can be set."""
    try:
        import resource

        most = max(1 << 33, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        return


class Closing:
    """A context manager that closes itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of what is held open."""
        raise NotImplementedError


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
