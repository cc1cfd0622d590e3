"""Kernels of the Bayesian duel: moments of an answer, expectation propagation, samples.

A model of the bank sees the features of ``columns`` times ``scale``: its weights have a standard
normal prior, mean (F,) and root R (F, F) of their covariance R R' are changed in place.
"""

import math

import numba
import numpy as np
from numpy.typing import NDArray

Float64s = NDArray[np.float64]
Float32s = NDArray[np.float32]
Int64s = NDArray[np.int64]
Floats = Float64s | Float32s
Bools = NDArray[np.bool_]

WIN, TIE, FIXED = 0, 1, 2  # what a site stands for; a fixed one is never changed

_jit = numba.njit(cache=True, nogil=True, error_model="numpy")
# Sums in an order that the processor likes, for passes over all arms; NaN stays what it is.
_fast = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"}
)
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
) -> tuple[float, float, float, float, float]:
    """Return log Z and its first four derivatives by the mean, Z = E[P(answer | u)].

    u is normal with ``mean`` and ``variance``. P(win | u) = (1 - lapse) Phi((u - band) / noise)
    + lapse Phi(-band / noise), and P(tie | u) is what is left when either could win: a lapse
    answers as if both arms were equal.
    """
    spread = math.sqrt(noise * noise + variance)
    upper = (mean - band) / spread
    lazy = _below(-band / noise)
    z = _below(upper)
    d1, d2, d3, d4 = _slopes(upper)
    if kind != WIN:
        lower = (-mean - band) / spread
        # Both in the lower tail, where their difference keeps its digits.
        z = _below(-max(upper, lower)) - _below(min(upper, lower))
        e1, e2, e3, e4 = _slopes(lower)
        d1, d2, d3, d4 = e1 - d1, -e2 - d2, e3 - d3, -e4 - d4
        lazy = 1.0 - 2.0 * lazy
    z = max((1.0 - lapse) * z + lapse * lazy, 1e-300)
    share = (1.0 - lapse) / z
    first = d1 / spread * share
    d2 = d2 / (spread * spread) * (1.0 - lapse) / z
    d3 *= share / spread**3
    d4 *= share / spread**4
    second = d2 - first * first
    third = d3 - first * (3.0 * second + first * first)
    fourth = d4 - first * (4.0 * third + first * (6.0 * second + first * first))
    fourth -= 3.0 * second * second
    return math.log(z), first, second, third, fourth


@_jit
def all_moments(
    mean: Float64s, variance: Float64s, kinds: Int64s, raters: Float64s, out: Float64s
) -> None:
    """Write the :func:`moments` of N answers to ``out`` (N, 5)."""
    for n in range(mean.size):
        noise, lapse, band = raters[n]
        out[n] = moments(mean[n], variance[n], kinds[n], noise, lapse, band)


@_inner
def _slopes(x: float) -> tuple[float, float, float, float]:
    """Return the first four derivatives of the normal distribution function."""
    density = _density(x)
    return density, -x * density, (x * x - 1.0) * density, x * (3.0 - x * x) * density


@_jit
def difference(
    features: Float64s, columns: Int64s, scale: Float64s, winner: int, loser: int, out: Float64s
) -> None:
    """Write the features of one arm less those of another, as a model sees them."""
    for f in range(columns.size):
        c = columns[f]
        out[f] = scale[f] * (features[winner, c] - features[loser, c])


@_fast
def predict(
    mean: Float64s, root: Float64s, direction: Float64s, inward: Float64s
) -> tuple[float, float]:
    """Return mean and variance of the utility along a direction; ``inward`` gets R' d."""
    size = mean.size
    for g in range(size):
        inward[g] = 0.0
    mu = 0.0
    for f in range(size):
        d = direction[f]
        mu += d * mean[f]
        for g in range(size):
            inward[g] += d * root[f, g]
    variance = 0.0
    for g in range(size):
        variance += inward[g] * inward[g]
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
    _, first, second, _, _ = moments(centre, cavity, kind, noise, lapse, band)
    shrunk = max(1.0 + cavity * second, 1e-8)
    return -second / shrunk, (first - centre * second) / shrunk


@_fast
def change_site(
    mean: Float64s, root: Float64s, direction: Float64s, tau: float, nu: float, inward: Float64s
) -> None:
    """Add (tau, nu) to the site along a direction: a rank-one change, in place.

    With g = R' d and s = g . g the covariance becomes R (I - tau g g' / (1 + tau s)) R', whose root
    is R (I - c g g'), c = (1 - (1 + tau s)^(-1/2)) / s. ``inward`` is to work in.
    """
    mu, variance = predict(mean, root, direction, inward)
    if variance <= 0.0:
        return
    grown = 1.0 + tau * variance
    step = (nu - tau * mu) / grown
    c = (1.0 - 1.0 / math.sqrt(grown)) / variance
    for f in range(mean.size):
        outward = 0.0
        for g in range(mean.size):
            outward += root[f, g] * inward[g]
        mean[f] += step * outward
        outward *= c
        for g in range(mean.size):
            root[f, g] -= outward * inward[g]


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
    root: Float64s,
) -> None:
    """Match the moments of ``count`` sites from ``begin`` on, round and round, in place.

    ``arms`` (N, 2) winner and loser, ``kinds`` (N,), ``rater`` (N, 3) noise, lapse and band of who
    answered, ``keep`` (N,) the weight of each answer, ``sites`` (N, 2) tau and nu.
    """
    size = columns.size
    direction = np.empty(size)
    inward = np.empty(size)
    for step in range(count):
        n = (begin + step) % kinds.size
        if kinds[n] == FIXED:
            continue
        difference(features, columns, scale, arms[n, 0], arms[n, 1], direction)
        mu, variance = predict(mean, root, direction, inward)
        if variance < 1e-12:
            continue
        tau, nu = _site(mu, variance, sites[n, 0], sites[n, 1], kinds[n], rater[n, 0],
                        rater[n, 1], rater[n, 2])  # fmt: skip
        tau = keep[n] * tau - sites[n, 0]
        nu = keep[n] * nu - sites[n, 1]
        if 1.0 + tau * variance < 1e-6:
            continue
        change_site(mean, root, direction, tau, nu, inward)
        sites[n, 0] += tau
        sites[n, 1] += nu


@_fast
def best_arms(
    features: Float32s, weights: Float32s, active: Bools, arm: Int64s, total: Float64s,
    square: Float64s,
) -> None:  # fmt: skip
    """Write the best active arm of each of S weight vectors (F, S).

    The sum of an arm's utilities over the samples is added to ``total`` (K,), that of their squares
    to ``square``. Four features at a time read and write half as much as one.
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
        plain = np.float32(0.0)
        squared = np.float32(0.0)
        for s in range(samples):
            plain += value[s]
            squared += value[s] * value[s]
        total[k] += plain
        square[k] += squared
        for s in range(samples):
            if value[s] > top[s]:
                top[s] = value[s]
                arm[s] = k


@_fast
def best_mean(features: Floats, weights: Floats, active: Bools) -> int:
    """Return the active arm with the largest utility for one weight vector (F,)."""
    arm = -1
    top = -np.inf
    for k in range(features.shape[0]):
        if active[k]:
            total = weights[0] * 0
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
    return -(p * math.log(p) + (1.0 - p) * math.log(1.0 - p))


@_jit
def information(
    features: Float64s,
    columns: Int64s,
    scale: Float64s,
    arms: Int64s,
    weight: float,
    noise: float,
    mean: Float64s,
    root: Float64s,
    score: Float64s,
) -> None:
    """Add to ``score`` (C, C) of each pair ``weight`` times what its answer says about utilities.

    That is the mutual information, with the entropy of Phi as exp(-x^2 / (pi log 2)) log 2 (Houlsby
    and others 2011, Bayesian active learning by disagreement).
    """
    direction = np.empty(columns.size)
    inward = np.empty(columns.size)
    wide = 0.5 * math.pi * math.log(2.0)
    for i in range(arms.size):
        for j in range(i + 1, arms.size):
            difference(features, columns, scale, arms[i], arms[j], direction)
            mu, variance = predict(mean, root, direction, inward)
            mu /= noise
            variance /= noise * noise
            doubt = _entropy(_below(mu / math.sqrt(1.0 + variance)))
            spread = variance + wide
            known = math.log(2.0) * math.sqrt(wide / spread) * math.exp(-0.5 * mu * mu / spread)
            score[i, j] += weight * (doubt - known)


@_fast
def variances(features: Float64s, root: Float64s, work: Float64s, out: Float64s) -> None:
    """Write |R' x|^2 of every row x of ``features`` (M, F)."""
    size = len(root)
    for k in range(features.shape[0]):
        for g in range(size):
            work[g] = 0.0
        for f in range(size):
            x = features[k, f]
            for g in range(size):
                work[g] += x * root[f, g]
        total = 0.0
        for g in range(size):
            total += work[g] * work[g]
        out[k] = total


@_jit
def foresee(
    features: Float64s,
    columns: Int64s,
    scale: Float64s,
    winner: int,
    loser: int,
    kind: int,
    mean: Float64s,
    root: Float64s,
    grid: Float64s,
    logs: Float64s,
) -> None:
    """Add to each log weight (G,) the log probability of an answer, in place.

    ``grid`` (G, 3) holds noise, lapse rate and band.
    """
    direction = np.empty(columns.size)
    inward = np.empty(columns.size)
    difference(features, columns, scale, winner, loser, direction)
    mu, variance = predict(mean, root, direction, inward)
    for g in range(logs.size):
        logs[g] += moments(mu, variance, kind, grid[g, 0], grid[g, 1], grid[g, 2])[0]


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


@_fast
def sample(mean: Float64s, root: Float64s, axes: Float64s, out: Float64s) -> None:
    """Write the samples m + R y of normal numbers y, ``axes`` (F, S), to ``out`` (F, S)."""
    for f in range(mean.size):
        for s in range(axes.shape[1]):
            out[f, s] = mean[f]
        for g in range(mean.size):
            r = root[f, g]
            for s in range(axes.shape[1]):
                out[f, s] += r * axes[g, s]
