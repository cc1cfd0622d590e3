"""Everything a store promises, verified.

The structure comes first, then the digest of every dataset, then what the numbers mean
(:mod:`~fieldcorr.store.promises`). :func:`check_store` looks in this process; a file that nobody
vouches for may make the HDF5 library itself crash or hang, so the command line looks through
:func:`check_apart`, in a process of its own with limits of time and memory, where that is one more
finding.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

import numpy as np

from fieldcorr._parallel import threads as kernel_threads
from fieldcorr.errors import FieldcorrError, StoreError
from fieldcorr.files import limit_memory
from fieldcorr.progress import Progress, silent
from fieldcorr.store import layout
from fieldcorr.store.layout import Entry
from fieldcorr.store.reader import Store
from fieldcorr.store.sweeps import is_sweep, open_sweep

DEFAULT_MEMORY = 1 << 28

SLAB_BYTES = 1 << 25
"""Read at once for a digest: a copy may be in chunks of any shape, each of which is unpacked once
for every read that touches it."""

PATIENCE = 300.0
"""Seconds without a word after which the process that looks is taken to hang; the longest silence
of a sound store is the compilation of the kernels, under a minute on a busy machine."""


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where, and what."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


def check_store(
    path: str | Path,
    *,
    memory: int = DEFAULT_MEMORY,
    threads: int | None = None,
    progress: Progress = silent,
) -> list[Finding]:
    """Verify a store, or a sweep, completely and return what is wrong; nothing when it is sound.

    Parameters
    ----------
    path
        The store.
    memory
        Bytes for blocks of r.
    threads
        Threads of the kernels; None for all.
    progress
        Called with the stage and the share that is done.
    """
    try:
        if is_sweep(path):
            open_sweep(path)  # which verifies all of it
            return []
        store = Store(Path(path))
    except StoreError as error:
        return [Finding("structure", _without_path(error, path))]
    with store, kernel_threads(threads):
        findings = _guarded("checksums", store, lambda: _check_digests(store, progress))
        if not findings:
            # Numbers that are not what was written are not worth interpreting.
            findings += _check_promises(store, memory, progress)
    return findings


def _check_promises(store: Store, memory: int, progress: Progress) -> list[Finding]:
    from fieldcorr.store.promises import check_rows, checks_of

    findings: list[Finding] = []
    for name, check in checks_of(store).items():
        progress(name, 0.0)
        findings += _guarded(
            name,
            store,
            lambda check=check: (Finding(*f) for f in check(store)),  # type: ignore[misc]
        )
        progress(name, 1.0)
    return findings + _guarded(
        "rows", store, lambda: (Finding(*f) for f in check_rows(store, memory, progress))
    )


def _guarded(name: str, store: Store, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Run a check; anything that cannot be read on the way is a finding too."""
    try:
        # Numbers of a forged file may overflow: what counts is the comparison in the end.
        with np.errstate(all="ignore"):
            return list(check())
    except FieldcorrError as error:
        return [Finding(name, _without_path(error, store.path))]
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        return [Finding(name, f"cannot be evaluated: {error!r}")]


def _check_digests(store: Store, progress: Progress) -> Iterator[Finding]:
    yield from _check_members(store)
    entries = [e for e in store.entries if e.path not in layout.LATE]
    for name in sorted(set(store.digests) - {entry.path for entry in entries}):
        yield Finding("/provenance/sha256", f"names {name}, which is not in the file")
    for number, entry in enumerate(entries):
        yield from _check_digest(store, entry, progress)
        progress("checksums", (number + 1) / len(entries))


def _check_digest(store: Store, entry: Entry, progress: Progress) -> Iterator[Finding]:
    try:
        found = _digest_in_file(store, entry, progress)
    except StoreError as error:
        yield Finding(entry.path, _without_path(error, store.path))
        return
    recorded = store.digests.get(entry.path)
    if recorded is None:
        yield Finding(entry.path, "has no recorded sha256")
    elif found != recorded:
        yield Finding(entry.path, "does not match its recorded sha256")


def _digest_in_file(store: Store, entry: Entry, progress: Progress) -> str:
    """Digest a dataset slab by slab, over the blocks that its shape defines."""
    item = store.dataset(entry.path)
    chunk = layout.chunk_shape(entry, item.shape)
    if chunk is None:
        store.array(entry.path)
        return store.digests[entry.path]
    row_bytes = item.dtype.itemsize * int(np.prod(item.shape[1:]))
    rows = max(1, SLAB_BYTES // (row_bytes * chunk[0])) * chunk[0]
    digests: list[bytes] = []
    for start in range(0, item.shape[0], rows):
        slab = store.part(entry.path, slice(start, min(start + rows, item.shape[0])))
        digests += [layout.digest_block(entry, slab[b]) for b in layout.blocks(chunk, slab.shape)]
        progress(f"checksum of {entry.path}", min(1.0, (start + rows) / item.shape[0]))
    return layout.combine(entry, item.shape, digests)


def _check_members(store: Store) -> Iterator[Finding]:
    """Look for members and encodings that the format does not declare."""
    known = {group.path: group.encoding for group in layout.GROUPS}
    known |= {entry.path: entry.encoding for entry in layout.ENTRIES}
    present = ["/", *(entry.path for entry in store.entries)]
    for group in layout.GROUPS:
        for name in store.members(group.path):
            member = f"{group.path.rstrip('/')}/{name}"
            if member not in known and _minor(store.format) <= _minor(layout.FORMAT):
                yield Finding(member, f"is not part of format {store.format}")
            if member in known and member not in present:
                present.append(member)
    for name in present:
        found = store.encoding(name)
        if found != known[name]:
            yield Finding(name, f"is encoded as {found}, not {known[name]}")


def _minor(version: str) -> int:
    digits = version.partition(".")[2]
    return int(digits) if digits.isdecimal() else 0


def _without_path(error: Exception, path: str | Path) -> str:
    return str(error).removeprefix(f"{path}: ")


# -- in a process of its own ------------------------------------------------------------------


def check_apart(
    path: str | Path,
    *,
    threads: int | None = None,
    progress: Progress = silent,
    patience: float = PATIENCE,
) -> list[Finding]:
    """Verify a store in a process of its own, which may crash, hang or run out of memory.

    Parameters
    ----------
    path, threads, progress
        As for :func:`check_store`.
    patience
        Seconds without a word after which the process is ended.
    """
    command = [sys.executable, "-m", "fieldcorr.store.check", str(path), json.dumps(threads)]
    lines: SimpleQueue[str] = SimpleQueue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as child:
        reader = Thread(target=_pass_on, args=(child, lines), daemon=True)
        reader.start()
        try:
            while line := lines.get(timeout=patience):
                kind, *values = json.loads(line)
                if kind == "findings":
                    return [Finding(*finding) for finding in values]
                progress(*values)
            code = child.wait(patience)
        except (Empty, subprocess.TimeoutExpired):
            return [Finding("structure", f"the HDF5 library hangs on it ({patience:g} s)")]
        finally:
            child.kill()
            reader.join()
    return [Finding("structure", f"the HDF5 library crashed on it ({_ending(code)})")]


def _pass_on(child: "subprocess.Popen[str]", lines: "SimpleQueue[str]") -> None:
    """Hand over what the process says, line by line; the last line is empty."""
    assert child.stdout is not None
    for line in child.stdout:
        lines.put(line)
    lines.put("")


def _ending(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def main() -> None:
    """Check the store that the command line names; print progress and findings as lines of JSON."""
    path, threads = sys.argv[1], json.loads(sys.argv[2])
    limit_memory()
    said: dict[str, int] = {}

    def report(stage: str, done: float) -> None:
        if said.get(stage) != int(100 * done):
            said[stage] = int(100 * done)
            print(json.dumps(["progress", stage, done]), flush=True)

    try:
        found = check_store(path, threads=threads, progress=report)
    except MemoryError:
        found = [Finding("structure", "asks for more memory than this machine has")]
    print(json.dumps(["findings", *((f.where, f.problem) for f in found)]), flush=True)


if __name__ == "__main__":
    main()
