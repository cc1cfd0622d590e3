"""Runs that are killed: ``python -m tests.store.kill_worker`` reads kill points from stdin.

For every line "N OUTPUT" a child process is forked that writes the store and is killed with SIGKILL
at its N-th event: a change of the disk, or a report of progress, which comes after every piece that
HDF5 writes. N = 0 lets it finish. The answer is the child's exit status, and the number of events
if it finished.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fieldcorr.errors import StoreError
from fieldcorr.store import Options, WorkFolder, write_store
from tests.store.synthetic import settled_values

CHANGES = ("replace", "link", "rename", "unlink", "rmdir", "mkdir", "fsync")

OPTIONS = Options(memory=1, threads=2)


class Killer:
    """Counts events and ends the process at one of them."""

    def __init__(self, kill_at: int) -> None:
        self._kill_at = kill_at
        self.count = 0

    def install(self) -> None:
        """Put a counter in front of every function of ``os`` that changes the disk."""
        for name in CHANGES:
            setattr(os, name, self._counting(getattr(os, name)))

    def event(self, *_: Any) -> None:
        """Count one more, or end the process."""
        self.count += 1
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def _counting(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def change(*arguments: Any, **options: Any) -> Any:
            self.event()
            return original(*arguments, **options)

        return change


def write(output: Path, values: dict[str, Any], kill_at: int) -> int:
    """Write the store in this process; return the number of events."""
    killer = Killer(kill_at)
    killer.install()
    with WorkFolder(output) as folder:
        run = {"created": str(os.getpid())}
        write_store(folder, values, options=OPTIONS, run=lambda: run, progress=killer.event)
    return killer.count


def main() -> None:
    """Serve kill points until stdin ends."""
    values = settled_values()
    for line in sys.stdin:
        reader, writer = os.pipe()
        kill_at, output = line.split()
        child = os.fork()
        if child == 0:
            try:
                count = write(Path(output), values, int(kill_at))
            except StoreError:
                os._exit(1)
            os.write(writer, str(count).encode())
            os._exit(0)
        os.close(writer)
        status = os.waitpid(child, 0)[1]
        count_text = os.read(reader, 100).decode() or "0"
        os.close(reader)
        print(os.waitstatus_to_exitcode(status), count_text, flush=True)


if __name__ == "__main__":
    main()
