"""The work folder of a batch: STORE.h5.partial, beside the store that it will become.

It holds finished blocks of rows, the HDF5 file while it is being written, and a lock that ends
with the process that holds it, however it ends. A folder of that name that is not a work folder,
and files in it that are not ours, are never touched; links are never followed.
"""

import os
import shutil
from pathlib import Path
from typing import Self

from filelock import FileLock, Timeout

from fieldcorr.errors import StoreError
from fieldcorr.files import fsync_folder, writing

LOCK = "fieldcorr.lock"
"""The lock, and the mark by which a work folder is known; its text names the process."""

OURS = ("*.rows", "*.new", "store.h5")
"""What a batch leaves in its folder, apart from the lock and the folder of solved fields. The draft
is removed last: as long as it is there, a finished batch is known by it."""


class WorkFolder:
    """A locked folder for one batch; a context manager.

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
        self._lock = FileLock(self.path / LOCK, timeout=0)

    @property
    def draft(self) -> Path:
        """The HDF5 file while it is being written."""
        return self.path / "store.h5"

    @property
    def fields(self) -> Path:
        """Where solved lead fields are kept when the user's cache cannot be written."""
        return self.path / "fields"

    def __enter__(self) -> Self:
        with writing(self.output, StoreError):
            self._take()
        if self.output.exists() and not self.force:
            if self.draft.exists() and self.draft.samefile(self.output):
                self.clear()  # a batch that was ended between its last two steps
            self._leave()
            raise self._taken()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def clear(self) -> None:
        """Remove what batches leave here, and nothing else."""
        if self.fields.is_dir() and not self.fields.is_symlink():
            shutil.rmtree(self.fields)
        for pattern in OURS:
            for item in self.path.glob(pattern):
                if item.is_symlink() or not item.is_dir():
                    item.unlink()

    def publish(self) -> None:
        """Rename the finished draft, sync the new name to the disk, and tidy up.

        With ``force`` the old store is there until the new one takes its place. Without, a hard
        link is made, which fails when the name has been taken meanwhile; where links are not
        supported, the file is renamed.
        """
        with writing(self.output, StoreError):
            if self.force:
                os.replace(self.draft, self.output)
            else:
                self._link()
            fsync_folder(self.output.parent)
            self.clear()

    def _link(self) -> None:
        try:
            os.link(self.draft, self.output)
        except FileExistsError as error:
            raise self._taken() from error
        except OSError as error:
            if self.output.exists():
                raise self._taken() from error
            os.rename(self.draft, self.output)

    def _taken(self) -> StoreError:
        return StoreError(f"{self.output}: exists already; use --force to replace it")

    def _take(self) -> None:
        """Create the folder if needed and lock it."""
        mark = self.path / LOCK
        while not self._lock.is_locked:
            if not self._is_ours():
                raise StoreError(f"{self.path}: is in the way; it is no work folder of fieldcorr")
            self.path.mkdir(exist_ok=True)
            owner = _owner(mark)  # before the try, which empties the file with filelock 3
            try:
                self._lock.acquire()
            except Timeout as error:
                raise StoreError(
                    f"{self.path}: another process is writing here ({owner})"
                ) from error
            except FileNotFoundError:
                continue  # another process has just finished and removed its folder
        if os.name == "posix":  # elsewhere a locked file cannot be written
            mark.write_text(f"process {os.getpid()}\n")

    def _is_ours(self) -> bool:
        """Tell whether the name is free, or that of an empty folder or of one with our mark."""
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_dir()):
            return False
        mark = self.path / LOCK
        try:
            found = os.listdir(self.path)  # a single look: others make and remove marks meanwhile
        except FileNotFoundError:
            return True
        marked = LOCK in found and not (mark.is_symlink() or mark.is_dir())
        return marked or not found

    def _leave(self) -> None:
        """Remove the folder if only the lock is left in it, and unlock it."""
        if not self._lock.is_locked:
            return
        try:
            if [item.name for item in self.path.iterdir()] == [LOCK]:
                if os.name != "posix":
                    self._lock.release()  # an open file cannot be removed there
                (self.path / LOCK).unlink()
                self.path.rmdir()
        except OSError:
            # Another process came in between: the folder is its own now.
            pass
        finally:
            self._lock.release()


def _owner(mark: Path) -> str:
    try:
        return mark.read_text().strip() or "unknown process"
    except (OSError, ValueError):
        return "unknown process"
