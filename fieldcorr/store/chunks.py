"""Chunks of a streamed dataset, written to their places without HDF5.

What flows in: blocks of rows, in any order. What flows out: their bytes and checksums in the file,
and one sha256 digest per chunk in a side file. The side file is the record of progress: a chunk
counts as done when its digest is there and the bytes in the file still have it, so neither a
killed process nor lost power can make a torn chunk count.
"""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.store import layout
from fieldcorr.store.digest import combine, digest_block
from fieldcorr.store.layout import Entry
from fieldcorr.store.skeleton import write_all

DIGEST = 32


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
        Side file with 32 bytes per chunk.
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
        """Write one chunk: the rows of :meth:`rows_of`, padded with zeros to the chunk's size."""
        from fieldcorr.store._kernels import fletcher32

        digest = digest_block(block)
        full = self._padded(block)
        checksum = int(fletcher32(full.reshape(-1).view(np.uint16)))
        offset = int(self._offsets[index])
        write_all(self._fd, full.reshape(-1).view(np.uint8), offset)
        write_all(self._fd, checksum.to_bytes(4, "little"), offset + full.nbytes)
        write_all(self._record, digest, DIGEST * index)
        self._digests[index] = np.frombuffer(digest, np.uint8)
        self.done[index] = True

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
        start, stop = self.rows_of(index)
        size = (stop - start) * prod(self.chunk[1:]) * self._dtype.itemsize
        data = os.pread(self._fd, size, int(self._offsets[index]))
        if len(data) != size:
            return False
        # The digest covers the rows; the padding and HDF5's checksum are written again if torn.
        return digest_block(np.frombuffer(data, np.uint8)) == self._digests[index].tobytes() and (
            self._tail_is_intact(index, data)
        )

    def _tail_is_intact(self, index: int, data: bytes) -> bool:
        from fieldcorr.store._kernels import fletcher32

        full = np.zeros(prod(self.chunk) * self._dtype.itemsize, dtype=np.uint8)
        full[: len(data)] = np.frombuffer(data, np.uint8)
        tail = os.pread(self._fd, full.size - len(data) + 4, int(self._offsets[index]) + len(data))
        want = full[len(data) :].tobytes()
        return tail == want + int(fletcher32(full.view(np.uint16))).to_bytes(4, "little")


def write_chunks(
    file: ChunkedFile,
    indices: Iterable[int],
    block_of: Callable[[int, int], NDArray[Any]],
    pool: Executor,
) -> None:
    """Write chunks in parallel; ``block_of(start, stop)`` gives the rows of one."""
    list(pool.map(lambda index: file.write(index, block_of(*file.rows_of(index))), indices))
