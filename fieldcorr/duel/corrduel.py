"""CorrDuel: dueling bandits on correlated arms (Sui, Yue, Burdick, IJCAI 2017, Algorithms 1-4).

Comments carry the line numbers of the paper's listings; where the default differs from the listing,
:class:`fieldcorr.duel.DuelOptions` names the choice and its reason.
"""

from collections.abc import Iterable
from typing import Self, Unpack

import numpy as np

from fieldcorr.correlation.numbers import whole_number
from fieldcorr.correlation.sources import Correlations, Via
from fieldcorr.duel import _kernels
from fieldcorr.duel.engine import EliminatingEngine, Shared
from fieldcorr.duel.events import Event
from fieldcorr.duel.options import DuelOptions
from fieldcorr.errors import DuelError


class CorrDuel(EliminatingEngine):
    """The paper's algorithm as ask and tell (Algorithm 1).

    Parameters
    ----------
    correlation
        A store, a square matrix, a scipy sparse matrix or any correlation source.
    horizon
        Planned number of duels T.
    seed
        Chooses the pairs.
    options
        A :class:`DuelOptions`; single options can be given or changed by keyword, for example
        ``delta=0.95``.
    whitelist
        The only arms that may be proposed; None for all.
    via
        How to read a store: "auto", "embedding", "matrix" or "neighbours".
    repeats
        Share of repeated questions, see :class:`fieldcorr.duel.engine.Engine`.

    Notes
    -----
    The default ``delta = 0.9`` carries no guarantee. The result is the surviving *set*, ranked,
    with counts and radii; the best arm alone says less than it seems to.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.linspace(0, 1, 50)
    >>> engine = CorrDuel(np.exp(-((points[:, None] - points) ** 2) / 0.02), horizon=60, seed=1)
    >>> while not engine.done:
    ...     i, j = engine.ask()
    ...     engine.tell(max(i, j), min(i, j))
    >>> engine.best > 40
    True
    """

    takes_whole = True

    def __init__(
        self,
        correlation: Correlations,
        *,
        horizon: int,
        seed: int = 0,
        options: DuelOptions | None = None,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
        repeats: float = 0.0,
        **choices: object,
    ) -> None:
        record = {} if options is None else options.record()
        self.options = DuelOptions.from_record(record | choices)
        shared: Shared = {"seed": seed, "whitelist": whitelist, "via": via, "repeats": repeats}
        super().__init__(correlation, horizon=horizon, **shared)

    @classmethod
    def paper(
        cls,
        correlation: Correlations,
        *,
        horizon: int,
        delta: float = 0.95,
        **shared: Unpack[Shared],
    ) -> Self:
        """Return an engine that runs the listing exactly as printed."""
        return cls(correlation, horizon=horizon, options=DuelOptions.paper(delta=delta), **shared)

    def ask_batch(self, size: int) -> list[tuple[int, int]]:
        """Return ``size`` pairs of distinct arms to compare before the next update.

        The first pair is that of :meth:`ask`. Answers are told one by one, in any order.
        """
        size = whole_number(size, "batch", DuelError, least=1)
        first = self.ask()
        if size > self._left // 2:
            raise DuelError(f"a batch of {size} pairs needs {2 * size} arms, {self._left} are left")
        arms = self._draw(2 * size - 2, without=first)
        return [first, *zip(arms[0::2], arms[1::2], strict=True)]

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again."""
        return self.options.record()

    @property
    def warning(self) -> str | None:
        """Say when the answers look like chance, or when no elimination is possible or likely."""
        return "; ".join(filter(None, (super().warning, self._outlook()))) or None

    def _outlook(self) -> str | None:
        """Say when no arm can be eliminated in the duels that remain, or is likely to be."""
        remaining = self.horizon - self.duels
        if remaining <= 0 or self._left < 2:
            return None
        if not self._can_eliminate(remaining):
            return (
                f"no elimination is possible in the {remaining} duels that remain: with delta = "
                f"{self.options.delta} they are too few, whatever the answers"
            )
        if self.duels >= 10 and not self._may_eliminate(remaining):
            return (
                f"no elimination is in sight: at the present rate the intervals still overlap "
                f"after the {remaining} duels that remain (delta = {self.options.delta})"
            )
        return None

    @property
    def _choices(self) -> _kernels.Choices:
        return self.options.choices

    # -- Algorithm 3: Active-Elimination ----------------------------------------------------------

    def _propose(self) -> tuple[int, int]:
        """Line 2: select b_i, b_j in W at random; chained, b_i is what was tried last."""
        previous = self._course.previous
        if self.options.chain and previous is not None and self._active[previous]:
            (new,) = self._draw(1, without=(previous,))
            return previous, new
        first, second = self._draw(2)
        return first, second

    def _learn(self, event: Event) -> None:
        """Lines 3-12: take the comparison, update every arm, eliminate."""
        compared = event.comparisons()
        self._corr_update(compared)  # lines 4-6
        if self.options.history == "delete":
            self._learnt.duels += compared
        if self._course.duels + len(compared) < (self.options.patience or 0):
            return
        gone = self._eliminate()  # lines 7-8, 10-11
        if self.options.history == "delete":
            self._delete_comparisons(gone)  # line 9

    def _delete_comparisons(self, gone: set[int]) -> None:
        """Line 9. Rebuilt from what stays: subtracting would leave rounding where nothing is."""
        learnt = self._learnt
        kept = [duel for duel in learnt.duels if not gone & {duel[0], duel[1]}]
        if len(kept) < len(learnt.duels):
            learnt.duels = kept
            learnt.tally.clear()
            self._corr_update(kept)

    # -- Algorithm 4: CorrUpdate ------------------------------------------------------------------

    def _corr_update(self, compared: Iterable[tuple[int, int, float]]) -> None:
        """Lines 1-4, for all b_k at once. Arms outside W are updated too: they may come back."""
        tally, policy = self._learnt.tally, self.options.policy
        for winner, loser, tie in compared:
            self.source.add(tally, winner, loser, policy=policy, tie=bool(tie))

    # -- helpers ------------------------------------------------------------------------------

    def _draw(self, count: int, *, without: Iterable[int] = ()) -> list[int]:
        """Return distinct random arms of the active set, a function of seed and step alone."""
        active, left = self._active, self._left
        taken = sorted(int(_kernels.rank(active, arm)) for arm in without if active[arm])
        drawn: list[int] = []
        for _ in range(count):
            place = int(_kernels.below(self.seed, self._counter(len(taken)), left - len(taken)))
            for other in taken:
                place += place >= other
            taken = sorted([*taken, place])
            drawn.append(int(_kernels.nth(active, place)))
        return drawn

    def _counter(self, slot: int) -> int:
        """Return the counter of a random number: slots 0 and 1 are the pair, more are a batch."""
        own = self._course.step * _kernels.STRIDE
        return own + slot if slot < 2 else own + (slot << 40)

    def _can_eliminate(self, remaining: int) -> bool:
        """Whether the most favourable answers could still eliminate an arm.

        At most 1 is added to n_b per duel, all of it wins for one arm and losses for another. A raw
        tau has no such limit, so nothing can be excluded there.
        """
        if self.horizon < (self.options.patience or 0):
            return False
        if not self.options.policy.clip:
            return True
        if (whole := self._whole) is not None:
            return bool(np.greater_equal(*whole.bounds(further=remaining)))
        wins = self._learnt.tally.all_wins[self._active]
        plays = self._learnt.tally.all_plays[self._active] + remaining
        radius = np.sqrt(self.options.log_term / plays)
        lower = (wins + remaining) / plays - radius
        upper = wins / plays + radius
        return bool(lower.max() >= upper.min())

    def _may_eliminate(self, remaining: int) -> bool:
        """Whether an elimination follows if counts go on growing as they did, estimates as now."""
        if (whole := self._whole) is not None:
            growth = 1.0 + remaining / self.duels
            return bool(np.greater_equal(*whole.bounds(growth=growth)))
        estimate, _, _ = self._judged()
        plays = self._learnt.tally.all_plays * (1.0 + remaining / self.duels)
        if self.options.radius == "global":
            plays = np.full_like(plays, plays[self._active].min())
        radius = np.sqrt(self.options.log_term / np.maximum(plays, 1e-300))
        lower, upper = (estimate - radius)[self._active], (estimate + radius)[self._active]
        return bool(lower.max() >= upper.min())
