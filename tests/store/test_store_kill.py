"""Batches that are killed at random points of their work end in the same bytes as any other."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store import check_store, open_store
from tests.store.synthetic import content_hash

CHAINS = 4
KILLS_PER_CHAIN = 10


class Worker:
    """A process that writes stores and has them killed on demand."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.kill_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, output: Path, *, kill_at: int) -> tuple[int, int]:
        """Return exit status and number of changes of a run killed at a change (0: never)."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kill_at} {output}\n")
        self.process.stdin.flush()
        status, count = self.process.stdout.readline().split()
        return int(status), int(count)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def changes(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> int:
    """Return how often an uninterrupted run changes the disk."""
    status, count = worker.run(tmp_path_factory.mktemp("whole") / "whole.h5", kill_at=0)
    assert status == 0
    return count


@pytest.mark.slow
@pytest.mark.parametrize("chain", range(CHAINS))
def test_killed_again_and_again(
    chain: int, worker: Worker, changes: int, tmp_path: Path, small_store: Path
) -> None:
    assert changes > 150
    rng = np.random.default_rng(chain)
    output = tmp_path / "killed.h5"
    kills = 0
    while kills < KILLS_PER_CHAIN:
        # The first run may be killed anywhere; later ones have less left to do.
        most = changes if kills == 0 else changes // 4
        status, _ = worker.run(output, kill_at=int(rng.integers(1, most)))
        assert status in (-9, 0)
        kills += status == -9
        if output.exists():
            assert content_hash(output) == content_hash(small_store), "named before it was whole"
            output.unlink()
            for left in tmp_path.glob("killed.h5.partial/*"):
                left.unlink()
    assert worker.run(output, kill_at=0)[0] == 0
    assert content_hash(output) == content_hash(small_store)
    assert [p.name for p in tmp_path.iterdir()] == ["killed.h5"]
    assert check_store(output) == []


@pytest.mark.slow
@pytest.mark.parametrize("back", range(1, 14))
def test_killed_during_the_last_steps(
    back: int, worker: Worker, changes: int, tmp_path: Path, small_store: Path
) -> None:
    """Digests, status, move and tidying, each in turn."""
    output = tmp_path / "killed.h5"
    assert worker.run(output, kill_at=changes - back)[0] == -9
    if not output.exists():
        draft = tmp_path / "killed.h5.partial" / "store.h5"
        status = draft.read_bytes()[:4096].count(b"complete")
        if not status:
            with pytest.raises(StoreError, match="fieldcorr-status is"):
                open_store(draft)
    # When only the empty folder was left to remove, the next run finds a finished store.
    tidied = output.exists() and not list(tmp_path.glob("killed.h5.partial/store.h5"))
    assert worker.run(output, kill_at=0)[0] == (1 if tidied else 0)
    assert content_hash(output) == content_hash(small_store)
    assert [p.name for p in tmp_path.iterdir()] == ["killed.h5"]
