"""The paper's baselines for independent arms, in the interface of the engine.

Beat-the-Mean (Yue and Joachims, ICML 2011), RUCB (Zoghi, Whiteson, Munos and de Rijke, ICML 2014)
and Sparring with UCB1 (Ailon, Karnin and Joachims, ICML 2014). In T << K duels all of them play at
random.
"""

import math
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.numbers import real_number
from fieldcorr.correlation.sources import Correlations, Tally
from fieldcorr.duel import _kernels
from fieldcorr.duel.engine import EliminatingEngine, Engine, Shared
from fieldcorr.duel.events import Event
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

_STRIDE = _kernels.STRIDE


class BeatTheMean(EliminatingEngine):
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
        correlation: Correlations,
        *,
        horizon: int,
        delta: float | None = None,
        gamma: float = 1.0,
        **shared: Unpack[Shared],
    ) -> None:
        self.delta = None if delta is None else real_number(delta, "delta", DuelError)
        self.gamma = real_number(gamma, "gamma", DuelError)
        if self.delta is not None and not 0.0 < self.delta < 1.0:
            raise DuelError(f"delta: {delta!r} is not between 0 and 1")
        super().__init__(correlation, horizon=horizon, **shared)

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again."""
        return {"delta": self.delta, "gamma": self.gamma}

    @property
    def _choices(self) -> _kernels.Choices:
        """A common radius c(n) with (3 gamma^2)^2 log(1/delta), and one arm that goes."""
        delta = self.delta or 1.0 / (2.0 * self._course.terms.horizon * len(self.source))
        return common_radius(9.0 * self.gamma**4 * math.log(1.0 / delta))

    def _propose(self) -> tuple[int, int]:
        """Select the arm with the fewest plays, and a random opponent."""
        counter, active = self._course.step * _STRIDE, self._active.copy()
        ties = np.empty(len(self.source), dtype=np.int64)
        count = _kernels.least_played(self._learnt.tally.plays, active, ties)
        first = int(ties[_kernels.below(self.seed, counter, count)])
        active[first] = False
        rank = _kernels.below(self.seed, counter + 1, np.count_nonzero(active))
        return first, int(_kernels.nth(active, rank))

    def _learn(self, event: Event) -> None:
        """Credit the selected arm alone; a pair from elsewhere has two such arms."""
        for winner, loser, tie in event.comparisons():
            won = {winner: 0.5 if tie else 1.0, loser: 0.5 if tie else 0.0}
            for arm in event.arms[:1] if event.asked else (winner, loser):
                self._credit(arm, loser if arm == winner else winner, won[arm])
        _, _, dominated = self._judged()
        for worst in dominated:
            self._remove(int(worst))

    def _credit(self, arm: int, opponent: int, won: float) -> None:
        learnt = self._learnt
        learnt.tally.wins[arm] += won
        learnt.tally.plays[arm] += 1.0
        learnt.duels.append((arm, opponent, won))

    def _remove(self, gone: int) -> None:
        """Delete comparisons with the removed arm; counts are halves, so this is exact."""
        learnt = self._learnt
        self._active[gone] = False
        for arm, opponent, won in learnt.duels:
            if opponent == gone:
                learnt.tally.wins[arm] -= won
                learnt.tally.plays[arm] -= 1.0
        learnt.duels = [duel for duel in learnt.duels if duel[1] != gone]


def common_radius(log_term: float) -> _kernels.Choices:
    """Return the choices of Beat-the-Mean as the numbers that kernels take."""
    return _kernels.Choices(log_term, *8 * (0.0,))


@dataclass(eq=False)
class PairWins:
    """Wins among pairs: row p, column k is about the arm that was the p-th to duel, and arm k."""

    won: NDArray[np.float64]
    lost: NDArray[np.float64]
    duelled: list[int] = field(default_factory=list)
    favourite: int = -1


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

    _learnt: PairWins

    def __init__(
        self,
        correlation: Correlations,
        *,
        horizon: int,
        alpha: float = 0.51,
        update: Literal["none", "corr"] = "none",
        **shared: Unpack[Shared],
    ) -> None:
        self.alpha = real_number(alpha, "alpha", DuelError)
        if not self.alpha > 0.5:
            raise DuelError(f"alpha: {alpha!r} is not above 1/2")
        if update not in ("none", "corr"):
            raise DuelError(f"update: {update!r} is not one of none, corr")
        self.update: Literal["none", "corr"] = update
        super().__init__(correlation, horizon=horizon, **shared)

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again."""
        return {"alpha": self.alpha, "update": self.update}

    def _ranked(self) -> Survivors:
        """All arms, ranked by how many arms they beat less how many beat them."""
        learnt, score, count = self._learnt, *np.zeros((2, len(self.source)))
        for place, arm in enumerate(learnt.duelled):
            balance = np.sign(learnt.won[place] - learnt.lost[place])
            plays = learnt.won[place] + learnt.lost[place]
            # A pair of duelled arms stands in two rows; count it in the first.
            balance[learnt.duelled[:place]] = 0.0
            plays[learnt.duelled[:place]] = 0.0
            score -= balance
            score[arm] += balance.sum()
            count += plays
            count[arm] += plays.sum()
        radius = np.sqrt(self._bonus / np.maximum(count, 1e-300))
        return Survivors.ranked(self._active, score, count, np.where(count > 0.0, radius, 1.0))

    @property
    def _bonus(self) -> float:
        return self.alpha * math.log(self._course.step + 1.0)

    def _blank(self) -> PairWins:
        return PairWins(*np.zeros((2, 0, len(self.source))))

    def _propose(self) -> tuple[int, int]:
        learnt, (champion, _) = self._learnt, self._champion()
        value = np.where(self._active, 2.0, -1.0)
        if champion in learnt.duelled:
            place = learnt.duelled.index(champion)
            bound = _optimism(learnt.lost[place], learnt.won[place], self._bonus)
            value[self._active] = bound[self._active]
        for place, arm in enumerate(learnt.duelled):
            if self._active[arm]:
                won, lost = learnt.won[place, champion], learnt.lost[place, champion]
                value[arm] = _optimism(won, lost, self._bonus)
        value[champion] = -1.0
        ties, counter = np.flatnonzero(value == value.max()), self._course.step * _STRIDE + 2
        return champion, int(ties[_kernels.below(self.seed, counter, ties.size)])

    def _champion(self) -> tuple[int, int]:
        """Return (c, favourite), lines 3-9 of the listing."""
        possible = np.flatnonzero(self._possible())
        favourite = self._learnt.favourite if self._learnt.favourite in possible else -1
        counter = self._course.step * _STRIDE
        if not possible.size:
            active = np.flatnonzero(self._active)
            return int(active[_kernels.below(self.seed, counter, active.size)]), favourite
        if possible.size == 1:
            return int(possible[0]), int(possible[0])
        if favourite >= 0:
            if _kernels.uniform(self.seed, counter + 1) < 0.5:
                return favourite, favourite
            possible = possible[possible != favourite]
        return int(possible[_kernels.below(self.seed, counter, possible.size)]), favourite

    def _possible(self) -> NDArray[np.bool_]:
        """Return which active arms could still beat every other active one: the set C."""
        learnt = self._learnt
        rows = [place for place, arm in enumerate(learnt.duelled) if self._active[arm]]
        arms = np.array([learnt.duelled[place] for place in rows], dtype=np.int64)
        won, lost = learnt.won[rows], learnt.lost[rows]
        loses = (_optimism(won, lost, self._bonus) < 0.5) & self._active
        beaten = _optimism(lost, won, self._bonus) < 0.5
        possible = self._active & ~beaten.any(axis=0)
        possible[arms] &= ~loses.any(axis=1)
        return np.asarray(possible)

    def _learn(self, event: Event) -> None:
        _, self._learnt.favourite = self._champion()
        for winner, loser, tie in event.comparisons():
            self._open(winner)
            self._open(loser)
            self._add(winner, loser, 0.5 if tie else 1.0)
            if tie:
                self._add(loser, winner, 0.5)

    def _open(self, arm: int) -> None:
        """Give an arm rows of its own, with what is known from the other side."""
        learnt = self._learnt
        if arm in learnt.duelled:
            return
        won, lost = np.zeros((2, 1, len(self.source)))
        won[0, learnt.duelled] = learnt.lost[:, arm]
        lost[0, learnt.duelled] = learnt.won[:, arm]
        learnt.duelled.append(arm)
        learnt.won = np.concatenate((learnt.won, won))
        learnt.lost = np.concatenate((learnt.lost, lost))

    def _add(self, winner: int, loser: int, weight: float) -> None:
        """Add ``weight`` wins of ``winner`` over ``loser``, spread to all arms if asked."""
        learnt = self._learnt
        i, j = learnt.duelled.index(winner), learnt.duelled.index(loser)
        learnt.won[i, loser] += weight
        learnt.lost[j, winner] += weight
        if self.update == "none":
            return
        spread = Tally.zeros(len(self.source))
        self.source.add(spread, winner, loser)
        kappa = weight * spread.all_wins
        loss = weight * spread.all_plays - kappa
        kappa[[winner, loser]] = 0.0
        loss[[winner, loser]] = 0.0
        learnt.lost[j] += kappa
        learnt.won[:, loser] += kappa[learnt.duelled]
        learnt.won[i] += loss
        learnt.lost[:, winner] += loss[learnt.duelled]


def _optimism(won: Any, lost: Any, bonus: float) -> NDArray[np.float64]:
    """Return u = won / n + sqrt(bonus / n), and 2 where n = 0."""
    plays = np.asarray(won + lost)
    safe = np.where(plays > 0.0, plays, 1.0)
    return np.where(plays > 0.0, won / safe + np.sqrt(bonus / safe), 2.0)


@dataclass(eq=False)
class SideWins:
    """Wins and plays of two players, (2, K): row 0 is the left one, row 1 the right one."""

    wins: NDArray[np.float64]
    plays: NDArray[np.float64]


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

    _learnt: SideWins

    def __init__(
        self,
        correlation: Correlations,
        *,
        horizon: int,
        alpha: float = 2.0,
        **shared: Unpack[Shared],
    ) -> None:
        self.alpha = real_number(alpha, "alpha", DuelError)
        if not self.alpha > 0.0:
            raise DuelError(f"alpha: {alpha!r} is not positive")
        super().__init__(correlation, horizon=horizon, **shared)

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again."""
        return {"alpha": self.alpha}

    def _ranked(self) -> Survivors:
        """All arms, ranked by their mean over both sides."""
        count = self._learnt.plays.sum(axis=0)
        known, played = count > 0.0, np.maximum(count, 1.0)
        mean = np.where(known, self._learnt.wins.sum(axis=0) / played, 0.5)
        radius = np.where(known, np.sqrt(self._log_term / played), 1.0)
        return Survivors.ranked(self._active, mean, count, radius)

    @property
    def _log_term(self) -> float:
        return self.alpha * math.log(self._course.step + 1.0)

    def _blank(self) -> SideWins:
        return SideWins(*np.zeros((2, 2, len(self.source))))

    def _propose(self) -> tuple[int, int]:
        allowed = self._active.copy()
        left = self._choose(0, allowed)
        allowed[left] = False
        return left, self._choose(1, allowed)

    def _choose(self, side: int, allowed: NDArray[np.bool_]) -> int:
        counter = self._course.step * _STRIDE + side
        wins, plays = self._learnt.wins[side], self._learnt.plays[side]
        return int(_kernels.ucb1_arm(wins, plays, allowed, self._log_term, self.seed, counter))

    def _learn(self, event: Event) -> None:
        learnt = self._learnt
        for winner, loser, tie in event.comparisons():
            left = winner if event.kind == "ranking" else event.arms[0]
            right = loser if left == winner else winner
            reward = 0.5 if tie else float(left == winner)
            learnt.wins[0, left] += reward
            learnt.wins[1, right] += 1.0 - reward
            learnt.plays[0, left] += 1.0
            learnt.plays[1, right] += 1.0
