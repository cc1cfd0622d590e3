"""Kernels on several threads: the same bits, nothing set for others, any thread may compute."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from fieldcorr._parallel import available_threads, run_ranges, threads

pytestmark = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


@numba.njit(nogil=True)
def _mark(start, stop, out, sizes):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        out[i] += 1
        sizes[i] = stop - start


@pytest.mark.parametrize("count", [0, 1, 2, 7, 1000])
@pytest.mark.parametrize("wanted", [1, 2, None])
def test_every_number_is_in_one_range(count: int, wanted: int | None) -> None:
    out, sizes = np.zeros((2, count), dtype=np.int64)
    with threads(wanted) as chosen:
        run_ranges(_mark, count, out, sizes)
    assert (out == 1).all()
    assert (sizes >= count // chosen).all()


def test_short_ranges_are_not_handed_over() -> None:
    out, sizes = np.zeros((2, 10), dtype=np.int64)
    run_ranges(_mark, 10, out, sizes, least=6)
    assert (sizes == 10).all()


def test_thread_count_is_that_of_the_innermost_block() -> None:
    everyone = available_threads()
    with threads(1):
        assert available_threads() == 1
        with threads(None):
            assert available_threads() == 1
        with threads(10**6):
            assert available_threads() == everyone
        with ThreadPoolExecutor(1) as other:
            assert other.submit(available_threads).result() == everyone
    assert available_threads() == everyone


def test_many_threads_may_launch_at_the_same_time() -> None:
    def compute(_: int) -> int:
        out, sizes = np.zeros((2, 1000), dtype=np.int64)
        for _ in range(50):
            run_ranges(_mark, 1000, out, sizes)
        return int(out.sum())

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(compute, range(16))) == {50_000}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_computes() -> None:
    out, sizes = np.zeros((2, 1000), dtype=np.int64)
    run_ranges(_mark, 1000, out, sizes)
    child = os.fork()
    if child == 0:
        run_ranges(_mark, 1000, out, sizes)
        os._exit(0 if (out == 2).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


HOST = """
    import threading
    import numba, numpy as np
    numba.config.THREADING_LAYER = "threadsafe"
    from fieldcorr.fem.assembly import geometry_tensors
    from fieldcorr.correlation.tiles import correlation_rows, pack_embedding

    geometry_tensors(np.eye(4, 3), np.arange(4, dtype=np.int32)[None], np.ones((1, 6)))
    correlation_rows(pack_embedding(np.eye(16)), 0, 16)

    @numba.njit(parallel=True)
    def host(out):
        for i in numba.prange(out.size):
            out[i] = i

    def run():
        for _ in range(2000):
            host(np.empty(1000))

    try:
        host(np.empty(1))
    except ValueError:
        print("no layer")
    else:
        jobs = [threading.Thread(target=run) for _ in range(4)]
        [job.start() for job in jobs]
        [job.join() for job in jobs]
        print("done")
"""


def test_a_host_program_keeps_its_own_threading_layer() -> None:
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HOST)], capture_output=True, text=True, check=False
    )
    if "no layer" in run.stdout:
        pytest.skip("numba has no threadsafe layer here")
    assert (run.returncode, run.stdout) == (0, "done\n"), run.stderr
