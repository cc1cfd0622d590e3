"""Rows of the whole space: all 42 915 650 configurations of 16 contacts, one thread.

The peer is reading once, in order, the bytes that the operation reads; a network of random
conductances and random lead fields stand for the bundled array, whose numbers cost the same.
"""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench_rows import Measured, Row, Task
from bench_rows.correlation import RANK, unit_rows

CONTACTS = 16
TOP = 64
MANY = 100_000
SEARCHED = 2048


def rows() -> list[Row]:
    """Return the rows of this module."""
    result = []
    for mode, build in (("voltage", 1.0), ("current", 1.0)):
        for subject, prepare in (
            ("one answer updates all arms", "update"),
            ("bounds of all arms", "bounds"),
            ("100 nearest of one", "nearest"),
        ):
            own = _task("fieldcorr", prepare, mode=mode)
            read = _task("read the bytes", "read", mode=mode, subject=prepare)
            result.append(Row(f"{subject}, {mode}", own, (read,), 1 / 3))
        own = _task("fieldcorr", "build", repeat=2, mode=mode)
        result.append(Row(f"tables of all configurations, {mode}", own, budget=build, aim=1.0))
    search = _task("fieldcorr", "search", repeat=2, k=MANY)
    peer = _task("scikit-learn kneighbors", "search_sklearn", repeat=2, k=MANY)
    subject = f"{TOP} nearest of {SEARCHED} among {MANY}, 1 thread"
    result.append(Row(subject, search, (peer,), 2.5, long=True))
    shared = _task("fieldcorr, 2 dask workers", "store_neighbours", repeat=1, k=MANY, dask="local")
    alone = _task("fieldcorr, 1 process", "store_neighbours", repeat=1, k=MANY, dask="")
    subject = f"{TOP} nearest of {MANY} among {MANY} to disk, processor seconds"
    return [*result, Row(subject, shared, (alone,), 1 / 1.15, long=True)]


def _task(name: str, prepare: str, repeat: int = 5, **arguments: object) -> Task:
    return Task(name, f"whole:{prepare}", arguments, threads=1, repeat=repeat)


def _source(mode: str) -> Any:
    from fieldcorr.configurations.space import ProductSpace
    from fieldcorr.correlation.whole import Circuit, Whole, WholeSource

    rng = np.random.default_rng(1)
    between = np.triu(rng.uniform(0.1, 1.0, (CONTACTS, CONTACTS)), 1)
    between += between.T
    fields = rng.standard_normal((CONTACTS, 40))
    admittance = np.diag(between.sum(axis=1)) - between
    every = np.ones((CONTACTS, 3), dtype=np.bool_)
    space = ProductSpace(every, (1, CONTACTS, 1, CONTACTS, 0, CONTACTS))
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


def bounds(mode: str) -> Measured:
    """Find the largest lower and the least upper bound of all arms."""
    from fieldcorr.duel.options import DuelOptions
    from fieldcorr.duel.whole import WholeArms

    source = _source(mode)
    tally, active = source.tally(), np.ones(len(source), dtype=np.bool_)
    source.add(tally, 12_345_678, 31_234_567)
    arms = WholeArms(source.whole, tally, active, DuelOptions().choices)

    def run() -> dict[str, float]:
        return {"floor": float(arms.bounds()[0])}

    return run


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
        "bounds": [tally.wins, tally.plays],
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
    """Make all blocks of a store into files, here or by two workers, who start and end with it."""
    from fieldcorr.cluster import workers
    from fieldcorr.store.blocks import Blocks, Options

    z, options = unit_rows(k, RANK), Options(top_k=TOP, matrix=False)

    def run(rows: int = k) -> dict[str, float]:
        with (
            tempfile.TemporaryDirectory() as folder,
            workers(dask or None, count=2) as crew,
        ):
            blocks = Blocks(z[:rows], options, Path(folder), crew=crew if dask else None)
            for _ in blocks.rows():
                pass
            return {"r": float(sum(r.sum(dtype=np.float64) for _, r in blocks.neighbours()))}

    run(1024)
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
