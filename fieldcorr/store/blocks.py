"""Blocks of rows: the unit of memory, of resuming, and of dividing a batch among workers.

A block is a range of rows of r (where the matrix is stored) with the neighbours of these rows. It
follows from the embedding and from a few numbers alone, so it can be made anywhere, in any order
and twice. A small batch makes every block twice, once for r and once for the neighbours: that is
cheaper than keeping it, as fresh memory costs more than r. A large one leaves each as a file in its
work folder, and goes on after an interruption with those that it finds: who made them, this process
or a worker elsewhere, makes no difference.
"""

import hashlib
import json
import socket
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from itertools import cycle
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldcorr.cluster import Crew
from fieldcorr.correlation.tiles import (
    PackedEmbedding,
    correlation_rows,
    largest_neighbours,
    narrow_embedding,
    neighbour_counts,
    neighbour_fill,
    pack_embedding,
)
from fieldcorr.errors import StoreError
from fieldcorr.files import fsync_folder, write_durably, writing
from fieldcorr.progress import Progress, silent
from fieldcorr.store.layout import BLOCK_ROWS

BYTES_PER_CELL = 24
"""Memory per (row, column) of a block: r, in the worst case its indices and data, and a third more
for everything else."""

MOST_ROWS = 512
"""Larger blocks are not faster, and an interruption would lose more."""

MOST_SEARCHED = 4096
"""The same where rows are searched and not kept; blocks of 440 cost a worker 10 % more."""

DEFAULT_MEMORY = 1 << 30

DAMAGE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
"""What numpy raises when a file is not what was written."""


@dataclass(frozen=True)
class Options:
    """How neighbourhoods and matrix are made; memory and threads change nothing in the file."""

    threshold: float = 0.0  # neighbours have r above it
    top_k: int = 0  # at most so many per row, those of largest r; 0 for all
    matrix: bool = True  # whether the K x K matrix is stored
    memory: int = DEFAULT_MEMORY  # bytes for blocks of rows
    threads: int | None = None  # None for all


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


def block_rows(count: int, memory: int, most: int = MOST_ROWS) -> int:
    """Return the rows of a block that fits into ``memory`` bytes, in whole chunks of the matrix.

    ``count`` cells are needed for each row. At least one chunk, at most ``most`` rows.
    """
    fitting = min(most, memory // (BYTES_PER_CELL * max(1, count)))
    return max(BLOCK_ROWS, fitting // BLOCK_ROWS * BLOCK_ROWS)


def bounds(count: int, rows: int) -> list[tuple[int, int]]:
    """Cut ``count`` rows into blocks of ``rows``."""
    return [(start, min(start + rows, count)) for start in range(0, count, rows)]


def neighbour_block(
    rows: NDArray[np.float32],
    start: int,
    options: Options,
    counts: NDArray[np.int64] | None = None,
) -> Block:
    """Return the block of some rows of r from ``start`` on; its counts may be known already."""
    if counts is None:
        counts = count_neighbours(rows, start, options)
    size = int(counts.sum())
    indices, data = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.float32)
    top = options.top_k or None
    neighbour_fill(
        rows, start, counts, threshold=options.threshold, top=top, indices=indices, data=data
    )
    return Block(rows if options.matrix else rows[:, :0], counts, indices, data)


def count_neighbours(rows: NDArray[np.float32], start: int, options: Options) -> NDArray[np.int64]:
    """Return how many neighbours each of some rows of r from ``start`` on has."""
    return neighbour_counts(rows, start, threshold=options.threshold, top=options.top_k or None)


class _Rows(threading.local):
    """Computes rows of r into memory that all blocks share, one set of buffers per thread."""

    def __init__(self, packed: PackedEmbedding, most: int) -> None:
        self._packed, shape = packed, (most, packed.size)
        # Two in turn: one is still being written when the next is computed.
        self._turns = cycle([np.empty(shape, dtype=np.float32) for _ in range(2)])

    def __call__(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows of r, valid until the next but one."""
        out = next(self._turns)[: stop - start]
        return correlation_rows(self._packed, start, stop, out=out)


class Blocks:
    """All blocks of a store, from unit rows (K, R): first their rows of r, then their neighbours.

    Blocks go into files of ``folder`` when all of them are larger than ``options.memory``, or when
    a ``crew`` is to make them. ``key`` is what the numbers depend on besides: code and versions.
    Files with another key are not used.
    """

    def __init__(
        self,
        embedding: NDArray[np.float64],
        options: Options,
        folder: Path,
        *,
        key: str = "",
        crew: Crew | None = None,
    ) -> None:
        self._options, self._embedding, self._crew = options, embedding, crew
        self._folder = folder
        self._code = key
        self._key = _key_of(embedding, options, key)
        count = len(embedding)
        self._in_files = crew is not None or self._size(count) > options.memory
        self._narrow = None
        rows = block_rows(count, options.memory)
        if options.top_k and not options.matrix:
            # Without a matrix to write, the largest r of a row are found without making the row:
            # a block takes what is found, once as it comes and once joined.
            self._narrow = narrow_embedding(embedding)
            rows = block_rows(2 * min(options.top_k, count), options.memory, MOST_SEARCHED)
        self._bounds = bounds(count, rows)
        self._found_blocks: list[Block] = []
        self._counts: list[NDArray[np.int64]] = []

    @property
    def name(self) -> str:
        """Name of the file with the embedding."""
        return f"{self._key[:16]}.rows"

    def _size(self, count: int) -> int:
        """Return about how many bytes all blocks have."""
        # With every configuration comes its mirror image: at most half of all r are positive.
        listed = count if self._options.threshold < 0 else -(-count // 2)
        listed = min(listed, self._options.top_k or listed)
        return count * ((4 * count if self._options.matrix else 0) + 12 * listed)

    def rows(self, report: Progress = silent) -> Iterator[NDArray[np.float32]]:
        """Yield r of every block, valid until the next but one; count neighbours on the way."""
        stage = "correlation"
        report(stage, 0.0)
        self._remove_others()
        if self._crew is not None:
            self._make_elsewhere(self._crew, report)
        for start, stop in self._bounds:
            if self._in_files:
                block = self._block_in_file(start, stop)
                rows, counts = block.r, block.counts
            elif self._narrow is not None:
                self._found_blocks.append(block := self._make(start, stop))
                rows, counts = block.r, block.counts
            else:
                rows = self._compute(start, stop)
                counts = count_neighbours(rows, start, self._options)
            self._counts.append(counts)
            yield rows
            report(stage, stop / len(self._embedding))
        if self._in_files:
            fsync_folder(self._folder)

    @property
    def pointers(self) -> NDArray[np.int64]:
        """The row pointers (K + 1,) of the neighbours, known when all rows have been made."""
        return np.concatenate([[0], np.cumsum(np.concatenate(self._counts))])

    def neighbours(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield indices and data of every block, known when all rows have been made."""
        for number, ((start, stop), counts) in enumerate(
            zip(self._bounds, self._counts, strict=True)
        ):
            if self._found_blocks:
                block = self._found_blocks[number]
                yield block.indices, block.data
                continue
            if not self._in_files:
                rows = self._compute(start, stop)
                block = neighbour_block(rows, start, self._options, counts)
                yield block.indices, block.data
                continue
            path = self._file(start, stop)
            try:
                with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                    found = file["indices"], file["data"]
            except DAMAGE as error:
                raise StoreError(f"{path}: damaged while it was waiting: {error}") from error
            yield found

    def _make(self, start: int, stop: int) -> Block:
        """Compute one block."""
        if self._narrow is None:
            return neighbour_block(self._compute(start, stop), start, self._options)
        top, threshold = self._options.top_k, self._options.threshold
        found = largest_neighbours(self._narrow, start, stop, top=top, threshold=threshold)
        return Block(np.empty((stop - start, 0), dtype=np.float32), *found)

    @cached_property
    def _compute(self) -> _Rows:
        """What computes rows of r, where they are needed."""
        return _Rows(pack_embedding(self._embedding), self._bounds[0][1])

    def _make_elsewhere(self, crew: Crew, report: Progress) -> None:
        """Have workers make the blocks that have no file yet; files are read and checked later.

        What a worker needs is a file, too: nothing but its path goes over the network.
        """
        missing = [bound for bound in self._bounds if not self._file(*bound).is_file()]
        shared = self._folder / self.name
        write_durably(shared, lambda file: np.save(file, self._embedding))
        common = str(shared), self._options, self._code
        tasks = [(*common, *bound) for bound in missing]
        for _ in crew.results(make_block, tasks, report=partial(report, "blocks")):
            pass

    def make(self, start: int, stop: int) -> None:
        """Make one block into its file, unless it is there."""
        self._block_in_file(start, stop)

    def _remove_others(self) -> None:
        """Remove blocks of other inputs and unfinished ones, which would only take room."""
        wanted = {self._file(*bound) for bound in self._bounds}
        for path in {*self._folder.glob("*.rows"), *self._folder.glob("*.new")} - wanted:
            path.unlink()

    def _file(self, start: int, stop: int) -> Path:
        return self._folder / f"{self._key[:16]}-{start}-{stop}.rows"

    def _block_in_file(self, start: int, stop: int) -> Block:
        """Return a block that is now in its file."""
        path = self._file(start, stop)
        block = self._found(path, start)
        if block is None:
            block = self._make(start, stop)
            arrays = {**vars(block), "key": np.array(self._key)}
            write_durably(path, lambda file: np.savez(file, **arrays))
        return block

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
        fresh = self._make(start, start + 1)
        return block if same and block.first_row().equals(fresh) else None


def make_block(shared: str, options: Options, code: str, start: int, stop: int) -> None:
    """Make one block into its file beside the embedding that ``shared`` names: a worker's task."""
    with writing(Path(shared).parent, StoreError):
        _shared_blocks(shared, options, code).make(start, stop)


@lru_cache(1)
def _shared_blocks(shared: str, options: Options, code: str) -> Blocks:
    """Return the blocks of an embedding in a file; laid out once per process."""
    path = Path(shared)
    try:
        with path.open("rb") as file:
            embedding = np.load(file, allow_pickle=False)
        blocks = Blocks(embedding, options, path.parent, key=code)
        if blocks.name != path.name:
            raise ValueError("it has changed")
    except DAMAGE as error:
        raise StoreError(
            f"{path}: cannot be read on {socket.gethostname()}: {error}; workers need the folder "
            "of the store under the same path"
        ) from error
    return blocks


def _key_of(embedding: NDArray[np.float64], options: Options, key: str) -> str:
    """Return the digest of everything that the numbers of a block depend on."""
    numbers = [options.threshold, options.top_k, options.matrix, embedding.shape, key]
    total = hashlib.sha256(json.dumps(numbers).encode())
    total.update(np.ascontiguousarray(embedding, dtype="<f8").data)
    return total.hexdigest()
