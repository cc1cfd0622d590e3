"""Threads for the kernels: how many, and how a kernel is spread over them.

Kernels are compiled serially with ``nogil=True`` and take a range of rows; :func:`run_ranges` gives
each thread a range of its own. This needs no threading layer of numba, so nothing is set for the
rest of the process, several Python threads may compute at the same time, and a kernel compiles in
less than half the time that ``parallel=True`` takes. Nothing happens on import.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from itertools import pairwise

_chosen: ContextVar[int | None] = ContextVar("threads of the kernels", default=None)


def available_threads() -> int:
    """Return the number of threads that kernels use here: all cores, unless told otherwise."""
    import numba

    return _chosen.get() or int(numba.config.NUMBA_NUM_THREADS)


@contextmanager
def threads(count: int | None) -> Iterator[int]:
    """Let the kernels that this Python thread starts inside the block use ``count`` threads.

    None changes nothing; more threads than there are cores are not used.
    """
    import numba

    chosen = available_threads()
    if count is not None:
        chosen = max(1, min(count, int(numba.config.NUMBA_NUM_THREADS)))
    token = _chosen.set(chosen)
    try:
        yield chosen
    finally:
        _chosen.reset(token)


def run_ranges(kernel: Callable[..., None], count: int, *args: object, least: int = 1) -> None:
    """Call ``kernel(start, stop, *args)`` on ranges that together cover ``range(count)``.

    There is one range per thread, the first of which the calling thread takes itself. Where the
    ranges are cut depends on the number of threads, so a kernel writes each of its results for one
    number in the range alone (one row, or one block of rows) and the bits of a result do not
    depend on the number of threads. A launch costs about 0.03 ms.

    Parameters
    ----------
    kernel
        Compiled with ``numba.njit(nogil=True, cache=True)``. Its first two arguments are the
        range, int64.
    count
        How many rows, or blocks of rows, there are; nothing happens for 0.
    args
        The kernel's other arguments, arrays to write to among them.
    least
        A thread gets at least this many: less is done sooner than handed over.

    Examples
    --------
    >>> import numba, numpy as np
    >>> def double(start, stop, values, out):
    ...     for i in range(start, stop):
    ...         out[i] = 2.0 * values[i]
    >>> out = np.empty(5)
    >>> run_ranges(numba.njit(double, nogil=True), 5, np.arange(5.0), out)
    >>> out.tolist()
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    shares = max(1, min(available_threads(), count // least))
    edges = [count * share // shares for share in range(shares + 1)]
    ranges = list(pairwise(edges))
    handed_over = [(_pool().submit(kernel, *range_, *args), range_) for range_ in ranges[1:]]
    kernel(*ranges[0], *args)
    for future, range_ in reversed(handed_over):
        # What no thread has begun by now, on a busy machine, is done here and not waited for.
        if future.cancel():
            kernel(*range_, *args)
        else:
            future.result()


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that help; they start when they are first needed."""
    import numba

    others = max(1, int(numba.config.NUMBA_NUM_THREADS) - 1)
    return ThreadPoolExecutor(others, thread_name_prefix="fieldcorr")


if hasattr(os, "register_at_fork"):
    # A forked process has none of its parent's threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)
