"""Linear response: covariances from how the means of expectation propagation would move.

The covariance of the exact posterior is the derivative of its mean by a linear tilt t . w of the
log density. Means of expectation propagation are good, so their derivative is a better covariance
than that of the normal form, whose factors would change with the tilt.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import _bayes_kernels as kernels

Float64s = NDArray[np.float64]

_NARROWEST = 0.25
"""Least factor of a variance; expectation propagation hardly ever claims to know too little."""


def responding_root(
    mean: Float64s,
    root: Float64s,
    sites: Float64s,
    directions: Float64s,
    kinds: NDArray[np.int64],
    raters: Float64s,
    keep: Float64s,
) -> Float64s:
    """Return a root (F, F) of the covariance of the weights by linear response.

    ``mean`` (F,), ``root`` (F, F) and ``sites`` (N, 2) are the normal form, ``directions`` (N, F),
    ``kinds`` (N,), ``raters`` (N, 3) and ``keep`` (N,) the answers, as in
    :func:`fieldcorr.duel._bayes_kernels.refresh`. With the utility of every answer in units of its
    deviation, a tilt moves mean and variance by y and -z, and the factor by (a, b) = T (y, z),
    where y = C a + (tilt), z = C^2 b element by element, C the correlations.
    """
    inward = np.einsum("nf,fg->ng", directions, root)
    spread = np.sqrt(np.einsum("ng,ng->n", inward, inward))
    rest = 1.0 - sites[:, 0] * spread**2
    live = (kinds != kernels.FIXED) & (spread > 1e-6) & (rest > 1e-6)
    if not live.any():
        return root
    unit = inward[live] / spread[live, None]
    middle = np.einsum("nf,f->n", directions[live], mean)
    moved = _moved(middle, spread[live], rest[live], sites[live], kinds[live], raters[live])
    moved *= keep[live, None, None]
    moved = np.linalg.solve(np.eye(2) + moved, moved)
    alike = np.einsum("nf,mf->nm", unit, unit)
    system = -np.block(
        [[moved[:, i, j, None] * alike ** (j + 1) for j in range(2)] for i in range(2)]
    )
    system[np.diag_indices(len(system))] += 1.0
    known = np.concatenate([moved[:, i, :1] * unit for i in range(2)])
    factor = np.linalg.solve(system, known)[: len(unit)]
    grown = np.einsum("nf,ng->fg", unit, factor)
    values, vectors = np.linalg.eigh(0.5 * (grown + grown.T))
    stretch = np.sqrt(np.maximum(1.0 + values, _NARROWEST))
    return np.einsum("ef,fg,g,hg->eh", root, vectors, stretch, vectors, optimize=True)


def _moved(
    middle: Float64s,
    spread: Float64s,
    rest: Float64s,
    sites: Float64s,
    kinds: NDArray[np.int64],
    raters: Float64s,
) -> Float64s:
    """Return (N, 2, 2): how a factor moves with slope and precision of what it is multiplied by.

    That depends on skewness and excess of the one true answer times the normal rest, since for
    normal ones nothing would move. Its mean is ``off`` from that of the posterior where the
    factor does not count in full.
    """
    cavity = spread**2 / rest
    centre = (middle - sites[:, 1] * spread**2) / rest
    slopes = np.array(
        [
            kernels.moments(*answer, int(kind), *rater)
            for *answer, kind, rater in zip(centre, cavity, kinds, raters, strict=True)
        ]
    ).T
    off = (centre + cavity * slopes[1] - middle) / spread
    wide = (cavity + cavity**2 * slopes[2]) / spread**2
    lean = slopes[3] * (cavity / spread) ** 3 / wide**2
    flat = 0.5 * slopes[4] * (cavity / spread) ** 4 / wide**2
    rows = [
        [-off * lean, off**2 * lean - 0.5 * lean * wide + off * flat],
        [-lean, off * lean + flat],
    ]
    return np.asarray(rows).transpose(2, 0, 1)
