"""Kernels of r for all configurations of a product space, from the matrices of the contacts alone.

A configuration driven by a voltage is a network: anodes are one node A, cathodes are ground, off
contacts float. Deciding one contact after the other walks a tree: a cathode drops out, an anode is
added to A, a floating contact is eliminated (one step of Gauss). r_ik = h_i . V_k / n_k, with V_k
the potentials and h_i a vector of arm i alone, goes through the same tree, and the multipliers of
the elimination do not depend on i: they are kept. With shared currents r is a sum over the contacts
of each group.

Contacts from ``width`` on are decided once per block (the head), those below in all blocks at once,
lowest first: the states after contact t are contiguous parts, one per digit, of those before, and
every loop runs over contiguous numbers. What becomes of contacts that are not decided yet depends
on which ones float, not on who is anode or cathode: blocks whose heads float the same contacts (a
*pattern*) share it and are visited one after the other. So r of one arm with all costs half a
multiplication for A and one for the norm per configuration.

Sums have a fixed order, in float64 without fused operations; r is rounded to float32 at the end.
Results do not depend on threads or on the vector width.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Int8s = NDArray[np.int8]
Bools = NDArray[np.bool_]

ANODE, CATHODE = 1, 2
FEW = 4  # members of a block that are less than one in so many are computed one by one

_jit = numba.njit(cache=True, error_model="numpy", nogil=True)
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


class Tables(NamedTuple):
    """What r is computed from; what the drive does not need is empty."""

    allowed: Bools  # (width, 3): digits of the contacts that choose a leaf
    inverse_norm: Float32s  # (P, L): 1 / n_k, 0 for leaves that do not count
    pattern: (
        Int64s  # (P,): which contacts of the head float, as a number; its blocks stand together
    )
    order: Int64s  # (P,): the blocks as they are visited, in
    to_anode: Float64s  # (P, S), voltage: multipliers of A, by contact, then by state
    among: Float64s  # (Q, M), voltage: those of the contacts left, by contact, node and state
    group: Int64s  # (P, 2), current: row of ``share`` for the anodes, and for the cathodes
    share: Float64s  # (2, U, L), current: 1 / sum of the weights of anodes, and of cathodes


class Members(NamedTuple):
    """Which configurations are meant, block by block; positions count them from 0."""

    offsets: Int64s  # (P + 1,): positions of block p
    listed: NDArray[np.uint16]  # leaf at each position; empty: all of the space
    kind: Int64s  # (P,): which list of leaves a block of the whole space has
    starts: Int64s  # (kinds + 1,): where the lists begin in
    leaves: NDArray[np.uint16]


# -- the network of one head ----------------------------------------------------------------------


@_jit
def reduce_heads(
    begin: int, end: int, heads: Int8s, y: Float64s, least: float, maps: Float64s, rest: Float64s
) -> None:
    """Decide the contacts of every head: fill ``maps`` (P, F, E) and ``rest`` (P, F, F).

    ``y`` (E, E) is the admittance with rows that sum to zero. The F nodes left are A and the
    contacts that choose a leaf. ``rest`` is the admittance among them, and ``maps`` h becomes
    h' of the nodes left. A pivot not above ``least`` belongs to contacts without any active one.
    """
    size, free = y.shape[0], rest.shape[1]
    network, way = np.empty((size + 1, size + 1)), np.empty((size + 1, size))
    for p in range(begin, end):
        for f in range(size + 1):
            for g in range(size + 1):
                network[f, g] = y[f - 1, g - 1] if f > 0 and g > 0 else 0.0
            for g in range(size):
                way[f, g] = 1.0 if f == g + 1 else 0.0
        for e in range(size, free - 1, -1):
            sign = heads[p, e - free]
            if sign > 0:
                for g in range(e + 1):
                    network[0, g] += network[e, g]
                for g in range(e + 1):
                    network[g, 0] += network[g, e]
                for g in range(size):
                    way[0, g] += way[e, g]
            elif sign == 0 and network[e, e] > least:
                for f in range(e):
                    factor = -network[f, e] / network[e, e]
                    for g in range(e):
                        network[f, g] += factor * network[e, g]
                    for g in range(size):
                        way[f, g] += factor * way[e, g]
        for f in range(free):
            for g in range(free):
                rest[p, f, g] = network[f, g]
            for g in range(size):
                maps[p, f, g] = way[f, g]


@_jit
def reduce_vector(maps: Float64s, h: Float64s, out: Float64s) -> None:
    """Fill ``out`` (P, F) with h of the nodes that are left after every head."""
    for p in range(maps.shape[0]):
        for f in range(maps.shape[1]):
            total = 0.0
            for e in range(maps.shape[2]):
                total += maps[p, f, e] * h[e]
            out[p, f] = total


# -- the leaves of one head, with a voltage -------------------------------------------------------


@_inner
def _branch(
    matrix: Float64s, grown: Float64s, contact: int, digit: int, states: int, base: int
) -> None:
    """Merge ``contact`` into A, or drop it, in the upper triangles of ``states`` forms."""
    nodes = matrix.shape[0]
    for f in range(nodes):
        if f == 0 or f > contact:
            for g in range(f, nodes):
                if g == 0 or g > contact:
                    old, new = matrix[f, g], grown[f, g, base : base + states]
                    for s in range(states):
                        new[s] = old[s]
                    if digit == ANODE and f == 0:
                        add = matrix[contact, g] if g > 0 else matrix[contact, contact]
                        for s in range(states):
                            new[s] += add[s]
                    if digit == ANODE and g == 0:
                        both = matrix[0, contact]
                        for s in range(states):
                            new[s] += 2.0 * both[s]


@_inner
def _float(
    y: Float64s,
    energy: Float64s,
    grown_y: Float64s,
    grown_energy: Float64s,
    contact: int,
    states: int,
    least: float,
    multipliers: Float64s,
) -> None:
    """Eliminate ``contact``: fill its multipliers (nodes left, S), reduce both forms."""
    nodes = y.shape[0]
    left = 0
    pivot, own = y[contact, contact], energy[contact, contact]
    for f in range(nodes):
        if f == 0 or f > contact:
            row = y[0, contact] if f == 0 else y[contact, f]
            factor = multipliers[left]
            for s in range(states):
                factor[s] = -row[s] / pivot[s] if pivot[s] > least else 0.0
            left += 1
    for f in range(nodes):
        if f == 0 or f > contact:
            a = multipliers[0 if f == 0 else f - contact]
            energy_f = energy[0, contact] if f == 0 else energy[contact, f]
            for g in range(f, nodes):
                if g == 0 or g > contact:
                    b = multipliers[0 if g == 0 else g - contact]
                    y_g = y[0, contact] if g == 0 else y[contact, g]
                    energy_g = energy[0, contact] if g == 0 else energy[contact, g]
                    for s in range(states):
                        grown_y[f, g, s] = y[f, g, s] + a[s] * y_g[s]
                    for s in range(states):
                        cross = a[s] * energy_g[s] + b[s] * energy_f[s]
                        grown_energy[f, g, s] = energy[f, g, s] + cross + a[s] * b[s] * own[s]


@_jit
def build_voltage(
    begin: int,
    end: int,
    rest: Float64s,
    maps: Float64s,
    gram: Float64s,
    valid: Bools,
    kind: Int64s,
    least: float,
    first: Int64s,
    tables: Tables,
    weakest: Float64s,
) -> None:
    """Fill multipliers and 1 / n_k of the heads begin to end; ``first`` (Q,) of every pattern.

    ``gram`` (E, E) is Y G Y, the square of n as a form of the potentials; ``weakest`` (P,) gets the
    least square of n among the leaves that count.
    """
    nodes, size = rest.shape[1], maps.shape[2]
    most = tables.inverse_norm.shape[1]
    y, energy = np.empty((2, nodes, nodes, most)), np.empty((2, nodes, nodes, most))
    factors = np.empty((nodes, most))
    for p in range(begin, end):
        for f in range(nodes):
            for g in range(f, nodes):
                y[0, f, g, 0] = rest[p, f, g]
                total = 0.0
                for e in range(size):
                    for d in range(size):
                        total += maps[p, f, e] * gram[e, d] * maps[p, g, d]
                energy[0, f, g, 0] = total
        q = tables.pattern[p]
        is_first = first[q] == p
        states, place, rest_place, now = 1, 0, 0, 0
        for contact in range(1, nodes):
            base = 0
            for digit in range(3):
                if not tables.allowed[contact - 1, digit]:
                    continue
                if digit == 0:
                    forms = y[now], energy[now], y[1 - now], energy[1 - now]
                    _float(*forms, contact, states, least, factors)
                    tables.to_anode[p, place : place + states] = factors[0, :states]
                    if is_first:
                        for f in range(1, nodes - contact):
                            tables.among[q, rest_place : rest_place + states] = factors[f, :states]
                            rest_place += states
                else:
                    _branch(y[now], y[1 - now], contact, digit, states, base)
                    _branch(energy[now], energy[1 - now], contact, digit, states, base)
                base += states
            place += states
            states, now = base, 1 - now
        weakest[p] = np.inf
        for s in range(states):
            square = energy[now, 0, 0, s]
            counts = valid[kind[p], s]
            weakest[p] = min(weakest[p], square if counts else np.inf)
            tables.inverse_norm[p, s] = 1.0 / np.sqrt(square) if counts and square > 0.0 else 0.0


@_inner
def _round(r: float) -> np.float32:
    """Clamp a correlation to [-1, 1] and round it to what every store holds."""
    r = 1.0 if r > 1.0 else r
    r = -1.0 if r < -1.0 else r
    return np.float32(r)


@_inner
def _fill_own(tables: Tables, q: int, h: Float64s, state: Float64s, own: Float64s) -> None:
    """Fill ``own`` (S,) with h of each contact when it is decided, by contact, then by state.

    ``h`` (F,) is that of any head with pattern q. What is read and what is written of ``state``
    (2, F, S) are never the same memory, so that the loops run in vector registers.
    """
    nodes = h.size
    for f in range(1, nodes):
        state[0, f, 0] = h[f]
    states, place, rest_place, now = 1, 0, 0, 0
    for contact in range(1, nodes):
        mine = own[place : place + states]
        for s in range(states):
            mine[s] = state[now, contact, s]
        base = 0
        for digit in range(3):
            if not tables.allowed[contact - 1, digit]:
                continue
            for f in range(contact + 1, nodes):
                old, new = state[now, f], state[1 - now, f, base : base + states]
                if digit == 0:
                    factor = tables.among[q, rest_place : rest_place + states]
                    rest_place += states
                    for s in range(states):
                        new[s] = old[s] + factor[s] * mine[s]
                else:
                    for s in range(states):
                        new[s] = old[s]
            base += states
        place += states
        states, now = base, 1 - now


@_inner
def _decide(
    tables: Tables, p: int, anode: float, own: Float64s, state: Float64s
) -> tuple[int, int]:
    """Fill ``state[i]`` with h of A in block p when the last contact is to be decided.

    Return i and the number of states.
    """
    state[0, 0] = anode
    states, place, now = 1, 0, 0
    for contact in range(tables.allowed.shape[0] - 1):
        old, mine = state[now], own[place : place + states]
        factor = tables.to_anode[p, place : place + states]
        base = 0
        for digit in range(3):
            if not tables.allowed[contact, digit]:
                continue
            new = state[1 - now, base : base + states]
            if digit == 0:
                for s in range(states):
                    new[s] = old[s] + factor[s] * mine[s]
            elif digit == ANODE:
                for s in range(states):
                    new[s] = old[s] + mine[s]
            else:
                for s in range(states):
                    new[s] = old[s]
            base += states
        place += states
        states, now = base, 1 - now
    return now, states


@_inner
def _voltage_leaves(
    tables: Tables, p: int, anode: float, own: Float64s, state: Float64s, out: Float32s
) -> None:
    """Fill ``out`` (L,) with r of one arm and the leaves of block p."""
    now, states = _decide(tables, p, anode, own, state)
    old, mine = state[now], own[own.size - states :]
    factor = tables.to_anode[p, own.size - states :]
    base = 0
    for digit in range(3):
        if not tables.allowed[tables.allowed.shape[0] - 1, digit]:
            continue
        scale, leaf = tables.inverse_norm[p, base : base + states], out[base : base + states]
        if digit == 0:
            for s in range(states):
                leaf[s] = _round((old[s] + factor[s] * mine[s]) * scale[s])
        elif digit == ANODE:
            for s in range(states):
                leaf[s] = _round((old[s] + mine[s]) * scale[s])
        else:
            for s in range(states):
                leaf[s] = _round(old[s] * scale[s])
        base += states


@_inner
def _few_voltage_leaves(
    tables: Tables,
    p: int,
    anode: float,
    own: Float64s,
    places: NDArray[np.uint16],
    state: Float64s,
    out: Float32s,
) -> None:
    """Fill ``out`` with r of one arm and some leaves of block p, ascending: the same bits."""
    now, states = _decide(tables, p, anode, own, state)
    old, mine = state[now], own[own.size - states :]
    factor, norm = tables.to_anode[p, own.size - states :], tables.inverse_norm[p]
    base, k = 0, 0
    for digit in range(3):
        if not tables.allowed[tables.allowed.shape[0] - 1, digit]:
            continue
        while k < places.size and places[k] < base + states:
            s = places[k] - base
            h = old[s]
            if digit == 0:
                h += factor[s] * mine[s]
            elif digit == ANODE:
                h += mine[s]
            out[k] = _round(h * norm[places[k]])
            k += 1
        base += states


# -- the same with shared currents ----------------------------------------------------------------


@_jit
def head_sums(heads: Int8s, values: Float64s, out: Float64s) -> None:
    """Fill ``out`` (P, 2) with the sums of ``values`` (n,) over anodes and cathodes (P, n)."""
    for p in range(heads.shape[0]):
        anodes, cathodes = 0.0, 0.0
        for e in range(values.size):
            anodes += values[e] if heads[p, e] > 0 else 0.0
            cathodes += values[e] if heads[p, e] < 0 else 0.0
        out[p, 0], out[p, 1] = anodes, cathodes


@_jit
def leaf_sums(allowed: Bools, values: Float64s, out: Float64s) -> None:
    """Fill ``out`` (2, L) with the sums of ``values`` (width,) over anodes and cathodes."""
    for side in range(2):
        sums = out[side]
        sums[0] = 0.0
        states = 1
        for contact in range(values.size):
            # The first part takes the place of what all parts are made from: last of all.
            base = states * (allowed[contact].sum() - 1)
            grown = base + states
            for digit in range(2, -1, -1):
                if allowed[contact, digit]:
                    add = values[contact] if digit == side + 1 else 0.0
                    for s in range(states):
                        sums[base + s] = sums[s] + add
                    base -= states
            states = grown


@_jit
def build_current(
    begin: int,
    end: int,
    heads: Int8s,
    gram: Float64s,
    valid: Bools,
    kind: Int64s,
    tables: Tables,
    weakest: Float64s,
) -> None:
    """Fill 1 / n_k of the heads begin to end; ``gram`` (E, E) is G times the weights of both.

    n^2 = q_aa / w_a^2 - 2 q_ac / (w_a w_c) + q_cc / w_c^2, where q are sums of G over pairs of
    anodes, of an anode and a cathode, of cathodes, and w the sums of the weights.
    """
    allowed, count = tables.allowed, tables.inverse_norm.shape[1]
    width = allowed.shape[0]
    towards, across, own = np.empty((2, width)), np.empty((4, count)), np.zeros((3, count))
    one = np.zeros(width)
    for e in range(width):
        one[e] = 1.0
        leaf_sums(allowed, one, across[:2])
        leaf_sums(allowed, gram[e, :width].copy(), across[2:])
        one[e] = 0.0
        for s in range(count):
            own[0, s] += across[0, s] * across[2, s]
            own[1, s] += across[0, s] * across[3, s]
            own[2, s] += across[1, s] * across[3, s]
    for p in range(begin, end):
        q_aa, q_ac, q_cc = 0.0, 0.0, 0.0
        for e in range(heads.shape[1]):
            for f in range(heads.shape[1]):
                a, b, g = heads[p, e], heads[p, f], gram[width + e, width + f]
                q_aa += g if a > 0 and b > 0 else 0.0
                q_ac += g if a > 0 and b < 0 else 0.0
                q_cc += g if a < 0 and b < 0 else 0.0
        for e in range(width):
            towards[0, e], towards[1, e] = 0.0, 0.0
            for f in range(heads.shape[1]):
                towards[0, e] += gram[e, width + f] if heads[p, f] > 0 else 0.0
                towards[1, e] += gram[e, width + f] if heads[p, f] < 0 else 0.0
        leaf_sums(allowed, towards[0], across[:2])
        leaf_sums(allowed, towards[1], across[2:])
        share_a, share_c = tables.share[0, tables.group[p, 0]], tables.share[1, tables.group[p, 1]]
        weakest[p] = np.inf
        for s in range(count):
            aa = q_aa + own[0, s] + 2.0 * across[0, s]
            ac = q_ac + own[1, s] + across[1, s] + across[2, s]
            cc = q_cc + own[2, s] + 2.0 * across[3, s]
            x, y = share_a[s], share_c[s]
            square = x * x * aa - 2.0 * x * y * ac + y * y * cc
            counts = valid[kind[p], s]
            weakest[p] = min(weakest[p], square if counts else np.inf)
            tables.inverse_norm[p, s] = 1.0 / np.sqrt(square) if counts and square > 0.0 else 0.0


@_inner
def _current_leaves(tables: Tables, p: int, head: Float64s, sums: Float64s, out: Float32s) -> None:
    """Fill ``out`` (L,) with r of one arm and the leaves of block p.

    ``head`` (2,) and ``sums`` (2, L) are the sums over anodes and cathodes of head and leaf.
    """
    share_a, share_c = tables.share[0, tables.group[p, 0]], tables.share[1, tables.group[p, 1]]
    anodes, cathodes, norm = sums[0], sums[1], tables.inverse_norm[p]
    for s in range(out.size):
        positive = (head[0] + anodes[s]) * share_a[s]
        negative = (head[1] + cathodes[s]) * share_c[s]
        out[s] = _round((positive - negative) * norm[s])


# -- r of a few arms with members -----------------------------------------------------------------


class Scratch(NamedTuple):
    """Memory of one thread that computes r of n arms."""

    nodes: Float64s  # (2, F, S): h of the contacts left, read and written
    anode: Float64s  # (2, S): h of A
    own: Float64s  # (n, S)
    block: Float32s  # (L,)


@_inner
def _scratch(tables: Tables, heads: Float64s) -> Scratch:
    size = tables.to_anode.shape[1]
    return Scratch(
        np.empty((2, heads.shape[2], size)),
        np.empty((2, size)),
        np.empty((heads.shape[0], size)),
        np.empty(tables.inverse_norm.shape[1], np.float32),
    )


@_inner
def _begin(tables: Tables, p: int, before: int, heads: Float64s, scratch: Scratch) -> int:
    """Prepare ``own`` of all arms for block p; return its pattern. ``before`` is what is there."""
    q: int = tables.pattern[p]
    if tables.to_anode.size > 0 and q != before:
        for n in range(heads.shape[0]):
            _fill_own(tables, q, heads[n, p], scratch.nodes, scratch.own[n])
    return q


@_inner
def _fill_leaves(
    tables: Tables, p: int, n: int, heads: Float64s, sums: Float64s, scratch: Scratch, out: Float32s
) -> None:
    if tables.to_anode.size > 0:
        _voltage_leaves(tables, p, heads[n, p, 0], scratch.own[n], scratch.anode, out)
    else:
        _current_leaves(tables, p, heads[n, p], sums[n], out)


@_inner
def _fill_members(
    tables: Tables,
    members: Members,
    p: int,
    n: int,
    heads: Float64s,
    sums: Float64s,
    scratch: Scratch,
    row: Float32s,
) -> None:
    """Fill ``row`` with r of arm n and the members of block p."""
    start, count = members.offsets[p], scratch.block.size
    if row.size == count:
        _fill_leaves(tables, p, n, heads, sums, scratch, row)
        return
    if members.listed.size > 0:
        places = members.listed[start : start + row.size]
    else:
        places = members.leaves[members.starts[members.kind[p]] :][: row.size]
    if tables.to_anode.size > 0 and FEW * row.size < count:
        own, state = scratch.own[n], scratch.anode
        _few_voltage_leaves(tables, p, heads[n, p, 0], own, places, state, row)
    elif row.size > 0:
        _fill_leaves(tables, p, n, heads, sums, scratch, scratch.block)
        for k in range(row.size):
            row[k] = scratch.block[places[k]]


@_jit
def fill_r(
    begin: int,
    end: int,
    blocks: Int64s,
    tables: Tables,
    members: Members,
    heads: Float64s,
    sums: Float64s,
    first: int,
    out: Float32s,
) -> None:
    """Fill ``out`` (n, ...) with r of n arms and the members of ``blocks[begin:end]``.

    ``heads`` (n, P, F) and ``sums`` (n, 2, L) are what :func:`reduce_vector`, or
    :func:`head_sums` and :func:`leaf_sums`, give for each arm; column 0 of ``out`` is position
    ``first``.
    """
    scratch, before = _scratch(tables, heads), -1
    for p in blocks[begin:end]:
        before = _begin(tables, p, before, heads, scratch)
        start, stop = members.offsets[p] - first, members.offsets[p + 1] - first
        for n in range(heads.shape[0]):
            _fill_members(tables, members, p, n, heads, sums, scratch, out[n, start:stop])


@_inner
def _largest(values: Float32s) -> np.float32:
    """Return the largest value; ``values`` are folded in halves on the way: no loop is a chain."""
    left = values.size
    while left > 1:
        half = (left + 1) // 2
        lower, upper = values[: left - half], values[half:left]
        for k in range(lower.size):
            lower[k] = upper[k] if upper[k] > lower[k] else lower[k]
        left = half
    return np.float32(values[0])


@_jit
def fill_largest(
    begin: int,
    end: int,
    tables: Tables,
    heads: Float64s,
    sums: Float64s,
    largest: Float32s,
) -> None:
    """Fill ``largest`` (n, P) with the largest r of each of n arms in each block of the space.

    Leaves that do not count have r = 0 here: in a block with some it may be too large.
    """
    scratch, before = _scratch(tables, heads), -1
    for p in tables.order[begin:end]:
        before = _begin(tables, p, before, heads, scratch)
        for n in range(heads.shape[0]):
            _fill_leaves(tables, p, n, heads, sums, scratch, scratch.block)
            largest[n, p] = _largest(scratch.block)


# -- the update rule in float32 -------------------------------------------------------------------


class Narrow(NamedTuple):
    """The update rule as float32, see :class:`fieldcorr.correlation._update_kernels.Rule`."""

    floor: np.float32
    cap: np.float32
    need: np.float32
    pin: np.float32
    tie: np.float32


def _split(part: str) -> Any:
    """Return a function of a float32 x = 2^e m, m in [sqrt(1/2), sqrt(2)): its e, or its m.

    In integers of 32 bits throughout: numba would widen them, and the loop around would no longer
    run in vector registers (six times slower).
    """

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        word, real = ir.IntType(32), ir.FloatType()
        bits = builder.bitcast(arguments[0], word)
        e = builder.ashr(builder.sub(bits, ir.Constant(word, _SQRT_HALF)), ir.Constant(word, 23))
        if part == "exponent":
            return builder.sitofp(e, real)
        return builder.bitcast(builder.sub(bits, builder.shl(e, ir.Constant(word, 23))), real)

    def typed(_context: Any, _x: Any) -> Any:
        return types.float32(types.float32), generate

    return intrinsic(typed)


_SQRT_HALF = int(np.array(np.sqrt(0.5), dtype=np.float32).view(np.int32))
_exponent, _mantissa = _split("exponent"), _split("mantissa")
# log2((1 + s) / (1 - s)) = sum_n C_n s^(2n+1); with |s| <= 0.172 the terms left out are below 2e-9.
_C0, _C1, _C2, _C3, _C4 = (np.float32(2.0 / ((2 * n + 1) * np.log(2.0))) for n in range(5))
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)


@_inner
def _log2(x: np.float32) -> np.float32:
    """Return log2 of a positive normal number; exactly 0 at 1."""
    m = _mantissa(x)
    s = (m - _ONE) / (m + _ONE)
    q = s * s
    p = _C0 + q * (_C1 + q * (_C2 + q * (_C3 + q * _C4)))
    return np.float32(_exponent(x) + s * p)


@_inner
def _add_rule(
    rule: Narrow, r_pair: np.float32, near: Float32s, far: Float32s, wins: Float32s, plays: Float32s
) -> None:
    """Add the update of one duel to some arms, r of them with winner and loser given.

    The equations of :class:`fieldcorr.correlation.rule.UpdatePolicy`.
    """
    pair = min(_ONE, max(rule.floor, r_pair))
    inverse = _ONE / (_ONE + pair) if pair > -_ONE else _ZERO
    for k in range(wins.size):
        touched = (near[k] > rule.need) & (far[k] > rule.need)
        x = near[k] if near[k] > rule.floor else rule.floor
        y = far[k] if far[k] > rule.floor else rule.floor
        tau = (x + y) * inverse
        tau = tau if tau < rule.cap else rule.cap
        tau = tau if touched else _ZERO
        log_x = _log2(x if touched else _ONE)
        log_y = _log2(y if touched else _ONE)
        total = log_x + log_y
        share = log_y / (total if total < _ZERO else -_ONE)
        share = share if (total < _ZERO) & (rule.tie == _ZERO) else _HALF
        wins[k] += tau * share
        plays[k] += tau


@_jit
def add_duel(
    begin: int,
    end: int,
    tables: Tables,
    members: Members,
    heads: Float64s,
    sums: Float64s,
    rule: Narrow,
    r_pair: np.float32,
    wins: Float32s,
    plays: Float32s,
) -> None:
    """Add the update of one duel to the tallies of the members of the blocks begin to end.

    Arm 0 of ``heads`` and ``sums`` has won against arm 1; r between them is ``r_pair``. What the
    duelled arms themselves get is left to the caller.
    """
    r = np.empty((2, tables.inverse_norm.shape[1]), np.float32)
    scratch, before = _scratch(tables, heads), -1
    for p in tables.order[begin:end]:
        start, stop = members.offsets[p], members.offsets[p + 1]
        if stop > start:
            before = _begin(tables, p, before, heads, scratch)
            near, far = r[0, : stop - start], r[1, : stop - start]
            _fill_members(tables, members, p, 0, heads, sums, scratch, near)
            _fill_members(tables, members, p, 1, heads, sums, scratch, far)
            _add_rule(rule, r_pair, near, far, wins[start:stop], plays[start:stop])
