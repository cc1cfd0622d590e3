"""Linear response: deviations from how the means of expectation propagation would move.

The covariance of an exact posterior is the derivative of its mean by a linear tilt t . w of the log
density. The means of expectation propagation are good, so their derivative is a better covariance
than that of the normal form, which takes its factors for given: under a tilt they change as well.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import _bayes_kernels as kernels

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

_LEAST = 0.25  # factor of a variance; 0.7 was the least seen in a thousand problems


def responding_root(
    mean: Float64s,
    root: Float64s,
    sites: Float64s,
    directions: Float64s,
    kinds: Int64s,
    raters: Float64s,
    keep: Float64s,
) -> Float64s:
    """Return a root (F, F) of the covariance of the weights by linear response.

    ``mean`` (F,), ``root`` (F, F) and ``sites`` (N, 2) are the normal form; ``directions`` (N, F),
    ``kinds`` (N,), ``raters`` (N, 3) and ``keep`` (N,) the answers, as
    :func:`fieldcorr.duel._bayes_kernels.refresh` takes them. In units of the deviation of each
    difference of utilities, with their correlations C, a tilt changes their means by y = C a + (its
    own part) and their variances by -z, z = (C * C) b; factors change by (a, b) = T (y, z).
    """
    inward = np.einsum("nf,fg->ng", directions, root)
    spread = np.sqrt(np.einsum("ng,ng->n", inward, inward))
    rest = 1.0 - sites[:, 0] * spread**2
    live = (kinds != kernels.FIXED) & (spread > 1e-6) & (rest > 1e-6)
    if not live.any():
        return root
    unit = inward[live] / spread[live, None]
    middle = np.einsum("nf,f->n", directions[live], mean)
    follows = _follows(middle, spread[live], rest[live], sites[live], kinds[live], raters[live])
    follows *= keep[live, None, None]
    t = np.linalg.solve(np.eye(2) + follows, follows)
    alike = np.einsum("nf,mf->nm", unit, unit)
    system = -np.block([[t[:, i, j, None] * alike ** (j + 1) for j in (0, 1)] for i in (0, 1)])
    system[np.diag_indices(len(system))] += 1.0
    tilted = np.concatenate([t[:, i, :1] * unit for i in (0, 1)])
    factors = np.linalg.solve(system, tilted)[: len(unit)]
    more = np.einsum("nf,ng->fg", unit, factors)
    values, vectors = np.linalg.eigh(0.5 * (more + more.T))
    stretch = vectors * np.sqrt(np.maximum(1.0 + values, _LEAST))
    return np.asarray(np.einsum("ef,fg,hg->eh", root, stretch, vectors, optimize=True))


def _follows(
    middle: Float64s,
    spread: Float64s,
    rest: Float64s,
    sites: Float64s,
    kinds: Int64s,
    raters: Float64s,
) -> Float64s:
    """Return (N, 2, 2): how factors follow slope and precision of all the others together.

    They would not, were the answer times the others normal: what counts is its skewness and excess.
    Its mean is ``off`` and its variance ``wide``, 0 and 1 if the answer counts in full.
    """
    cavity = spread**2 / rest
    centre = (middle - sites[:, 1] * spread**2) / rest
    given = zip(centre, cavity, kinds, raters, strict=True)
    slopes = np.array([kernels.moments(m, s, k, *rater) for m, s, k, rater in given])
    first, second, third, fourth = slopes[:, 1:].T
    off = (centre + cavity * first - middle) / spread
    wide = (cavity + cavity**2 * second) / spread**2
    lean = third * (cavity / spread) ** 3 / wide**2
    flat = 0.5 * fourth * (cavity / spread) ** 4 / wide**2
    upper = -off * lean, off**2 * lean - 0.5 * lean * wide + off * flat
    return np.array([upper, (-lean, off * lean + flat)]).transpose(2, 0, 1)
