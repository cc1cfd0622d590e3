"""What every source of correlations has: checks, scratch space and the form of an update.

What flows in: a duel. What flows out: calls of a kernel, made by the sources in
:mod:`fieldcorr.correlation.update`.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation import _update_kernels as kernels
from fieldcorr.correlation.policy import UpdatePolicy
from fieldcorr.errors import CorrelationError

DEFAULT = UpdatePolicy()


def as_rule(policy: UpdatePolicy, *, tie: bool = False, weight: float = 1.0) -> kernels.Rule:
    """Return what the kernels take: options as numbers."""
    return kernels.Rule(
        floor=float(policy.floor),
        cap=1.0 if policy.clip else np.inf,
        need=0.0 if policy.require_positive else -np.inf,
        pin=float(policy.pin_duelled),
        tie=float(tie),
        weight=float(weight),
    )


class UpdateSource(ABC):
    """What a duel engine needs to know about correlations, whatever they come from.

    A source owns its scratch space: one source serves one thread.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise CorrelationError("a source of correlations needs at least one arm")
        self._size = size
        self._everyone = np.ones(size, dtype=np.bool_)
        self._scratch_r = np.zeros((2, kernels.BLOCK), dtype=np.float32)
        self._scratch = np.zeros((2, kernels.BLOCK))

    @property
    def size(self) -> int:
        """Number of arms K."""
        return self._size

    @abstractmethod
    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of arm i with everyone, shape (K,); 1 at i itself."""

    def add(
        self,
        wins: NDArray[np.float64],
        plays: NDArray[np.float64],
        background: NDArray[np.float64],
        winner: int,
        loser: int,
        *,
        policy: UpdatePolicy = DEFAULT,
        tie: bool = False,
        weight: float = 1.0,
        active: NDArray[np.bool_] | None = None,
    ) -> None:
        """Add the update of one duel to wins and plays in place.

        Parameters
        ----------
        wins, plays : ndarray, shape (K,), float64
            Added to: weight * kappa and weight * tau.
        background : ndarray, shape (2,), float64
            Part of wins and plays common to all arms; only the sparse source adds to it.
        winner, loser : int
            The arms that duelled.
        policy : UpdatePolicy
            Options of the rule.
        tie : bool
            Whether nobody won: wins get weight * tau / 2, since the kappas of the two outcomes add
            up to tau.
        weight : float
            Factor of the whole update; -1 takes one back, to rounding.
        active : ndarray, shape (K,), bool, optional
            Arms that matter, all by default. The others are left alone, except by the sparse
            source, whose background is everyone's.
        """
        self._check_pair(winner, loser)
        _check_tally("wins", wins, (self._size,))
        _check_tally("plays", plays, (self._size,))
        _check_tally("background", background, (2,))
        mask = self._everyone if active is None else _checked_mask(active, self._size)
        rule = as_rule(policy, tie=tie, weight=weight)
        self._add(rule, wins, plays, background, winner, loser, mask)

    def kappa_tau(
        self, winner: int, loser: int, *, policy: UpdatePolicy = DEFAULT
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (kappa, tau) of every arm after ``winner`` has won against ``loser``."""
        self._check_pair(winner, loser)
        kappa, tau, background = np.zeros(self._size), np.zeros(self._size), np.zeros(2)
        self._add(as_rule(policy), kappa, tau, background, winner, loser, self._everyone)
        return kappa, tau

    @abstractmethod
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
        """Do what :meth:`add` says, with checked arguments."""

    def _check_pair(self, winner: int, loser: int) -> None:
        self._check_arm(winner)
        self._check_arm(loser)
        if winner == loser:
            raise CorrelationError(f"arm {winner} cannot duel with itself")

    def _check_arm(self, arm: int) -> None:
        if not 0 <= arm < self._size:
            raise CorrelationError(f"arm {arm} is not one of the {self._size} arms")


def _check_tally(name: str, values: NDArray[Any], shape: tuple[int, ...]) -> None:
    sound = values.dtype == np.float64 and values.shape == shape
    if not (sound and values.flags.c_contiguous and values.flags.writeable):
        raise CorrelationError(
            f"{name} must be a writeable contiguous float64 array of shape {shape}, "
            f"not {values.dtype} of shape {values.shape}"
        )


def _checked_mask(active: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    if active.dtype != np.bool_ or active.shape != (size,):
        raise CorrelationError(
            f"active must be a boolean array of shape ({size},), "
            f"not {active.dtype} of shape {active.shape}"
        )
    return np.ascontiguousarray(active)
