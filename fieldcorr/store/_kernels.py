"""The checksum of HDF5's fletcher32 filter, so that chunks can be written without HDF5.

What flows in: the bytes of a chunk as 16-bit words. What flows out: the 32-bit checksum that HDF5
appends to the chunk.
"""

import numba
import numpy as np
from numpy.typing import NDArray

BLOCK = 256
"""Words whose weighted sum fits into 32 bits: 65535 (1 + ... + 256) < 2^32."""

WEIGHTS: NDArray[np.uint32] = np.arange(BLOCK, 0, -1).astype(np.uint32)
"""Weights of the words of a block, from a table: computed ones kept the loop from vectorising."""


@numba.njit(cache=True, nogil=True)
def fletcher32(words: NDArray[np.uint16], weights: NDArray[np.uint32]) -> int:
    """Return fletcher32 of ``words``, which hold the bytes in memory order (little-endian view).

    With w_k the words read big-endian: s1 = sum w_k, s2 = sum (n - k) w_k, both modulo 65535,
    where a non-zero sum that is a multiple of 65535 counts as 65535, as HDF5's folding does. The
    bytes of a word change places by a multiplication by 256 modulo 65535, which is done once.
    """
    first = np.uint64(0)
    second = np.uint64(0)
    modulus = np.uint64(65535)
    seen = np.uint64(0)
    for start in range(0, words.size, BLOCK):
        block = words[start : start + BLOCK]
        weight = weights[BLOCK - block.size :]
        plain = np.uint32(0)
        weighted = np.uint32(0)
        for k in range(block.size):
            word = np.uint32(block[k])
            plain = np.uint32(plain + word)
            weighted = np.uint32(weighted + weight[k] * word)
        second = (second + np.uint64(block.size) * first + np.uint64(weighted)) % modulus
        first = (first + np.uint64(plain)) % modulus
        seen |= np.uint64(plain)
    first = first * np.uint64(256) % modulus
    second = second * np.uint64(256) % modulus
    if seen != 0 and first == 0:
        first = modulus
    if seen != 0 and second == 0:
        second = modulus
    return int((second << np.uint64(16)) | first)
