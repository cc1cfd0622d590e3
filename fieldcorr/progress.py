"""How a long computation says how far it is: one kind of function for all of them."""

import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it that is done, from 0 to 1."""


def silent(stage: str, done: float) -> None:
    """Report to nobody."""


@cache
def say_first_use() -> None:
    """Say once on stderr that kernels are about to be compiled, if none has been so far."""
    kept = os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).resolve().parent
    if next(Path(kept).rglob("*.nbi"), None) is None:
        print("fieldcorr: first use: compiling, which takes some seconds, once", file=sys.stderr)
