"""Kernels of the update rule: (kappa, tau) of one duel, added to wins and plays in place.

r comes from rows, from the embedding or from sparse neighbourhoods, block by block: ``scratch_r``
(2, BLOCK) float32 holds r of the winner and of the loser, ``scratch`` (2, BLOCK) float64 (kappa,
tau). Every call has scratch of its own, so any number of threads may share a source. All three go
through :func:`_apply_rule`, so the same r gives the same bits.
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
"""Arms handled at once: the scratch of a block (20 kB) stays in the first-level cache."""


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


@_inner
def _denominator(r_pair: float, floor: float) -> float:
    """Return 1 + r~_ij, infinite where it would be 0: tau is 0 then instead of undefined."""
    total = 1.0 + _shape_r(r_pair, floor)
    return total if total > 0.0 else np.inf


@_inner
def _apply_rule(
    rule: Rule, r_pair: float, size: int, scratch_r: Float32s, scratch: Float64s
) -> None:
    """Turn r of a block of arms into (kappa, tau): Eqs. 5 and 6 of the paper with r~ for r.

    tau_k = min(cap, (r~_ik + r~_jk) / (1 + r~_ij)),
    kappa_k = tau_k log r~_jk / (log r~_ik + log r~_jk), and tau_k / 2 where both logarithms are 0.
    The logarithms are never positive and rounding keeps order, so 0 <= kappa <= tau. Without
    branches, so that the loop runs in vector registers.
    """
    r_winner, r_loser = scratch_r[0], scratch_r[1]
    kappa, tau = scratch[0], scratch[1]
    denominator = _denominator(r_pair, rule.floor)
    for b in range(size):
        r_x, r_y = float(r_winner[b]), float(r_loser[b])
        touched = (r_x > rule.need) & (r_y > rule.need)
        x, y = _shape_r(r_x, rule.floor), _shape_r(r_y, rule.floor)
        plays = (x + y) / denominator
        plays = plays if plays < rule.cap else rule.cap
        plays = plays if touched else 0.0
        log_x = _log2(x if touched else 1.0)
        log_y = _log2(y if touched else 1.0)
        total = log_x + log_y
        apart = total < 0.0
        share = log_y / (total if apart else 1.0)
        tau[b] = plays
        kappa[b] = plays * (share if apart else 0.5)


@_jit
def fill_logs(rule: Rule, r: Float32s, logs: Float64s) -> None:
    """Fill ``logs`` (K, K) with log2 of r~, as in :func:`_apply_rule`; 1 where r is left out."""
    for i in range(r.shape[0]):
        row, out = r[i], logs[i]
        for k in range(row.size):
            x = float(row[k])
            touched = x > rule.need
            value = _log2(_shape_r(x, rule.floor) if touched else 1.0)
            out[k] = value if touched else 1.0


@_inner
def _share_tie(rule: Rule, size: int, scratch: Float64s) -> None:
    """Give each side half if nobody won: kappa and mirrored kappa add up to tau."""
    if rule.tie != 0.0:
        for b in range(size):
            scratch[0, b] = 0.5 * scratch[1, b]


@_inner
def _pin_duelled(rule: Rule, winner: int, loser: int, size: int, scratch: Float64s) -> None:
    """Set (1, 1) for the winner and (0, 1) for the loser, where they are within the block."""
    if rule.pin != 0.0:
        if 0 <= winner < size:
            scratch[0, winner] = 1.0
            scratch[1, winner] = 1.0
        if 0 <= loser < size:
            scratch[0, loser] = 0.0
            scratch[1, loser] = 1.0


@_inner
def _add_block(
    rule: Rule,
    r_pair: float,
    winner: int,
    loser: int,
    start: int,
    scratch_r: Float32s,
    scratch: Float64s,
    wins: Float64s,
    plays: Float64s,
) -> None:
    """Add the update of the block of arms from ``start`` on, whose r is in ``scratch_r``."""
    size = min(BLOCK, wins.size - start)
    _apply_rule(rule, r_pair, size, scratch_r, scratch)
    _pin_duelled(rule, winner - start, loser - start, size, scratch)
    _share_tie(rule, size, scratch)
    kappa, tau = scratch[0], scratch[1]
    for b in range(size):
        wins[start + b] += kappa[b]
        plays[start + b] += tau[b]


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
    """Add the update of one duel, r given as two rows of length K."""
    scratch_r, scratch = np.empty((2, BLOCK), np.float32), np.empty((2, BLOCK))
    r_pair = float(r_winner[loser])
    for start in range(0, wins.size, BLOCK):
        for b in range(min(BLOCK, wins.size - start)):
            scratch_r[0, b] = r_winner[start + b]
            scratch_r[1, b] = r_loser[start + b]
        _add_block(rule, r_pair, winner, loser, start, scratch_r, scratch, wins, plays)


@_inner
def _add_dots(
    z_winner: Float64s, z_loser: Float64s, columns: Float64s, start: int, size: int, sums: Float64s
) -> None:
    """Fill ``sums`` with z_winner . z_k and z_loser . z_k for a block of arms k.

    Four columns at a time: the two running sums are loaded and stored once for eight products (2x
    faster than one column at a time). Each sum runs over R in order, as in the tiles.
    """
    first, second = sums[0], sums[1]
    for k in range(size):
        first[k] = 0.0
        second[k] = 0.0
    rank = columns.shape[0]
    whole = rank - rank % 4
    for r in range(0, whole, 4):
        a0, a1, a2, a3 = z_winner[r], z_winner[r + 1], z_winner[r + 2], z_winner[r + 3]
        b0, b1, b2, b3 = z_loser[r], z_loser[r + 1], z_loser[r + 2], z_loser[r + 3]
        c0, c1 = columns[r, start : start + size], columns[r + 1, start : start + size]
        c2, c3 = columns[r + 2, start : start + size], columns[r + 3, start : start + size]
        for k in range(size):
            x = _fma(a1, c1[k], _fma(a0, c0[k], first[k]))
            y = _fma(b1, c1[k], _fma(b0, c0[k], second[k]))
            first[k] = _fma(a3, c3[k], _fma(a2, c2[k], x))
            second[k] = _fma(b3, c3[k], _fma(b2, c2[k], y))
    for r in range(whole, rank):
        c0 = columns[r, start : start + size]
        for k in range(size):
            first[k] = _fma(z_winner[r], c0[k], first[k])
            second[k] = _fma(z_loser[r], c0[k], second[k])


@_inner
def _dot(x: Float64s, y: Float64s) -> float:
    """Add up x_r y_r in order."""
    total = 0.0
    for r in range(x.size):
        total = _fma(x[r], y[r], total)
    return total


@_jit
def add_from_embedding(
    rule: Rule, columns: Float64s, winner: int, loser: int, wins: Float64s, plays: Float64s
) -> None:
    """Add the update of one duel, r from the embedding.

    ``columns`` is Z', of shape (R, K), so that the arms of a block lie side by side.
    """
    scratch_r, scratch = np.empty((2, BLOCK), np.float32), np.empty((2, BLOCK))
    z_winner, z_loser = np.empty(columns.shape[0]), np.empty(columns.shape[0])
    for r in range(columns.shape[0]):
        z_winner[r], z_loser[r] = columns[r, winner], columns[r, loser]
    r_pair = float(_round_r(_dot(z_winner, z_loser)))
    for start in range(0, wins.size, BLOCK):
        size = min(BLOCK, wins.size - start)
        _add_dots(z_winner, z_loser, columns, start, size, scratch)
        for b in range(size):
            scratch_r[0, b] = _round_r(scratch[0, b])
            scratch_r[1, b] = _round_r(scratch[1, b])
        _add_block(rule, r_pair, winner, loser, start, scratch_r, scratch, wins, plays)


@_jit
def row_from_embedding(columns: Float64s, i: int, row: Float32s) -> None:
    """Fill ``row`` (K,) with r of one configuration with everyone."""
    scratch = np.empty((2, BLOCK))
    z = np.empty(columns.shape[0])
    for r in range(columns.shape[0]):
        z[r] = columns[r, i]
    for start in range(0, row.size, BLOCK):
        size = min(BLOCK, row.size - start)
        _add_dots(z, z, columns, start, size, scratch)
        for b in range(size):
            row[start + b] = _round_r(scratch[0, b])
    row[i] = 1.0


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


@_inner
def _merge(
    size: int,
    i: int,
    j: int,
    near_winner: Int64s,
    r_winner: Float32s,
    near_loser: Int64s,
    r_loser: Float32s,
    winner: int,
    loser: int,
    arms: Int64s,
    scratch_r: Float32s,
) -> tuple[int, int, int]:
    """Merge two sorted rows into the block until it is full; return its size and both places."""
    last = np.int64(2**62)
    while size < BLOCK and (i < near_winner.size or j < near_loser.size):
        k_i = near_winner[i] if i < near_winner.size else last
        k_j = near_loser[j] if j < near_loser.size else last
        k = min(k_i, k_j)
        arms[size] = k
        scratch_r[0, size] = r_winner[i] if k_i == k else 0.0
        scratch_r[1, size] = r_loser[j] if k_j == k else 0.0
        i += 1 if k_i == k else 0
        j += 1 if k_j == k else 0
        size += 1 if k != winner and k != loser else 0
    return size, i, j


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
    scratch_r, scratch = np.empty((2, BLOCK), np.float32), np.empty((2, BLOCK))
    arms = np.empty(BLOCK, np.int64)
    r_pair = _find(near_winner, r_winner, loser)
    scratch_r[0, 0], scratch_r[1, 0] = 0.0, 0.0
    _apply_rule(rule, r_pair, 1, scratch_r, scratch)
    _share_tie(rule, 1, scratch)
    kappa, tau = scratch[0, 0], scratch[1, 0]
    background[0] += kappa
    background[1] += tau
    # The two duelled arms lead the first block: they have r = 1 with themselves.
    arms[0], arms[1] = winner, loser
    scratch_r[0, 0], scratch_r[1, 0] = 1.0, r_pair
    scratch_r[0, 1], scratch_r[1, 1] = r_pair, 1.0
    size, i, j = 2, 0, 0
    while True:
        leads = size == 2
        # fmt: off
        size, i, j = _merge(
            size, i, j, near_winner, r_winner, near_loser, r_loser, winner, loser, arms, scratch_r
        )
        # fmt: on
        _apply_rule(rule, r_pair, size, scratch_r, scratch)
        if leads:
            _pin_duelled(rule, 0, 1, size, scratch)
        _share_tie(rule, size, scratch)
        for b in range(size):
            wins[arms[b]] += scratch[0, b] - kappa
            plays[arms[b]] += scratch[1, b] - tau
        if size < BLOCK:
            break  # both neighbourhoods are used up
        size = 0
