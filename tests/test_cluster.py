"""Work in other processes: the same results with one worker, two and a lost one; how it ends."""

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldcorr import cluster
from fieldcorr._parallel import available_threads
from fieldcorr.cluster import Crew, workers
from fieldcorr.duel.simulate import Player, simulate
from fieldcorr.duel.worlds import ElectrodeSpace, Grid, World
from fieldcorr.errors import ClusterError, DuelError, StoreError
from fieldcorr.store import Options, WorkFolder, open_store, write_store
from fieldcorr.store.blocks import make_block
from tests.store.synthetic import content_hash, make_store, settled_values

pytest.importorskip("distributed")
pytestmark = pytest.mark.slow  # processes start


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    with workers("local", count=2) as found:
        yield found


def refuse(number: int) -> int:
    if number == 3:
        raise DuelError("three is refused")
    return number


def test_results_come_with_their_numbers_and_errors_as_they_are(crew: Crew) -> None:
    shares: list[float] = []
    tasks = [(value,) for value in (7, 5, 7)]
    assert dict(crew.results(refuse, tasks, report=shares.append)) == {0: 7, 1: 5, 2: 7}
    assert shares == pytest.approx([1 / 3, 2 / 3, 1.0])
    with pytest.raises(DuelError, match="three is refused"):
        list(crew.results(refuse, [(3,)]))
    with workers(None) as here:
        assert dict(here.results(refuse, tasks, report=shares.append)) == {0: 7, 1: 5, 2: 7}
    assert shares[3:] == shares[:3]


def test_a_task_has_one_thread_and_a_process_of_its_own(crew: Crew) -> None:
    assert {n for _, n in crew.results(available_threads, [()] * 4)} == {1}
    assert os.getpid() not in {pid for _, pid in crew.results(os.getpid, [()] * 4)}


def test_a_worker_of_another_version_is_refused() -> None:
    with pytest.raises(ClusterError, match=r"has fieldcorr .*, not 99"):
        cluster._run("99", os.getpid)


# -- blocks of a store ----------------------------------------------------------------------------

SMALL_BLOCKS = {
    "all, with r": Options(memory=1),
    "threshold": Options(memory=1, matrix=False, threshold=0.5),
    "largest": Options(memory=1, matrix=False, top_k=5),
}


def store_by(crew: Crew | None, path: Path, options: Options) -> str:
    """Write the synthetic store with blocks of a crew and return the digest of its content."""
    with WorkFolder(path) as folder:
        write_store(folder, settled_values(), options=options, crew=crew)
    assert not path.with_name(f"{path.name}.partial").exists()
    return content_hash(path)


@pytest.mark.parametrize("options", SMALL_BLOCKS.values(), ids=SMALL_BLOCKS.keys())
def test_a_store_is_the_same_whoever_makes_its_blocks(
    options: Options, crew: Crew, tmp_path: Path
) -> None:
    alone = store_by(None, tmp_path / "alone.h5", options)
    assert store_by(crew, tmp_path / "two.h5", options) == alone


class Disturbed:
    """A crew with slow tasks, to which something happens when the first is done."""

    def __init__(self, crew: Crew, disturb: Callable[[], None]) -> None:
        self.crew, self.disturb = crew, disturb
        self.done: list[int] = []

    def results(
        self, task: Any, arguments: Sequence[tuple[Any, ...]], **options: Any
    ) -> Iterator[Any]:
        assert task is make_block
        for number, result in self.crew.results(slow_block, arguments, **options):
            yield number, result
            if not self.done:
                self.disturb()
            self.done.append(number)


def slow_block(*arguments: Any) -> None:
    time.sleep(0.1)
    make_block(*arguments)


def test_the_blocks_of_a_lost_worker_are_made_again(tmp_path: Path) -> None:
    alone = store_by(None, tmp_path / "alone.h5", Options(memory=1))
    with workers("local", count=1) as one:
        assert store_by(one, tmp_path / "one.h5", Options(memory=1)) == alone
        ((_, victim),) = one.results(os.getpid, [()])
        disturbed = Disturbed(one, lambda: os.kill(victim, signal.SIGKILL))
        assert store_by(disturbed, tmp_path / "lost.h5", Options(memory=1)) == alone
        assert sorted(disturbed.done) == list(range(23))
        ((_, successor),) = one.results(os.getpid, [()])
        assert successor != victim


def test_an_interrupted_batch_goes_on_with_the_blocks_of_workers(
    crew: Crew, tmp_path: Path
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    path, options = tmp_path / "stopped.h5", Options(memory=1)
    with pytest.raises(KeyboardInterrupt), WorkFolder(path) as folder:
        write_store(folder, settled_values(), options=options, crew=Disturbed(crew, interrupt))
    left = {file: file.stat().st_mtime_ns for file in Path(f"{path}.partial").glob("*-*-*.rows")}
    assert left
    kept: dict[Path, int] = {}

    def look() -> None:
        kept.update({file: file.stat().st_mtime_ns for file in left})

    assert store_by(Disturbed(crew, look), path, options) == store_by(
        None, tmp_path / "alone.h5", options
    )
    assert kept == left


def test_a_folder_that_workers_do_not_see_is_named(crew: Crew, tmp_path: Path) -> None:
    task = str(tmp_path / "elsewhere" / "0.rows"), Options(), ""
    with pytest.raises(StoreError, match=r"elsewhere/0\.rows: cannot be read on .* same path"):
        list(crew.results(make_block, [(*task, 0, 8)]))


# -- chunks of a campaign -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["grid", "store"])
def test_a_campaign_is_the_same_whoever_plays_it(name: str, crew: Crew, tmp_path: Path) -> None:
    players = [Player("CorrDuel", "CorrDuel"), Player("random", "LinearThompson")]
    with open_store(make_store(tmp_path / "small.h5")) as store:
        worlds: dict[str, World] = {"grid": Grid(side=5), "store": ElectrodeSpace.of_store(store)}
        world = worlds[name]
        assert len(pickle.dumps(world)) < 500, "arrays do not travel"
        settings: dict[str, Any] = {"trials": 53, "horizon": 12, "seed": 3}
        alone = simulate(world, players, **settings)
        shared = simulate(world, players, **settings, crew=crew)
    for one, other in zip(alone.outcomes, shared.outcomes, strict=True):
        np.testing.assert_array_equal(one.eps, other.eps)
        np.testing.assert_array_equal(one.regret, other.regret)
        np.testing.assert_array_equal(one.kept, other.kept)
    assert alone.table()[1][0][:-1] == shared.table()[1][0][:-1]


# -- the command line -----------------------------------------------------------------------------

SIMULATE = ["-m", "fieldcorr", "simulate", "paper", "--engine", "tests.test_cluster:Slow"]


class Slow:
    """An engine that takes its time."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def ask(self) -> tuple[int, int]:
        time.sleep(0.1)
        return 0, 1

    def tell(self, winner: int, loser: int) -> None: ...


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense", 'must be "local" or an address, tcp://HOST:PORT'),
        ("tcp://127.0.0.1:9", "no scheduler answers there"),
    ],
)
def test_an_address_without_a_scheduler_is_named(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    with pytest.raises(ClusterError, match=rf"--dask {address}: {words}"), workers(address):
        pass


def test_a_missing_extra_is_named() -> None:
    program = (
        "import sys; sys.modules['distributed'] = None\nfrom fieldcorr.cli import main; main()\n"
    )
    command = [sys.executable, "-c", program, *SIMULATE[2:], "--dask", "local"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 2
    assert "--dask local needs dask.distributed, which is not installed" in run.stderr
    assert "Traceback" not in run.stderr


@pytest.mark.skipif(os.name != "posix", reason="a group of processes")
def test_ctrl_c_ends_all_processes() -> None:
    command = [sys.executable, *SIMULATE, "--horizon", "3", "--trials", "9999", "--verbose"]
    command += ["--dask", "local", "--threads", "2"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stderr is not None
        while "Slow" not in (line := run.stderr.readline()):
            assert line, "ended early"
        os.killpg(run.pid, signal.SIGINT)
        said = run.stderr.read()
        assert run.wait(timeout=60) == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert not left_of_group(run.pid)


def left_of_group(group: int) -> bool:
    """Tell whether a process of a group is left, when init has had time to bury the last."""
    for _ in range(100):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True
