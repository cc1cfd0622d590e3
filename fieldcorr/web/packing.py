"""Arrays as short texts inside a page; ``core.js`` reads them again.

Whole numbers are written as planes of bytes, all first bytes before all second ones, deflated and
in base64. A smooth field is rounded to so many bits of the largest value in each channel and
replaced by its differences along both axes, of which most are near zero: two bytes or less per
value in place of four.
"""

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Packed = dict[str, Any]


def pack_integers(values: NDArray[np.generic]) -> Packed:
    """Pack whole numbers of 32 bits; negative ones are folded in between: 0, -1, 1, -2, ..."""
    numbers = np.asarray(values).astype(np.int64)
    folded = np.where(numbers < 0, -2 * numbers - 1, 2 * numbers).astype("<u4").ravel()
    planes = folded.view(np.uint8).reshape(-1, 4).T
    used = max(1, int(np.flatnonzero(planes.any(axis=1)).max(initial=0)) + 1)
    data = zlib.compress(np.ascontiguousarray(planes[:used]).tobytes(), 9)
    return {"shape": list(numbers.shape), "data": base64.b64encode(data).decode("ascii")}


def pack_grid(values: NDArray[np.float64], bits: int) -> Packed:
    """Pack smooth fields (C, m, n) without NaN, rounded to 2^-bits of the range of each channel."""
    largest = np.abs(values).max(axis=(1, 2))
    scale = np.where(largest > 0.0, largest, 1.0) / 2 ** (bits - 1)
    steps = np.rint(values / scale[:, None, None]).astype(np.int64)
    steps = np.diff(np.diff(steps, axis=1, prepend=0), axis=2, prepend=0)
    return {"scale": scale.tolist(), **pack_integers(steps)}
