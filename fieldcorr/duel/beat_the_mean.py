"""Beat-the-Mean (Yue and Joachims, ICML 2011) in the interface of the engine.

What flows in: a number of arms and answers. What flows out: pairs and the working set, ranked. Arms
are independent here, so in T << K duels it plays at random: a baseline of the paper.
"""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import _kernels
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import Event
from fieldcorr.duel.sources import Tally, Via
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

_STRIDE = _kernels.STRIDE
_COMMON_RADIUS, _WORST_ONLY = False, False


class BeatTheMean(Engine):
    """Beat-the-Mean bandit.

    Parameters
    ----------
    correlation, horizon, seed, whitelist, via
        As for :class:`fieldcorr.duel.engine.Engine`; only the number of arms is used.
    delta : float
        Failure probability; default 1 / (2 T K), as in the paper's online setting.
    gamma : float
        Relaxation of stochastic transitivity, 1 for none. c(n) = 3 gamma^2 sqrt(log(1/delta) / n).
    """

    def __init__(
        self,
        correlation: Any,
        *,
        horizon: int,
        seed: int = 0,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
        delta: float | None = None,
        gamma: float = 1.0,
    ) -> None:
        if delta is not None and not 0.0 < delta < 1.0:
            raise DuelError(f"delta: {delta!r} is not between 0 and 1")
        self.delta, self.gamma = delta, gamma
        super().__init__(correlation, horizon=horizon, seed=seed, whitelist=whitelist, via=via)

    @property
    def settings(self) -> dict[str, Any]:
        """What a journal must keep to build the same engine again."""
        return {"delta": self.delta, "gamma": self.gamma}

    @property
    def log_term(self) -> float:
        """(3 gamma^2)^2 log(1/delta), the constant of the radius."""
        delta = self.delta or 1.0 / (2.0 * self.horizon * len(self.source))
        return 9.0 * self.gamma**4 * math.log(1.0 / delta)

    @property
    def survivors(self) -> Survivors:
        """The working set, ranked by estimate."""
        estimate, radius = self._bounds()
        return Survivors.ranked(self._active, estimate, self._tally.plays, radius)

    def _forget(self) -> None:
        self._tally = Tally.zeros(len(self.source))
        self._duels: list[tuple[int, int, float]] = []

    def _propose(self) -> tuple[int, int]:
        """Select the arm with the fewest plays, and a random opponent."""
        ties = np.empty(len(self.source), dtype=np.int64)
        count = _kernels.least_played(self._tally.plays, self._active, ties)
        first = int(ties[_kernels.below(self.seed, self._step * _STRIDE, count)])
        others = self.active[self.active != first]
        return first, int(others[_kernels.below(self.seed, self._step * _STRIDE + 1, others.size)])

    def _learn(self, event: Event) -> None:
        """Credit the selected arm alone; a pair from elsewhere has two such arms."""
        for winner, loser, tie in event.comparisons():
            won = {winner: 0.5 if tie else 1.0, loser: 0.5 if tie else 0.0}
            for arm in event.arms[:1] if event.asked else (winner, loser):
                self._credit(arm, loser if arm == winner else winner, won[arm])
        estimate, radius = self._bounds()
        worst = np.empty(1, dtype=np.int64)
        if _kernels.dominated(estimate, radius, self._active, _COMMON_RADIUS, _WORST_ONLY, worst):
            self._remove(int(worst[0]))

    def _credit(self, arm: int, opponent: int, won: float) -> None:
        self._tally.wins[arm] += won
        self._tally.plays[arm] += 1.0
        self._duels.append((arm, opponent, won))

    def _remove(self, gone: int) -> None:
        """Delete comparisons with the removed arm; counts are halves, so this is exact."""
        self._active[gone] = False
        for arm, opponent, won in self._duels:
            if opponent == gone:
                self._tally.wins[arm] -= won
                self._tally.plays[arm] -= 1.0
        self._duels = [duel for duel in self._duels if duel[1] != gone]

    def _bounds(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        tally, arms = self._tally, len(self.source)
        estimate, radius = np.empty(arms), np.empty(arms)
        _kernels.bounds(
            tally.wins,
            tally.plays,
            tally.background,
            self.log_term,
            _COMMON_RADIUS,
            self._active,
            estimate,
            radius,
        )
        return estimate, radius
