"""What is stated of a posterior: explanations of doubtful answers, and linear response in each.

In go the answers and the normal form of every model of the bank; out come weighted normals.

An answer that was meant says something, a lapse says nothing. Where either is likely and they
disagree, the posterior has two humps and no normal form has its deviations: it is split in two, the
answer taken as meant in one and as a lapse in the other, and again, as long as that matters.

Within each, the covariance of an exact posterior is the derivative of its mean by a linear tilt
t . w of the log density. The means of expectation propagation are good, so their derivative is a
better covariance than that of the normal form, which takes its factors for given.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import _bayes_kernels as kernels

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

DOUBT = 0.002
"""Weight of an explanation times :attr:`Explanation.doubts`, from which on it is split."""

EXPLANATIONS = 64
"""Most explanations over the bank."""

_SWEEPS = 2
_CLEAR = 1e-3  # part of a variance between meant and lapse that is no doubt
_RARE = 1e-3  # weight of an explanation that is left out
_LEAST = 0.25  # factor of a variance; 0.7 was the least seen in a thousand problems


@dataclass(frozen=True, eq=False)
class Answers:
    """N answers as a model sees them, with the features of ``columns`` times ``scale`` (F,).

    ``arms`` (N, 2) are winner and loser, ``keep`` (N,) is how much each answer counts.
    """

    features: Float64s
    columns: Int64s
    scale: Float64s
    arms: Int64s
    keep: Float64s

    @cached_property
    def directions(self) -> Float64s:
        """Features of the winner less those of the loser, (N, F)."""
        seen = self.features[self.arms[..., None], self.columns] * self.scale
        return np.asarray(seen[:, 0] - seen[:, 1])


@dataclass(frozen=True, eq=False)
class Explanation:
    """A normal form: ``mean`` (F,), ``root`` (F, F) of the covariance, ``sites`` (N, 2).

    ``kinds`` (N,) and ``raters`` (N, 3) are those of the answers, FIXED for a lapse and with a
    lapse rate of 0 for what was meant; ``odds`` is the log probability of these lapses.
    """

    answers: Answers
    mean: Float64s
    root: Float64s
    sites: Float64s
    kinds: Int64s
    raters: Float64s
    odds: float = 0.0

    @cached_property
    def _inward(self) -> Float64s:
        return np.asarray(np.einsum("nf,fg->ng", self.answers.directions, self.root))

    @cached_property
    def _spread(self) -> Float64s:
        """Deviation of every difference, (N,)."""
        return np.asarray(np.sqrt(np.einsum("ng,ng->n", self._inward, self._inward)))

    @cached_property
    def _live(self) -> Int64s:
        """Answers that say something."""
        rest = 1.0 - self.sites[:, 0] * self._spread**2
        live = (self.kinds != kernels.FIXED) & (self._spread > 1e-6) & (rest > 1e-6)
        return np.flatnonzero(live)

    @cached_property
    def _cavity(self) -> tuple[Float64s, Float64s]:
        """Mean and variance of the difference of every live answer, without it."""
        directions, (tau, nu) = self.answers.directions[self._live], self.sites[self._live].T
        variance = self._spread[self._live] ** 2
        rest = 1.0 - tau * variance
        middle = np.einsum("nf,f->n", directions, self.mean)
        return (middle - nu * variance) / rest, variance / rest

    def _moments(self, raters: Float64s) -> Float64s:
        """Return log Z and its derivatives of every live answer, (5, live)."""
        out = np.empty((self._live.size, 5))
        kernels.all_moments(*self._cavity, self.kinds[self._live], raters[self._live], out)
        return out.T

    @cached_property
    def _slopes(self) -> Float64s:
        return self._moments(self.raters)

    @cached_property
    def _unit(self) -> Float64s:
        return np.asarray(self._inward[self._live] / self._spread[self._live, None])

    @cached_property
    def evidence(self) -> float:
        """Log probability of answers and lapses, up to a constant."""
        centre, cavity = self._cavity
        log_z, first, second = self._slopes[:3]
        tilted = _log_partition(centre + cavity * first, cavity + cavity**2 * second)
        scale = log_z + _log_partition(centre, cavity) - tilted
        middle = np.einsum("nf,f->n", self.answers.directions, self.mean)
        square = np.einsum("f,f->", self.mean, self.mean)
        square += np.einsum("n,n->", self.sites[:, 0], middle**2)
        whole = np.linalg.slogdet(self.root)[1] + 0.5 * square
        return float(self.odds + whole + np.einsum("n,n->", self.answers.keep[self._live], scale))

    @cached_property
    def doubts(self) -> Float64s:
        """How much every live answer is in doubt together with others, (live,).

        That is the part of the variance of its difference that lies between meant and lapse, times
        those of all answers by their squared correlation. A normal form has the variance of one
        such answer right, but not of several that were meant, or were not, for one reason.
        """
        log_z, first = self._moments(self.raters * [1.0, 0.0, 1.0])[:2]
        meant = (1.0 - self.raters[self._live, 1]) * np.exp(log_z - self._slopes[0])
        step = self._cavity[1] * first / self._spread[self._live]
        between = self.answers.keep[self._live] * meant * (1.0 - meant) * step**2
        some = np.flatnonzero(between > _CLEAR)  # few of many answers
        alike = np.einsum("nf,mf->nm", self._unit[some], self._unit[some])
        out = np.zeros(between.size)
        out[some] = between[some] * np.einsum("nm,m->n", alike**2, between[some])
        return out

    def split(self) -> "list[Explanation]":
        """Return two explanations of the most doubtful answer: it was meant, or it was a lapse."""
        n = int(self._live[np.argmax(self.doubts)])
        noise, lapse, band = self.raters[n]
        log_idle = kernels.moments(0.0, 0.0, int(self.kinds[n]), noise, 0.0, band)[0]
        keep = float(self.answers.keep[n])
        raters, kinds = self.raters.copy(), self.kinds.copy()
        raters[n, 1], kinds[n] = 0.0, kernels.FIXED
        meant = replace(self, raters=raters, odds=self.odds + keep * math.log1p(-lapse))
        lapsed = replace(self, kinds=kinds, odds=self.odds + keep * (math.log(lapse) + log_idle))
        return [meant._settled(n), lapsed._settled(n)]

    def _settled(self, n: int) -> "Explanation":
        """Return it with factors that know how answer n is taken."""
        mean, root, sites = self.mean.copy(), self.root.copy(), self.sites.copy()
        told, work = self.answers, np.empty(mean.size)
        if self.kinds[n] == kernels.FIXED:
            kernels.change_site(mean, root, told.directions[n], *-sites[n], work)
            sites[n] = 0.0
        kernels.refresh(0, _SWEEPS * len(sites), told.features, told.columns, told.scale, told.arms,
                        self.kinds, self.raters, told.keep, sites, mean, root)  # fmt: skip
        return replace(self, mean=mean, root=root, sites=sites)

    @property
    def responding_root(self) -> Float64s:
        """A root (F, F) of the covariance by linear response.

        In units of the deviation of each difference of utilities, with their correlations C, a tilt
        changes their means by y = C a + (its own part) and their variances by -z, z = (C * C) b;
        factors change by (a, b) = T (y, z).
        """
        if not self._live.size:
            return self.root
        unit = self._unit
        follows = self._follows() * self.answers.keep[self._live, None, None]
        t = np.linalg.solve(np.eye(2) + follows, follows)
        alike = np.einsum("nf,mf->nm", unit, unit)
        system = -np.block([[t[:, i, j, None] * alike ** (j + 1) for j in (0, 1)] for i in (0, 1)])
        system[np.diag_indices(len(system))] += 1.0
        tilted = np.concatenate([t[:, i, :1] * unit for i in (0, 1)])
        factors = np.linalg.solve(system, tilted)[: len(unit)]
        more = np.einsum("nf,ng->fg", unit, factors)
        values, vectors = np.linalg.eigh(0.5 * (more + more.T))
        stretch = vectors * np.sqrt(np.maximum(1.0 + values, _LEAST))
        return np.asarray(np.einsum("ef,fg,hg->eh", self.root, stretch, vectors, optimize=True))

    def _follows(self) -> Float64s:
        """Return (live, 2, 2): how factors follow slope and precision of all the others together.

        They would not, were the answer times the others normal: what counts is its skewness and
        excess. Its mean is ``off`` and its variance ``wide``, 0 and 1 if the answer counts in full.
        """
        spread, (centre, cavity) = self._spread[self._live], self._cavity
        first, second, third, fourth = self._slopes[1:]
        middle = np.einsum("nf,f->n", self.answers.directions[self._live], self.mean)
        off = (centre + cavity * first - middle) / spread
        wide = (cavity + cavity**2 * second) / spread**2
        lean = third * (cavity / spread) ** 3 / wide**2
        flat = 0.5 * fourth * (cavity / spread) ** 4 / wide**2
        upper = -off * lean, off**2 * lean - 0.5 * lean * wide + off * flat
        return np.array([upper, (-lean, off * lean + flat)]).transpose(2, 0, 1)


@dataclass(frozen=True, eq=False)
class Normal:
    """What is believed with some weight: a model of the bank, mean (F,), and root (F, F)."""

    model: int
    weight: float
    mean: Float64s
    root: Float64s


def stated(bank: Sequence[tuple[float, Explanation]]) -> list[Normal]:
    """Return what is stated of a bank of models, of each its weight and its normal form."""
    models, found = [*range(len(bank))], [normal for _, normal in bank]
    weight = np.array([share for share, _ in bank])
    while len(found) < EXPLANATIONS:
        doubt = weight * [one.doubts.max(initial=0.0) for one in found]
        most = int(np.argmax(doubt))
        if doubt[most] < DOUBT:
            break
        found[most : most + 1] = found[most].split()
        models.insert(most, models[most])
        own = np.array(models) == models[most]
        logs = np.array([one.evidence for one in itertools.compress(found, own)])
        part = np.exp(logs - logs.max())
        weight = np.insert(weight, most, 0.0)
        weight[own] = bank[models[most]][0] * part / part.sum()
    likely = np.flatnonzero(weight > _RARE)
    weight /= weight[likely].sum()
    return [
        Normal(models[n], float(weight[n]), found[n].mean, found[n].responding_root) for n in likely
    ]


def _log_partition(mean: Float64s, variance: Float64s) -> Float64s:
    return np.asarray(0.5 * (np.log(variance) + mean**2 / variance))
