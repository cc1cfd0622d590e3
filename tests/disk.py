"""A disk between the package and the system, which records, fails and forgets.

:func:`recording` puts itself in front of every call that changes files below a folder: opening,
writing, cutting, syncing, naming and removing. One of them can be made to fail. From the record of
a run, :meth:`Disk.crash` makes what may be on the disk when the power goes after any of its calls:
data that was not synced may be there, be torn or be missing, and so may names whose folder was not
synced, in the order in which they were given.
"""

import builtins
import errno
import io
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from fieldcorr.files import QuietFile

Failing = Callable[[int, str, str], bool]
"""Tells from the number of a call, from 1, its name and path whether it fails."""

NOTHING, NAMES, EVERYTHING = 0, 1, 2
"""What of the unsynced survives a crash: nothing, names without data, everything (a kill). Any
larger number is the seed of a random part."""


class Call(NamedTuple):
    """One change: ``file`` is the number of a file, ``path`` and ``target`` are names."""

    kind: str
    path: str = ""
    target: str = ""
    file: int = 0
    offset: int = 0
    data: bytes = b""


@dataclass(eq=False)
class Disk:
    """What happened below ``root``, and what was there before."""

    root: Path
    fails: Failing
    error: int
    calls: list[Call] = field(default_factory=list)
    count: int = 0
    names: dict[str, int] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    contents: dict[int, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by inode number, which the system uses again
        self._next = itertools.count(1)
        self._lock = threading.RLock()
        self.folders.add(str(self.root))
        for path in self.root.rglob("*"):
            if path.is_dir():
                self.folders.add(str(path))
            else:
                number = self.new_file(path.stat())
                self.names[str(path)] = number
                self.contents[number] = path.read_bytes()

    # -- recording --------------------------------------------------------------------------------

    def sees(self, path: str) -> bool:
        """Tell whether a path is of interest."""
        return path == str(self.root) or path.startswith(f"{self.root}{os.sep}")

    def announce(self, kind: str, path: str) -> None:
        """Count a call that is about to be made; fail it if it is its turn."""
        with self._lock:
            self.count += 1
            if self.fails(self.count, kind, path):
                raise OSError(self.error, os.strerror(self.error), path)

    def add(self, kind: str, **what: Any) -> None:
        """Record a call that was made."""
        with self._lock:
            self.calls.append(Call(kind, **what))

    def mark(self, text: object) -> None:
        """Record what a user has been told by now."""
        self.add("mark", path=str(text))

    def new_file(self, status: os.stat_result) -> int:
        """Give a number to a file that has just been made."""
        with self._lock:
            number = self._numbers[status.st_ino] = next(self._next)
            return number

    def number(self, status: os.stat_result) -> int:
        """Return the number of a file."""
        return self._numbers[status.st_ino]

    # -- what a crash may leave -------------------------------------------------------------------

    def crash(self, after: int, survives: int, folder: Path) -> list[str]:
        """Make, in a new folder, what may be left by a crash after so many calls; return marks."""
        calls, rng = self.calls[:after], np.random.default_rng(survives)
        folder.mkdir()
        names, folders = self._surviving_names(calls, survives, rng)
        for name in sorted(folders):
            self._moved(name, folder).mkdir(parents=True, exist_ok=True)
        made: dict[int, Path] = {}
        for name, file in names.items():
            path = self._moved(name, folder)
            if file in made:
                path.hardlink_to(made[file])
            elif os.path.dirname(name) in folders:
                path.write_bytes(self._surviving_content(calls, file, survives, rng))
                made[file] = path
        return [call.path for call in calls if call.kind == "mark"]

    def _moved(self, name: str, folder: Path) -> Path:
        return folder / Path(name).relative_to(self.root)

    def _surviving_names(
        self, calls: list[Call], survives: int, rng: np.random.Generator
    ) -> tuple[dict[str, int], set[str]]:
        changes = [
            (call, _is_synced(call, calls[place:]))
            for place, call in enumerate(calls)
            if call.kind in ("create", "rename", "link", "unlink", "mkdir", "rmdir")
        ]
        loose = sum(not synced for _, synced in changes)
        kept = {NOTHING: 0, NAMES: loose, EVERYTHING: loose}.get(survives, rng.integers(loose + 1))
        names, folders = dict(self.names), set(self.folders)
        for call, synced in changes:
            kept -= not synced
            if synced or kept >= 0:
                _rename(call, names, folders)
        return names, folders

    def _surviving_content(
        self, calls: list[Call], file: int, survives: int, rng: np.random.Generator
    ) -> bytes:
        content = self.contents.get(file, b"")
        loose: list[Call] = []
        for call in calls:
            if call.file == file and call.kind == "fsync":
                content, loose = call.data, []
            elif call.file == file and call.kind in ("write", "truncate"):
                loose.append(call)
        if survives in (NOTHING, NAMES):
            return content
        for call in loose:
            data = call.data
            if survives != EVERYTHING:
                if rng.integers(2):
                    continue
                data = data[: rng.integers(len(data) + 1)] if rng.integers(2) else data
            content = _changed(content, call, data)
        return content


def _is_synced(call: Call, later: list[Call]) -> bool:
    """Tell whether a name is on the disk for good: the folder that it went to was synced since."""
    where = os.path.dirname(call.target or call.path)
    return any(c.kind == "fsync folder" and c.path == where for c in later)


def _rename(call: Call, names: dict[str, int], folders: set[str]) -> None:
    if call.kind in ("rename", "unlink"):
        names.pop(call.path, None)
    if call.kind in ("rename", "link", "create"):
        names[call.target or call.path] = call.file
    if call.kind == "mkdir":
        folders.add(call.path)
    if call.kind == "rmdir":
        folders.discard(call.path)


def _changed(content: bytes, call: Call, data: bytes) -> bytes:
    if call.kind == "truncate":
        return content[: call.offset].ljust(call.offset, b"\0")
    before = content[: call.offset].ljust(call.offset, b"\0")
    return before + data + content[call.offset + len(data) :]


# -- in front of the system -----------------------------------------------------------------------


class RecordedFile(io.FileIO):
    """A file of Python's lowest layer whose changes are recorded."""

    disk: Disk

    def __init__(self, file: Any, mode: str = "r", closefd: bool = True, opener: Any = None):
        path = "" if isinstance(file, int) else os.path.abspath(os.fspath(file))
        changes = bool(set(mode) & set("wax+")) and self.disk.sees(path)
        existed = os.path.lexists(path)
        if changes:
            self.disk.announce("open", path)
        super().__init__(file, mode, closefd, opener)
        status = os.fstat(self.fileno())
        if changes and not existed:
            self.disk.add("create", path=path, file=self.disk.new_file(status))
        elif changes and "w" in mode:
            self.disk.add("truncate", file=self.disk.number(status))

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        path = _path_of(self.fileno())
        if self.disk.sees(path):
            self.disk.announce("write", path)
        done = super().write(view) or 0
        if self.disk.sees(path):
            file = self.disk.number(os.fstat(self.fileno()))
            start = self.tell() - done
            self.disk.add("write", file=file, offset=start, data=bytes(view[:done]))
        return done

    def truncate(self, size: int | None = None) -> int:
        path = _path_of(self.fileno())
        if not self.disk.sees(path):
            return super().truncate(size)
        self.disk.announce("truncate", path)
        size = super().truncate(size)
        self.disk.add("truncate", file=self.disk.number(os.fstat(self.fileno())), offset=size)
        return size


def _path_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")


def _absolute(path: Any, dir_fd: int | None = None) -> str:
    folder = os.getcwd() if dir_fd is None else _path_of(dir_fd)
    return os.path.abspath(os.path.join(folder, os.fsdecode(path)))


@contextmanager
def recording(
    root: Path, *, fails: Failing = lambda *_: False, error: int = errno.EIO
) -> Iterator[Disk]:
    """Record, and fail, what this process does to the files below ``root``."""
    disk = Disk(root, fails, error)
    recorded = type("RecordedFile", (RecordedFile,), {"disk": disk})
    real = {name: getattr(os, name) for name in dir(os)}

    def opened(file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None,
               errors: Any = None, newline: Any = None, closefd: bool = True,
               opener: Any = None) -> Any:  # fmt: skip
        if not set(mode) & set("wax+"):
            return io_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = recorded(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffered
        return io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

    def os_open(path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        name = _absolute(path, dir_fd)
        makes = bool(flags & os.O_CREAT) and disk.sees(name) and not os.path.lexists(name)
        if makes:
            disk.announce("open", name)
        fd: int = real["open"](path, flags, mode, dir_fd=dir_fd)
        if makes:
            disk.add("create", path=name, file=disk.new_file(os.fstat(fd)))
        elif flags & os.O_TRUNC and disk.sees(name):
            disk.add("truncate", file=disk.number(os.fstat(fd)))
        return fd

    def write(fd: int, data: bytes) -> int:
        if not disk.sees(path := _path_of(fd)):
            return int(real["write"](fd, data))
        disk.announce("write", path)
        size = os.fstat(fd).st_size  # the package writes this way only at the end of a journal
        done: int = real["write"](fd, data)
        disk.add("write", file=disk.number(os.fstat(fd)), offset=size, data=data[:done])
        return done

    def ftruncate(fd: int, size: int) -> None:
        if disk.sees(path := _path_of(fd)):
            disk.announce("truncate", path)
            disk.add("truncate", file=disk.number(os.fstat(fd)), offset=size)
        real["ftruncate"](fd, size)

    def fsync(fd: int) -> None:
        path, status = _path_of(fd), os.fstat(fd)
        if not disk.sees(path):
            real["fsync"](fd)
        elif stat.S_ISDIR(status.st_mode):
            disk.announce("fsync folder", path)
            disk.add("fsync folder", path=path)
        else:
            disk.announce("fsync", path)
            content = Path(f"/proc/self/fd/{fd}").read_bytes()
            disk.add("fsync", path=path, file=disk.number(status), data=content)

    def two_names(name: str, kind: str) -> Callable[..., None]:
        def change(source: Any, target: Any, **options: Any) -> None:
            path = _absolute(target)
            if not disk.sees(path):
                real[name](source, target, **options)
                return
            disk.announce(name, path)
            file = disk.number(os.stat(source, follow_symlinks=False))
            real[name](source, target, **options)
            disk.add(kind, path=_absolute(source), target=path, file=file)

        return change

    def one_name(name: str) -> Callable[..., None]:
        def change(path: Any, *arguments: Any, dir_fd: int | None = None) -> None:
            where = _absolute(path, dir_fd)
            if disk.sees(where):
                disk.announce(name, where)
            real[name](path, *arguments, dir_fd=dir_fd)
            if disk.sees(where):
                disk.add("unlink" if name == "remove" else name, path=where)

        return change

    io_open = io.open
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", opened)
        patch.setattr(io, "open", opened)
        for change in (write, ftruncate, fsync):
            patch.setattr(os, change.__name__, change)
        patch.setattr(os, "open", os_open)
        for name, kind in {"replace": "rename", "rename": "rename", "link": "link"}.items():
            patch.setattr(os, name, two_names(name, kind))
        for name in ("unlink", "remove", "mkdir", "rmdir"):
            patch.setattr(os, name, one_name(name))
        QuietFile.__bases__ = (recorded,)
        try:
            yield disk
        finally:
            QuietFile.__bases__ = (io.FileIO,)
