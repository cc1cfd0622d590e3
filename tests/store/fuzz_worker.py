"""A process that opens damaged stores: ``python -m tests.store.fuzz_worker STORE FIRST LAST``.

HDF5 may crash or hang on them; then the last line that was printed names the damage. A wrong answer
after ``check`` has found nothing, or an error that is not on purpose, is printed as a line that
begins with FAILED.
"""

import faulthandler
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from fieldcorr.errors import FieldcorrError
from fieldcorr.store import Store, check_store, open_store
from tests.store.mutations import mutate

MOST_MEMORY = 3 << 30
SECONDS = 15
"""A damage that takes longer counts as a hang; one that computes, after 3 s of its own time."""

POINT = [[0.3, 0.4, 0.5]]


def answers(store: Store) -> list[Any]:
    """Return everything that a consumer reads."""
    rows = range(0, len(store), 5)
    found: list[Any] = [store.polarity, store.ids, store.current, store.embedding, store.indptr]
    found += [store.contact_names, store.contact_positions, store.threshold, store.hash]
    found += [store.row(i) for i in rows]
    found += [part for i in rows for part in store.neighbours(i)]
    found += [store.kappa_tau(0, 1)[0], store.gram, store.admittance]
    if store.has_fields:
        found += [store.potential(i, POINT) for i in (0, len(store) - 1)]
    return found


def attempt(path: Path) -> tuple[bool, list[Any] | None]:
    """Return whether the store opens, and everything that it says; None when it refuses."""
    try:
        store = open_store(path)
    except FieldcorrError:
        return False, None
    with store:
        try:
            return True, answers(store)
        except FieldcorrError:
            return True, None


def equal(one: list[Any], other: list[Any]) -> bool:
    """Compare answers, of which the fields may be absent on one side."""
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=False))


def main(original: Path, first: int, last: int) -> None:
    """Try the damages ``first`` to ``last``."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    content = original.read_bytes()
    wanted = attempt(original)[1]
    assert wanted is not None
    assert check_store(original) == []
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.h5"
        for seed in range(first, last):
            print(seed, flush=True)
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            signal.setitimer(signal.ITIMER_VIRTUAL, 3.0)  # whose signal ends the process
            try:
                name = mutate(content, path, seed)
                opened, found = attempt(path)
                # What does not open, ``check`` does not open either: asked now and then.
                sound = (opened or seed % 5 == 0) and check_store(path) == []
            except Exception:
                print(f"FAILED seed {seed}: {traceback.format_exc()!r}", flush=True)
                continue
            if sound and (found is None or not equal(found, wanted)):
                print(f"FAILED seed {seed}: {name}: sound, but not the same numbers", flush=True)
            outcomes["sound" if sound else "found"] += 1
            path.unlink()
    print(f"DONE sound {outcomes['sound']} found {outcomes['found']}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
