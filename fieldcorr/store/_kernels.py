"""The checksum of HDF5's fletcher32 filter, so that chunks can be written without HDF5.

What flows in: the bytes of a chunk as 16-bit words. What flows out: the 32-bit checksum that HDF5
appends to the chunk.
"""

import numba
import numpy as np
from numpy.typing import NDArray

BLOCK = 4096


@numba.njit(cache=True, nogil=True)
def fletcher32(words: NDArray[np.uint16]) -> int:
    """Return fletcher32 of ``words``, which hold the bytes in memory order (little-endian view).

    With w_k the words read big-endian: s1 = sum w_k, s2 = sum (n - k) w_k, both modulo 65535,
    where a non-zero sum that is a multiple of 65535 counts as 65535, as HDF5's folding does.
    """
    first = np.uint64(0)
    second = np.uint64(0)
    modulus = np.uint64(65535)
    seen = np.uint64(0)
    for start in range(0, words.size, BLOCK):
        stop = min(start + BLOCK, words.size)
        plain = np.uint64(0)
        weighted = np.uint64(0)
        for k in range(start, stop):
            word = np.uint64(words[k])
            swapped = ((word & np.uint64(255)) << np.uint64(8)) | (word >> np.uint64(8))
            plain += swapped
            weighted += np.uint64(stop - k) * swapped
        second = (second + np.uint64(stop - start) * first + weighted) % modulus
        first = (first + plain) % modulus
        seen |= plain
    if seen != 0 and first == 0:
        first = modulus
    if seen != 0 and second == 0:
        second = modulus
    return int((second << np.uint64(16)) | first)
