"""Is the person answering, or tossing coins? What the answers of a session say about the rater.

Three explanations of the answers are compared by their evidence: *honest*, a utility over the arms
with the bank of priors of :mod:`fieldcorr.correlation.features`; *chance*, 1/2 for every answer;
*one side*, an unknown share of lefts. If the rater is honest, the odds of another explanation ever
exceed 1 / a with probability a at most (Ville's inequality), so a warning at odds
of 40 : 1 is a false alarm in at most one of 40 sessions, as far as the priors fit the rater.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.features import features_of, models_of
from fieldcorr.correlation.sources import CorrelationSource
from fieldcorr.duel._rater_kernels import explain
from fieldcorr.duel.events import Answer
from fieldcorr.duel.journal import JournalContent

Shown = tuple[int, int, Answer]
"""Left arm, right arm, and the answer: "left", "right" or "same"."""

LEAST, MOST = 10, 80
"""Answers before which nothing is said, and that are looked at."""

CHANCE, ONE_SIDE = math.log(40.0), math.log(400.0)
"""Log odds against an honest rater at which a warning is given; one side shows at once."""

DOUBT = 2.0
"""Log odds in favour of an honest rater below which questions are added to find out."""

_AMPLITUDES = (1.0, 2.0)  # prior standard deviation of the utility, squared
_NOISE = 0.5  # variance of the noise on a difference
_NUGGET = 1e-6


@dataclass(frozen=True)
class RaterFigures:
    """What the answers say about the rater; NaN or None where they are too few to say anything."""

    answers: int  # comparisons that count, without rankings
    same: int  # of them, without a difference
    left: int  # of the others, for the left side
    repeated: int  # pairs with a winner that were compared again with a winner
    agreed: int  # of them, answered the same way
    foreseen: float  # share of the first 80 that a model of all the others would have given
    log_odds_chance: float  # of chance against an honest rater
    log_odds_side: float  # of one side against an honest rater
    extremes: tuple[int, int] = (-1, -1)  # best and worst of the arms shown, by the model

    @property
    def verdict(self) -> Literal["chance", "one side"] | None:
        """What the answers look like, if not like those of an honest rater."""
        if self.log_odds_side > max(ONE_SIDE, self.log_odds_chance):
            return "one side"
        return "chance" if self.log_odds_chance > CHANCE else None

    @property
    def doubtful(self) -> bool:
        """Whether more should be known about the rater."""
        return self.log_odds_chance > -DOUBT

    @property
    def warning(self) -> str | None:
        """A sentence for whoever leads the session, or None."""
        decisive = self.answers - self.same
        if self.verdict == "one side":
            return (
                f"the answers look like one side: {self.left} of {decisive} were for the left one; "
                "what the session narrows to says nothing"
            )
        if self.verdict == "chance":
            return (
                f"the {decisive} answers look like chance: no utility over the configurations "
                "explains them; what the session narrows to says nothing"
            )
        return None

    def lines(self, seconds: float | None = None) -> list[str]:
        """Return the figures in words, for a person; ``seconds`` is the time of an answer."""
        decisive = self.answers - self.same
        if not decisive:
            return []
        text = [f"left {self.left} of {decisive}, same {self.same}"]
        if self.repeated:
            text.append(f"{self.agreed} of {self.repeated} repeated pairs answered alike")
        if math.isfinite(self.foreseen):
            text.append(f"{100 * self.foreseen:.0f} % of the answers fit the others")
            odds = math.exp(min(-self.log_odds_chance, 20.0))
            text.append(f"odds {odds:.2g} : 1 against chance")
        if seconds is not None:
            text.append(f"an answer took {seconds:.0f} s")
        return text


def rater_figures(source: CorrelationSource, shown: Sequence[Shown]) -> RaterFigures:
    """Return what answers in their order say about who gave them."""
    decisive = [(i, j, answer) for i, j, answer in shown if answer != "same"]
    left = sum(answer == "left" for _, _, answer in decisive)
    counts = len(shown), len(shown) - len(decisive), left, *_agreement(decisive)
    # Arms that are not listed have no features from which a model of the answers could be made.
    if len(decisive) < LEAST or source.via == "rules":
        return RaterFigures(*counts, math.nan, math.nan, math.nan)
    judged = decisive[:MOST]
    winner = np.array([i if answer == "left" else j for i, j, answer in judged])
    loser = np.array([j if answer == "left" else i for i, j, answer in judged])
    honest, foreseen, value = _honest(source, winner, loser)
    lefts, n = sum(answer == "left" for _, _, answer in judged), len(judged)
    arms = np.concatenate((winner, loser))
    return RaterFigures(
        *counts,
        foreseen,
        -n * math.log(2.0) - honest,
        _one_side(lefts, n - lefts) - honest,
        (int(arms[value.argmax()]), int(arms[value.argmin()])),
    )


def spent_seconds(content: JournalContent) -> dict[int, float]:
    """Return the time from the line before, s, of every line of a journal but the first."""
    times = [(content.header["line"], content.header["time"])]
    times += [(record["line"], record["time"]) for record in content.records]
    parsed = [(line, datetime.fromisoformat(time)) for line, time in times]
    return {line: (now - before).total_seconds() for (_, before), (line, now) in pairwise(parsed)}


def answer_seconds(content: JournalContent) -> float | None:
    """Return the median time that an answer took, s; None without any."""
    spent = spent_seconds(content)
    taken = [spent[record["line"]] for record in content.records if record["event"] == "duel"]
    return median(taken) if taken else None


def _agreement(decisive: Sequence[Shown]) -> tuple[int, int]:
    """Return how many answers were about a pair answered before, and how many agreed with it."""
    winners: dict[frozenset[int], int] = {}
    repeated = agreed = 0
    for i, j, answer in decisive:
        pair, winner = frozenset((i, j)), i if answer == "left" else j
        if pair in winners:
            repeated += 1
            agreed += winners[pair] == winner
        winners[pair] = winner
    return repeated, agreed


def _one_side(left: int, right: int) -> float:
    """Return the log evidence of a share of lefts with prior Beta(1/2, 1/2)."""
    half = math.lgamma(0.5)
    top = math.lgamma(left + 0.5) + math.lgamma(right + 0.5) - 2.0 * half
    return top - math.lgamma(left + right + 1.0)


def _honest(
    source: CorrelationSource, winner: NDArray[np.int64], loser: NDArray[np.int64]
) -> tuple[float, float, NDArray[np.float64]]:
    """Return the log evidence of a utility, the share foreseen, and the means of all 2 n arms."""
    features, evidence, foreseen, values = features_of(source), [], [], []
    arms, n = np.concatenate((winner, loser)), len(winner)
    for columns, scale in models_of(features.groups).values():
        rows = scale * features.values[arms[:, None], columns]
        # Of utilities with utilities, then with differences, then of differences.
        similar = np.einsum("if,jf->ij", rows, rows) / _NOISE
        beside = similar[:, :n] - similar[:, n:]
        gram = beside[:n] - beside[n:]
        for amplitude in _AMPLITUDES:
            alpha, without = np.empty((2, n))
            evidence.append(explain(amplitude * gram + _NUGGET * np.eye(n), alpha, without))
            foreseen.append(np.mean(without > 0.0))
            values.append(amplitude * np.einsum("ki,i->k", beside, alpha))
    top = max(evidence)
    share = np.exp(np.array(evidence) - top)
    total = top + math.log(share.mean())
    share /= share.sum()
    value = np.einsum("m,mk->k", share, np.array(values))
    return total, float(np.einsum("m,m->", share, np.array(foreseen))), value
