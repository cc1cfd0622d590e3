"""The journal: an append-only text file that is the only state of a session.

What flows in: records (plain dictionaries). What flows out: the same records, or a refusal. One
line per record, JSON, human-readable::

    {"line": 3, "time": "...", "event": "duel", "left": 5, ..., "check": "9f86d081884c7d65"}

``check`` is taken over the text of the line and the check of the line before, so that a changed,
lost or moved line is noticed. A record is on the disk before :meth:`Journal.append` returns. Bytes
after the last line end were never acknowledged: they are reported, never interpreted.
"""

import errno
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fieldcorr.errors import JournalError

try:
    import fcntl
except ImportError:  # not a POSIX system: engines work, journals say why they do not
    fcntl = None  # type: ignore[assignment]

FORMAT = "fieldcorr-journal 1"
_CHECK = ', "check": "'
_DIGITS = 16
_TAIL = len(_CHECK) + _DIGITS + len('"}')


@dataclass(frozen=True)
class JournalContent:
    """What a journal file holds.

    Attributes
    ----------
    header : dict
        The first record: format, store, algorithm, options.
    records : tuple of dict
        All further records, in order.
    torn : bytes
        What follows the last line end: an answer that was never acknowledged, usually empty.
    size : int
        Bytes up to the last line end.
    check : str
        The check of the last line.
    """

    header: dict[str, Any]
    records: tuple[dict[str, Any], ...]
    torn: bytes
    size: int
    check: str


def read_journal(path: Path) -> JournalContent:
    """Read and verify a journal without locking it.

    Raises
    ------
    JournalError
        Naming the first line that is damaged, missing or out of order.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error.strerror}") from error
    return parse_journal(data, path)


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


def _verified(line: bytes, number: int, before: str, path: Path) -> tuple[dict[str, Any], str]:
    """Return the record of one line and its check."""
    try:
        text = line.decode("utf-8")
        record = json.loads(text)
    except ValueError as error:
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


class Journal:
    """A journal open for writing, locked against every other process.

    Use :meth:`create` or :meth:`open`; a context manager.
    """

    def __init__(self, path: Path, descriptor: int, content: JournalContent | None) -> None:
        self.path = path
        self._descriptor = descriptor
        self._size = content.size if content else 0
        self._check = content.check if content else ""
        self._line = len(content.records) + 1 if content else 0
        self._torn = content.torn if content else b""
        self.content = content

    @classmethod
    def create(cls, path: Path, header: Mapping[str, Any]) -> Self:
        """Make a new journal with its first line; an existing file is refused."""
        try:
            flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL
            descriptor = os.open(path, flags, 0o644)
        except FileExistsError as error:
            raise JournalError(f"{path}: exists already; a journal is never overwritten") from error
        except OSError as error:
            raise JournalError(f"{path}: cannot be made: {error.strerror}") from error
        _lock(descriptor, path)
        journal = cls(path, descriptor, None)
        journal.append({"event": "session", "format": FORMAT, **header})
        _sync_directory(path.parent)
        return journal

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing journal, verify it and lock it.

        Bytes after the last line end stay until something is appended; then they are cut off and
        kept, as text, in a record of their own.
        """
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened: {error.strerror}") from error
        try:
            _lock(descriptor, path)
            return cls(path, descriptor, parse_journal(_read_all(descriptor), path))
        except BaseException:
            os.close(descriptor)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release file and lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, record: Mapping[str, Any]) -> int:
        """Write one record and return its line number once it is on the disk."""
        self._check_file()
        self._set_torn_line_aside()
        line = self._line + 1
        stamp = datetime.now(UTC).isoformat(timespec="seconds")
        record = {"line": line, "time": stamp, **record}
        body = json.dumps(record, ensure_ascii=False, default=_plain)
        check = _digest(self._check, body)
        data = (_sealed(body, check) + "\n").encode("utf-8")
        try:
            _write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        except OSError as error:
            self.close()
            raise JournalError(
                f"{self.path}: the last answer is not recorded: {error.strerror}"
            ) from error
        self._line, self._check, self._size = line, check, self._size + len(data)
        return line

    def _set_torn_line_aside(self) -> None:
        torn, self._torn = self._torn, b""
        if torn:
            os.ftruncate(self._descriptor, self._size)
            text = torn.decode("utf-8", "replace")
            self.append({"event": "torn", "bytes": len(torn), "text": text})

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
        if not same or own.st_size != self._size + len(self._torn):
            raise JournalError(f"{self.path}: was changed by something else while in use")


def _lock(descriptor: int, path: Path) -> None:
    """Lock the file for this process; the system releases it when the process ends, however."""
    if fcntl is None:
        raise JournalError(f"{path}: journals need POSIX file locks, which this system lacks")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise JournalError(f"{path}: in use by another process") from error
        raise JournalError(f"{path}: cannot be locked: {error.strerror}") from error


def is_locked(path: Path) -> bool:
    """Return whether another process has the journal open for writing."""
    if fcntl is None:
        return False
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _plain(value: Any) -> Any:
    """Return a numpy number as Python's, anything else that JSON lacks as text."""
    return value.item() if hasattr(value, "item") else str(value)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_directory(folder: Path) -> None:
    """Make the name of a new file as durable as its content."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
