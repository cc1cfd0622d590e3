"""Small problems of inference whose exact posterior can be had, for tests and `scripts/study`."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import _bayes_kernels as kernels
from fieldcorr.duel.statement import Answers, Explanation, stated

Float64s = NDArray[np.float64]

_GRID = np.linspace(-12.0, 12.0, 4001)


def normal_below(x: Float64s) -> Float64s:
    """Return the normal distribution function."""
    return np.asarray([0.5 * math.erfc(-v / math.sqrt(2.0)) for v in np.ravel(x)]).reshape(x.shape)


def chance(u: Float64s, kind: int, noise: float, lapse: float, band: float) -> Float64s:
    """Return P(answer | u), the definition."""
    win = normal_below((u - band) / noise)
    tie = normal_below((band - np.abs(u)) / noise) - normal_below((-band - np.abs(u)) / noise)
    idle = 2.0 * normal_below(np.array([-band / noise]))[0]
    if kind == kernels.WIN:
        return np.asarray((1.0 - lapse) * win + lapse * idle / 2.0)
    return np.asarray((1.0 - lapse) * tie + lapse * (1.0 - idle))


@dataclass(frozen=True)
class Problem:
    """Answers to 30 duels of 8 arms with 4 features, and the rater who gave them."""

    x: Float64s
    arms: NDArray[np.int64]
    kinds: NDArray[np.int64]
    rater: tuple[float, float, float]
    keep: Float64s

    @classmethod
    def made(cls, seed: int, lapse: float) -> "Problem":
        """Draw arms, a utility, pairs and answers."""
        rng = np.random.default_rng(seed)
        x = 0.5 * rng.standard_normal((8, 4))  # rows of length 1, like features
        arms = np.array([rng.permutation(8)[:2] for _ in range(30)])
        truth = x @ rng.standard_normal(4)
        seen = np.where(rng.random(30) < lapse, 0.0, truth[arms[:, 0]] - truth[arms[:, 1]])
        gap = seen + 0.7 * rng.standard_normal(30)
        kinds = np.where(np.abs(gap) < 0.3, kernels.TIE, kernels.WIN)
        arms = np.where((gap < 0.0)[:, None], arms[:, ::-1], arms)
        return cls(x, arms, kinds, (0.7, lapse, 0.3), np.ones(30))

    @property
    def directions(self) -> Float64s:
        """Features of the winner less those of the loser, (30, 4)."""
        return np.asarray(self.x[self.arms[:, 0]] - self.x[self.arms[:, 1]])

    @property
    def raters(self) -> Float64s:
        """Noise, lapse rate and band of every answer, (30, 3)."""
        return np.tile(self.rater, (30, 1))

    def propagated(self, start: Float64s, sites: Float64s) -> Explanation:
        """Return the normal form where nothing changes; ``start`` is the mean of the prior."""
        mean, root, sites = start.copy(), np.eye(4), sites.copy()
        for n in np.argsort(-sites[:, 0]):
            kernels.change_site(mean, root, self.directions[n], *sites[n], np.empty(4))
        answers = Answers(self.x, np.arange(4), np.ones(4), self.arms, self.keep)
        seen = answers.features, answers.columns, answers.scale, self.arms
        told = self.kinds, self.raters, self.keep, sites
        kernels.refresh(0, 30 * 60, *seen, *told, mean, root)
        return Explanation(answers, mean, root, sites, self.kinds, self.raters)

    def stated(self) -> tuple[Float64s, Float64s]:
        """Return means and deviations of x . w (8,) that an engine states."""
        found = stated([(1.0, self.propagated(np.zeros(4), np.zeros((30, 2))))])
        weight = np.array([normal.weight for normal in found])
        each = np.array([self.x @ normal.mean for normal in found])
        inward = np.array([self.x @ normal.root for normal in found])
        mean = weight @ each
        return mean, np.sqrt(weight @ ((inward**2).sum(axis=2) + each**2) - mean**2)

    @cached_property
    def _logs(self) -> Float64s:
        """Log probability of every kind of answer, (2, len(_GRID))."""
        either = [chance(_GRID, kind, *self.rater) for kind in (kernels.WIN, kernels.TIE)]
        return np.log(np.maximum(either, 1e-300))

    def log_density(self, w: Float64s) -> Float64s:
        """Return the log density of weights (4, S), up to a constant: the definition."""
        u = self.directions @ w
        logs: Float64s = -0.5 * (w**2).sum(axis=0)
        for gap, kind in zip(u, self.kinds, strict=True):
            logs += np.interp(gap, _GRID, self._logs[kind])
        return logs

    def weighed(self, samples: int) -> tuple[Float64s, Float64s, float]:
        """Return means and deviations of x . w (8,) by importance, and how many samples count.

        Samples are of the normal form, and of two that are wider: for humps that it has not.
        """
        normal = self.propagated(np.zeros(4), np.zeros((30, 2)))
        rng, widths = np.random.default_rng(0), np.array([1.0, 1.8, 3.0])
        y = rng.standard_normal((4, samples)) * widths[np.arange(samples) % 3]
        square = (y**2).sum(axis=0)
        drawn = np.log((np.exp(-0.5 * square / widths[:, None] ** 2).T / widths**4).sum(axis=1))
        w = normal.mean[:, None] + normal.root @ y
        logs = self.log_density(w) - drawn
        weight = np.exp(logs - logs.max())
        weight /= weight.sum()
        u = self.x @ w
        centre = u @ weight
        spread = np.sqrt((u - centre[:, None]) ** 2 @ weight)
        return centre, spread, 1.0 / float((weight**2).sum())

    def walked(self) -> Float64s:
        """Return x . w, (8, 400, steps), of 400 long random walks over the exact posterior."""
        rng = np.random.default_rng(3)
        w = rng.standard_normal((4, 400))
        density, kept = self.log_density(w), []
        for step in range(2000):
            trial = w + 0.6 * rng.standard_normal(w.shape)
            other = self.log_density(trial)
            taken = np.log(rng.random(w.shape[1])) < other - density
            w, density = np.where(taken, trial, w), np.where(taken, other, density)
            if step >= 300 and step % 5 == 0:
                kept.append(self.x @ w)
        return np.stack(kept, axis=2)
