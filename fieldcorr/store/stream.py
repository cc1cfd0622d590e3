"""Rows of r and neighbourhoods, from the embedding to the file, tile by tile.

What flows in: the embedding, a threshold, a memory budget. What flows out: the chunks of the
matrix and of the neighbourhoods, each in its place. Two passes: the first counts, so that the
file's shapes are known before anything is written; the second fills. A tile is a range of rows,
so the bytes depend neither on the budget nor on the number of threads, and a tile whose chunks
are all in the file already is passed over.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.tiles import (
    correlation_rows,
    neighbour_counts,
    neighbour_fill,
    pack_embedding,
)
from fieldcorr.store.chunks import ChunkedFile, write_chunks
from fieldcorr.store.layout import BLOCK_ROWS, Entry, chunk_shape

Report = Callable[[float], None]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]

BYTES_PER_CELL = 24
"""Memory per (row, column) of a tile: r, in the worst case its indices and data, and a third more
for everything else."""

MAX_TILE_ROWS = 512
"""Larger tiles are not faster: the disk would wait for the first, and the caches are left."""


def tile_rows(count: int, memory: int) -> int:
    """Return the rows of a tile that fit into ``memory`` bytes: a multiple of the matrix's blocks.

    At least one block, at most MAX_TILE_ROWS.
    """
    fitting = min(MAX_TILE_ROWS, memory // (BYTES_PER_CELL * max(1, count)))
    return max(BLOCK_ROWS, fitting // BLOCK_ROWS * BLOCK_ROWS)


def tiles(count: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the row ranges of all tiles."""
    for start in range(0, count, rows):
        yield start, min(start + rows, count)


class Neighbourhoods:
    """What belongs to a neighbourhood: r > threshold, without oneself, at most ``top_k`` per row.

    Parameters
    ----------
    embedding
        (K, R) unit rows.
    threshold
        Least r, not included.
    top_k
        At most so many per row, those of largest r; 0 for all.
    rows
        Rows per tile.
    """

    def __init__(self, embedding: Floats, *, threshold: float, top_k: int, rows: int) -> None:
        self.total = len(embedding)
        self.rows = rows
        self._packed = pack_embedding(embedding)
        self._threshold = threshold
        self._top = top_k or None
        self._indices = np.empty(0, dtype=np.int64)
        self._data = np.empty(0, dtype=np.float32)
        self._tile = np.empty((min(rows, len(embedding)), len(embedding)), dtype=np.float32)

    def tile(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows ``start:stop`` of r in memory that the next call uses again."""
        return correlation_rows(self._packed, start, stop, out=self._tile[: stop - start])

    def count(self, start: int, stop: int) -> Longs:
        """Return how many neighbours the rows ``start:stop`` have."""
        return self.count_in(self.tile(start, stop), start)

    def count_in(self, tile: NDArray[np.float32], start: int) -> Longs:
        """Return how many neighbours the rows of a tile have."""
        return neighbour_counts(tile, start, threshold=self._threshold, top=self._top)

    def fill(
        self, tile: NDArray[np.float32], start: int, pointers: Longs, skip: int
    ) -> tuple[Longs, NDArray[np.float32]]:
        """Return indices and r of a tile's neighbours, with ``skip`` free places in front.

        In memory that the next call uses again: fresh pages cost as much as filling them.
        """
        counts = np.diff(pointers)
        size = skip + int(counts.sum())
        if size > self._indices.size:
            self._indices = np.empty(size, dtype=np.int64)
            self._data = np.empty(size, dtype=np.float32)
        indices, data = self._indices[:size], self._data[:size]
        neighbour_fill(
            tile,
            start,
            counts,
            threshold=self._threshold,
            top=self._top,
            indices=indices[skip:],
            data=data[skip:],
        )
        return indices, data


def count_all(rule: Neighbourhoods, record: Path, pool: Executor, report: Report) -> Longs:
    """Return the row pointers (K + 1,) of all neighbourhoods; counts already made are kept.

    Parameters
    ----------
    rule
        What belongs to a neighbourhood.
    record
        File for the counts; its digests go beside it.
    pool
        Threads for verifying.
    report
        Called with the share that is done.
    """
    total = rule.total
    entry = Entry("counts", "<i8", ("K",), "1", "neighbours per row", streamed=True)
    chunk = chunk_shape(entry, (total,)) or (1,)
    counts = np.zeros(total, dtype=np.int64)
    fd = os.open(record, os.O_RDWR | os.O_CREAT, 0o644)
    offsets = np.arange(-(-total // chunk[0]), dtype=np.int64) * (chunk[0] * 8 + 4)
    file = ChunkedFile(fd, entry, (total,), offsets, record.with_suffix(".sha256"))
    try:
        file.verify(pool)
        for index in range(file.count):
            first, last = file.rows_of(index)
            if file.done[index]:
                stored = os.pread(fd, (last - first) * 8, int(offsets[index]))
                counts[first:last] = np.frombuffer(stored, dtype="<i8")
                continue
            for start, stop in tiles(last - first, rule.rows):
                counts[first + start : first + stop] = rule.count(first + start, first + stop)
                report((first + stop) / total)
            file.write(index, counts[first:last])
            file.record(index, index + 1)
    finally:
        file.close()
        os.close(fd)
    pointers = np.zeros(total + 1, dtype=np.int64)
    np.cumsum(counts, out=pointers[1:])
    return pointers


class TileWriter:
    """Fills the matrix and the neighbourhoods of a draft.

    Parameters
    ----------
    rule
        What belongs to a neighbourhood.
    pointers
        (K + 1,) row pointers.
    matrix
        Chunks of the matrix, or None when it is left out.
    indices, data
        Chunks of the neighbourhoods.
    pool
        Threads for checksums and writing.
    """

    def __init__(
        self,
        rule: Neighbourhoods,
        pointers: Longs,
        *,
        matrix: ChunkedFile | None,
        indices: ChunkedFile,
        data: ChunkedFile,
        pool: Executor,
    ) -> None:
        self._rule = rule
        self._pointers = pointers
        self._matrix = matrix
        self._indices = indices
        self._data = data
        self._pool = pool
        # Entries after the last whole chunk, up to the row where the next tile begins.
        self._carry: tuple[Longs, NDArray[np.float32]] | None = None
        self._carry_row = 0

    def run(self, report: Report) -> None:
        """Write every tile that is not yet in the file."""
        total = self._rule.total
        for start, stop in tiles(total, self._rule.rows):
            if not self._is_done(start, stop):
                self._write(start, stop)
            report(stop / total)

    def _is_done(self, start: int, stop: int) -> bool:
        matrix = self._matrix
        wanted = self._chunk_range(start, stop)
        return bool(
            self._indices.done[wanted].all()
            and self._data.done[wanted].all()
            and (matrix is None or matrix.done[start // BLOCK_ROWS : -(-stop // BLOCK_ROWS)].all())
        )

    def _chunk_range(self, start: int, stop: int) -> slice:
        """Chunks of the neighbourhoods that are completed by the rows ``start:stop``."""
        first, last = (int(self._pointers[row]) // self._width for row in (start, stop))
        if stop == self._rule.total:
            last = self._indices.count
        return slice(first, last)

    def _write(self, start: int, stop: int) -> None:
        before = self._entries_before(start)
        tile = self._rule.tile(start, stop)
        if self._matrix is not None:
            blocks = range(start // BLOCK_ROWS, -(-stop // BLOCK_ROWS))
            write_chunks(self._matrix, blocks, lambda a, b: tile[a - start : b - start], self._pool)
        skip = before[0].size
        indices, data = self._rule.fill(tile, start, self._pointers[start : stop + 1], skip)
        indices[:skip], data[:skip] = before
        self._write_neighbours(indices, data, start, stop)

    def _write_neighbours(
        self, indices: Longs, data: NDArray[np.float32], start: int, stop: int
    ) -> None:
        """Write the chunks that are complete, and keep the rest for the next tile."""
        chosen = self._chunk_range(start, stop)
        numbers = range(chosen.start, chosen.stop)
        base = int(self._pointers[stop]) - indices.size
        write_chunks(self._indices, numbers, lambda a, b: indices[a - base : b - base], self._pool)
        write_chunks(self._data, numbers, lambda a, b: data[a - base : b - base], self._pool)
        rest = max(0, chosen.stop * self._width - base)
        self._carry, self._carry_row = (indices[rest:].copy(), data[rest:].copy()), stop

    @property
    def _width(self) -> int:
        """Entries of a chunk of the neighbourhoods."""
        return self._indices.chunk[0] or 1

    def _entries_before(self, row: int) -> tuple[Longs, NDArray[np.float32]]:
        """Return the entries between the last chunk boundary and a row.

        Kept from the last tile, or, where that was passed over, made again.
        """
        if self._carry is not None and self._carry_row == row:
            return self._carry
        size = int(self._pointers[row]) % self._width
        target = int(self._pointers[row]) - size
        first = int(np.searchsorted(self._pointers, target, side="right")) - 1
        parts = [(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))]
        for start, stop in tiles(row - first, self._rule.rows):
            a, b = first + start, first + stop
            indices, data = self._rule.fill(self._rule.tile(a, b), a, self._pointers[a : b + 1], 0)
            parts.append((indices.copy(), data.copy()))
        every = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return every[0][every[0].size - size :], every[1][every[1].size - size :]
