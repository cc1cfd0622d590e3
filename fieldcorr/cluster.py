"""Tasks in processes of their own, on this machine or on a cluster, by dask.distributed.

A task is a plain function of paths and numbers that may run anywhere and twice: what is large it
writes to a file, and what it returns is small. Where it runs changes nothing in its result, so the
same loop serves this process, new processes, and a cluster::

    with workers("local") as crew:
        for number, result in crew.results(task, [(path, 0), (path, 1)]):
            ...
"""

import logging
import re
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from fieldcorr import __version__
from fieldcorr._parallel import available_threads, threads
from fieldcorr.errors import ClusterError, missing_extra
from fieldcorr.progress import Progress, silent

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
"""What stands for new processes on this machine in the place of an address."""

ADDRESS = re.compile(r"((tcp|tls|ucx|wss?)://)?[^/\s]+:\d+")
"""Where a scheduler is; dask leaves a client behind when it cannot read one."""

PATIENCE = 10
"""Seconds in which a scheduler has to answer."""

START = "forkserver" if sys.platform == "linux" else "spawn"
"""How processes start here: where forking is safe, from one that has loaded PRELOADED for all."""

PRELOADED = ["distributed", "numba.np.arraymath"]
"""What takes a process 0.3 s to load; the first call of a kernel would load the second."""

SETTINGS = {
    "distributed.worker.multiprocessing-method": START,
    # Workers that a task may be lost with before it is taken for what ends them.
    "distributed.scheduler.allowed-failures": 10,
    # Nobody looks at the profile of a worker, which is taken every 10 ms, or at its clock.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
}
"""What dask does otherwise for processes here; a cluster has settings of its own."""

IN_FLIGHT = 1000
"""Tasks that the scheduler knows of at a time: 10 000 took it 18 s to forget."""

DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Workers here leave Ctrl-C, which reaches all processes of a terminal, to the one that asks."""

T = TypeVar("T")


class Crew(Protocol):
    """What runs tasks."""

    def results(
        self,
        task: Callable[..., T],
        arguments: Sequence[tuple[object, ...]],
        *,
        report: Callable[[float], object] | None = None,
    ) -> Iterator[tuple[int, T]]:
        """Yield the number of a task and what ``task(*arguments[number])`` returns, as they come.

        ``report`` is called with the share that is done.
        """


@contextmanager
def workers(
    where: str | None, *, count: int | None = None, progress: Progress = silent
) -> Iterator[Crew]:
    """Yield what runs tasks: in this process (None), in new ones ("local"), or at an address.

    ``count`` is how many new processes there are, one per core unless told otherwise. Each task
    has one thread for its kernels.
    """
    if where is None:
        yield _Here()
        return
    with _connected(where, count) as client:
        if not client.scheduler_info()["workers"]:
            progress("waiting for workers", 0.0)
        yield _Dask(client, where)


class _Here:
    """Runs tasks one after the other in this process."""

    def results(
        self,
        task: Callable[..., T],
        arguments: Sequence[tuple[object, ...]],
        *,
        report: Callable[[float], object] | None = None,
    ) -> Iterator[tuple[int, T]]:
        for number, own in enumerate(arguments):
            yield number, task(*own)
            if report is not None:
                report((number + 1) / len(arguments))


class _Dask:
    """Runs tasks on the workers of a scheduler; dask repeats those of lost workers."""

    def __init__(self, client: "Client", where: str) -> None:
        self._client, self._where = client, where

    def results(
        self,
        task: Callable[..., T],
        arguments: Sequence[tuple[object, ...]],
        *,
        report: Callable[[float], object] | None = None,
    ) -> Iterator[tuple[int, T]]:
        from distributed import as_completed

        waiting, running = iter(enumerate(arguments)), as_completed(loop=self._client.loop)
        numbers: dict[Any, int] = {}

        def submit(count: int) -> None:
            some = list(islice(waiting, count))
            # Whole calls: dask would look for tasks of its own in tuples of arguments.
            calls = [partial(task, *own) for _, own in some]
            futures = self._client.map(partial(_run, __version__), calls, pure=False)
            numbers.update(zip(futures, (number for number, _ in some), strict=True))
            running.update(futures)

        try:
            submit(IN_FLIGHT)
            for done, future in enumerate(running, start=1):
                yield numbers.pop(future), self._result(future)
                submit(1)
                if report is not None:
                    report(done / len(arguments))
        finally:
            self._client.cancel(list(numbers), force=True)

    def _result(self, future: Any) -> Any:
        from distributed.client import FutureCancelledError
        from distributed.scheduler import KilledWorker

        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterError(
                f"--dask {self._where}: a task was lost with each of its workers, the last of them "
                f"{error.last_worker.address}: have they enough memory?"
            ) from error
        except FutureCancelledError as error:
            raise ClusterError(f"--dask {self._where}: the scheduler went away") from error
        except ImportError as error:
            raise ClusterError(
                f"--dask {self._where}: a worker cannot load fieldcorr {__version__}: {error}"
            ) from error


def _run(version: str, call: Callable[[], T]) -> T:
    """Run a task on a worker, with one thread: dask counts the others."""
    if version != __version__:
        raise ClusterError(
            f"the worker on {socket.gethostname()} has fieldcorr {__version__}, not {version}"
        )
    with threads(1):
        return call()


@contextmanager
def _connected(where: str, count: int | None) -> Iterator["Client"]:
    try:
        import dask
        from distributed import Client, LocalCluster
        from distributed.utils import get_mp_context
    except ImportError as error:
        raise missing_extra(f"--dask {where}", "dask.distributed", "dask") from error
    if where == LOCAL:
        with dask.config.set(SETTINGS):
            if START == "forkserver":
                get_mp_context().set_forkserver_preload(PRELOADED)
            # No memory limit: what is large is in files, and killing a worker would not mend it.
            with (
                LocalCluster(
                    n_workers=count or available_threads(),
                    threads_per_worker=1,
                    memory_limit=0,
                    dashboard_address="127.0.0.1:0",
                    preload=DEAF,
                    silence_logs=logging.CRITICAL,  # what goes wrong is raised here
                ) as cluster,
                Client(cluster, set_as_default=False) as client,
            ):
                yield client
        return
    if not ADDRESS.fullmatch(where):
        raise ClusterError(f'--dask {where}: must be "local" or an address, tcp://HOST:PORT')
    try:
        client = Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(f"--dask {where}: no scheduler answers there") from error
    with client:
        yield client
