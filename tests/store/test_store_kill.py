"""Batches that are killed at random points of their work end in the same bytes as any other."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.store import check_store
from tests.store.synthetic import content_hash

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX")

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
        """Return exit status and number of events of a run killed at one of them (0: never)."""
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
    """Return the number of events of an uninterrupted run."""
    status, count = worker.run(tmp_path_factory.mktemp("whole") / "whole.h5", kill_at=0)
    assert status == 0
    return count


@pytest.mark.slow
@pytest.mark.parametrize("chain", range(CHAINS))
def test_killed_again_and_again(
    chain: int, worker: Worker, changes: int, tmp_path: Path, small_store: Path
) -> None:
    assert changes > 100
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
    # A store that has its name is whole; the same command says so, and tidies up.
    named = output.exists()
    assert worker.run(output, kill_at=0)[0] == (1 if named else 0)
    assert content_hash(output) == content_hash(small_store)
    assert [p.name for p in tmp_path.iterdir()] == ["killed.h5"]
    assert check_store(output) == []


@pytest.mark.slow
def test_an_interruption_loses_one_block(worker: Worker, changes: int, tmp_path: Path) -> None:
    output = tmp_path / "killed.h5"
    # Every block is a report, a removal, an fsync and a move: 20 blocks of 23 are there by then.
    worker.run(output, kill_at=4 * 20 + 10)
    blocks = sorted((tmp_path / "killed.h5.partial").glob("*.rows"))
    assert len(blocks) >= 18
    before = {path: path.stat().st_mtime_ns for path in blocks}
    assert worker.run(output, kill_at=28)[0] == -9  # one report for every block that is found
    assert before == {path: path.stat().st_mtime_ns for path in blocks}
    assert worker.run(output, kill_at=0)[0] == 0
