"""Digests of datasets: what a store promises about every byte of its data.

The digest of a dataset is sha256 of a header line (path, type and shape) followed by the digest of
each block in C order. The blocks follow from path, type and shape alone
(:func:`~fieldcorr.store.layout.chunk_shape`), so that a copy in other chunks or with other filters
has the same digests, and blocks can be digested as they are made. A block's digest is its sha256;
in the streamed datasets it is its crc32, four bytes, little-endian (sha256 took longer than
computing the block).
"""

import hashlib
import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.store import layout
from fieldcorr.store.layout import Entry


def digest_block(entry: Entry, block: NDArray[Any]) -> bytes:
    """Return the digest of a block's content in C order: 4 bytes if streamed, else 32."""
    content = np.ascontiguousarray(block).reshape(-1).view(np.uint8).data
    if entry.streamed:
        return zlib.crc32(content).to_bytes(4, "little")
    return hashlib.sha256(content).digest()


def combine(entry: Entry, shape: tuple[int, ...], blocks: Iterable[bytes]) -> str:
    """Return the digest of a dataset from those of its blocks."""
    total = hashlib.sha256(f"{entry.path} {entry.dtype} {tuple(map(int, shape))}\n".encode())
    for block in blocks:
        total.update(block)
    return total.hexdigest()


def digest_array(entry: Entry, array: NDArray[Any]) -> str:
    """Return the digest of a dataset that is in memory.

    Text counts without the zero bytes that pad it, which readers do not see.
    """
    if entry.dtype == layout.TEXT:
        content = b"\0".join(np.atleast_1d(array).tolist())
        return combine(entry, array.shape, [hashlib.sha256(content).digest()])
    chunks = layout.chunk_shape(entry, array.shape)
    blocks = layout.blocks(chunks, array.shape)
    return combine(entry, array.shape, (digest_block(entry, array[b]) for b in blocks))
