"""Peers that know the correlation: Thompson sampling with a linear model of the unit rows.

Both keep a normal posterior over weights w, where the utility of arm k is z_k . w and r = Z Z'; z
are the features of r (:mod:`fieldcorr.correlation.features`), so any source will do.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.features import features_of
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import Event
from fieldcorr.duel.session import ALGORITHMS
from fieldcorr.duel.survivors import Survivors

Float64s = NDArray[np.float64]


@dataclass(eq=False)
class Weights:
    """A normal distribution of weights."""

    mean: Float64s
    covariance: Float64s

    def condition(self, x: Float64s, gain: float, shrink: float) -> None:
        """Move the mean by gain V x and the covariance V by -shrink V x x' V."""
        side = np.einsum("fg,g->f", self.covariance, x)
        self.mean += gain * side
        self.covariance -= shrink * np.einsum("f,g->fg", side, side)


class ThompsonEngine(Engine):
    """Two arms that maximise two posterior samples of a linear utility."""

    _learnt: Weights

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again: nothing."""
        return {}

    @property
    def _rows(self) -> Float64s:
        features = features_of(self.source)
        return features.values[:, features.groups["field"]]

    def _blank(self) -> Weights:
        size = self._rows.shape[1]
        return Weights(np.zeros(size), np.eye(size))

    def _propose(self) -> tuple[int, int]:
        rng = np.random.default_rng([self.seed, self._course.step])
        root = np.linalg.cholesky(self._learnt.covariance)
        allowed, chosen = self._active.copy(), []
        for _ in range(2):
            weights = self._learnt.mean + np.einsum("fg,g->f", root, rng.standard_normal(len(root)))
            value = np.einsum("kf,f->k", self._rows, weights)
            chosen.append(int(np.where(allowed, value, -np.inf).argmax()))
            allowed[chosen] = False
        return chosen[0], chosen[1]

    def _ranked(self) -> Survivors:
        """All arms, ranked by their mean, with one standard deviation as radius."""
        rows, learnt = self._rows, self._learnt
        mean = np.einsum("kf,f->k", rows, learnt.mean)
        variance = np.einsum("kf,fg,kg->k", rows, learnt.covariance, rows, optimize=False)
        count = np.full(len(rows), float(self._course.duels))
        return Survivors.ranked(self._active, mean, count, np.sqrt(np.maximum(variance, 0.0)))


class LinearThompson(ThompsonEngine):
    """Probit regression on differences of features: P(i beats j) = Phi((u_i - u_j) / 0.71).

    One moment-matching step per answer. A tie is no news.
    """

    def _learn(self, event: Event) -> None:
        for winner, loser, tie in event.comparisons():
            if tie:
                continue
            x = (self._rows[winner] - self._rows[loser]) / math.sqrt(0.5)
            mean = float(np.einsum("f,f->", x, self._learnt.mean))
            spread = 1.0 + float(np.einsum("f,fg,g->", x, self._learnt.covariance, x))
            z = mean / math.sqrt(spread)
            likelihood = max(0.5 * math.erfc(-z / math.sqrt(2.0)), 1e-300)
            ratio = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / likelihood
            self._learnt.condition(x, ratio / math.sqrt(spread), ratio * (z + ratio) / spread)


class KernelSelfSparring(ThompsonEngine):
    """KernelSelfSparring (Sui, Zhuang, Burdick and Yue, UAI 2017).

    Gaussian-process regression, with r as kernel, of what each arm won: 1/2 or -1/2 in a duel.
    """

    def _learn(self, event: Event) -> None:
        for winner, loser, tie in event.comparisons():
            for arm, won in ((winner, 0.5), (loser, -0.5)):
                x = self._rows[arm]
                mean = float(np.einsum("f,f->", x, self._learnt.mean))
                spread = 0.25 + float(np.einsum("f,fg,g->", x, self._learnt.covariance, x))
                gain = ((0.0 if tie else won) - mean) / spread
                self._learnt.condition(x, gain, 1.0 / spread)


ENGINES: Mapping[str, type[Engine]] = {
    **ALGORITHMS,
    **{kind.__name__: kind for kind in (LinearThompson, KernelSelfSparring)},
}
"""Every engine by its name: those of sessions, and these peers."""
