"""A space-filling curve, along which neighbours in a list are neighbours in space."""

import numpy as np
from numpy.typing import NDArray


def curve_order(grid: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the order of grid points (N, 3) along a Morton curve: bits of x, y, z in turn.

    Coordinates are whole numbers from 0 to 2^21 - 1; equal points keep their order.
    """
    code = np.zeros(len(grid), dtype=np.int64)
    for bit in range(int(grid.max(initial=0)).bit_length()):
        for axis in range(3):
            code |= ((grid[:, axis] >> bit) & 1) << (3 * bit + axis)
    return np.argsort(code, kind="stable")
