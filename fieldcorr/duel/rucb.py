"""RUCB (Zoghi, Whiteson, Munos and de Rijke, ICML 2014) in the interface of the engine.

What flows in: answers, and correlations if wins are spread by CorrUpdate. What flows out: pairs and
a ranking. Without spreading, arms are independent: a baseline of the paper.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.policy import UpdatePolicy
from fieldcorr.duel import _kernels
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import Event
from fieldcorr.duel.sources import Tally, Via
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

_STRIDE = _kernels.STRIDE


class RUCB(Engine):
    """Relative upper confidence bound.

    Parameters
    ----------
    correlation, horizon, seed, whitelist, via
        As for :class:`fieldcorr.duel.engine.Engine`.
    alpha : float
        Exploration, above 1/2.
    update : {"none", "corr"}
        "corr" spreads each win by CorrUpdate, as the paper's discussion suggests: arm k gets kappa
        wins over the loser and loses tau - kappa to the winner, so that its plays grow by tau.

    Notes
    -----
    A pair never compared has u = 2 (the listing's x/0 := 1, twice). Only rows and columns of
    duelled arms can differ from that, so the wins are kept as two blocks of shape (duelled, K).
    The champion is never compared with itself: a person cannot answer that.
    """

    def __init__(
        self,
        correlation: Any,
        *,
        horizon: int,
        seed: int = 0,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
        alpha: float = 0.51,
        update: Literal["none", "corr"] = "none",
    ) -> None:
        if not alpha > 0.5:
            raise DuelError(f"alpha: {alpha!r} is not above 1/2")
        if update not in ("none", "corr"):
            raise DuelError(f"update: {update!r} is not one of none, corr")
        self.alpha = alpha
        self.update: Literal["none", "corr"] = update
        super().__init__(correlation, horizon=horizon, seed=seed, whitelist=whitelist, via=via)

    @property
    def settings(self) -> dict[str, Any]:
        """What a journal must keep to build the same engine again."""
        return {"alpha": self.alpha, "update": self.update}

    @property
    def survivors(self) -> Survivors:
        """All arms, ranked by how many arms they beat less how many beat them."""
        score, count = np.zeros(len(self.source)), np.zeros(len(self.source))
        for place, arm in enumerate(self._duelled):
            balance = np.sign(self._won[place] - self._lost[place])
            plays = self._won[place] + self._lost[place]
            # A pair of duelled arms stands in two rows; count it in the first.
            balance[self._duelled[:place]] = 0.0
            plays[self._duelled[:place]] = 0.0
            score -= balance
            score[arm] += balance.sum()
            count += plays
            count[arm] += plays.sum()
        radius = np.sqrt(self._bonus / np.maximum(count, 1e-300))
        return Survivors.ranked(self._active, score, count, np.where(count > 0.0, radius, 1.0))

    @property
    def _bonus(self) -> float:
        return self.alpha * math.log(self._step + 1.0)

    def _forget(self) -> None:
        self._duelled: list[int] = []
        # Row p, column k: wins of duelled arm p over arm k, and its losses to k.
        self._won = np.zeros((0, len(self.source)))
        self._lost = np.zeros((0, len(self.source)))
        self._favourite = -1

    def _propose(self) -> tuple[int, int]:
        champion, _ = self._champion()
        value = np.where(self._active, 2.0, -1.0)
        if champion in self._duelled:
            place = self._duelled.index(champion)
            bound = _optimism(self._lost[place], self._won[place], self._bonus)
            value[self._active] = bound[self._active]
        for place, arm in enumerate(self._duelled):
            if self._active[arm]:
                won, lost = self._won[place, champion], self._lost[place, champion]
                value[arm] = _optimism(won, lost, self._bonus)
        value[champion] = -1.0
        ties = np.flatnonzero(value == value.max())
        return champion, int(ties[_kernels.below(self.seed, self._step * _STRIDE + 2, ties.size)])

    def _champion(self) -> tuple[int, int]:
        """Return (c, favourite), lines 3-9 of the listing."""
        possible = np.flatnonzero(self._possible())
        favourite = self._favourite if self._favourite in possible else -1
        counter = self._step * _STRIDE
        if not possible.size:
            return int(self.active[_kernels.below(self.seed, counter, self.active.size)]), favourite
        if possible.size == 1:
            return int(possible[0]), int(possible[0])
        if favourite >= 0:
            if _kernels.uniform(self.seed, counter + 1) < 0.5:
                return favourite, favourite
            possible = possible[possible != favourite]
        return int(possible[_kernels.below(self.seed, counter, possible.size)]), favourite

    def _possible(self) -> NDArray[np.bool_]:
        """Return which active arms could still beat every other active one: the set C."""
        rows = [place for place, arm in enumerate(self._duelled) if self._active[arm]]
        arms = np.array([self._duelled[place] for place in rows], dtype=np.int64)
        won, lost = self._won[rows], self._lost[rows]
        loses = (_optimism(won, lost, self._bonus) < 0.5) & self._active
        beaten = _optimism(lost, won, self._bonus) < 0.5
        possible = self._active & ~beaten.any(axis=0)
        possible[arms] &= ~loses.any(axis=1)
        return possible

    def _learn(self, event: Event) -> None:
        _, self._favourite = self._champion()
        for winner, loser, tie in event.comparisons():
            self._open(winner)
            self._open(loser)
            self._add(winner, loser, 0.5 if tie else 1.0)
            if tie:
                self._add(loser, winner, 0.5)

    def _open(self, arm: int) -> None:
        """Give an arm rows of its own, with what is known from the other side."""
        if arm in self._duelled:
            return
        won, lost = np.zeros((1, len(self.source))), np.zeros((1, len(self.source)))
        won[0, self._duelled] = self._lost[:, arm]
        lost[0, self._duelled] = self._won[:, arm]
        self._duelled.append(arm)
        self._won = np.concatenate((self._won, won))
        self._lost = np.concatenate((self._lost, lost))

    def _add(self, winner: int, loser: int, weight: float) -> None:
        """Add ``weight`` wins of ``winner`` over ``loser``, spread to all arms if asked."""
        i, j = self._duelled.index(winner), self._duelled.index(loser)
        self._won[i, loser] += weight
        self._lost[j, winner] += weight
        if self.update == "none":
            return
        spread = Tally.zeros(len(self.source))
        self.source.add(spread, winner, loser, policy=UpdatePolicy())
        kappa = weight * spread.all_wins
        loss = weight * spread.all_plays - kappa
        kappa[[winner, loser]] = 0.0
        loss[[winner, loser]] = 0.0
        self._lost[j] += kappa
        self._won[:, loser] += kappa[self._duelled]
        self._won[i] += loss
        self._lost[:, winner] += loss[self._duelled]


def _optimism(won: Any, lost: Any, bonus: float) -> NDArray[np.float64]:
    """Return u = won / n + sqrt(bonus / n), and 2 where n = 0."""
    plays = np.asarray(won + lost)
    safe = np.where(plays > 0.0, plays, 1.0)
    return np.where(plays > 0.0, won / safe + np.sqrt(bonus / safe), 2.0)
