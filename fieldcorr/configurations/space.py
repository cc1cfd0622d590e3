"""Configurations that are too many to list: a product of digits, numbered in ascending order of id.

Rules that say something about single contacts and about numbers of contacts alone leave a product
of digits, less what has too many or too few of a kind. It is cut in blocks: the contacts from
``width`` on choose the block (its *head*), those below choose the place in it (the *leaf*). Which
leaves of a block count depends only on how many anodes and cathodes its head has (its *kind*), so
rows are found and named without anything of length K.
"""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import configuration_ids
from fieldcorr.errors import ConfigurationError

MOST_BLOCKS = 1_000_000
"""More than this are never listed: 3^32 has 2.8e11."""

BLOCK_LEAVES = 6561
"""Most leaves of a block: 3^8, whose tables stay in the second-level cache."""


class Heads(NamedTuple):
    """The blocks that have rows, in order."""

    polarity: NDArray[np.int8]  # (P, E - width)
    kind: NDArray[np.int64]  # (P,)
    valid: NDArray[np.bool_]  # (kinds, L): the leaves that count


@dataclass(frozen=True, eq=False)
class ProductSpace:
    """All configurations with allowed digits and with numbers of contacts within limits."""

    allowed: NDArray[np.bool_]
    """(E, 3): whether contact e may have digit d (off, anode, cathode)."""
    limits: tuple[int, int, int, int, int, int]
    """Least and most cathodes, anodes, active contacts."""

    def __len__(self) -> int:
        """Return the number of configurations K."""
        return int(self.offsets[-1])

    @property
    def count(self) -> int:
        """The number of configurations, however large: ``len`` lists blocks."""
        tallied = _tallied(self.allowed).items()
        return sum(times for numbers, times in tallied if self._within(*numbers))

    @cached_property
    def width(self) -> int:
        """How many contacts, from the first on, choose a leaf."""
        sizes = np.cumprod(self.allowed.sum(axis=1), dtype=np.float64)
        return max(1, int(np.searchsorted(sizes, BLOCK_LEAVES, side="right")))

    @property
    def blocks(self) -> int:
        """How many blocks there are at most: some may have no rows."""
        return math.prod(self.allowed[self.width :].sum(axis=1).tolist())

    @property
    def filled_blocks(self) -> int:
        """How many blocks have rows, without a list of them."""
        leaves = _tallied(self.allowed[: self.width])
        return sum(
            times
            for (anodes, cathodes), times in _tallied(self.allowed[self.width :]).items()
            if any(self._within(anodes + a, cathodes + c) for a, c in leaves)
        )

    def _within(self, anodes: Any, cathodes: Any) -> Any:
        """Tell whether numbers of anodes and cathodes are within the limits."""
        least_c, most_c, least_a, most_a, least, most = self.limits
        valid = (anodes >= least_a) & (anodes <= most_a)
        valid &= (cathodes >= least_c) & (cathodes <= most_c)
        return valid & (anodes + cathodes >= least) & (anodes + cathodes <= most)

    @cached_property
    def leaves(self) -> NDArray[np.int8]:
        """(L, width): polarities of the first contacts, ascending; the same in every block."""
        return _choices(self.allowed[: self.width])

    @cached_property
    def heads(self) -> Heads:
        """Polarities and kinds of the blocks, and what the kinds mean."""
        polarity = _choices(self.allowed[self.width :])
        numbers, kind = np.unique(_numbers(polarity), axis=0, return_inverse=True)
        anodes, cathodes = (numbers[:, None] + _numbers(self.leaves)[None]).transpose(2, 0, 1)
        valid = self._within(anodes, cathodes)
        kept = valid.any(axis=1)[kind]
        return Heads(polarity[kept], kind[kept], valid)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """(P + 1,): the rows of block p are offsets[p] ... offsets[p + 1]."""
        sizes = self.heads.valid.sum(axis=1)[self.heads.kind]
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def lists(self) -> list[NDArray[np.uint16]]:
        """The leaves that count, for each kind."""
        return [np.flatnonzero(row).astype(np.uint16) for row in self.heads.valid]

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """(kinds, L): the row of each leaf that counts, from the first row of its block on."""
        return np.asarray(np.cumsum(self.heads.valid, axis=1) - 1)

    def polarity(self, rows: ArrayLike) -> NDArray[np.int8]:
        """Return the polarities (N, E) of rows (N,), which must exist."""
        numbers = np.atleast_1d(np.asarray(rows, dtype=np.int64))
        block = np.searchsorted(self.offsets, numbers, side="right") - 1
        leaf = np.empty(len(numbers), dtype=np.int64)
        within, kind = numbers - self.offsets[block], self.heads.kind[block]
        for k in np.unique(kind):
            leaf[kind == k] = self.lists[k][within[kind == k]]
        return np.concatenate([self.leaves[leaf], self.heads.polarity[block]], axis=1)

    def uses(self, contact: int, sign: int) -> NDArray[np.bool_]:
        """Return which rows (K,) use a contact with a sign, or at all if that is 0."""
        place = contact - self.width
        column = self.heads.polarity[:, place] if place >= 0 else self.leaves[:, contact]
        chosen = column == sign if sign else column != 0
        if place >= 0:
            return np.repeat(chosen, np.diff(self.offsets))
        of_kind = [chosen[leaves] for leaves in self.lists]
        return np.concatenate([of_kind[kind] for kind in self.heads.kind])

    def rows(self, polarity: NDArray[np.int8]) -> NDArray[np.int64]:
        """Return the rows (N,) of polarities (N, E); -1 for those that are not in the space."""
        leaf, is_leaf = _find(self.leaves, polarity[:, : self.width])
        block, is_block = _find(self.heads.polarity, polarity[:, self.width :])
        kind = self.heads.kind[block]
        found = is_leaf & is_block & self.heads.valid[kind, leaf]
        return np.where(found, self.offsets[block] + self.ranks[kind, leaf], -1)


def checked_space(allowed: ArrayLike, limits: ArrayLike, where: object) -> ProductSpace:
    """Return the space that a file describes, or say in a line what is wrong with it."""
    digits, numbers = np.asarray(allowed), np.asarray(limits).tolist()
    size = len(digits)
    if not np.isin(digits, (0, 1)).all() or not digits.any(axis=1).all():
        raise ConfigurationError(f"{where}: /space/allowed leaves a contact without a polarity")
    if not all(0 <= number <= size for number in numbers) or min(numbers[0], numbers[2]) < 1:
        raise ConfigurationError(f"{where}: /space/limits {numbers} are not within 1 and {size}")
    space = ProductSpace(digits.astype(np.bool_), tuple(numbers))
    if space.blocks > MOST_BLOCKS or not len(space):
        raise ConfigurationError(f"{where}: /space describes no space that can be computed")
    return space


def _choices(allowed: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return every choice (N, n) of one allowed digit for each of n contacts, as polarities.

    They ascend by id: the last contact has the highest digit.
    """
    rows = np.empty((1, 0), dtype=np.int8)
    for digits in allowed:
        parts = [(rows, np.full((len(rows), 1), d)) for d in np.flatnonzero(digits)]
        rows = np.concatenate([np.concatenate(part, axis=1) for part in parts])
    return np.where(rows == 2, -1, rows).astype(np.int8)


def _tallied(allowed: NDArray[np.bool_]) -> Counter[tuple[int, int]]:
    """Return how many choices of digits there are with so many anodes and cathodes.

    The product of one polynomial per contact, in integers of any size.
    """
    found = Counter({(0, 0): 1})
    for off, anode, cathode in allowed.tolist():
        grown: Counter[tuple[int, int]] = Counter()
        for (a, c), times in found.items():
            grown[a, c] += times * off
            grown[a + 1, c] += times * anode
            grown[a, c + 1] += times * cathode
        found = +grown
    return found


def _numbers(polarity: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the numbers of anodes and of cathodes (N, 2) in polarities (N, n)."""
    return np.stack([(polarity > 0).sum(axis=1), (polarity < 0).sum(axis=1)], axis=1)


def _find(
    known: NDArray[np.int8], wanted: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the places of polarities among ascending ones, and whether they are there."""
    if not known.shape[1]:
        return np.zeros(len(wanted), dtype=np.int64), np.ones(len(wanted), dtype=np.bool_)
    codes, asked = configuration_ids(known), configuration_ids(wanted)
    place = np.minimum(np.searchsorted(codes, asked), len(codes) - 1)
    return place, codes[place] == asked
