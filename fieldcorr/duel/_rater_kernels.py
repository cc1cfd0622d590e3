"""Kernel of the raters' figures: how well a Gaussian process over pairs explains the answers."""

import math

import numba
import numpy as np
from numpy.typing import NDArray

SWEEPS = 6


@numba.njit(cache=True, nogil=True, error_model="numpy")
def explain(
    covariance: NDArray[np.float64], alpha: NDArray[np.float64], without: NDArray[np.float64]
) -> float:
    """Return the log evidence of n answers, P(answer i) = Phi(f_i), f normal with ``covariance``.

    Expectation propagation (Rasmussen and Williams, Algorithm 3.5), every site updated by a
    rank-one change. f_i is the difference of utilities in favour of what was answered. ``alpha``
    (n,) gets the weights of the posterior mean, E f = covariance alpha, and ``without`` (n,) what
    answer i is expected to be without it: positive if as it was.
    """
    n = len(covariance)
    s = covariance.copy()
    tau, nu, mu, column = np.zeros(n), np.zeros(n), np.zeros(n), np.empty(n)
    log_determinant = 0.0
    for _ in range(SWEEPS):
        for i in range(n):
            precision = 1.0 / s[i, i] - tau[i]
            shift = mu[i] / s[i, i] - nu[i]
            mean, variance = shift / precision, 1.0 / precision
            z = mean / math.sqrt(1.0 + variance)
            ratio = math.exp(-0.5 * z * z) / (math.sqrt(2.0 * math.pi) * _phi(z))
            matched = variance - variance * variance * ratio / (1.0 + variance) * (z + ratio)
            centre = mean + variance * ratio / math.sqrt(1.0 + variance)
            dt = 1.0 / matched - precision - tau[i]
            dn = centre / matched - shift - nu[i]
            tau[i] += dt
            nu[i] += dn
            for k in range(n):
                column[k] = s[k, i]
            grow = 1.0 + dt * column[i]
            log_determinant += math.log(grow)
            step = (dn - dt * mu[i]) / grow
            for k in range(n):
                mu[k] += step * column[k]
                factor = dt / grow * column[k]
                for m in range(n):
                    s[k, m] -= factor * column[m]
    total = -0.5 * log_determinant
    for i in range(n):
        precision = 1.0 / s[i, i] - tau[i]
        shift = mu[i] / s[i, i] - nu[i]
        mean = shift / precision
        without[i] = mean / math.sqrt(1.0 + 1.0 / precision)
        total += math.log(_phi(without[i]))
        total += 0.5 * math.log1p(tau[i] / precision)
        total += 0.5 * (nu[i] * mu[i] - nu[i] * nu[i] / (precision + tau[i]))
        total += 0.5 * mean * precision / (tau[i] + precision) * (tau[i] * mean - 2.0 * nu[i])
        alpha[i] = nu[i] - tau[i] * mu[i]
    return total


@numba.njit(error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _phi(z: float) -> float:
    """Return the normal distribution function, never 0."""
    return max(0.5 * math.erfc(-z / math.sqrt(2.0)), 1e-300)
