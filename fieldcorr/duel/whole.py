"""Elimination and ranking where arms are too many to list: by chunks, and of survivors alone.

What is not in the set any more loses its place in the tally: updates and searches take as long as
the survivors are many. The bits of the others do not change, so a dense tally and a list of
survivors give the same session.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from fieldcorr import _parallel
from fieldcorr.correlation.whole import Whole, WholeTally, position
from fieldcorr.duel import _kernels
from fieldcorr.duel import _whole_kernels as kernels
from fieldcorr.duel.survivors import Survivor, Survivors

Bools = NDArray[np.bool_]

WORTH_A_LIST = 0.75
"""The share of all arms up to which a list of the active ones is made: the update of a longer list
takes longer than that of all arms (0.087 against 0.074 s at 85 %)."""


class WholeArms:
    """The tally and the mask of active arms (K,) of one engine, seen together."""

    def __init__(
        self, whole: Whole, tally: WholeTally, active: Bools, choices: _kernels.Choices
    ) -> None:
        self._whole, self.tally, self._active = whole, tally, active
        self._log_term = np.float32(choices.log_term)
        self._per_arm, self._everyone = bool(choices.per_arm), bool(choices.everyone)

    @property
    def alive(self) -> Bools:
        """Which positions of the tally are active; empty for all: a list has no others."""
        return self._active[:0] if self.tally.members.listed.size else self._active

    def find(self, arm: int) -> Survivor | None:
        """Return the row of an active arm, None for any other."""
        if not self._active[arm]:
            return None
        return self.chunk(
            position(self._whole.space, self.tally.members, arm) // kernels.CHUNK
        ).find(arm)

    @cached_property
    def common(self) -> np.float32:
        """The radius of all arms, or -1 where each has its own."""
        if self._per_arm:
            return np.float32(-1.0)
        least = float(self._by_chunk(kernels.least_plays, (), self.tally.plays, self.alive).min())
        radius = np.sqrt(self._log_term / np.float32(least)) if 0.0 < least < np.inf else 1.0
        return np.float32(radius)

    def eliminate(self) -> None:
        """Take dominated arms out of the active set and of the tally (Algorithm 3, lines 7-11)."""
        tally, terms = self.tally, (self._log_term, self.common)
        floor, least = self.bounds()
        if not least <= floor:
            return
        listed, arrays = bool(tally.members.listed.size), (tally.wins, tally.plays)
        stays = np.ones(len(tally.wins), dtype=np.bool_) if listed else self._active
        if self._everyone:
            self._run(kernels.mark_dominated, *terms, floor, *arrays, stays)
        else:
            stays[kernels.find_worst(*terms, floor, *arrays, self.alive)] = False
        if listed:
            self._active[self._rows(np.flatnonzero(~stays))] = False
        elif np.count_nonzero(stays) > WORTH_A_LIST * len(stays):
            return
        members = tally.members
        kept_offsets, kept = np.empty_like(members.offsets), members.listed
        leaves, first_leaf = members.listed, members.offsets
        if not listed:
            leaves, first_leaf = members.leaves, members.starts[members.kind]
            kept = np.empty(len(stays), dtype=np.uint16)
        places = members.offsets, leaves, first_leaf
        count = kernels.keep(stays, *places, *arrays, kept_offsets, kept)
        tally.wins, tally.plays = tally.wins[:count], tally.plays[:count]
        tally.members = members._replace(offsets=kept_offsets, listed=kept[:count])

    def bounds(self, *, further: int = 0, growth: float = 1.0) -> tuple[np.float32, np.float32]:
        """Return the largest lower and the least upper bound of the active arms.

        Now, or as they may be after ``further`` duels, or when counts have grown by ``growth``.
        """
        common = self.common
        if common >= 0.0 and (further or growth != 1.0):
            least = float(self._log_term) / float(common) ** 2 if common < 1.0 else 0.0
            later = (least + further) * growth
            common = np.float32(np.sqrt(self._log_term / later) if later > 0.0 else 1.0)
        terms = self._log_term, common, np.float32(further), np.float32(growth)
        arrays = self.tally.wins, self.tally.plays, self.alive
        found = self._by_chunk(kernels.fill_bounds, (2,), *terms, *arrays)
        return found[:, 0].max(), found[:, 1].min()

    def tops(self) -> NDArray[np.float32]:
        """Return the best estimate of every chunk and its largest count, (chunks, 2)."""
        arrays = self.tally.wins, self.tally.plays, self.alive
        return self._by_chunk(kernels.fill_tops, (2,), *arrays)

    def chunk(self, number: int) -> Survivors:
        """Return the active arms of a chunk, ranked."""
        start = number * kernels.CHUNK
        stop = min(start + kernels.CHUNK, len(self.tally.wins))
        active = (
            self.alive[start:stop] if self.alive.size else np.ones(stop - start, dtype=np.bool_)
        )
        wins, count = self.tally.wins[start:stop], self.tally.plays[start:stop]
        known = count > 0.0
        safe = np.where(known, count, np.float32(1.0))
        estimate = np.where(known, wins / safe, np.float32(0.5))
        radius = np.where(known, np.sqrt(self._log_term / safe), np.float32(1.0))
        if self.common >= 0.0:
            radius = np.full_like(radius, self.common)
        ranked = Survivors.ranked(
            active, *(a.astype(np.float64) for a in (estimate, count, radius))
        )
        numbers = ranked.estimate, ranked.count, ranked.radius
        return Survivors(self._rows(start + ranked.arm), *numbers)

    def _rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rows of positions of the tally."""
        members, space = self.tally.members, self._whole.space
        if not members.listed.size:
            return positions
        block = np.searchsorted(members.offsets, positions, side="right") - 1
        ranks = space.ranks[space.heads.kind[block], members.listed[positions]]
        return np.asarray(space.offsets[block] + ranks)

    def _by_chunk(
        self, kernel: Callable[..., None], shape: tuple[int, ...], *arguments: object
    ) -> NDArray[np.float32]:
        out = np.empty((self._chunks, *shape), dtype=np.float32)
        self._run(kernel, *arguments, out)
        return out

    def _run(self, kernel: Callable[..., None], *arguments: object) -> None:
        _parallel.run_ranges(kernel, self._chunks, *arguments, least=64)

    @property
    def _chunks(self) -> int:
        return -(-len(self.tally.wins) // kernels.CHUNK)


class WholeSurvivors(Survivors):
    """The ranked set, of which only the part that is asked for is sorted."""

    _arms: WholeArms
    _size: int

    def __init__(self, arms: WholeArms, size: int) -> None:
        object.__setattr__(self, "_arms", arms)
        object.__setattr__(self, "_size", size)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Survivor]:
        return iter(self._first(self._size))

    def find(self, arm: int) -> Survivor | None:
        """Return the row of an arm, None if it is not in the set."""
        return self._arms.find(arm)

    def __getattr__(self, name: str) -> Any:
        if name not in Survivors.__match_args__:
            raise AttributeError(name)
        return getattr(self._first(self._size), name)  # a whole column sorts the whole set

    @overload
    def __getitem__(self, rank: int) -> Survivor: ...

    @overload
    def __getitem__(self, rank: slice) -> Survivors: ...

    def __getitem__(self, rank: int | slice) -> Survivor | Survivors:
        """Return the arm at a rank, 0 is the best, or the table of a slice."""
        if isinstance(rank, slice):
            places = range(*rank.indices(self._size))
            return self._first(max(places, default=-1) + 1)[rank]
        return self._first(self._size if rank < 0 else rank + 1)[rank]

    def _first(self, count: int) -> Survivors:
        """Return the best ``count`` arms: chunks are visited while they can hold one of them.

        Of arms that are equal the lower number comes first, so a chunk that is only as good as
        what has been found holds none.
        """
        best = self._arms.chunk(0)[:0]
        if not count:
            return best
        tops, found, new = self._arms.tops().astype(np.float64), [best], 0
        for number in np.lexsort((-tops[:, 1], -tops[:, 0])):
            if len(best) == count and tuple(tops[number]) <= (best.estimate[-1], best.count[-1]):
                break
            found.append(self._arms.chunk(int(number)))
            new += len(found[-1])
            if new >= len(best):  # a long list is not sorted for every few
                best = _merged(found)[:count]
                found, new = [best], 0
        return _merged(found)[:count]


def _merged(tables: list[Survivors]) -> Survivors:
    columns = ([getattr(table, name) for table in tables] for name in Survivors.__match_args__)
    return Survivors.sorted(*map(np.concatenate, columns))
