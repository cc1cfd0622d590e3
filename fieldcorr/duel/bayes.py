"""BayesDuel: a posterior over utilities, learnt from duels by expectation propagation.

The utility of arm k is x_k . w with features x_k (:mod:`fieldcorr.correlation.features`) and
weights w of a normal prior; an answer has a probit likelihood with lapses and a band of ties. A
bank of priors over the groups of features is weighted by how well each foresaw the answers.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.features import models_of
from fieldcorr.correlation.numbers import real_number, whole_number
from fieldcorr.correlation.sources import Correlations
from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel import _bayes_kernels as kernels
from fieldcorr.duel.arms import Arms, arms_of
from fieldcorr.duel.engine import Engine, Shared, Standing
from fieldcorr.duel.events import Event
from fieldcorr.duel.lesson import Lesson
from fieldcorr.duel.statement import Answers, Explanation, Normal, stated
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

SAMPLES = 128
"""Posterior samples behind every statement about the best arm."""

TRIED = 8
"""Posterior samples behind a question."""

CANDIDATES = 4
"""Arms among which the most informative pair is asked."""

ODDS = {"broad": 2.0}
"""Prior odds of the models of the bank, 1 if not named."""

DARING = {"field": 1.0, "current": 1.0, "broad": 0.85}
"""Part of their deviation that samples of a model keep to when a question is made.

In a linear model every answer tells about all arms. Elsewhere, with all of the deviation, many
questions go to corners that nobody has looked at; with half of it, a session settles on what is
only the best thereabouts.
"""

_DARING = 0.7  # of the models that are not named

SEARCHED = 8
"""Samples whose best arm is searched among all where arms are too many to list: a pass for each."""

_REFRESHED = 10
_PATIENCE = 10.0
_UPPER = 1.64  # standard deviations: 95 % of a normal are below
_SAMPLED, _SIDES, _TRIED = 0, 1, 2  # streams of random numbers

NOISE = np.sqrt([0.125, 0.25, 0.5, 1.0, 2.0])
LAPSE = np.array([0.0, 0.05, 0.15, 0.4, 0.9])
BAND = np.array([0.0, 0.1, 0.3, 0.8])  # of the noise
_GRID = np.stack([axis.ravel() for axis in np.meshgrid(NOISE, LAPSE, BAND, indexing="ij")], axis=1)
_GRID[:, 2] *= _GRID[:, 0]
_GRID_LOG = _GRID.copy()
_GRID_LOG[:, 0] = np.log(_GRID[:, 0])  # noise is averaged by its logarithm
_GRID_PRIOR = np.log(
    np.einsum(
        "a,b,c->abc",
        [0.1, 0.2, 0.4, 0.2, 0.1],
        [0.45, 0.3, 0.15, 0.07, 0.03],
        [0.4, 0.3, 0.2, 0.1],
    ).ravel()
)


@dataclass(eq=False)
class Posterior:
    """Weights of one model: normal, with ``sites`` (N, 2), tau and nu of every answer.

    ``root`` R (F, F) gives the covariance R R'. It turns with the basis of the features, as a
    Cholesky factor does not: samples m + R y do not depend on how arms are numbered.
    """

    mean: Float64s
    root: Float64s
    sites: Float64s

    def copy(self) -> "Posterior":
        """Return a posterior that learns on its own."""
        return Posterior(self.mean.copy(), self.root.copy(), self.sites.copy())


@dataclass(frozen=True, eq=False)
class Draws:
    """Samples of the utility after some step: weights (F, S) and the best arm of each."""

    step: int
    weights: Float64s
    noise: Float64s  # (S,), of an answer, in the model that the sample is from
    arm: Int64s
    looked: Int64s  # (L,) arms that were looked at, ascending: all where they are listed
    upper: Float64s  # (L,), what the utility of an arm is below in 95 % of the samples
    exact: int  # so many of the samples have their best among all arms


@dataclass(eq=False)
class Belief:
    """All that was learnt: answers, raters, and the posterior of every model.

    ``arms`` (N, 2) and ``kinds`` (N,) are the answers, ``who`` (N,) who gave them, as numbers in
    ``raters``; ``grid`` (raters, models, G) the log weight of noise, lapse rate and band.
    ``stated`` and ``draws`` are made when something is to be said.
    """

    posteriors: list[Posterior]
    grid: Float64s
    arms: Int64s
    kinds: Int64s
    who: Int64s
    evidence: Float64s
    raters: list[str] = field(default_factory=lambda: [""])
    rater: int = 0
    turn: int = 0
    stated: list[Normal] | None = None
    draws: Draws | None = None

    def copy(self) -> "Belief":
        """Return a belief that learns on its own; arrays that are never changed are shared."""
        return replace(
            self,
            posteriors=[posterior.copy() for posterior in self.posteriors],
            grid=self.grid.copy(),
            raters=[*self.raters],
            stated=None,
        )

    def __deepcopy__(self, memo: dict[int, object]) -> "Belief":
        return self.copy()


class BayesDuel(Engine):
    """Duels that learn a utility.

    Parameters
    ----------
    correlation, horizon, seed, whitelist, via
        As for :class:`fieldcorr.duel.engine.Engine`.
    level : float
        Of the credible set that :attr:`survivors` returns, and of its intervals.
    stop : (float, float), optional
        (p, eps): the session is done when, with probability p, no arm would beat :attr:`best` in
        more than 1/2 + eps of their duels.
    forgetting : float
        By how much an answer counts less with every later one, for a rater who drifts; 0 is never.
    chain : bool
        Compare what was just tried with one new arm: one trial per duel instead of two.
    prior : mapping, optional
        The :attr:`lesson` of an earlier session of the same or of another patient.
    prior_weight : float
        How much an answer of that session counts, in [0, 1], against one of this.

    Notes
    -----
    Utilities are in units of their prior standard deviation, and relative to the average arm.
    """

    takes_whole = True
    kept_as = "likely the best"
    estimates = "utility"
    _learnt: Belief

    def __init__(
        self,
        correlation: Correlations,
        *,
        horizon: int,
        level: float = 0.9,
        stop: Iterable[float] | None = None,
        forgetting: float = 0.0,
        chain: bool = False,
        prior: Mapping[str, object] | None = None,
        prior_weight: float = 1.0,
        **shared: Unpack[Shared],
    ) -> None:
        self.level = _part(level, "level")
        self.stop = None if stop is None else _stopping(stop)
        self.forgetting = real_number(forgetting, "forgetting", DuelError)
        if not 0.0 <= self.forgetting < 1.0:
            raise DuelError(f"forgetting: {forgetting!r} is not in [0, 1)")
        if not isinstance(chain, bool):
            raise DuelError(f"chain: {chain!r} is not true or false")
        self.chain = chain
        self.prior = prior
        self.prior_weight = real_number(prior_weight, "prior weight", DuelError)
        if not 0.0 <= self.prior_weight <= 1.0:
            raise DuelError(f"prior weight: {prior_weight!r} is not in [0, 1]")
        self._start: Belief | None = None
        super().__init__(correlation, horizon=horizon, **shared)
        if self._unlisted and self.stop is not None:
            raise DuelError(
                f"stop: {SEARCHED} samples, as many as are searched among {len(self.source):,} "
                "configurations, are too few to end a session"
            )

    @property
    def settings(self) -> dict[str, object]:
        """What a journal must keep to build the same engine again."""
        return {
            "level": self.level,
            "stop": None if self.stop is None else [*self.stop],
            "forgetting": self.forgetting,
            "chain": self.chain,
            "prior": None if self.prior is None else dict(self.prior),
            "prior_weight": self.prior_weight,
        }

    @property
    def lesson(self) -> dict[str, Any]:
        """What the session has taught, as plain values: the ``prior`` of another session."""
        self._mend()
        belief = self._learnt
        sites = np.stack([posterior.sites for posterior in belief.posteriors])
        evidence = np.log(np.maximum(self._model_weights(), 1e-30))
        return Lesson(belief.arms, sites, evidence).record(self.source, [*self._models])

    # -- what is believed -----------------------------------------------------------------------

    def posterior(self, arms: Iterable[int] | None = None) -> tuple[Float64s, Float64s]:
        """Return mean and standard deviation of the utility of arms, all by default."""
        self._mend()
        chosen = None if arms is None else np.array(self._checked_arms(arms), dtype=np.int64)
        return self._mean_and_deviation(chosen)

    @property
    def best(self) -> int:
        """The arm with the largest posterior mean."""
        self._mend()
        if not self._active.any():
            raise DuelError("no arm is left: everything is excluded")
        return self._arms.best(self._mean_weights(self._stated), self._active)

    @property
    def weights(self) -> dict[str, float]:
        """How much each model of the bank is believed."""
        self._mend()
        return dict(zip(self._models, self._model_weights().tolist(), strict=True))

    @property
    def raters(self) -> dict[str, dict[str, float]]:
        """Noise, lapse rate and band of ties of everyone who has answered, over the bank."""
        self._mend()
        weight, belief = self._model_weights(), self._learnt
        each = np.einsum("m,mri->ri", weight, self._rater_numbers())
        names = ("noise", "lapse", "band")
        return {
            name: dict(zip(names, each[number].tolist(), strict=True))
            for number, name in enumerate(belief.raters)
            if number in belief.who
        }

    @property
    def probability_best(self) -> float:
        """Probability that no arm is better than :attr:`best`."""
        return float(np.mean(self._gaps() <= 0.0))

    @property
    def remaining_regret(self) -> float:
        """How much more than half of their duels the best arm is expected to win over `best`."""
        return float(np.mean(self._gaps()))

    def sure_within(self, eps: float) -> float:
        """Probability that no arm would beat :attr:`best` in more than 1/2 + eps of their duels."""
        return float(np.mean(self._gaps() <= _part(eps, "eps", 0.5)))

    @property
    def answers_to_go(self) -> int | None:
        """Expected number of answers until the session stops; None without a rule.

        The regret that remains is taken to fall as one over the number of answers.
        """
        if self.stop is None:
            return None
        level, eps = self.stop
        gap = float(np.quantile(self._gaps(), level))
        return math.ceil(max(gap / eps - 1.0, 0.0) * (self.duels + _PATIENCE))

    @property
    def outlook(self) -> dict[str, float]:
        """What is believed about the best arm, by name."""
        if not self._now.active.any():
            return {}
        known = {"probability_best": self.probability_best, "regret": self.remaining_regret}
        if self.stop is None:
            return known
        chance, eps = self.stop
        rule = {"sure": self.sure_within(eps), "stop_at": chance, "within": eps}
        return known | rule | {"answers_to_go": self.answers_to_go or 0}

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask, or enough is known."""
        return super().done or (self._now.forced is None and self._stopped)

    @property
    def _stopped(self) -> bool:
        return self.stop is not None and self.sure_within(self.stop[1]) >= self.stop[0]

    @property
    def progress(self) -> Standing:
        """How far the session has come; ``left`` is the size of the credible set.

        Before the first comparison counts, every configuration is left: the prior alone rules
        out none.
        """
        now = super().progress
        return replace(now, left=len(self.survivors)) if now.duels else now

    def ask_batch(self, size: int) -> list[tuple[int, int]]:
        """Return ``size`` pairs of distinct arms to compare before the next update."""
        size = whole_number(size, "batch", DuelError, least=1)
        first = self.ask()
        if size > self._left // 2:
            raise DuelError(f"a batch of {size} pairs needs {2 * size} arms, {self._left} are left")
        pairs, free = [first], self._active.copy()
        while len(pairs) < size:
            free[list(pairs[-1])] = False
            pairs.append(self._chosen(free))
        return pairs

    # -- what an engine does --------------------------------------------------------------------

    def _blank(self) -> Belief:
        if self._start is None:
            self._arms: Arms = arms_of(self.source)
            self._models = models_of(self._arms.groups)
            self._rough = [
                np.ascontiguousarray(self._arms.table[:, columns], dtype=np.float32)
                for columns, _ in self._models.values()
            ]
            self._start = self._before()
        return self._start.copy()

    def _before(self) -> Belief:
        """Return what is believed before the first answer: the prior, and any earlier lesson."""
        names = [*self._models]
        odds = np.log([ODDS.get(name, 1.0) for name in names])
        if self.prior is None:
            nothing = np.zeros((0, 2), dtype=np.int64), np.zeros((len(names), 0, 2))
            lesson = Lesson(*nothing, odds)
        else:
            lesson = Lesson.from_record(self.prior, self.source, names)
        posteriors = []
        for seen, sites in zip(
            self._models.values(), lesson.sites * self.prior_weight, strict=True
        ):
            size = seen[1].size
            posterior = Posterior(np.zeros(size), np.eye(size), sites)
            direction, work = np.empty((2, size))
            pairs = self._arms.numbers(lesson.arms)
            for n in np.argsort(-sites[:, 0], kind="stable"):  # never less than nothing is known
                kernels.difference(self._arms.table, *seen, *pairs[n], direction)
                kernels.change_site(posterior.mean, posterior.root, direction, *sites[n], work)
            posteriors.append(posterior)
        kinds = np.full(len(lesson.arms), kernels.FIXED, dtype=np.int64)
        evidence = odds + (lesson.evidence - odds) * self.prior_weight
        return Belief(posteriors, self._new_rater(), lesson.arms, kinds, 0 * kinds, evidence)

    def _new_rater(self) -> Float64s:
        return np.tile(_GRID_PRIOR, (1, len(self._models), 1))

    def _advance(self, event: Event) -> None:
        if event.kind == "note" and "rater" in event.meta:
            self._learnt.rater = self._known_rater(str(event.meta["rater"]))
        super()._advance(event)

    def _learn(self, event: Event) -> None:
        """Take every comparison of the event in turn."""
        belief = self._learnt
        belief.stated = belief.draws = None
        name = event.meta.get("rater")
        rater = belief.rater if name is None else self._known_rater(str(name))
        for winner, loser, tie in event.comparisons():
            self._take(winner, loser, kernels.TIE if tie else kernels.WIN, rater)

    def _known_rater(self, name: str) -> int:
        belief = self._learnt
        if name not in belief.raters:
            belief.raters.append(name)
            belief.grid = np.concatenate((belief.grid, self._new_rater()))
        return belief.raters.index(name)

    def _take(self, winner: int, loser: int, kind: int, rater: int) -> None:
        belief = self._learnt
        belief.arms = np.concatenate((belief.arms, [[winner, loser]]))
        pairs = self._arms.numbers(belief.arms)
        belief.kinds = np.append(belief.kinds, kind)
        belief.who = np.append(belief.who, rater)
        count = belief.kinds.size
        keep = self._counting()
        again = max(_REFRESHED, count // _REFRESHED)
        bank = [*zip(belief.posteriors, self._models.values(), strict=True)]
        for m, (posterior, seen) in enumerate(bank):
            kernels.foresee(self._arms.table, *seen, *pairs[-1], kind, posterior.mean,
                            posterior.root, _GRID, belief.grid[rater, m])  # fmt: skip
        numbers = self._rater_numbers()
        # Contiguous for one answer and for many: the kernel is compiled once.
        given = numbers.take(belief.who, axis=1)
        for (posterior, seen), who in zip(bank, given, strict=True):
            posterior.sites = np.concatenate((posterior.sites, np.zeros((1, 2))))
            answers = pairs, belief.kinds, who, keep, posterior.sites
            for begin, several in ((count - 1, 1), (belief.turn, min(again, count))):
                kernels.refresh(begin, several, self._arms.table, *seen, *answers, posterior.mean,
                                posterior.root)  # fmt: skip
        belief.turn = (belief.turn + again) % count

    def _counting(self) -> Float64s:
        """Return how much every answer counts, (N,)."""
        age = np.arange(self._learnt.kinds.size - 1.0, -1.0, -1.0)
        return np.asarray((1.0 - self.forgetting) ** age)

    def _rater_numbers(self) -> Float64s:
        """Return noise, lapse rate and band, (models, raters, 3), as each model sees them."""
        weight = _normalised(self._learnt.grid)
        numbers: Float64s = np.einsum("rmg,gi->mri", weight, _GRID_LOG)
        numbers[..., 0] = np.exp(numbers[..., 0])
        return numbers

    # -- questions ------------------------------------------------------------------------------

    def _propose(self) -> tuple[int, int]:
        """Return a pair of likely best arms.

        Sides are drawn: whoever always says "left" must not seem to agree with the belief.
        """
        previous = self._course.previous
        if self.chain and previous is not None and self._active[previous]:
            return self._chosen(self._active, previous)
        pair = self._chosen(self._active)
        return pair if self._rng(_SIDES).random() < 0.5 else pair[::-1]

    def _chosen(self, free: NDArray[np.bool_], first: int | None = None) -> tuple[int, int]:
        """Return the pair that tells most, of the best mean and the best of samples."""
        bank, names = self._normal, [*self._models]
        weights = self._mean_weights(bank)
        arms = [] if first is None else [first]
        if np.abs(weights).max() > 1e-9:  # else all means are equal, and rounding would choose
            arms.append(self._arms.best(weights, free))
        samples, models = self._sampled(self._rng(_TRIED), TRIED, bank)
        for model, sample in zip(models, samples.T, strict=True):
            if len(set(arms)) < CANDIDATES:
                arms.append(self._best_of(names[model], sample, free))
        arms = [*dict.fromkeys(arms)]
        if len(arms) < 2:  # all samples agree: let the runner-up have a chance
            others = free.copy()
            others[arms] = False
            arms.append(self._arms.best(weights, others))
        if len(arms) == 2:
            return int(arms[0]), int(arms[1])
        return self._telling(np.array(arms), fixed=first is not None)

    def _best_of(self, name: str, weights: Float64s, free: NDArray[np.bool_]) -> int:
        """Return the best arm of a sample, with the features that its model has."""
        if self._unlisted:
            return self._arms.best(weights, free)
        model, (columns, scale) = [*self._models].index(name), self._models[name]
        own = weights[columns]
        mean = scale * self._learnt.posteriors[model].mean
        own = mean + DARING.get(name, _DARING) * (own - mean)
        return int(kernels.best_mean(self._rough[model], own.astype(np.float32), free))

    def _telling(self, arms: Int64s, *, fixed: bool) -> tuple[int, int]:
        """Return the pair whose answer says most about its utilities; the first may be fixed."""
        numbers, score = self._rater_numbers(), np.full((arms.size, arms.size), -np.inf)
        score[np.triu_indices(arms.size, 1)] = 0.0  # an arm with itself is no question
        places = self._arms.numbers(arms)
        for m, weight in enumerate(self._model_weights()):
            posterior, seen = self._learnt.posteriors[m], [*self._models.values()][m]
            noise = numbers[m, self._asked, 0]
            kernels.information(self._arms.table, *seen, places, weight, noise, posterior.mean,
                                posterior.root, score)  # fmt: skip
        left, right = np.unravel_index(np.argmax(score[:1] if fixed else score), score.shape)
        return int(arms[left]), int(arms[right])

    @property
    def _asked(self) -> int:
        """The number of whoever answered last."""
        belief = self._learnt
        return int(belief.who[-1]) if belief.who.size else belief.rater

    def _rng(self, stream: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, self._course.step, stream])

    # -- samples --------------------------------------------------------------------------------

    def _drawn(self) -> Draws:
        self._mend()
        belief, step = self._learnt, self._course.step
        if belief.draws is None or belief.draws.step != step:
            belief.draws = self._draw(self._active)
        return belief.draws

    def _draw(self, free: NDArray[np.bool_]) -> Draws:
        weights, models = self._sampled(self._rng(_SAMPLED), SAMPLES, self._stated)
        noise = self._rater_numbers()[models, self._asked, 0]
        if self._unlisted:
            return self._looked(free, weights, noise)
        total, square = np.zeros((2, free.size))
        arm = np.empty(SAMPLES, dtype=np.int64)
        for m, (columns, _) in enumerate(self._models.values()):
            mine = np.flatnonzero(models == m)
            if mine.size:
                own = np.ascontiguousarray(weights[columns[:, None], mine], dtype=np.float32)
                found = np.empty(mine.size, dtype=np.int64)
                kernels.best_arms(self._rough[m], own, free, found, total, square)
                arm[mine] = found
        mean = total / SAMPLES
        upper = mean + _UPPER * np.sqrt(np.maximum(square / SAMPLES - mean**2, 0.0))
        bound, every = np.where(free, upper, -np.inf), np.arange(free.size)
        return Draws(self._course.step, weights, noise, arm, every, bound, SAMPLES)

    def _looked(self, free: NDArray[np.bool_], weights: Float64s, noise: Float64s) -> Draws:
        """Search the best arm of a few samples; the others choose among these and those compared.

        So a sample whose best arm nobody has looked at is content with less: what is said about
        the set of likely best arms is about arms that were looked at.
        """
        searched = [self._arms.best(sample, free) for sample in weights.T[:SEARCHED]]
        looked = np.unique([*searched, self.best, *self._learnt.arms.ravel().tolist()])
        looked = looked[free[looked]]
        utility = np.einsum("lf,fs->ls", self._arms.rows(looked), weights)
        upper = utility.mean(axis=1) + _UPPER * utility.std(axis=1)
        arm = looked[np.argmax(utility, axis=0)]
        arm[:SEARCHED] = searched
        return Draws(self._course.step, weights, noise, arm, looked, upper, SEARCHED)

    @property
    def _unlisted(self) -> bool:
        return isinstance(self.source, WholeSource)

    def _sampled(
        self, rng: np.random.Generator, count: int, bank: list[Normal]
    ) -> tuple[Float64s, Int64s]:
        """Return ``count`` weight vectors (F, S) over all features, and the model of each."""
        places = (np.arange(count) + rng.random()) / count
        edges = np.cumsum([normal.weight for normal in bank])[:-1]
        shares = np.searchsorted(edges, places)[rng.permutation(count)]
        axes = rng.standard_normal((self._arms.mixing.shape[0], count))
        base = np.empty((self._arms.mixing.shape[1], count))
        kernels.mix(self._arms.mixing, axes, base)
        out, seen = np.zeros_like(base), [*self._models.values()]
        for n, normal in enumerate(bank):
            mine = np.flatnonzero(shares == n)
            if not mine.size:
                continue
            columns, scale = seen[normal.model]
            start = np.ascontiguousarray(base[columns[:, None], mine])
            found = np.empty_like(start)
            kernels.sample(normal.mean, normal.root, start, found)
            out[columns[:, None], mine] = scale[:, None] * found
        return out, np.array([normal.model for normal in bank])[shares]

    def _gaps(self) -> Float64s:
        """Return P(best of a sample beats `best`) - 1/2, by the utilities of the sample, (S,)."""
        draws = self._drawn()
        some = slice(draws.exact)
        more = self._arms.rows(draws.arm[some]) - self._arms.rows(np.array([self.best]))
        gap = np.einsum("sf,fs->s", more, draws.weights[:, some])
        gap = np.maximum(gap, 0.0) / draws.noise[some]
        return np.array([0.5 * math.erf(g / math.sqrt(2.0)) for g in gap])

    # -- moments --------------------------------------------------------------------------------

    def _model_weights(self) -> Float64s:
        """Return the weight of every model: how probable all answers were to it."""
        grid = self._learnt.grid
        top = grid.max(axis=2)
        evidence = np.log(np.exp(grid - top[..., None]).sum(axis=2)) + top
        return _normalised(self._learnt.evidence + evidence.sum(axis=0))

    def _mean_weights(self, bank: Iterable[Normal]) -> Float64s:
        """Return the mean of the weights of all features, (F,), over the bank."""
        total, seen = np.zeros(self._arms.mixing.shape[1]), [*self._models.values()]
        for normal in bank:
            columns, scale = seen[normal.model]
            total[columns] += normal.weight * scale * normal.mean
        return total

    @property
    def _normal(self) -> list[Normal]:
        """The bank as it was learnt, by which questions are made."""
        bank = enumerate(zip(self._model_weights(), self._learnt.posteriors, strict=True))
        return [Normal(m, weight, own.mean, own.root) for m, (weight, own) in bank]

    @property
    def _stated(self) -> list[Normal]:
        """The bank by which something is said."""
        belief, numbers = self._learnt, self._rater_numbers()
        if belief.stated is None:
            pairs, keep, bank = self._arms.numbers(belief.arms), self._counting(), []
            for m, seen in enumerate(self._models.values()):
                answers, own = Answers(self._arms.table, *seen, pairs, keep), belief.posteriors[m]
                told = own.sites, belief.kinds, numbers[m, belief.who]
                bank.append(Explanation(answers, own.mean, own.root, *told))
            belief.stated = stated([*zip(self._model_weights().tolist(), bank, strict=True)])
        return belief.stated

    def _mean_and_deviation(self, arms: Int64s | None) -> tuple[Float64s, Float64s]:
        rows, seen = self._arms.rows(arms), [*self._models.values()]
        mean, square, part = np.zeros((3, len(rows)))
        for model, group in itertools.groupby(self._stated, lambda normal: normal.model):
            columns, scale = seen[model]
            own = np.ascontiguousarray(rows[:, columns] * scale)
            for normal in group:
                kernels.variances(own, normal.root, np.empty(scale.size), part)
                centre = np.einsum("kf,f->k", own, normal.mean)
                mean += normal.weight * centre
                square += normal.weight * (part + centre**2)
        return mean, np.sqrt(np.maximum(square - mean**2, 0.0))

    def _ranked(self) -> Survivors:
        """Return the arms of largest upper bound that hold the best of ``level`` of the samples."""
        if not self._active.any():
            return Survivors(np.zeros(0, dtype=np.int64), *np.zeros((3, 0)))
        draws = self._drawn()
        of_best = draws.upper[np.searchsorted(draws.looked, draws.arm)]
        least = np.sort(of_best)[int((1.0 - self.level) * SAMPLES)]
        chosen = np.union1d(draws.looked[draws.upper >= least], [self.best])
        mean, deviation = self._mean_and_deviation(chosen)
        own = self._learnt.kinds != kernels.FIXED
        played, times = np.unique(self._learnt.arms[own], return_counts=True)
        plays = np.zeros(chosen.size)
        known = np.isin(chosen, played)
        plays[known] = times[np.searchsorted(played, chosen[known])]
        return Survivors.sorted(chosen, mean, plays, _normal_quantile(self.level) * deviation)


def _normalised(logs: Float64s) -> Float64s:
    """Return weights that add up to 1 along the last axis."""
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=-1, keepdims=True))


def _part(value: object, name: str, most: float = 1.0) -> float:
    number = real_number(value, name, DuelError)
    if not 0.0 < number < most:
        raise DuelError(f"{name}: {value!r} is not between 0 and {most:g} (both excluded)")
    return number


def _stopping(stop: Iterable[float]) -> tuple[float, float]:
    try:
        level, eps = stop
    except (TypeError, ValueError) as error:
        raise DuelError(f"stop: {stop!r} is not a probability and a regret") from error
    return _part(level, "stop"), _part(eps, "stop", 0.5)


def _normal_quantile(level: float) -> float:
    """Return z with P(|x| < z) = level for normal x."""
    from statistics import NormalDist

    return NormalDist().inv_cdf((1.0 + level) / 2.0)
