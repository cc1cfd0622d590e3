"""The kernel of the rules: a walk through all configurations that satisfy them, in order of id."""

import numba
import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)


@_jit
def _can_connect(members: int, undecided: int, adjacency: Int64s) -> bool:
    """Tell whether a set of contacts hangs together, with the help of contacts not decided yet."""
    usable = members | undecided
    reached = members & -members
    grown = True
    while grown:
        grown = False
        for e in range(adjacency.size):
            if (reached >> e) & 1 and (adjacency[e] & usable & ~reached) != 0:
                reached |= adjacency[e] & usable
                grown = True
    return (members & ~reached) == 0


@_jit
def fill_can_connect(adjacency: Int64s, body: int, table: NDArray[np.bool_]) -> None:
    """Fill ``table`` (2^(E + 1),): whether each set of decided contacts can still hang together.

    At depth d the contacts E - d ... E - 1 are decided; a set of them, shifted down to bit 0,
    is entry 2^d + set. Contacts that are not in ``body`` do not matter.
    """
    size = adjacency.size
    for depth in range(size + 1):
        undecided = (1 << (size - depth)) - 1
        for members in range(1 << depth):
            decided = (members << (size - depth)) & body
            table[(1 << depth) + members] = _can_connect(decided, undecided, adjacency)


@_jit
def _hangs_together(
    members: int, depth: int, adjacency: Int64s, body: int, table: NDArray[np.bool_]
) -> bool:
    """Look a set up in the table, or, where that would be too large, follow its neighbours."""
    left = adjacency.size - depth
    if table.size > 0:
        return bool(table[(1 << depth) + (members >> left)])
    return bool(_can_connect(members & body, (1 << left) - 1, adjacency))


@_jit
def _fits(e: int, digit: int, anodes: int, cathodes: int, forbid: Int64s, require: Int64s) -> bool:
    """Tell whether contact e may have this digit beside the contacts decided so far."""
    clash = (anodes & forbid[0, e, digit]) | (cathodes & forbid[1, e, digit])
    missing = (require[0, e, digit] & ~anodes) | (require[1, e, digit] & ~cathodes)
    return bool((clash | missing) == 0)


@_jit
def _write(anodes: int, cathodes: int, row: NDArray[np.int8]) -> None:
    """Write the polarities of two sets."""
    for e in range(row.size):
        row[e] = ((anodes >> e) & 1) - ((cathodes >> e) & 1)


@_jit
def walk(
    allowed: NDArray[np.bool_],
    limits: tuple[int, int, int, int, int, int],
    possible: Int64s,
    forbid: Int64s,
    require: Int64s,
    adjacency: Int64s,
    connected: tuple[bool, bool],
    body: int,
    table: NDArray[np.bool_],
    most_steps: int,
    out: NDArray[np.int8],
) -> int:
    """Return how many configurations there are, or -1 after ``most_steps``.

    Depth-first from the last contact (the highest digit of the id) to the first, digits ascending,
    so ids ascend. A branch ends when numbers, pairs or groups rule it out; ``possible`` (2, E + 1)
    says how many contacts below a depth can still become anodes and cathodes. ``out`` (K, E) is
    filled if it has rows.
    """
    size = allowed.shape[0]
    least_c, most_c, least_a, most_a, least, most = limits
    # At each depth: next digit, anodes, cathodes and their numbers.
    state = np.zeros((5, size + 1), dtype=np.int64)
    depth, found, steps = 0, 0, 0
    while depth >= 0:
        steps += 1
        if steps > most_steps:
            return -1
        anodes, cathodes = state[1, depth], state[2, depth]
        n_a, n_c = state[3, depth], state[4, depth]
        if depth == size:
            depth -= 1
            if n_a >= least_a and n_c >= least_c and n_a + n_c >= least:
                if out.shape[0] > 0:
                    _write(anodes, cathodes, out[found])
                found += 1
            continue
        digit = state[0, depth]
        if digit == 3:
            depth -= 1
            continue
        state[0, depth] = digit + 1
        e = size - 1 - depth
        n_a += digit == 1
        n_c += digit == 2
        fits = allowed[e, digit] and n_a <= most_a and n_c <= most_c and n_a + n_c <= most
        fits = fits and n_a + possible[0, depth + 1] >= least_a
        fits = fits and n_c + possible[1, depth + 1] >= least_c
        fits = fits and _fits(e, digit, anodes, cathodes, forbid, require)
        anodes |= np.int64(digit == 1) << e
        cathodes |= np.int64(digit == 2) << e
        if connected[0]:
            fits = fits and _hangs_together(anodes, depth + 1, adjacency, body, table)
        if connected[1]:
            fits = fits and _hangs_together(cathodes, depth + 1, adjacency, body, table)
        if fits:
            depth += 1
            state[0, depth] = 0
            state[1, depth], state[2, depth] = anodes, cathodes
            state[3, depth], state[4, depth] = n_a, n_c
    return found
