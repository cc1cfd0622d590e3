"""Sparring with UCB1 (Ailon, Karnin and Joachims, ICML 2014) in the interface of the engine.

What flows in: a number of arms and answers. What flows out: pairs and a ranking. Two UCB1 players
choose the left and the right arm and are paid for winning; arms are independent: a baseline of the
paper.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from fieldcorr.duel import _kernels
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import Event
from fieldcorr.duel.sources import Via
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

_STRIDE = _kernels.STRIDE


class SparringUCB1(Engine):
    """Two UCB1 players against each other.

    Parameters
    ----------
    correlation, horizon, seed, whitelist, via
        As for :class:`fieldcorr.duel.engine.Engine`; only the number of arms is used.
    alpha : float
        Exploration: the index is mean + sqrt(alpha log t / n); 2 in UCB1.

    Notes
    -----
    Unplayed arms come first, in random order (in a fixed order both players would show the same
    arm). The right player never takes the arm of the left one.
    """

    def __init__(
        self,
        correlation: Any,
        *,
        horizon: int,
        seed: int = 0,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
        alpha: float = 2.0,
    ) -> None:
        if not alpha > 0.0:
            raise DuelError(f"alpha: {alpha!r} is not positive")
        self.alpha = alpha
        super().__init__(correlation, horizon=horizon, seed=seed, whitelist=whitelist, via=via)

    @property
    def settings(self) -> dict[str, Any]:
        """What a journal must keep to build the same engine again."""
        return {"alpha": self.alpha}

    @property
    def survivors(self) -> Survivors:
        """All arms, ranked by their mean over both sides."""
        count = self._plays.sum(axis=0)
        known = count > 0.0
        mean = np.where(known, self._wins.sum(axis=0) / np.maximum(count, 1.0), 0.5)
        radius = np.where(known, np.sqrt(self._log_term / np.maximum(count, 1.0)), 1.0)
        return Survivors.ranked(self._active, mean, count, radius)

    @property
    def _log_term(self) -> float:
        return self.alpha * math.log(self._step + 1.0)

    def _forget(self) -> None:
        # Row 0 is the left player, row 1 the right one.
        self._wins = np.zeros((2, len(self.source)))
        self._plays = np.zeros((2, len(self.source)))

    def _propose(self) -> tuple[int, int]:
        allowed = self._active.copy()
        left = self._choose(0, allowed)
        allowed[left] = False
        return left, self._choose(1, allowed)

    def _choose(self, side: int, allowed: np.ndarray[Any, np.dtype[np.bool_]]) -> int:
        counter = self._step * _STRIDE + side
        wins, plays = self._wins[side], self._plays[side]
        return int(_kernels.ucb1_arm(wins, plays, allowed, self._log_term, self.seed, counter))

    def _learn(self, event: Event) -> None:
        for winner, loser, tie in event.comparisons():
            left = winner if event.kind == "ranking" else event.arms[0]
            right = loser if left == winner else winner
            reward = 0.5 if tie else float(left == winner)
            self._wins[0, left] += reward
            self._wins[1, right] += 1.0 - reward
            self._plays[0, left] += 1.0
            self._plays[1, right] += 1.0
