"""The journal: an append-only text file that is the only state of a session.

One line per record, JSON, human-readable::

    {"line": 3, "time": "...", "event": "duel", "left": 5, ..., "check": "9f86d081884c7d65"}

``check`` is taken over the text of the line and the check of the line before, so that a changed,
lost or moved line is noticed. A record is on the disk before :meth:`Journal.append` returns. Bytes
after the last line end were never acknowledged: they are reported, never interpreted.

Whole lines cut off at the end leave no trace in the file itself. ``NAME.end`` beside it says how
many lines there were after the last answer, and a journal with fewer is refused. Where that file is
missing or was cut back too, a person can tell: ``run`` and ``status`` show the number of lines and
the check of the last one, which covers all before it.

One process writes at a time, by a lock on a file beside the journal, ``NAME.lock``, which stays.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from fieldcorr.errors import JournalError
from fieldcorr.files import Closing, write_beside, writing

FORMAT = "fieldcorr-journal 1"
_CHECK = ', "check": "'
_MARK = "end of journal: "  # how the file beside it begins
_DIGITS = 16
_TAIL = len(_CHECK) + _DIGITS + len('"}')
_PATIENCE = 0.5  # s: is_locked() of another process holds a lock for a moment


@dataclass(frozen=True)
class JournalContent:
    """What a journal file holds."""

    header: dict[str, Any]  # the first record: format, store, algorithm, options
    records: tuple[dict[str, Any], ...]  # all further ones, in order
    torn: bytes  # what follows the last line end, never acknowledged; usually empty
    size: int  # bytes up to the last line end
    check: str  # of the last line

    @property
    def lines(self) -> int:
        """Number of complete lines."""
        return 1 + len(self.records)


def read_journal(path: Path) -> JournalContent:
    """Read and verify a journal without locking it; an error names the first damaged line."""
    _check_regular(path)
    recorded = _recorded_lines(path)  # first: another process may be writing
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
    return _complete(parse_journal(data, path), recorded, path)


def parse_journal(data: bytes, path: Path) -> JournalContent:
    """Verify the bytes of a journal; ``path`` is for messages."""
    *lines, torn = data.split(b"\n")
    if not lines:
        raise JournalError(f"{path}: no complete first line, so nothing was recorded in it")
    records = []
    check = ""
    for number, line in enumerate(lines, start=1):
        record, check = _verified(line, number, check, path)
        records.append(record)
    header = records[0]
    if header.get("format") != FORMAT:
        raise JournalError(f"{path}: format {header.get('format')!r} is not {FORMAT!r}")
    return JournalContent(header, tuple(records[1:]), torn, len(data) - len(torn), check)


def _verified(line: bytes, number: int, before: str, path: Path) -> tuple[dict[str, object], str]:
    """Return the record of one line and its check."""
    try:
        text = line.decode("utf-8")
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{path}: line {number} is damaged: it is no JSON") from error
    check = text[-_DIGITS - 2 : -2]
    body = text[:-_TAIL] + "}"
    if not isinstance(record, dict) or text != _sealed(body, check):
        raise JournalError(f"{path}: line {number} is damaged: it has no check at its end")
    if record.get("line") != number:
        found = record.get("line")
        raise JournalError(f"{path}: line {number} calls itself {found}: lines are lost or moved")
    if check != _digest(before, body):
        raise JournalError(f"{path}: line {number} is damaged or edited: its check does not match")
    record.pop("check")
    return record, check


def _digest(before: str, body: str) -> str:
    return hashlib.sha256((before + body).encode("utf-8")).hexdigest()[:_DIGITS]


def _sealed(body: str, check: str) -> str:
    return f'{body[:-1]}{_CHECK}{check}"}}'


class Journal(Closing):
    """A journal open for writing, locked against every other process: ``create`` or ``open``."""

    def __init__(self, path: Path, lock: FileLock) -> None:
        self.path = path
        self._lock = lock
        self._descriptor = -1
        try:
            flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
            self._descriptor = os.open(path, flags)
            with os.fdopen(os.dup(self._descriptor), "rb") as file:
                content = parse_journal(file.read(), path)
            self.content = _complete(content, _recorded_lines(path), path)
        except OSError as error:
            self.close()
            raise JournalError(f"{path}: cannot be opened: {error.strerror}") from error
        except BaseException:
            self.close()
            raise
        self._torn = self.content.torn
        self._end = self.content.lines, self.content.check, self.content.size

    @classmethod
    def create(cls, path: Path, header: Mapping[str, object]) -> Self:
        """Make a new journal with its first line; an existing file is refused, if it says anything.

        The journal appears under its name with its first line complete, or not at all.
        """
        lock = _locked(path)
        try:
            if path.exists() and not (path.is_file() and path.stat().st_size == 0):
                raise JournalError(f"{path}: exists already; a journal is never overwritten")
            record = {"line": 1, "time": _now(), "event": "session", "format": FORMAT, **header}
            data, _ = _line(record, "", path)
            with writing(path, JournalError):
                if _recorded_lines(path):
                    _end_file(path).unlink()  # of a journal that had this name
            with write_beside(path, error=JournalError, force=True) as draft:
                draft.write_bytes(data)
        except BaseException:
            lock.release()
            raise
        return cls(path, lock)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing journal, verify it and lock it.

        Bytes after the last line end stay until something is appended; then they are cut off and
        kept, as text, in a record of their own.
        """
        _check_regular(path)
        return cls(path, _locked(path))

    def close(self) -> None:
        """Release file and lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._lock.release()

    @property
    def lines(self) -> int:
        """Number of complete lines."""
        return self._end[0]

    @property
    def end(self) -> str:
        """Number of lines and check of the last one, which tell a journal that was cut."""
        return f"{self._end[0]} lines, check {self._end[1]}"

    def append(self, record: Mapping[str, object]) -> int:
        """Write one record and return its line number once it is on the disk.

        A write that fails or is interrupted closes the journal: what the file holds is then known
        only by reading it again.
        """
        self._check_file()
        torn, self._torn = self._torn, b""
        if torn:
            with self._closed_on_failure():
                os.ftruncate(self._descriptor, self._end[2])
            text = torn.decode("utf-8", "replace")
            self._add({"event": "torn", "bytes": len(torn), "text": text})
        return self._add(record)

    def _add(self, record: Mapping[str, object]) -> int:
        before, check, size = self._end
        numbered = {"line": before + 1, "time": _now(), **record}
        data, check = _line(numbered, check, self.path)
        with self._closed_on_failure():
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
            self._end = before + 1, check, size + len(data)
        self._note_end()
        return before + 1

    def _note_end(self) -> None:
        with suppress(OSError):  # the answer is recorded without it
            if _recorded_lines(self.path) is not None:
                _end_file(self.path).write_text(f"{_MARK}{self.end} ({self._end[0]})\n")

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise JournalError(
                    f"{self.path}: the last answer is not recorded: {error.strerror}"
                ) from error
            raise

    def _check_file(self) -> None:
        """Refuse to write into a file that someone else has changed, replaced or removed."""
        if self._descriptor < 0:
            raise JournalError(f"{self.path}: closed")
        own = os.fstat(self._descriptor)
        try:
            there = os.stat(self.path)
        except OSError as error:
            raise JournalError(f"{self.path}: was removed while in use") from error
        same = (own.st_ino, own.st_dev) == (there.st_ino, there.st_dev)
        if not same or own.st_size != self._end[2] + len(self._torn):
            raise JournalError(f"{self.path}: was changed by something else while in use")


def is_locked(path: Path) -> bool:
    """Return whether another process has the journal open for writing."""
    file = _lock_file(path)
    if not file.exists():
        return False
    try:
        with FileLock(file, timeout=0):
            return False
    except Timeout:
        return True
    except (OSError, NotImplementedError):
        return False  # a folder that only others may write to


def _locked(path: Path) -> FileLock:
    """Lock the journal for this process; the system releases it when the process ends, however."""
    file = _lock_file(path)
    if not file.parent.is_dir():  # which the lock would make
        raise JournalError(f"{path}: cannot be made: there is no folder {file.parent}")
    lock = FileLock(file, timeout=_PATIENCE, poll_interval=0.02, thread_local=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise JournalError(f"{path}: in use by another process") from error
    except (OSError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise JournalError(f"{path}: cannot be locked: {reason}") from error
    return lock


def _lock_file(path: Path) -> Path:
    """Return the file that is locked: one for all names that links give a journal."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}.lock")


def _end_file(path: Path) -> Path:
    """Return the file that says where a journal ends."""
    real = Path(os.path.realpath(path))
    return real.with_name(f"{real.name}.end")


def _recorded_lines(path: Path) -> int | None:
    """Return how many lines a journal has had, by the file beside it.

    0 where that is not known, None where the file is not ours. A crash may leave any part of it:
    the number counts if it is there twice.
    """
    file = _end_file(path)
    if not os.path.lexists(file):
        return 0
    if file.is_symlink() or not file.is_file():
        return None
    try:
        text = file.read_bytes()[:200].decode("utf-8", "replace")
    except OSError:
        return None
    if not text.startswith(_MARK[: len(text)]):
        return None
    said = re.fullmatch(_MARK + r"(\d{1,15}) lines, check [0-9a-f]{16} \(\1\)\n", text)
    return int(said[1]) if said else 0


def _complete(content: JournalContent, recorded: int | None, path: Path) -> JournalContent:
    """Refuse a journal that has lost lines at its end."""
    if content.lines < (recorded or 0):
        raise JournalError(
            f"{path}: ends after line {content.lines}, but {recorded} lines were recorded; "
            f"if it is meant to be without the last ones, remove {_end_file(path).name}"
        )
    return content


def _check_regular(path: Path) -> None:
    """Refuse what is no file: a pipe would wait for a writer for ever."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise JournalError(f"{path}: is no regular file")
    except OSError as error:
        raise JournalError(f"{path}: cannot be opened: {error.strerror}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _line(record: Mapping[str, object], before: str, path: Path) -> tuple[bytes, str]:
    """Return the bytes of one line, and its check over this line and the one before."""
    try:
        body = json.dumps(record, ensure_ascii=False, allow_nan=False, default=_plain)
        check = _digest(before, body)
        return (_sealed(body, check) + "\n").encode("utf-8"), check
    except (TypeError, ValueError) as error:
        raise JournalError(f"{path}: this cannot be kept: {error}") from error


def _plain(value: object) -> Any:
    """Return a numpy number as Python's, anything else that JSON lacks as text."""
    return value.item() if hasattr(value, "item") else str(value)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
