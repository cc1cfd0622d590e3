"""Kernels of the drive: contact currents of many configurations, each a small dense problem."""

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _eliminate(a: Float64s, size: int, least: float) -> bool:
    """Solve for the two right-hand sides in columns size and size + 1 of ``a``, all in place.

    Gaussian elimination with row pivots; False if a pivot is not above ``least``. Pivots depend on
    the matrix alone, so negated right-hand sides give exactly the negated solutions.
    """
    for c in range(size):
        pivot = c
        for r in range(c + 1, size):
            if abs(a[r, c]) > abs(a[pivot, c]):
                pivot = r
        if not abs(a[pivot, c]) > least:
            return False
        for k in range(size + 2):
            a[c, k], a[pivot, k] = a[pivot, k], a[c, k]
        for r in range(c + 1, size):
            factor = a[r, c] / a[c, c]
            for k in range(c + 1, size + 2):
                a[r, k] -= factor * a[c, k]
    for c in range(size - 1, -1, -1):
        for k in range(size, size + 2):
            for r in range(c + 1, size):
                a[c, k] -= a[c, r] * a[r, k]
            a[c, k] /= a[c, c]
    return True


@_inner
def _float_off_contacts(
    signs: NDArray[np.int8], y: Float64s, least: float, a: Float64s, v: Float64s
) -> bool:
    """Fill ``v`` (E, 2) with contact potentials; False if the floating ones are not determined.

    Column 0: anodes at +1/2, cathodes at -1/2. Column 1: all active contacts at 1. The off
    contacts float: V_off = -Y_oo^-1 Y_oa V_a.
    """
    off = np.int64(0)  # a literal 0 would have _eliminate compiled once more
    for e in range(signs.size):
        v[e, 0] = 0.5 * signs[e]
        v[e, 1] = 1.0 if signs[e] != 0 else 0.0
        off += signs[e] == 0
    row = 0
    for e in range(signs.size):
        if signs[e] == 0:
            a[row, off] = 0.0
            a[row, off + 1] = 0.0
            column = 0
            for f in range(signs.size):
                if signs[f] == 0:
                    a[row, column] = y[e, f]
                    column += 1
                else:
                    a[row, off] -= y[e, f] * v[f, 0]
                    a[row, off + 1] -= y[e, f] * v[f, 1]
            row += 1
    if not _eliminate(a, off, least):
        return False
    row = 0
    for e in range(signs.size):
        if signs[e] == 0:
            v[e, 0] = a[row, off]
            v[e, 1] = a[row, off + 1]
            row += 1
    return True


@_inner
def balance(polarity: NDArray[np.int8], current: Float64s) -> None:
    """Take what the currents of one configuration sum to, rounding, off its active contacts.

    Equal parts from each, so that mirrored currents stay exactly mirrored.
    """
    total = 0.0
    active = 0
    for e in range(current.size):
        total += current[e]
        active += polarity[e] != 0
    for e in range(current.size):
        if polarity[e] != 0:
            current[e] -= total / active


@_jit
def voltage_currents(
    polarity: NDArray[np.int8],
    y: Float64s,
    insulated: int,
    least: float,
    a: Float64s,
    v: Float64s,
    current: Float64s,
) -> int:
    """Fill ``current`` (K, E) for 1 V between the nodes; return the first row that fails, or -1.

    ``insulated`` is 1 where no current can leave but through contacts: the common potential is
    free then. Otherwise it is the one at which the currents sum to zero. ``a`` (E, E + 2) and
    ``v`` (E, 2) are scratch.
    """
    for k in range(polarity.shape[0]):
        if not _float_off_contacts(polarity[k], y, least, a, v):
            return k
        shift = 0.0
        if insulated == 0:
            total = 0.0
            common = 0.0
            for e in range(y.shape[0]):
                for f in range(y.shape[0]):
                    if polarity[k, e] != 0:
                        total += y[e, f] * v[f, 0]
                        common += y[e, f] * v[f, 1]
            shift = -total / common
        for e in range(y.shape[0]):
            current[k, e] = 0.0
            if polarity[k, e] != 0:
                for f in range(y.shape[0]):
                    current[k, e] += y[e, f] * (v[f, 0] + shift * v[f, 1])
        balance(polarity[k], current[k])
    return -1


@_jit
def split_currents(polarity: NDArray[np.int8], share: Float64s, current: Float64s) -> None:
    """Fill ``current`` (K, E) with 1 A split among anodes, and among cathodes, by their shares."""
    for k in range(polarity.shape[0]):
        anodes = 0.0
        cathodes = 0.0
        for e in range(share.size):
            anodes += share[e] if polarity[k, e] > 0 else 0.0
            cathodes += share[e] if polarity[k, e] < 0 else 0.0
        for e in range(share.size):
            current[k, e] = 0.0
            if polarity[k, e] != 0:
                current[k, e] = (
                    polarity[k, e] * share[e] / (anodes if polarity[k, e] > 0 else cathodes)
                )
        balance(polarity[k], current[k])
