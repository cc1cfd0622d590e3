"""The update of all arms after a duel, from any source of r.

What flows in: an embedding, rows of r, or sparse neighbourhoods; a winner and a loser. What flows
out: (kappa, tau) of every arm, or the same added to running wins and plays without allocating.
The definition is :func:`fieldcorr.correlation.reference.kappa_tau_reference`; r is float32 in
every source, so all sources that know the same r give the same kappa and tau to the last bit.

Wins and plays have a common part, ``background`` of shape (2,): the sparse source adds to it what
every arm gets, so that it need not touch all of them. The wins of arm k are
``wins[k] + background[0]``, its plays ``plays[k] + background[1]``, whatever the source.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation import _update_kernels as kernels
from fieldcorr.correlation.policy import UpdatePolicy
from fieldcorr.correlation.source import DEFAULT, UpdateSource, as_rule
from fieldcorr.errors import CorrelationError

__all__ = ["EmbeddingSource", "NeighbourSource", "RowSource", "UpdatePolicy", "UpdateSource"]


class EmbeddingSource(UpdateSource):
    """r from an embedding: r_ij = z_i . z_j, added up in float64 and rounded to float32.

    Parameters
    ----------
    embedding : array_like, shape (K, R)
        Unit rows, as in a store.
    """

    def __init__(self, embedding: ArrayLike) -> None:
        rows = np.asarray(embedding, dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise CorrelationError(f"an embedding is a finite (K, R) array, not {rows.shape}")
        super().__init__(rows.shape[0])
        # Transposed, so that the arms of a block lie side by side in memory.
        self._columns = np.array(rows.T, order="C")
        self._points = np.empty((2, rows.shape[1]))

    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of arm i with everyone, shape (K,)."""
        self._check_arm(i)
        r = np.empty(self._size, dtype=np.float32)
        kernels.row_from_embedding(self._columns, i, self._points, self._scratch, r)
        return r

    def _add(
        self,
        rule: kernels.Rule,
        wins: NDArray[np.float64],
        plays: NDArray[np.float64],
        background: NDArray[np.float64],
        winner: int,
        loser: int,
        mask: NDArray[np.bool_],
    ) -> None:
        # fmt: off
        kernels.add_from_embedding(
            rule, self._columns, winner, loser, mask, self._points, self._scratch_r,
            self._scratch, wins, plays,
        )
        # fmt: on


class RowSource(UpdateSource):
    """r from whole rows: a matrix, a dataset, or a function that makes them.

    Parameters
    ----------
    row : callable or array_like
        A function ``i -> (K,) array``, or a K x K array. Values are rounded to float32, and values
        above 1 are read as 1.
    size : int, optional
        K; needed with a function.
    """

    def __init__(
        self, row: Callable[[int], ArrayLike] | ArrayLike, size: int | None = None
    ) -> None:
        if callable(row):
            if size is None:
                raise CorrelationError("size is needed when rows of r come from a function")
            super().__init__(size)
            self._read = row
        else:
            matrix = np.asarray(row, dtype=np.float32)
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise CorrelationError(f"a matrix of r is square, not {matrix.shape}")
            super().__init__(matrix.shape[0])
            self._read = matrix.__getitem__
        # Own buffers: kernels are compiled for one kind of array, whatever the rows are.
        self._rows = np.empty((2, self._size), dtype=np.float32)

    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of arm i with everyone, shape (K,)."""
        self._check_arm(i)
        self._load(0, i)
        return np.array(self._rows[0])

    def _load(self, slot: int, i: int) -> None:
        values = np.asarray(self._read(i))
        if values.shape != (self._size,):
            raise CorrelationError(
                f"row {i} of r has shape {values.shape}, expected ({self._size},)"
            )
        np.minimum(values, 1.0, out=self._rows[slot], casting="same_kind")
        if not np.isfinite(self._rows[slot]).all():
            raise CorrelationError(f"row {i} of r is not finite")
        self._rows[slot, i] = 1.0

    def _add(
        self,
        rule: kernels.Rule,
        wins: NDArray[np.float64],
        plays: NDArray[np.float64],
        background: NDArray[np.float64],
        winner: int,
        loser: int,
        mask: NDArray[np.bool_],
    ) -> None:
        self._load(0, winner)
        self._load(1, loser)
        # fmt: off
        kernels.add_from_rows(
            rule, self._rows[0], self._rows[1], winner, loser, mask, self._scratch_r,
            self._scratch, wins, plays,
        )
        # fmt: on


class NeighbourSource(UpdateSource):
    """r from sparse neighbourhoods; what is not listed is read as unrelated.

    Parameters
    ----------
    neighbours : callable
        A function ``i -> (indices, r)``: sorted, without i itself, as ``store.neighbours``.
    size : int
        K.
    """

    def __init__(
        self, neighbours: Callable[[int], tuple[NDArray[Any], NDArray[Any]]], size: int
    ) -> None:
        super().__init__(size)
        self._read = neighbours
        self._arms = np.empty(kernels.BLOCK, dtype=np.int64)
        self._base = np.empty(2)
        # Own buffers: kernels are compiled for one kind of array, whatever the rows are.
        self._indices = np.empty((2, size), dtype=np.int64)
        self._r = np.empty((2, size), dtype=np.float32)

    @classmethod
    def from_csr(
        cls, indptr: NDArray[Any], indices: NDArray[Any], data: NDArray[Any]
    ) -> "NeighbourSource":
        """Return a source over the three arrays of a CSR matrix without diagonal."""

        def neighbours(i: int) -> tuple[NDArray[Any], NDArray[Any]]:
            entries = slice(int(indptr[i]), int(indptr[i + 1]))
            return indices[entries], data[entries]

        return cls(neighbours, len(indptr) - 1)

    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of arm i with everyone, shape (K,): 0 for arms that are not listed."""
        self._check_arm(i)
        indices, values = self._load(0, i)
        r = np.zeros(self._size, dtype=np.float32)
        r[indices] = values
        r[i] = 1.0
        return r

    def kappa_tau(
        self, winner: int, loser: int, *, policy: UpdatePolicy = DEFAULT
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (kappa, tau) of every arm after ``winner`` has won against ``loser``."""
        self._check_pair(winner, loser)
        rule, nothing, base = as_rule(policy), np.zeros(2), np.empty(2)
        kappa, tau = np.zeros(self._size), np.zeros(self._size)
        self._add_listed(rule, kappa, tau, winner, loser, base, nothing)
        # A listed arm that the rule leaves out has tau = 0, and so has the background then.
        unlisted = tau == 0.0
        kappa[unlisted], tau[unlisted] = base
        return kappa, tau

    def _load(self, slot: int, i: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Copy the neighbourhood of i into a buffer, or say that it cannot be used."""
        indices, values = self._read(i)
        count = min(len(indices), self._size)
        near, r = self._indices[slot, :count], self._r[slot, :count]
        sound = len(indices) == len(values) == count
        if sound:
            near[:], r[:] = indices, values
        if not (sound and kernels.neighbours_are_sound(i, near, r, self._size)):
            raise CorrelationError(f"neighbourhood {i} is not sorted, not finite or out of range")
        return near, r

    def _add(
        self,
        rule: kernels.Rule,
        wins: NDArray[np.float64],
        plays: NDArray[np.float64],
        background: NDArray[np.float64],
        winner: int,
        loser: int,
        mask: NDArray[np.bool_],
    ) -> None:
        base = self._base
        self._add_listed(rule, wins, plays, winner, loser, base, base)
        background += rule.weight * base

    def _add_listed(
        self,
        rule: kernels.Rule,
        wins: NDArray[np.float64],
        plays: NDArray[np.float64],
        winner: int,
        loser: int,
        base: NDArray[np.float64],
        less: NDArray[np.float64],
    ) -> None:
        """Fill ``base`` with the update of unlisted arms; add to listed ones, less ``less``."""
        near_winner, near_loser = self._load(0, winner), self._load(1, loser)
        scratch = self._scratch_r, self._scratch
        pair = kernels.pair_from_neighbours(rule, *near_winner, loser, *scratch, base)
        # fmt: off
        kernels.add_from_neighbours(
            rule, pair, *near_winner, *near_loser, winner, loser, self._arms, *scratch, less,
            wins, plays,
        )
        # fmt: on
