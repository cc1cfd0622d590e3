"""r among all configurations of a product space: from Gram matrix, admittance and drive alone.

Nothing of length K times R is kept: tables of about 8 bytes per configuration are built at first
use (:mod:`~fieldcorr.correlation._tree_kernels` says how), and r of an arm with everyone is
computed from them whenever it is needed. Every way to r goes through the same operations, so a row,
a part of it, and an update of a few survivors see the same float32.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr import _parallel
from fieldcorr.configurations.space import MOST_BLOCKS, ProductSpace
from fieldcorr.configurations.text import format_configuration
from fieldcorr.correlation import _tree_kernels as tree
from fieldcorr.correlation import _update_kernels as kernels
from fieldcorr.correlation.embedding import centred_gram, gram_root
from fieldcorr.correlation.sources import CorrelationSource, Tally
from fieldcorr.drive import closed_admittance, contact_currents
from fieldcorr.errors import CorrelationError

Floats = NDArray[np.float64]

MOST_TABLE_BYTES = 2 << 30
"""Largest tables that are built: those of all configurations of 16 contacts have 348 MB."""

WEAKEST = 1e-4
"""Least norm of a field, of the largest possible: below, rounding would reach r."""


@dataclass(frozen=True, eq=False)
class Circuit:
    """What determines r: the matrices of E contacts, and how they are driven."""

    gram: Floats
    admittance: Floats
    mode: str = "voltage"
    fractions: ArrayLike | None = None

    def currents(self, polarity: NDArray[np.int8]) -> Floats:
        """Return the contact currents (N, E) of polarities (N, E) for a unit drive."""
        return contact_currents(polarity, self.admittance, mode=self.mode, fractions=self.fractions)


class Whole:
    """The tables of a product space and a circuit, and r from them."""

    def __init__(self, space: ProductSpace, circuit: Circuit) -> None:
        size = len(space.allowed)
        if circuit.mode == "voltage":
            # What fewer floating contacts need to be determined is determined then, too.
            circuit.currents(_bipoles(size))
        self.space, self.circuit = space, circuit
        if self.table_bytes > MOST_TABLE_BYTES:
            raise CorrelationError(
                f"r of {len(space):,} configurations would need tables of {self.table_bytes:,} "
                f"bytes, more than {MOST_TABLE_BYTES:,}"
            )
        self._gram = centred_gram(circuit.gram, size)

    @property
    def table_bytes(self) -> int:
        """Bytes that the tables take."""
        return table_bytes(self.space, self.circuit.mode)

    @cached_property
    def all(self) -> tree.Members:
        """All configurations as members: positions are rows."""
        space = self.space
        starts = np.concatenate([[0], np.cumsum([len(leaves) for leaves in space.lists])])
        none = np.empty(0, dtype=np.uint16)
        return tree.Members(
            space.offsets, none, space.heads.kind, starts, np.concatenate(space.lists)
        )

    @cached_property
    def tables(self) -> tree.Tables:
        """Everything that does not depend on the arm that is asked for."""
        blank = _blank_tables(self.space, self.circuit.mode)
        if self.circuit.mode == "voltage":
            weakest, largest = self._build_voltage(blank)
            tables = blank
        else:
            tables, weakest, largest = self._build_current(blank)
        block = int(np.argmin(weakest))
        if not weakest[block] > (WEAKEST * largest) ** 2:
            row = self.space.polarity(self.space.offsets[block])[0]
            text = format_configuration(row, [str(e) for e in range(len(row))])
            raise CorrelationError(
                f"a configuration beside {text!r} makes a field whose deviation in the compared "
                f"region is below {WEAKEST:g} of the largest: r of it cannot be computed from the "
                "whole space"
            )
        return tables

    @cached_property
    def _closed(self) -> Floats:
        return closed_admittance(self.circuit.admittance, len(self._gram))

    @cached_property
    def _reduced(self) -> tuple[Floats, Floats]:
        """Maps (P, F, E) from h to the nodes left by each head, and their admittance (P, F, F)."""
        heads, size = self.space.heads.polarity, len(self._gram)
        nodes = self.space.width + 1
        maps, rest = np.empty((len(heads), nodes, size)), np.empty((len(heads), nodes, nodes))
        arguments = heads, self._closed, self._least, maps, rest
        _parallel.run_ranges(tree.reduce_heads, len(heads), *arguments)
        return maps, rest

    @property
    def _least(self) -> float:
        return 1e-13 * float(np.abs(self._closed).max())

    def _build_voltage(self, tables: tree.Tables) -> tuple[Floats, float]:
        heads, (maps, rest) = self.space.heads, self._reduced
        y = self._closed
        # Plain sums: a BLAS product may depend on the number of threads.
        half = (y[:, :, None] * self._gram[None]).sum(axis=1)
        energy = (half[:, :, None] * y[None]).sum(axis=1)
        weakest = np.empty(len(maps))
        _, first = np.unique(tables.pattern, return_index=True)
        forms = rest, maps, energy, heads.valid, heads.kind, self._least
        arguments = *forms, first, tables, weakest
        _parallel.run_ranges(tree.build_voltage, len(maps), *arguments)
        return weakest, float(np.sqrt(np.diag(energy)).sum())

    def _build_current(self, blank: tree.Tables) -> tuple[tree.Tables, Floats, float]:
        space, weight = self.space, self._weight
        heads = space.heads
        of_heads, of_leaves = self._sums(weight)
        group, share = np.empty((len(heads.kind), 2), dtype=np.int64), []
        for side in range(2):
            known, group[:, side] = np.unique(of_heads[:, side], return_inverse=True)
            total = known[:, None] + of_leaves[side]
            share.append(np.where(total > 0.0, 1.0 / np.where(total > 0.0, total, 1.0), 0.0))
        rows = max(map(len, share))
        padded = [np.pad(part, ((0, rows - len(part)), (0, 0))) for part in share]
        tables = blank._replace(group=group, share=np.stack(padded))
        gram, weakest = self._gram * weight[:, None] * weight, np.empty(len(group))
        arguments = heads.polarity, gram, heads.valid, heads.kind, tables, weakest
        _parallel.run_ranges(tree.build_current, len(group), *arguments)
        return tables, weakest, 2.0 * float(np.sqrt(np.diag(self._gram)).max())

    @property
    def _weight(self) -> Floats:
        given = self.circuit.fractions
        return np.ones(len(self._gram)) if given is None else np.array(given, dtype=np.float64)

    def _sums(self, values: Floats) -> tuple[Floats, Floats]:
        """Return sums of values (E,) over anodes, cathodes: (P, 2) of heads, (2, L) of leaves."""
        space = self.space
        heads, leaves = np.empty((len(space.heads.kind), 2)), np.empty((2, len(space.leaves)))
        tree.head_sums(space.heads.polarity, values[space.width :], heads)
        tree.leaf_sums(space.allowed[: space.width], values[: space.width], leaves)
        return heads, leaves

    # -- points on the unit sphere ----------------------------------------------------------------

    @cached_property
    def root(self) -> Floats:
        """L (E, R) with G = L L'."""
        return gram_root(self._gram)

    def unit_rows(self, polarity: NDArray[np.int8]) -> Floats:
        """Return z = L'a / |L'a| of some configurations (n, E), (n, R): r is their product."""
        z: Floats = (self.circuit.currents(polarity)[:, :, None] * self.root).sum(axis=1)
        return np.asarray(z / np.sqrt((z**2).sum(axis=1))[:, None])

    def largest(self, weights: Floats, free: NDArray[np.bool_]) -> int:
        """Return the free configuration with the largest z . w, the lowest of equal ones, or -1.

        Blocks are visited from the best on, as long as they can hold a better one.
        """
        vectors = self._direction(weights)
        (tops,) = self.block_tops(vectors)
        top, found = -2.0, -1
        for p in np.lexsort((np.arange(len(tops)), -tops)):
            if tops[p] < top:
                break
            first, last = self.space.offsets[p : p + 2]
            values = np.where(free[first:last], self.block(vectors, int(p)), np.float32(-3.0))
            if values.size and (best := values.max()) >= max(top, -2.0):
                row = int(first + np.argmax(values))
                found = row if best > top or found < 0 else min(found, row)
                top = float(best)
        return found

    def along(self, weights: Floats) -> NDArray[np.float32]:
        """Return z . w / |w| of all configurations, (K,)."""
        return np.asarray(self._filled(self._direction(weights), self.all)[0])

    def _direction(self, weights: Floats) -> tuple[Floats, Floats]:
        size = float(np.sqrt((weights**2).sum())) or 1.0
        return self.directions((self.root * weights / size).sum(axis=1)[None])

    # -- r ----------------------------------------------------------------------------------------

    def vectors(self, polarity: NDArray[np.int8]) -> tuple[Floats, Floats]:
        """Return what kernels need of arms (n, E): heads (n, P, F) and sums (n, 2, L)."""
        a = self.circuit.currents(polarity)
        lead = (a[:, :, None] * self._gram).sum(axis=1)
        return self.directions(lead / np.sqrt((lead * a).sum(axis=1))[:, None])

    def directions(self, lead: Floats) -> tuple[Floats, Floats]:
        """Return the same for leads (n, E): r of configuration k is lead . a_k / n_k."""
        if self.circuit.mode == "current":
            parts = [self._sums(values) for values in lead * self._weight]
            heads, sums = zip(*parts, strict=True)
            return np.stack(heads), np.stack(sums)
        maps, _ = self._reduced
        reduced = np.empty((len(lead), *maps.shape[:2]))
        for n, h in enumerate((lead[:, :, None] * self._closed).sum(axis=1)):
            tree.reduce_vector(maps, h, reduced[n])
        return reduced, np.empty((len(lead), 2, 0))

    def r(self, polarity: NDArray[np.int8], members: tree.Members) -> NDArray[np.float32]:
        """Return r (n, M) of arms (n, E) with members."""
        return self._filled(self.vectors(polarity), members)

    def _filled(self, vectors: tuple[Floats, Floats], members: tree.Members) -> NDArray[np.float32]:
        out = np.empty((len(vectors[0]), int(members.offsets[-1])), dtype=np.float32)
        arguments = self.tables, members, *vectors, 0, out
        order = self.tables.order
        _parallel.run_ranges(tree.fill_r, len(order), order, *arguments)
        return out

    def block(self, vectors: tuple[Floats, Floats], p: int) -> NDArray[np.float32]:
        """Return r of the first arm of ``vectors`` with the rows of block p."""
        first, last = self.space.offsets[p : p + 2].tolist()
        out = np.empty((1, last - first), dtype=np.float32)
        one = vectors[0][:1], vectors[1][:1]
        tree.fill_r(0, 1, np.array([p]), self.tables, self.all, *one, first, out)
        return out.reshape(-1)

    def block_tops(self, vectors: tuple[Floats, Floats]) -> NDArray[np.float32]:
        """Return for each of n arms what no r in a block is above, (n, P): mostly its largest."""
        tops = np.empty((len(vectors[0]), len(self.space.heads.kind)), dtype=np.float32)
        _parallel.run_ranges(tree.fill_largest, tops.shape[1], self.tables, *vectors, tops)
        return tops

    def nearest(
        self, polarity: NDArray[np.int8], count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows of largest r with an arm (E,), best first, the lower row first; and r.

        One pass finds the largest r of every block. The ``count`` best are in the blocks whose
        largest is at least the count-th largest of these.
        """
        vectors = self.vectors(polarity[None])
        blocks = len(self.space.heads.kind)
        (largest,) = self.block_tops(vectors)
        few = min(count, blocks)
        least = np.partition(largest, blocks - few)[blocks - few] if count <= blocks else -2.0
        rows, r = self._at_least(vectors, largest, least)
        if len(rows) < count:  # leaves that do not count have stood for some
            rows, r = self._at_least(vectors, largest, -2.0)
        order = np.argsort(-r, kind="stable")[:count]
        return rows[order], r[order]

    def _at_least(
        self, vectors: tuple[Floats, Floats], largest: NDArray[np.float32], least: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the rows, ascending, whose r with the first arm is at least ``least``; and r."""
        rows, r = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.float32)]
        for p in np.flatnonzero(largest >= least):
            values = self.block(vectors, int(p))
            chosen = np.flatnonzero(values >= least)
            rows.append(self.space.offsets[p] + chosen)
            r.append(values[chosen])
        return np.concatenate(rows), np.concatenate(r)


@dataclass(eq=False)
class WholeTally(Tally):
    """Wins and plays (M,), float32, of members alone, in order of their rows."""

    wins: NDArray[np.float32]
    plays: NDArray[np.float32]
    members: tree.Members

    def __deepcopy__(self, _: dict[int, Any]) -> "WholeTally":
        """Copy what duels change; what describes the space is shared."""
        offsets, listed = self.members.offsets.copy(), self.members.listed.copy()
        members = self.members._replace(offsets=offsets, listed=listed)
        return WholeTally(self.wins.copy(), self.plays.copy(), np.zeros(2), members)


class WholeSource(CorrelationSource):
    """r from the tables of a product space; tallies in float32, of survivors alone."""

    via = "rules"

    def __init__(self, whole: Whole, **identity: Any) -> None:
        super().__init__(len(whole.space), **identity)
        self.whole = whole

    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,)."""
        self._check_arm(arm)
        row: NDArray[np.float32] = self.rows([arm])[0]
        return row

    def rows(self, arms: Sequence[int]) -> NDArray[np.float32]:
        """Return r of some arms with everyone, (n, K)."""
        r = self.whole.r(self._polarity(*arms), self.whole.all)
        r[np.arange(len(arms)), list(arms)] = 1.0
        return r

    def nearest(self, arm: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the other arms of largest r, best first, and r."""
        self._check_arm(arm)
        rows, r = self.whole.nearest(self._polarity(arm)[0], count + 1)
        others = rows != arm
        return rows[others][:count], r[others][:count]

    def label(self, arm: int) -> str:
        """Return the name of an arm."""
        if self.store is None:
            return str(arm)
        return format_configuration(self._polarity(arm)[0], self.store.contact_names)

    def tally(self) -> WholeTally:
        """Return the tally before the first duel."""
        wins, plays = np.zeros((2, self._size), dtype=np.float32)
        return WholeTally(wins, plays, np.zeros(2), self.whole.all)

    def _polarity(self, *arms: int) -> NDArray[np.int8]:
        return self.whole.space.polarity(arms)

    def _check_tally(self, tally: Tally) -> None:
        own = isinstance(tally, WholeTally) and tally.members.kind is self.whole.all.kind
        if not own:
            raise CorrelationError("this tally does not belong to these configurations")

    def _add(self, rule: kernels.Rule, tally: Tally, winner: int, loser: int) -> None:
        assert isinstance(tally, WholeTally)
        whole, offsets = self.whole, self.whole.space.offsets
        vectors = whole.vectors(self._polarity(winner, loser))
        block = int(np.searchsorted(offsets, loser, side="right")) - 1
        r_pair = whole.block(vectors, block)[loser - offsets[block]]
        places = [(arm, position(whole.space, tally.members, arm)) for arm in (winner, loser)]
        before = [(tally.wins[at], tally.plays[at]) if at >= 0 else None for _, at in places]
        arguments = tally.members, *vectors, narrow(rule), r_pair, tally.wins, tally.plays
        _parallel.run_ranges(tree.add_duel, len(offsets) - 1, whole.tables, *arguments)
        if rule.pin:
            for (arm, at), had in zip(places, before, strict=True):
                if had is not None:
                    share = 0.5 if rule.tie else float(arm == winner)
                    tally.wins[at], tally.plays[at] = had[0] + share, had[1] + 1.0


def narrow(rule: kernels.Rule) -> tree.Narrow:
    """Return the update rule as float32."""
    return tree.Narrow(*map(np.float32, rule))


def position(space: ProductSpace, members: tree.Members, arm: int) -> int:
    """Return the position of an arm among members, or -1."""
    if not members.listed.size:
        return arm
    block = int(np.searchsorted(space.offsets, arm, side="right")) - 1
    leaf = space.lists[space.heads.kind[block]][arm - space.offsets[block]]
    first, last = members.offsets[block : block + 2]
    place = int(first + np.searchsorted(members.listed[first:last], leaf))
    return place if place < last and members.listed[place] == leaf else -1


def _bipoles(size: int) -> NDArray[np.int8]:
    """Return the configurations (n, E) of two active contacts."""
    first, second = np.triu_indices(size, 1)
    rows = np.zeros((len(first), size), dtype=np.int8)
    rows[np.arange(len(first)), first] = 1
    rows[np.arange(len(first)), second] = -1
    return rows


def _blank_tables(space: ProductSpace, mode: str) -> tree.Tables:
    blocks, leaves = len(space.heads.kind), len(space.leaves)
    _, pattern = np.unique(_floating(space), return_inverse=True)
    patterns, states, among = _multipliers(space, mode)
    return tree.Tables(
        allowed=space.allowed[: space.width],
        inverse_norm=np.empty((blocks, leaves), dtype=np.float32),
        pattern=pattern.astype(np.int64),
        order=np.argsort(pattern, kind="stable"),
        to_anode=np.empty((blocks if mode == "voltage" else 0, states)),
        among=np.empty((patterns, among)),
        group=np.empty((0, 2), dtype=np.int64),
        share=np.empty((2, 0, 0)),
    )


def _multipliers(space: ProductSpace, mode: str) -> tuple[int, int, int]:
    """Return the number of patterns, of multipliers of A, and of those of the contacts left."""
    states, of_anode, among = 1, 0, 0
    for contact, digits in enumerate(space.allowed[: space.width]):
        of_anode += states
        among += states * (space.width - 1 - contact) if digits[0] else 0
        states *= int(digits.sum())
    is_listed = mode == "voltage" and space.blocks <= MOST_BLOCKS
    patterns = len(np.unique(_floating(space))) if is_listed else 0
    return patterns, of_anode, among


def _floating(space: ProductSpace) -> NDArray[np.int64]:
    """Return which contacts of every head are off, as a number (P,)."""
    off = space.heads.polarity == 0
    return np.asarray((off << np.arange(off.shape[1])).sum(axis=1))


def table_bytes(space: ProductSpace, mode: str) -> int:
    """Return how many bytes the tables of a space take; about, where its blocks are too many."""
    patterns, of_anode, among = _multipliers(space, mode)
    per_block = 4 * len(space.leaves) + (8 * of_anode if mode == "voltage" else 0)
    return space.filled_blocks * per_block + 8 * patterns * among
