"""Digests of datasets: what a store promises about every byte of its data.

What flows in: arrays, whole or block by block. What flows out: hexadecimal sha256 digests.

The digest of a dataset is sha256 of a header line (type and shape) followed by the sha256 of each
block in C order; the blocks are the dataset's chunks, clipped to its shape. So tiles can be
digested in any order and by any number of threads, and a batch that goes on after an interruption
digests only what it writes.
"""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.store import layout
from fieldcorr.store.layout import Entry


def digest_block(block: NDArray[Any]) -> bytes:
    """Return the 32 bytes of sha256 of an array's content in C order."""
    return hashlib.sha256(np.ascontiguousarray(block).data).digest()


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
    return combine(
        entry, array.shape, (digest_block(array[b]) for b in layout.blocks(chunks, array.shape))
    )
