"""Kernels of the Bayesian duel: moments of an answer, expectation propagation, samples.

A model of the bank sees the features of ``columns`` times ``scale``: its weights have a standard
normal prior, mean (F,) and covariance (F, F) are changed in place. Sums run in a fixed order.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]

WIN, TIE, FIXED = 0, 1, 2  # what a site stands for; a fixed one is never changed

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
# Called by kernels alone: no entry from Python and no place on the disk, a third of compiling less.
_inner = numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _below(x: float) -> float:
    return 0.5 * math.erfc(-x * 0.7071067811865476)


@_inner
def _density(x: float) -> float:
    return 0.3989422804014327 * math.exp(-0.5 * x * x)


@_jit
def moments(
    mean: float, variance: float, kind: int, noise: float, lapse: float, band: float
) -> tuple[float, float, float]:
    """Return log Z and its first two derivatives by the mean, Z = E[P(answer | u)].

    u is normal with ``mean`` and ``variance``. P(win | u) = (1 - lapse) Phi((u - band) / noise)
    + lapse Phi(-band / noise), and P(tie | u) is what is left when either could win: a lapse
    answers as if both arms were equal.
    """
    spread = math.sqrt(noise * noise + variance)
    upper = (mean - band) / spread
    lazy = _below(-band / noise)
    if kind == WIN:
        z = _below(upper)
        first = _density(upper) / spread
        second = -upper * _density(upper) / (spread * spread)
    else:
        lower = (-mean - band) / spread
        # Both in the lower tail, where their difference keeps its digits.
        z = _below(-max(upper, lower)) - _below(min(upper, lower))
        first = (_density(lower) - _density(upper)) / spread
        second = (lower * _density(lower) + upper * _density(upper)) / (spread * spread)
        lazy = 1.0 - 2.0 * lazy
    z = max((1.0 - lapse) * z + lapse * lazy, 1e-300)
    first *= (1.0 - lapse) / z
    second = second * (1.0 - lapse) / z - first * first
    return math.log(z), first, second


@_jit
def difference(
    features: Float64s, columns: Int64s, scale: Float64s, winner: int, loser: int, out: Float64s
) -> None:
    """Write the features of one arm less those of another, as a model sees them."""
    for f in range(columns.size):
        c = columns[f]
        out[f] = scale[f] * (features[winner, c] - features[loser, c])


@_jit
def predict(
    mean: Float64s, covariance: Float64s, direction: Float64s, product: Float64s
) -> tuple[float, float]:
    """Return mean and variance of the utility along a direction; ``product`` gets V d."""
    mu = 0.0
    variance = 0.0
    for f in range(mean.size):
        total = 0.0
        for g in range(mean.size):
            total += covariance[f, g] * direction[g]
        product[f] = total
        mu += direction[f] * mean[f]
        variance += direction[f] * total
    return mu, variance


@_inner
def _site(
    mu: float,
    variance: float,
    tau: float,
    nu: float,
    kind: int,
    noise: float,
    lapse: float,
    band: float,
) -> tuple[float, float]:
    """Return the new natural parameters of a site, whose old ones are still in mu and variance."""
    rest = 1.0 - tau * variance
    if rest < 1e-6:
        return tau, nu
    cavity = variance / rest
    centre = (mu - nu * variance) / rest
    _, first, second = moments(centre, cavity, kind, noise, lapse, band)
    if second >= 0.0:  # a lapse can make an answer uninformative, never a reason to know less
        return 0.0, first
    shrunk = max(1.0 + cavity * second, 1e-8)
    return -second / shrunk, (first - centre * second) / shrunk


@_jit
def change_site(
    mean: Float64s, covariance: Float64s, direction: Float64s, more: Float64s, work: Float64s
) -> None:
    """Add ``more`` = (tau, nu) to the site along a direction: a rank-one change, in place."""
    mu, variance = predict(mean, covariance, direction, work)
    denominator = 1.0 + more[0] * variance
    step = (more[1] - more[0] * mu) / denominator
    factor = more[0] / denominator
    for f in range(mean.size):
        mean[f] += step * work[f]
        scaled = factor * work[f]
        for g in range(mean.size):
            covariance[f, g] -= scaled * work[g]


@_jit
def refresh(
    begin: int,
    count: int,
    features: Float64s,
    columns: Int64s,
    scale: Float64s,
    arms: Int64s,
    kinds: Int64s,
    rater: Float64s,
    keep: Float64s,
    sites: Float64s,
    mean: Float64s,
    covariance: Float64s,
) -> None:
    """Match the moments of ``count`` sites from ``begin`` on, round and round, in place.

    ``arms`` (N, 2) winner and loser, ``kinds`` (N,), ``rater`` (N, 3) noise, lapse and band of who
    answered, ``keep`` (N,) the weight of each answer, ``sites`` (N, 2) tau and nu.
    """
    size = columns.size
    direction = np.empty(size)
    work = np.empty(size)
    more = np.empty(2)
    for step in range(count):
        n = (begin + step) % kinds.size
        if kinds[n] == FIXED:
            continue
        difference(features, columns, scale, arms[n, 0], arms[n, 1], direction)
        mu, variance = predict(mean, covariance, direction, work)
        if variance < 1e-12:
            continue
        tau, nu = _site(mu, variance, sites[n, 0], sites[n, 1], kinds[n], rater[n, 0],
                        rater[n, 1], rater[n, 2])  # fmt: skip
        more[0] = keep[n] * tau - sites[n, 0]
        more[1] = keep[n] * nu - sites[n, 1]
        if 1.0 + more[0] * variance < 1e-6:
            continue
        change_site(mean, covariance, direction, more, work)
        sites[n, 0] += more[0]
        sites[n, 1] += more[1]


@_jit
def best_arms(
    features: Float32s, weights: Float32s, active: Bools, upper: Float32s, arm: Int64s
) -> None:
    """Write the best active arm of each of S weight vectors (F, S), and an upper bound per arm.

    That is the mean over the samples and 1.64 standard deviations, which 95 % of a normal are
    below. Four features at a time read and write half as much as one.
    """
    size, samples = weights.shape
    whole = size - size % 4
    value = np.empty(samples, dtype=np.float32)
    top = np.empty(samples, dtype=np.float32)
    for s in range(samples):
        top[s] = -np.inf
        arm[s] = -1
    for k in range(features.shape[0]):
        if not active[k]:
            upper[k] = -np.inf
            continue
        for s in range(samples):
            value[s] = 0.0
        for f in range(0, whole, 4):
            a = features[k, f]
            b = features[k, f + 1]
            c = features[k, f + 2]
            d = features[k, f + 3]
            for s in range(samples):
                value[s] += (
                    a * weights[f, s]
                    + b * weights[f + 1, s]
                    + c * weights[f + 2, s]
                    + d * weights[f + 3, s]
                )
        for f in range(whole, size):
            a = features[k, f]
            for s in range(samples):
                value[s] += a * weights[f, s]
        total = 0.0
        square = 0.0
        for s in range(samples):
            total += value[s]
            square += value[s] * value[s]
            if value[s] > top[s]:
                top[s] = value[s]
                arm[s] = k
        mean = total / samples
        upper[k] = mean + 1.64 * math.sqrt(max(square / samples - mean * mean, 0.0))


@_jit
def best_mean(features: Float64s, weights: Float64s, active: Bools) -> int:
    """Return the active arm with the largest utility for one weight vector (F,)."""
    arm = -1
    top = -np.inf
    for k in range(features.shape[0]):
        if active[k]:
            total = 0.0
            for f in range(features.shape[1]):
                total += features[k, f] * weights[f]
            if total > top:
                top = total
                arm = k
    return arm


@_inner
def _entropy(p: float) -> float:
    if p <= 1e-12 or p >= 1.0 - 1e-12:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log(1.0 - p)


@_jit
def information(
    utility: Float64s, noise: Float64s, group: Int64s, first: int, score: Float64s
) -> None:
    """Write to ``score`` (C,) what a duel of ``first`` with a later one says about the best arm.

    That is the mutual information of the answer and the group of a sample. ``utility`` (C, S) is of
    C candidates in S samples, ``group`` (S,) ascends from 0.
    """
    samples = noise.size
    for c in range(first + 1, utility.shape[0]):
        total = 0.0
        within = 0.0
        own = 0.0
        members = 0
        for s in range(samples):
            p = _below((utility[first, s] - utility[c, s]) / noise[s])
            total += p
            own += p
            members += 1
            if s + 1 == samples or group[s + 1] != group[s]:
                within += members * _entropy(own / members)
                own = 0.0
                members = 0
        score[c] = _entropy(total / samples) - within / samples


@_jit
def variances(features: Float64s, covariance: Float64s, work: Float64s, out: Float64s) -> None:
    """Write x' V x of every row of ``features`` (M, F)."""
    for k in range(features.shape[0]):
        total = 0.0
        for f in range(covariance.shape[0]):
            work[f] = 0.0
        for f in range(covariance.shape[0]):
            x = features[k, f]
            for g in range(covariance.shape[0]):
                work[g] += x * covariance[f, g]
        for f in range(covariance.shape[0]):
            total += features[k, f] * work[f]
        out[k] = total


@_jit
def weigh(logs: Float64s, grid: Float64s, mean: float, variance: float, kind: int) -> None:
    """Add to each log weight (G,) the log probability of an answer, in place.

    ``grid`` (G, 3) holds noise, lapse rate and band.
    """
    for g in range(logs.size):
        z, _, _ = moments(mean, variance, kind, grid[g, 0], grid[g, 1], grid[g, 2])
        logs[g] += z


@_jit
def mix(mixing: Float64s, axes: Float64s, out: Float64s) -> None:
    """Write M' Y of ``mixing`` (P, F) and ``axes`` (P, S) to ``out`` (F, S)."""
    for f in range(mixing.shape[1]):
        for s in range(axes.shape[1]):
            out[f, s] = 0.0
    for p in range(mixing.shape[0]):
        for f in range(mixing.shape[1]):
            m = mixing[p, f]
            if m != 0.0:  # blocks
                for s in range(axes.shape[1]):
                    out[f, s] += m * axes[p, s]


@_jit
def sample(
    features: Float64s,
    columns: Int64s,
    scale: Float64s,
    arms: Int64s,
    pull: Float64s,
    start: Float64s,
    mean: Float64s,
    covariance: Float64s,
) -> None:
    """Turn ``start`` (F, S) from normal numbers y into samples m + V (y + sum_n pull_n d_n).

    ``pull`` (N, S) is normal with the root of each site's precision as deviation.
    """
    size = start.shape[0]
    direction = np.empty(size)
    for n in range(arms.shape[0]):
        difference(features, columns, scale, arms[n, 0], arms[n, 1], direction)
        for f in range(size):
            for s in range(start.shape[1]):
                start[f, s] += direction[f] * pull[n, s]
    spread = start.copy()
    for f in range(size):
        for s in range(start.shape[1]):
            start[f, s] = mean[f]
        for g in range(size):
            for s in range(start.shape[1]):
                start[f, s] += covariance[f, g] * spread[g, s]
