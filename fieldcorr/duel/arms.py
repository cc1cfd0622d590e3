"""The arms of a Bayesian duel by their features: listed, or made when an arm is looked at.

Where arms are too many to list, utilities are linear in the field alone: x_k = z_k, the unit row of
a configuration, and one pass over the tree of configurations finds the largest x_k . w.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.features import features_of
from fieldcorr.correlation.sources import CorrelationSource
from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel import _bayes_kernels as kernels
from fieldcorr.errors import DuelError

Bools = NDArray[np.bool_]
Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]


class Arms(Protocol):
    """Features of K arms, as an engine needs them; F of them in ``groups`` of columns."""

    mixing: Float64s
    groups: dict[str, slice]

    @property
    def table(self) -> Float64s:
        """Features of the arms that :meth:`numbers` has been asked for, (n, F)."""

    def numbers(self, arms: Int64s) -> Int64s:
        """Return where arms are in :attr:`table`."""

    def rows(self, arms: Int64s | None) -> Float64s:
        """Return the features of some arms, (n, F), or of all."""

    def best(self, weights: Float64s, free: Bools) -> int:
        """Return the free arm with the largest utility for weights (F,)."""


class ListedArms:
    """Arms whose features are in memory."""

    def __init__(self, source: CorrelationSource) -> None:
        features = features_of(source)
        self.table, self.mixing, self.groups = features.values, features.mixing, features.groups

    def numbers(self, arms: Int64s) -> Int64s:
        """Return the arms: all are in the table."""
        return arms

    def rows(self, arms: Int64s | None) -> Float64s:
        """Return the features of some arms, (n, F), or of all."""
        return self.table if arms is None else np.asarray(self.table[arms])

    def best(self, weights: Float64s, free: Bools) -> int:
        """Return the free arm with the largest utility for weights (F,)."""
        return int(kernels.best_mean(self.table, weights, free))


class UnlistedArms:
    """Arms of a whole space; the table holds those that were compared."""

    def __init__(self, source: WholeSource) -> None:
        self._whole = source.whole
        rank = self._whole.root.shape[1]
        self.mixing, self.groups = np.eye(rank), {"field": slice(0, rank)}
        self.table = np.empty((0, rank))
        self._places: dict[int, int] = {}

    def numbers(self, arms: Int64s) -> Int64s:
        """Return where arms are in the table, after those that are new were added."""
        new = [arm for arm in dict.fromkeys(arms.ravel().tolist()) if arm not in self._places]
        if new:
            self.table = np.concatenate((self.table, self.rows(np.array(new))))
            self._places |= {arm: len(self._places) + n for n, arm in enumerate(new)}
        places = [self._places[arm] for arm in arms.ravel().tolist()]
        return np.array(places, dtype=np.int64).reshape(arms.shape)

    def rows(self, arms: Int64s | None) -> Float64s:
        """Return the features of some arms, (n, F)."""
        space = self._whole.space
        if arms is None:
            raise DuelError(f"{len(space):,} configurations are not looked at at once: name some")
        return self._whole.unit_rows(space.polarity(arms))

    def best(self, weights: Float64s, free: Bools) -> int:
        """Return the free arm with the largest utility for weights (F,)."""
        return self._whole.largest(weights, free)


def arms_of(source: CorrelationSource) -> ListedArms | UnlistedArms:
    """Return the arms of a source."""
    return UnlistedArms(source) if isinstance(source, WholeSource) else ListedArms(source)
