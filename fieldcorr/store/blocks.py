"""Blocks of rows: the unit of memory, of resuming, and of dividing a batch among workers.

A block is a range of rows of r (where the matrix is stored) with the neighbours of these rows. It
follows from the embedding and from a few numbers alone, so it can be made anywhere, in any order
and twice. A small batch holds all its blocks in memory; a large one leaves each as a file in its
work folder, and goes on after an interruption with those that it finds.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.tiles import (
    PackedEmbedding,
    correlation_rows,
    neighbour_counts,
    neighbour_fill,
    pack_embedding,
)
from fieldcorr.errors import StoreError
from fieldcorr.progress import Progress, silent
from fieldcorr.store.disk import fsync_folder, write_durably
from fieldcorr.store.layout import BLOCK_ROWS

BYTES_PER_CELL = 24
"""Memory per (row, column) of a block: r, in the worst case its indices and data, and a third more
for everything else."""

MOST_ROWS = 512
"""Larger blocks are not faster, and an interruption would lose more."""

DEFAULT_MEMORY = 1 << 30

DAMAGE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
"""What numpy raises when a file is not what was written."""


@dataclass(frozen=True)
class Options:
    """How neighbourhoods and matrix are made.

    Attributes
    ----------
    threshold
        Neighbours have r above it.
    top_k
        At most so many neighbours per row, those of largest r; 0 for all.
    matrix
        Whether the K x K matrix is stored.
    memory
        Bytes for blocks of rows; changes nothing in the file.
    threads
        Threads; None for all. Changes nothing in the file.
    """

    threshold: float = 0.0
    top_k: int = 0
    matrix: bool = True
    memory: int = DEFAULT_MEMORY
    threads: int | None = None


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of r from ``start`` on, as far as they are stored, and the neighbours of all of them."""

    r: NDArray[np.float32]
    counts: NDArray[np.int64]
    indices: NDArray[np.int64]
    data: NDArray[np.float32]

    def first_row(self) -> "Block":
        """Return the part that belongs to the first row."""
        size = int(self.counts[0])
        return Block(self.r[:1], self.counts[:1], self.indices[:size], self.data[:size])

    def equals(self, other: "Block") -> bool:
        """Compare two blocks bit by bit."""
        return all(np.array_equal(a, vars(other)[name]) for name, a in vars(self).items())


def block_rows(count: int, memory: int) -> int:
    """Return the rows of a block that fits into ``memory`` bytes, in whole chunks of the matrix.

    At least one chunk, at most MOST_ROWS.
    """
    fitting = min(MOST_ROWS, memory // (BYTES_PER_CELL * max(1, count)))
    return max(BLOCK_ROWS, fitting // BLOCK_ROWS * BLOCK_ROWS)


def bounds(count: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``count`` rows into blocks of ``rows``."""
    return [(start, min(start + rows, count)) for start in range(0, count, rows)]


def compute_block(
    embedding: PackedEmbedding, start: int, stop: int, options: Options, r: NDArray[np.float32]
) -> Block:
    """Compute the rows ``start:stop`` of r, into the memory ``r``, and their neighbours."""
    rows = correlation_rows(embedding, start, stop, out=r)
    return neighbour_block(rows, start, options)


def neighbour_block(rows: NDArray[np.float32], start: int, options: Options) -> Block:
    """Return the block of some rows of r from ``start`` on."""
    top = options.top_k or None
    counts = neighbour_counts(rows, start, threshold=options.threshold, top=top)
    size = int(counts.sum())
    indices, data = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.float32)
    neighbour_fill(
        rows, start, counts, threshold=options.threshold, top=top, indices=indices, data=data
    )
    return Block(rows if options.matrix else rows[:, :0], counts, indices, data)


class Blocks:
    """All blocks of a store, computed once, in memory or in files.

    Parameters
    ----------
    embedding
        (K, R) unit rows.
    options
        Neighbourhoods, memory.
    folder
        Where files go when memory does not hold everything.
    key
        What the numbers depend on besides embedding and options: code and versions. Files with
        another key are not used.
    """

    def __init__(
        self, embedding: NDArray[np.float64], options: Options, folder: Path, *, key: str = ""
    ) -> None:
        self._options = options
        self._packed = pack_embedding(embedding)
        self._folder = folder
        self._key = _key_of(embedding, options, key)
        self.bounds = bounds(len(embedding), block_rows(len(embedding), options.memory))
        self._held: list[Block] | None = [] if self._fits(len(embedding)) else None

    def _fits(self, count: int) -> bool:
        """Tell whether everything fits into memory."""
        # With every configuration comes its mirror image: at most half of all r are positive.
        listed = count if self._options.threshold < 0 else -(-count // 2)
        listed = min(listed, self._options.top_k or listed)
        matrix = 4 * count if self._options.matrix else 0
        return count * (matrix + 12 * listed) <= self._options.memory

    def make(self, report: Progress = silent) -> NDArray[np.int64]:
        """Compute what is not there yet; return the row pointers (K + 1,) of the neighbours."""
        stage = "correlation"
        report(stage, 0.0)
        self._remove_others()
        counts = []
        spare = np.empty((self.bounds[0][1], self._packed.size), dtype=np.float32)
        for start, stop in self.bounds:
            if self._held is None:
                counts.append(self._counts_on_disk(start, stop, spare[: stop - start]))
            else:
                rows = np.empty_like(spare[: stop - start]) if self._options.matrix else spare
                self._held.append(
                    compute_block(self._packed, start, stop, self._options, rows[: stop - start])
                )
                counts.append(self._held[-1].counts)
            report(stage, stop / self._packed.size)
        if self._held is None:
            fsync_folder(self._folder)
        return np.concatenate([[0], np.cumsum(np.concatenate(counts))])

    def _remove_others(self) -> None:
        """Remove blocks of other inputs, which would only take room."""
        wanted = {self._file(*bound) for bound in self.bounds}
        for path in set(self._folder.glob("*.rows")) - wanted:
            path.unlink()

    def parts(self, name: str) -> Iterator[NDArray[Any]]:
        """Yield one array of every block, such as "indices", in the order of the rows."""
        for number, bound in enumerate(self.bounds):
            if self._held is not None:
                yield vars(self._held[number])[name]
            else:
                path = self._file(*bound)
                try:
                    with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                        part = file[name]
                except DAMAGE as error:
                    raise StoreError(f"{path}: damaged while it was waiting: {error}") from error
                yield part

    def _file(self, start: int, stop: int) -> Path:
        return self._folder / f"{self._key[:16]}-{start}-{stop}.rows"

    def _counts_on_disk(
        self, start: int, stop: int, memory: NDArray[np.float32]
    ) -> NDArray[np.int64]:
        """Return the numbers of neighbours of a block that is now in its file."""
        path = self._file(start, stop)
        block = self._found(path, start)
        if block is None:
            block = compute_block(self._packed, start, stop, self._options, memory)
            arrays = {**vars(block), "key": np.array(self._key)}
            write_durably(path, lambda file: np.savez(file, **arrays))
        return block.counts

    def _found(self, path: Path, start: int) -> Block | None:
        """Read a block that an earlier run has left, all of it, so that its checksums are compared.

        Its first row is computed again: another processor may round differently, and a store never
        mixes two computations.
        """
        if path.is_symlink() or not path.is_file():
            return None
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            same = str(arrays.pop("key")) == self._key
            block = Block(**arrays)
        except (*DAMAGE, TypeError):
            return None
        memory = np.empty((1, self._packed.size), dtype=np.float32)
        fresh = compute_block(self._packed, start, start + 1, self._options, memory)
        return block if same and block.first_row().equals(fresh) else None


def _key_of(embedding: NDArray[np.float64], options: Options, key: str) -> str:
    """Return the digest of everything that the numbers of a block depend on."""
    numbers = [options.threshold, options.top_k, options.matrix, embedding.shape, key]
    total = hashlib.sha256(json.dumps(numbers).encode())
    total.update(np.ascontiguousarray(embedding, dtype="<f8").data)
    return total.hexdigest()
