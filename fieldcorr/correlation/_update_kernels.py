"""Kernels of the update rule: (kappa, tau) of one duel, added to wins and plays in place.

r comes from rows, from the embedding or from sparse neighbourhoods. All three go through
:func:`add_from_rows`, so the same r gives the same bits. Every call has scratch of its own, so any
number of threads may share a source.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]

BLOCK = 512
"""Most arms of an embedding handled at once: their sums (8 kB) stay in the first-level cache."""


class Rule(NamedTuple):
    """The update rule as numbers; truth values are 0 or 1."""

    floor: float  # r~ = min(1, max(r, floor)); -1 reads r as it is
    cap: float  # tau = min(cap, tau); inf reads tau as it is
    need: float  # an arm is touched if both of its r are above this; -inf touches all
    pin: float  # whether winner and loser are set to (1, 1) and (0, 1)
    tie: float  # whether nobody won


_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@intrinsic
def _fma(_context: Any, _x: Any, _y: Any, _z: Any) -> Any:
    """Return x y + z with one rounding: the same bits in scalar and in vector registers."""
    real = types.float64

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return real(real, real, real), generate


@intrinsic
def _bits(_context: Any, _x: Any) -> Any:
    """Return the 64 bits of a float64 as an integer."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], target.get_value_type(signature.return_type))

    return types.int64(types.float64), generate


@intrinsic
def _from_bits(_context: Any, _bits: Any) -> Any:
    """Return the float64 that has these 64 bits."""

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], target.get_value_type(signature.return_type))

    return types.float64(types.int64), generate


_SQRT_HALF_BITS = int(np.array(np.sqrt(0.5)).view(np.int64))
_SHIFT = 1.5 * 2.0**52
_SHIFT_BITS = int(np.array(_SHIFT).view(np.int64))
# log2((1 + s) / (1 - s)) = sum_n C_n s^(2n+1), C_n = 2 / ((2n + 1) ln 2). With |s| <= 0.172 the
# first term left out, n = 11, is below 1e-17 of the sum.
_C = tuple(2.0 / ((2 * n + 1) * float(np.log(2.0))) for n in range(11))
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10 = _C


@_inner
def _log2(x: float) -> float:
    """Return log2 of a positive normal number, to 3e-16 of its value; exactly 0 at 1.

    Written out because the C library's logarithm is a scalar call (5-8 ns, two per arm): this one
    has no branch and no call, so the loop around it runs in vector registers. x = 2^e m with m in
    [sqrt(1/2), sqrt(2)) and s = (m - 1) / (m + 1).
    """
    bits = _bits(x)
    e = (bits - _SQRT_HALF_BITS) >> 52
    m = _from_bits(bits - (e << 52))
    exponent = _from_bits(e + _SHIFT_BITS) - _SHIFT  # int64 to float64 without a scalar convert
    s = (m - 1.0) / (m + 1.0)
    q = s * s
    p = _fma(q, _C10, _C9)
    p = _fma(q, p, _C8)
    p = _fma(q, p, _C7)
    p = _fma(q, p, _C6)
    p = _fma(q, p, _C5)
    p = _fma(q, p, _C4)
    p = _fma(q, p, _C3)
    p = _fma(q, p, _C2)
    p = _fma(q, p, _C1)
    p = _fma(q, p, _C0)
    return float(_fma(s, p, exponent))


@_inner
def _round_r(r: float) -> np.float32:
    """Clamp a correlation to [-1, 1] and round it to what every store holds."""
    r = 1.0 if r > 1.0 else r
    r = -1.0 if r < -1.0 else r
    return np.float32(r)


@_inner
def _shape_r(r: float, floor: float) -> float:
    """Return r~ = min(1, max(r, floor))."""
    r = r if r > floor else floor
    return r if r < 1.0 else 1.0


@_jit
def add_from_rows(
    rule: Rule,
    r_winner: Float32s,
    r_loser: Float32s,
    winner: int,
    loser: int,
    wins: Float64s,
    plays: Float64s,
) -> None:
    """Add (kappa, tau) of one duel to wins and plays: Eqs. 5 and 6 of the paper with r~ for r.

    tau_k = min(cap, (r~_ik + r~_jk) / (1 + r~_ij)), and 0 where the denominator is,
    kappa_k = tau_k log r~_jk / (log r~_ik + log r~_jk), and tau_k / 2 where both logarithms are 0.
    The logarithms are never positive and rounding keeps order, so 0 <= kappa <= tau. Without
    branches, so that the loop runs in vector registers. In a tie each side has half: kappa and
    mirrored kappa add up to tau.
    """
    denominator = 1.0 + _shape_r(float(r_winner[loser]), rule.floor)
    denominator = denominator if denominator > 0.0 else np.inf
    won, lost = wins[winner], wins[loser]
    played_winner, played_loser = plays[winner], plays[loser]
    half = rule.tie != 0.0
    for k in range(wins.size):
        r_x, r_y = float(r_winner[k]), float(r_loser[k])
        touched = (r_x > rule.need) & (r_y > rule.need)
        x, y = _shape_r(r_x, rule.floor), _shape_r(r_y, rule.floor)
        tau = (x + y) / denominator
        tau = tau if tau < rule.cap else rule.cap
        tau = tau if touched else 0.0
        log_x = _log2(x if touched else 1.0)
        log_y = _log2(y if touched else 1.0)
        total = log_x + log_y
        apart = (total < 0.0) & (not half)
        share = log_y / (total if apart else 1.0)
        wins[k] += tau * (share if apart else 0.5)
        plays[k] += tau
    if rule.pin != 0.0:
        wins[winner] = won + (0.5 if half else 1.0)
        wins[loser] = lost + (0.5 if half else 0.0)
        plays[winner] = played_winner + 1.0
        plays[loser] = played_loser + 1.0


@_jit
def fill_logs(rule: Rule, r: Float32s, logs: Float64s) -> None:
    """Fill ``logs`` (K, K) with log2 of r~, as in :func:`add_from_rows`; 1 where r is left out."""
    for i in range(r.shape[0]):
        row, out = r[i], logs[i]
        for k in range(row.size):
            x = float(row[k])
            touched = x > rule.need
            value = _log2(_shape_r(x, rule.floor) if touched else 1.0)
            out[k] = value if touched else 1.0


@_jit
def rows_from_embedding(
    blocks: Float64s, i: int, j: int, sums: Float64s, r_i: Float32s, r_j: Float32s
) -> None:
    """Fill ``r_i`` and ``r_j`` (K,) with z_i . z_k and z_j . z_k.

    ``blocks`` (P, R, B) holds arm B p + b at [p, :, b], so that the arms of a block lie side by
    side; zeros after the last arm, and R filled up with zeros to a multiple of 4. Four columns at a
    time: the two running sums, ``sums`` (2, B), are loaded and stored once for eight products (2x
    faster than one column at a time). Each sum runs over R in order, as in the tiles.
    """
    width, first, second = blocks.shape[2], sums[0], sums[1]
    z_i, z_j = blocks[i // width, :, i % width], blocks[j // width, :, j % width]
    for p in range(blocks.shape[0]):
        block = blocks[p]
        for b in range(width):
            first[b] = 0.0
            second[b] = 0.0
        for c in range(0, blocks.shape[1], 4):
            a0, a1, a2, a3 = z_i[c], z_i[c + 1], z_i[c + 2], z_i[c + 3]
            b0, b1, b2, b3 = z_j[c], z_j[c + 1], z_j[c + 2], z_j[c + 3]
            c0, c1, c2, c3 = block[c], block[c + 1], block[c + 2], block[c + 3]
            for b in range(width):
                x = _fma(a1, c1[b], _fma(a0, c0[b], first[b]))
                y = _fma(b1, c1[b], _fma(b0, c0[b], second[b]))
                first[b] = _fma(a3, c3[b], _fma(a2, c2[b], x))
                second[b] = _fma(b3, c3[b], _fma(b2, c2[b], y))
        start = p * width
        inside = r_i.size - start
        for b in range(inside if inside < width else width):
            r_i[start + b] = _round_r(first[b])
            r_j[start + b] = _round_r(second[b])


@_jit
def neighbours_are_sound(row: int, indices: Int64s, r: Float32s, size: int) -> bool:
    """Tell whether a neighbourhood is sorted, in 0 ... size, without its own row, and finite."""
    before = -1
    sound = True
    for n in range(indices.size):
        k = indices[n]
        sound &= (k > before) & (k != row) & (abs(r[n]) < np.inf)
        before = k
    return sound & (before < size)


@_inner
def _find(indices: Int64s, r: Float32s, k: int) -> float:
    """Return r of neighbour k in a sorted neighbourhood; 0 where it is not listed."""
    low, high = 0, indices.size
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < k:
            low = middle + 1
        else:
            high = middle
    return float(r[low]) if low < indices.size and indices[low] == k else 0.0


@_jit
def add_from_neighbours(
    rule: Rule,
    near_winner: Int64s,
    r_winner: Float32s,
    near_loser: Int64s,
    r_loser: Float32s,
    winner: int,
    loser: int,
    wins: Float64s,
    plays: Float64s,
    background: Float64s,
) -> None:
    """Add the update of one duel, r from two sorted neighbourhoods.

    What an arm near neither gets goes to ``background`` (2,) alone; only listed arms are touched,
    and they get their (kappa, tau) less that.
    """
    most = near_winner.size + near_loser.size + 3
    arms, r = np.empty(most, np.int64), np.zeros((2, most), np.float32)
    update = np.zeros((2, most))
    # The duelled arms come first, with r = 1 with themselves, and then an arm near neither.
    r_pair = _find(near_winner, r_winner, loser)
    arms[0], arms[1] = winner, loser
    r[0, 0], r[1, 0], r[0, 1], r[1, 1] = 1.0, r_pair, r_pair, 1.0
    size, i, j = 3, 0, 0
    last = np.int64(2**62)
    while i < near_winner.size or j < near_loser.size:
        k_i = near_winner[i] if i < near_winner.size else last
        k_j = near_loser[j] if j < near_loser.size else last
        k = min(k_i, k_j)
        if k != winner and k != loser:
            arms[size] = k
            r[0, size] = r_winner[i] if k_i == k else 0.0
            r[1, size] = r_loser[j] if k_j == k else 0.0
            size += 1
        i += 1 if k_i == k else 0
        j += 1 if k_j == k else 0
    kappa, tau = update[0, :size], update[1, :size]
    add_from_rows(rule, r[0, :size], r[1, :size], 0, 1, kappa, tau)
    background[0] += kappa[2]
    background[1] += tau[2]
    for b in range(size):
        if b != 2:
            wins[arms[b]] += kappa[b] - kappa[2]
            plays[arms[b]] += tau[b] - tau[2]
