"""Chunks of a streamed dataset, written to their places without HDF5.

What flows in: blocks of rows, in any order. What flows out: their bytes and checksums in the file,
and one digest per chunk in a side file. The side file is the record of progress: a chunk
counts as done when its digest is there and the bytes in the file still have it, so neither a
killed process nor lost power can make a torn chunk count.
"""

import os
from collections.abc import Callable
from concurrent.futures import Executor
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.store import layout
from fieldcorr.store.digest import combine, digest_block
from fieldcorr.store.disk import write_all
from fieldcorr.store.layout import Entry

DIGEST = 4
GROUP = 16
"""Chunks that a thread writes in turn: handing out single ones took a third of the time."""


class ChunkedFile:
    """One streamed dataset of a draft.

    Parameters
    ----------
    fd
        The draft, open for reading and writing.
    entry, shape
        The dataset.
    offsets
        Byte offset of each chunk.
    record
        Side file with four bytes per chunk.
    """

    def __init__(
        self,
        fd: int,
        entry: Entry,
        shape: tuple[int, ...],
        offsets: NDArray[np.int64],
        record: Path,
    ) -> None:
        self._fd = fd
        self._entry = entry
        self._shape = shape
        self._offsets = offsets
        self._dtype = np.dtype(entry.dtype)
        chunks = layout.chunk_shape(entry, shape)
        self.chunk: tuple[int, ...] = (0,) if chunks is None else chunks
        self.count = 0 if chunks is None else -(-shape[0] // chunks[0])
        self._record = os.open(record, os.O_RDWR | os.O_CREAT, 0o644)
        stored = os.pread(self._record, DIGEST * self.count, 0).ljust(DIGEST * self.count, b"\0")
        self._digests = np.frombuffer(bytearray(stored), np.uint8).reshape(self.count, DIGEST)
        self.done: NDArray[np.bool_] = np.zeros(self.count, dtype=np.bool_)

    def close(self) -> None:
        """Close the side file."""
        os.close(self._record)

    def rows_of(self, index: int) -> tuple[int, int]:
        """Return the first row of a chunk and the row after its last."""
        start = index * self.chunk[0]
        return start, min(start + self.chunk[0], self._shape[0])

    def verify(self, pool: Executor) -> None:
        """Find out which chunks are already in the file, byte for byte."""
        recorded = np.flatnonzero(self._digests.any(axis=1))
        self.done[recorded] = list(pool.map(self._is_intact, recorded.tolist()))

    def write(self, index: int, block: NDArray[Any]) -> None:
        """Write one chunk: the rows of :meth:`rows_of`, padded with zeros to the chunk's size.

        It counts as done when :meth:`record` has been called for it.
        """
        self._digests[index] = np.frombuffer(digest_block(self._entry, block), np.uint8)
        content = self._padded(block).reshape(-1).view(np.uint8)
        checksum, offset = _checksum(content), int(self._offsets[index])
        done = os.pwritev(self._fd, [content.data, checksum], offset)
        if done < content.size + len(checksum):
            write_all(self._fd, content, offset)
            write_all(self._fd, checksum, offset + content.size)

    def record(self, start: int, stop: int) -> None:
        """Record that the chunks ``start:stop`` have been written."""
        write_all(self._record, self._digests[start:stop].reshape(-1), DIGEST * start)
        self.done[start:stop] = True

    def digest(self) -> str:
        """Return the digest of the whole dataset; every chunk must be done."""
        return combine(self._entry, self._shape, (row.tobytes() for row in self._digests))

    def _padded(self, block: NDArray[Any]) -> NDArray[Any]:
        if block.shape[0] == self.chunk[0]:
            return np.ascontiguousarray(block, dtype=self._dtype)
        full = np.zeros(self.chunk, dtype=self._dtype)
        full[: block.shape[0]] = block
        return full

    def _is_intact(self, index: int) -> bool:
        """Compare rows with the recorded digest, padding and checksum with what they must be."""
        start, stop = self.rows_of(index)
        size = (stop - start) * prod(self.chunk[1:]) * self._dtype.itemsize
        full = prod(self.chunk) * self._dtype.itemsize
        data = os.pread(self._fd, full + 4, int(self._offsets[index]))
        if len(data) != full + 4 or any(data[size:full]):
            return False
        content = np.frombuffer(data, np.uint8, full)
        digest = digest_block(self._entry, content[:size])
        return digest == self._digests[index].tobytes() and _checksum(content) == data[full:]


def _checksum(content: NDArray[np.uint8]) -> bytes:
    """Return the four bytes that HDF5 expects after the bytes of a chunk."""
    from fieldcorr.store._kernels import WEIGHTS, fletcher32

    return int(fletcher32(content.view(np.uint16), WEIGHTS)).to_bytes(4, "little")


def write_chunks(
    file: ChunkedFile,
    indices: range,
    block_of: Callable[[int, int], NDArray[Any]],
    pool: Executor,
) -> None:
    """Write consecutive chunks in parallel; ``block_of(start, stop)`` gives the rows of one."""

    def write(group: range) -> None:
        for index in group:
            file.write(index, block_of(*file.rows_of(index)))

    groups = [indices[k : k + GROUP] for k in range(0, len(indices), GROUP)]
    list(pool.map(write, groups))
    file.record(indices.start, indices.stop)
