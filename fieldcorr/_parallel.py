"""Threads of the numba kernels: one place that chooses how many, and which layer.

What flows in: a thread count, or None for all. What flows out: numba set up accordingly for the
time of a ``with`` block. Nothing happens on import.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_launching = RLock()
# numba's own thread pool ends the process when two threads launch kernels at the same time.


def available_threads() -> int:
    """Return the number of threads that kernels use unless told otherwise."""
    import numba

    return int(numba.get_num_threads())


def prefer_light_layer() -> None:
    """Choose numba's own thread pool, unless the user has chosen a layer.

    The OpenMP layer was measured to cost 12 ms per launch on a loaded machine; a block CG makes
    thousands of launches.
    """
    import numba

    if "NUMBA_THREADING_LAYER" not in os.environ:
        numba.config.THREADING_LAYER = "workqueue"


@contextmanager
def threads(count: int | None) -> Iterator[int]:
    """Run numba kernels inside the block on ``count`` threads (None: as many as numba has).

    Other Python threads that want to do the same wait for the end of the block.
    """
    import numba

    prefer_light_layer()
    with _launching:
        before = numba.get_num_threads()
        chosen = before if count is None else max(1, min(count, numba.config.NUMBA_NUM_THREADS))
        numba.set_num_threads(chosen)
        try:
            yield chosen
        finally:
            numba.set_num_threads(before)
