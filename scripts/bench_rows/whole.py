"""Rows of the whole space: all 42 915 650 configurations of 16 contacts, one thread.

The peer is reading once, in order, the bytes that the operation reads; a network of random
conductances and random lead fields stand for the bundled array, whose numbers cost the same.
"""

import tempfile
from collections.abc import Iterator
from copy import deepcopy
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import numpy as np

from bench_rows import Measured, Row, Task
from bench_rows.correlation import RANK, unit_rows

CONTACTS = 16
TOP = 64
MANY = 100_000
SEARCHED = 2048
FEW_ROWS = 1024
COPIES = 2
PAIRS = ((12_345_678, 31_234_567), (1000, 40_000_000), (2_000_000, 555), (7_654_321, 23_456_789))


def rows() -> list[Row]:
    """Return the rows of this module."""
    result = []
    for mode in ("voltage", "current"):
        for subject, prepare, repeat, budget in (
            ("one answer updates all arms", "update", 5, 0.18 if mode == "voltage" else 0.12),
            ("first elimination", "eliminate", COPIES, 0.05),
            ("100 nearest of one", "nearest", 5, 0.05),
        ):
            own = _task("fieldcorr", prepare, repeat=repeat, mode=mode)
            read = _task("read the bytes", "read", mode=mode, subject=prepare)
            result.append(Row(f"{subject}, {mode}", own, (read,), 1 / 3, budget=budget))
        own = _task("fieldcorr", "build", repeat=2, mode=mode)
        result.append(Row(f"tables of all configurations, {mode}", own, budget=1.0, aim=1.0))
        two = _task("fieldcorr", "update", threads=2, mode=mode)
        one = _task("1 thread", "update", mode=mode)
        result.append(Row(f"one answer, {mode}, 2 threads", two, (one,), 1.5))
        own = _task("fieldcorr", "session", repeat=1, mode=mode, duels=200)
        result.append(Row(f"tables and 200 duels, {mode}", own, budget=20.0, aim=1.0, long=True))
    search = _task("fieldcorr", "search", repeat=2, k=MANY)
    peer = _task("scikit-learn kneighbors", "search_sklearn", repeat=2, k=MANY)
    subject = f"{TOP} nearest of {SEARCHED} among {MANY}, 1 thread"
    result.append(Row(subject, search, (peer,), 2.5, long=True))
    for count in (MANY, 2 * MANY, 4 * MANY, FEW_ROWS):
        aim = None if count == FEW_ROWS else 1 / 1.15  # few: starting workers is all there is
        shared = _task(
            "fieldcorr, 2 dask workers", "store_neighbours", repeat=1, k=count, dask="local"
        )
        alone = _task("fieldcorr, 1 process", "store_neighbours", repeat=1, k=count, dask="")
        subject = f"{TOP} nearest of {count} among {count}, processor seconds"
        result.append(Row(subject, shared, (alone,), aim, long=True))
    return result


def _task(
    name: str, prepare: str, *, repeat: int = 5, threads: int = 1, **arguments: object
) -> Task:
    return Task(name, f"whole:{prepare}", arguments, threads=threads, repeat=repeat)


def _source(mode: str, contacts: int = CONTACTS) -> Any:
    from fieldcorr.configurations.space import ProductSpace
    from fieldcorr.correlation.whole import Circuit, Whole, WholeSource

    rng = np.random.default_rng(1)
    between = np.triu(rng.uniform(0.1, 1.0, (contacts, contacts)), 1)
    between += between.T
    fields = rng.standard_normal((contacts, 40))
    admittance = np.diag(between.sum(axis=1)) - between
    every = np.ones((contacts, 3), dtype=np.bool_)
    space = ProductSpace(every, (1, contacts, 1, contacts, 0, contacts))
    return WholeSource(Whole(space, Circuit(fields @ fields.T, admittance, mode)))


def build(mode: str) -> Measured:
    """Build the tables, after they have been compiled."""
    assert _source(mode).whole.tables.allowed.size

    def run() -> dict[str, float]:
        return {"configurations": float(_source(mode).whole.tables.inverse_norm.size)}

    return run


def update(mode: str) -> Measured:
    """Add one duel to the tallies of all arms."""
    source = _source(mode)
    tally = source.tally()

    def run() -> dict[str, float]:
        source.add(tally, 12_345_678, 31_234_567)
        return {"tau": float(tally.plays[0])}

    return run


def eliminate(mode: str) -> Measured:
    """Take the dominated arms out of the set after a few duels, with copies made before."""
    from fieldcorr.duel.options import DuelOptions
    from fieldcorr.duel.whole import WholeArms

    source = _source(mode)
    tally, choices = source.tally(), DuelOptions().choices
    for pair in PAIRS:
        source.add(tally, *pair)
    ready = []
    for _ in range(COPIES):
        active = np.ones(len(source), dtype=np.bool_)
        ready.append(WholeArms(source.whole, deepcopy(tally), active, choices))
    small = _source(mode, contacts=6)
    few = np.ones(len(small), dtype=np.bool_)
    WholeArms(small.whole, small.tally(), few, choices).eliminate()  # compiles the search
    warm = WholeArms(source.whole, tally, np.ones(len(source), dtype=np.bool_), choices)
    warm.eliminate()

    def run() -> dict[str, float]:
        arms = ready.pop()
        arms.eliminate()
        return {"left": float(np.count_nonzero(arms.alive) or len(arms.tally.wins))}

    return run


def session(mode: str, duels: int) -> Measured:
    """Play a session from nothing; memory is that of tables and engine together."""
    from fieldcorr import CorrDuel

    def play(contacts: int) -> CorrDuel:
        engine, rng = CorrDuel(_source(mode, contacts), horizon=duels, seed=1), _answers()
        while not engine.done:
            pair = engine.ask()
            engine.tell(*(pair if next(rng) else pair[::-1]))
        return engine

    play(6)

    def run() -> dict[str, float]:
        engine = play(CONTACTS)
        return {"left": float(len(engine.survivors)), "best": float(engine.best)}

    return run


def _answers() -> Iterator[bool]:
    rng = np.random.default_rng(2)
    while True:
        yield bool(rng.random() < 0.5)


def nearest(mode: str) -> Measured:
    """Find the nearest of one arm."""
    source = _source(mode)

    def run() -> dict[str, float]:
        return {"r": float(source.nearest(12_345_678, 100)[1][-1])}

    return run


def read(mode: str, subject: str) -> Measured:
    """Add up the numbers that an operation has to read."""
    source = _source(mode)
    tally, tables = source.tally(), source.whole.tables
    source.add(tally, 12_345_678, 31_234_567)
    of_r = [tables.to_anode, tables.inverse_norm]
    arrays = {
        "update": [*of_r, tally.wins, tally.plays],
        "eliminate": [tally.wins, tally.plays],
        "nearest": of_r,
    }[subject]

    def run() -> dict[str, float]:
        return {"sum": float(sum(array.sum() for array in arrays))}

    return run


def search(k: int) -> Measured:
    """Search the largest r of some rows."""
    from fieldcorr.correlation.tiles import largest_neighbours, narrow_embedding

    embedding = narrow_embedding(unit_rows(k, RANK))
    largest_neighbours(embedding, 0, 8, top=TOP)

    def run() -> dict[str, float]:
        _, _, r = largest_neighbours(embedding, 0, SEARCHED, top=TOP, threshold=-1.0)
        return {"least": float(r.min())}

    return run


def store_neighbours(k: int, dask: str) -> Measured:
    """Make all blocks of a store, here or by two workers, whose start and end is counted."""
    from fieldcorr.cluster import workers
    from fieldcorr.store.blocks import Blocks, Options

    z, options = unit_rows(k, RANK), Options(top_k=TOP, matrix=False)

    def run(count: int = k) -> dict[str, float]:
        with (
            tempfile.TemporaryDirectory() as folder,
            workers(dask or None, count=2) as crew,
        ):
            blocks = Blocks(z[:count], options, Path(folder), crew=crew if dask else None)
            for _ in blocks.rows():
                pass
            r = float(sum(r.sum(dtype=np.float64) for _, r in blocks.neighbours()))
        # Workers are forked from a process that would stay: its seconds and theirs count when it
        # has ended, and the next run starts it again.
        forkserver._forkserver._stop()  # type: ignore[attr-defined]
        return {"r": r}

    run(FEW_ROWS)
    return run


def search_sklearn(k: int) -> Measured:
    """Do the same by scikit-learn; a row is its own nearest."""
    from sklearn.neighbors import NearestNeighbors

    z = unit_rows(k, RANK)
    fitted: Any = NearestNeighbors(n_neighbors=TOP + 1, algorithm="brute").fit(z)

    def run() -> dict[str, float]:
        distance, _ = fitted.kneighbors(z[:SEARCHED])
        return {"least": float(1.0 - 0.5 * distance.max() ** 2)}

    return run
