"""r and the neighbourhoods of every row, verified in tiles.

What flows in: an open store whose digests hold. What flows out: findings. Rows of r are computed
again from the embedding, with the same function, and must be the same bits; neighbourhoods must
be exactly what the rows of r give.
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from fieldcorr.store.findings import Finding
from fieldcorr.store.reader import Store
from fieldcorr.store.stream import Neighbourhoods, tile_rows, tiles

Report = Callable[[str, float], None]


def check_rows(store: Store, *, memory: int, progress: Report) -> Iterator[Finding]:
    """Verify bounds, diagonal and symmetry of r, r against Z, and all neighbourhoods."""
    total = len(store)
    rule = Neighbourhoods(
        np.ascontiguousarray(store.embedding),
        threshold=store.threshold,
        top_k=store.top_k,
        rows=tile_rows(total, memory // 2),
    )
    symmetry = SymmetryCheck(total)
    for start, stop in tiles(total, rule.rows):
        tile = rule.tile(start, stop)
        if store.has_matrix:
            stored = store.rows(start, stop)
            yield from _check_tile(stored, tile, start)
            symmetry.add(stored, start)
        yield from _check_neighbours(store, rule, tile, start, stop)
        progress("rows", stop / total)
    if store.has_matrix:
        for row in symmetry.asymmetric_rows()[:1]:
            yield Finding("/correlation/matrix", f"row {row} differs from column {row}")


def _check_tile(
    stored: NDArray[np.float32], tile: NDArray[np.float32], start: int
) -> Iterator[Finding]:
    where = "/correlation/matrix"
    if not (np.abs(stored) <= 1.0).all():
        yield Finding(where, f"rows from {start} on have r outside [-1, 1]")
    rows = np.arange(len(stored))
    if (stored[rows, start + rows] != 1.0).any():
        yield Finding(where, f"rows from {start} on have a diagonal other than 1")
    wrong = np.argwhere(stored != tile)
    if wrong.size:
        i, j = wrong[0]
        yield Finding(where, f"r({start + i}, {j}) is not what the embedding gives")


def _check_neighbours(
    store: Store, rule: Neighbourhoods, tile: NDArray[np.float32], start: int, stop: int
) -> Iterator[Finding]:
    pointers = store.indptr[start : stop + 1]
    counts = rule.count_in(tile, start)
    wrong = np.flatnonzero(counts != np.diff(pointers))
    if wrong.size:
        row = start + int(wrong[0])
        yield Finding(
            "/neighbourhoods/indptr", f"row {row} has not all its neighbours, or too many"
        )
        return
    indices, data = store.neighbour_slice(int(pointers[0]), int(pointers[-1]))
    want_indices, want_data = rule.fill(tile, start, pointers, 0)
    for name, found, want in (("indices", indices, want_indices), ("data", data, want_data)):
        different = np.flatnonzero(found != want)
        if different.size:
            entry = int(pointers[0]) + int(different[0])
            row = int(np.searchsorted(store.indptr, entry, side="right")) - 1
            yield Finding(f"/neighbourhoods/{name}", f"row {row} is not what r gives")


class SymmetryCheck:
    """Exact symmetry of a matrix that is seen row by row and never whole.

    With b the bits of r as integers and y random odd 64-bit numbers, the sums over j of b_ij y_j
    and of b_ji y_j are equal modulo 2^64 for a symmetric matrix, and differ with a probability of
    nearly 1 otherwise.

    Parameters
    ----------
    count
        Rows of the matrix.
    """

    def __init__(self, count: int) -> None:
        self._key = np.random.default_rng(1).integers(0, 2**63, count, dtype=np.uint64) * np.uint64(
            2
        ) + np.uint64(1)
        self._along = np.zeros(count, dtype=np.uint64)
        self._down = np.zeros(count, dtype=np.uint64)

    def add(self, rows: NDArray[np.float32], start: int) -> None:
        """Take in rows from ``start`` on."""
        # A few rows at a time keep the 64-bit copy small.
        for offset in range(0, len(rows), 64):
            bits = rows[offset : offset + 64].view(np.uint32).astype(np.uint64)
            first = start + offset
            own = slice(first, first + len(bits))
            self._along[own] = (bits * self._key).sum(axis=1, dtype=np.uint64)
            self._down += (bits * self._key[own, None]).sum(axis=0, dtype=np.uint64)

    def asymmetric_rows(self) -> NDArray[np.int64]:
        """Return the rows that differ from their columns."""
        return np.flatnonzero(self._along != self._down)
