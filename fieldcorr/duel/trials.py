"""Trials by ask and tell: any engine against a simulated person.

An engine is anything with ``ask() -> (i, j)`` and ``tell(winner, loser)``. If it has ``tie(i, j)``,
``done``, ``best`` and ``survivors`` as :class:`fieldcorr.duel.Engine`, they are used as well.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.numbers import real_number
from fieldcorr.duel import _kernels
from fieldcorr.duel.events import Answer
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

Habit = Literal["honest", "left", "coin"]
Row = dict[str, Any]
LAST = 10
"""Played pairs whose regret is averaged in a table of trials."""

_LAPSES = 1 << 20  # streams of random numbers of a trial


@dataclass(frozen=True)
class Rater:
    """A simulated person, who compares two values with Gaussian noise on either."""

    noise: float = 0.5  # standard deviation of the noise on a value
    lapse: float = 0.0  # chance that an answer is a coin toss: half as many are flipped
    ties: float = 0.0  # "same" is said when the noisy values differ by less than this
    drift: float = 0.0  # angle, per 100 answers, by which the utility turns towards another one
    habit: Habit = "honest"  # or says "left" always, or tosses a coin always

    def __post_init__(self) -> None:
        """Refuse what is no person."""
        for name in ("noise", "lapse", "ties", "drift"):
            value = real_number(getattr(self, name), name, DuelError)
            if not value >= 0.0 or (name == "noise" and value == 0.0) or value == math.inf:
                raise DuelError(f"{name}: {value} is not positive")
        if self.lapse > 1.0:
            raise DuelError(f"lapse: {self.lapse} is not in [0, 1]")
        if self.habit not in get_args(Habit):
            raise DuelError(f"habit: {self.habit!r} is not one of {', '.join(get_args(Habit))}")

    @property
    def plain(self) -> bool:
        """Whether there is nothing but noise, as the compiled trials have it."""
        return self.habit == "honest" and not (self.lapse or self.ties or self.drift)

    def answer(self, left: float, right: float, seed: int, step: int) -> Answer:
        """Compare two values at a step; the same every time."""
        chance = float(_kernels.uniform(seed, step * _kernels.STRIDE + _kernels.ANSWER))
        lapses = float(_kernels.uniform(int(_kernels.trial_seed(seed, _LAPSES)), step)) < self.lapse
        if self.habit == "left":
            return "left"
        if self.habit == "coin" or lapses:
            return "left" if chance < 0.5 else "right"
        if chance < self._exceeds(left - right):
            return "left"
        return "right" if chance >= 1.0 - self._exceeds(right - left) else "same"

    def _exceeds(self, difference: float) -> float:
        """Return the chance that a noisy difference is above the band of ties."""
        return 0.5 * math.erfc((self.ties - difference) / (2.0 * self.noise))


@dataclass(frozen=True, eq=False)
class Trial:
    """One trial: stepwise regret (T,), a row of figures at every checkpoint, and its seconds."""

    eps: NDArray[np.float32]
    rows: list[Row]
    seconds: float


def play(
    engine: Any,
    utility: NDArray[np.float64],
    rater: Rater,
    *,
    seed: int,
    checkpoints: Iterable[int],
    other: NDArray[np.float64] | None = None,
    observe: Callable[[Any, NDArray[np.float64]], Mapping[str, object]] | None = None,
) -> Trial:
    """Let a simulated person answer an engine until the last checkpoint.

    ``seed`` decides the answers. ``other`` (K,) is what a drifting utility turns to; regret is
    that of the utility as it is at the time. ``observe(engine, utility)`` adds to the rows.
    """
    steps, rows, began = sorted(checkpoints), [], time.perf_counter()
    eps = np.zeros(steps[-1], dtype=np.float32)
    for step in range(steps[-1]):
        wanted = _turned(utility, other, rater.drift * step / 100.0)
        best = int(np.argmax(wanted))
        if getattr(engine, "done", False):
            i = j = engine.best
        else:
            i, j = engine.ask()
            _tell(engine, i, j, rater.answer(wanted[i], wanted[j], seed, step), seed, step)
        eps[step] = _kernels.pair_regret(wanted, best, i, j, rater.noise)
        if step + 1 in steps:
            found = {"t": step + 1, "eps": float(eps[max(0, step + 1 - LAST) : step + 1].mean())}
            found |= _standing(engine, wanted, best, rater.noise)
            rows.append(found if observe is None else found | dict(observe(engine, wanted)))
    return Trial(eps, rows, time.perf_counter() - began)


def _turned(
    utility: NDArray[np.float64], other: NDArray[np.float64] | None, angle: float
) -> NDArray[np.float64]:
    if other is None or angle == 0.0:
        return utility
    return np.asarray(math.cos(angle) * utility + math.sin(angle) * other)


def _tell(engine: Any, i: int, j: int, answer: Answer, seed: int, step: int) -> None:
    """Pass an answer on; an engine that knows no ties is told a coin toss."""
    if answer == "same" and not hasattr(engine, "tie"):
        toss = _kernels.uniform(int(_kernels.trial_seed(seed, _LAPSES + 1)), step)
        answer = "left" if toss < 0.5 else "right"
    if answer == "same":
        engine.tie(i, j)
    else:
        engine.tell(*((i, j) if answer == "left" else (j, i)))


def _standing(engine: object, utility: NDArray[np.float64], best: int, noise: float) -> Row:
    """Return what the engine would return now: NaN for what it does not tell."""
    nan = math.nan
    arm = getattr(engine, "best", None)
    regret = nan if arm is None else float(_kernels.regret(utility, best, int(arm), noise))
    survivors = getattr(engine, "survivors", None)
    if survivors is None:
        return {"regret": regret, "left": nan, "kept": nan}
    if isinstance(survivors, Survivors):
        return {
            "regret": regret,
            "left": len(survivors),
            "kept": float(survivors.find(best) is not None),
        }
    arms = np.asarray(survivors.arm)
    return {"regret": regret, "left": len(arms), "kept": float(best in arms)}
