"""Rows of the benchmark table: what is measured, against whom.

Every module of this folder that has a function ``rows() -> list[Row]`` adds its rows to the table
of ``scripts/bench``.

A task names a *preparation*, a function ``prepare(**arguments)`` of a module of this folder. It
loads its data and compiles what it needs on a small problem, and returns the function to be
measured, which takes nothing and returns a dict of figures (a residual, a checksum) that show that
everybody solved the same problem. Each task runs in a process of its own with a fixed number of
threads. Time is wall time, the best of all its runs; memory is the growth of the process's peak
above what it held before the first run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Measured = Callable[[], Mapping[str, float]]


@dataclass(frozen=True)
class Task:
    """One thing to measure.

    Parameters
    ----------
    name
        What the table calls it: "fieldcorr", "scikit-fem", ...
    prepare
        "module:function" inside this folder, such as "fe:assembly_fieldcorr"; or, for a command
        that is measured from start to end, "command:" followed by Python code for ``python -c``.
    arguments
        Keyword arguments of the preparation; plain JSON values.
    threads
        Threads for numba, OpenMP and BLAS.
    repeat
        Runs inside one process.
    environment
        Further environment variables; "{scratch}" in a value is a fresh empty folder.
    """

    name: str
    prepare: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    threads: int = 1
    repeat: int = 3
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One subject of the table: our own task against its peers.

    Parameters
    ----------
    subject
        First column.
    own
        The task of fieldcorr.
    peers
        Tasks that the own one is measured against; the ratio is peer time / own time.
    aim
        Least ratio hoped for, None when there is none.
    scale
        Factor on the ratio: work of the own task / work of the peer, for rows about growth.
    budget
        Seconds; where given it stands in for a peer, and the ratio is budget / own time.
    long
        Left out by ``scripts/bench --quick``.
    """

    subject: str
    own: Task
    peers: tuple[Task, ...] = ()
    aim: float | None = None
    scale: float = 1.0
    budget: float | None = None
    long: bool = False
