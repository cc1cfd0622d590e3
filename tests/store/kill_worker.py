"""Runs that are killed: ``python -m tests.store.kill_worker`` reads kill points from stdin.

For every line "N OUTPUT" a child process is forked that writes the store and is killed with SIGKILL
in the middle of its N-th change of the disk: writes are torn in half first. N = 0 lets it finish.
The answer is the child's exit status, and the number of changes that it made if it finished.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from fieldcorr.store import Options, WorkFolder, write_store
from tests.store.synthetic import settled_values

CHANGES = (
    "pwritev",
    "pwrite",
    "replace",
    "link",
    "rename",
    "unlink",
    "rmdir",
    "mkdir",
    "ftruncate",
    "fsync",
)

REAL_PWRITE = os.pwrite

OPTIONS = Options(memory=1, threads=2)


class Killer:
    """Counts changes of the disk and ends the process in the middle of one of them."""

    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self._lock = Lock()
        self.count = 0

    def install(self) -> None:
        """Put a counter in front of every function of ``os`` that changes the disk."""
        for name in CHANGES:
            setattr(os, name, self._counting(name, getattr(os, name)))

    def _counting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self.count += 1
                if self.count == self._kill_at:
                    if name.startswith("pwrite"):
                        tear(*arguments)
                    os.kill(os.getpid(), signal.SIGKILL)
            return original(*arguments, **options)

        return change


def tear(fd: int, data: Any, offset: int) -> None:
    """Write the first half of what was to be written."""
    parts = data if isinstance(data, list) else [data]
    whole = b"".join(bytes(part) for part in parts)
    REAL_PWRITE(fd, whole[: len(whole) // 2], offset)


def write(output: Path, values: dict[str, Any], kill_at: int) -> int:
    """Write the store in this process; return how often the disk was changed."""
    killer = Killer(kill_at)
    killer.install()
    with WorkFolder(output) as folder:
        if folder.claim("{}"):
            folder.publish()
        else:
            write_store(folder, values, options=OPTIONS, run=lambda: {"created": str(os.getpid())})
    return killer.count


def main() -> None:
    """Serve kill points until stdin ends."""
    values = settled_values()
    for line in sys.stdin:
        reader, writer = os.pipe()
        kill_at, output = line.split()
        child = os.fork()
        if child == 0:
            count = write(Path(output), values, int(kill_at))
            os.write(writer, str(count).encode())
            os._exit(0)
        os.close(writer)
        status = os.waitpid(child, 0)[1]
        count_text = os.read(reader, 100).decode() or "0"
        os.close(reader)
        print(os.waitstatus_to_exitcode(status), count_text, flush=True)


if __name__ == "__main__":
    main()
