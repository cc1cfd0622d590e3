"""The definitions in plain NumPy: what every kernel is judged against.

What flows in: sampled fields and their volume weights; a matrix of r and a duel. What flows out:
the correlation matrix, and (kappa, tau) of every arm. Slow, short and obvious.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.policy import UpdatePolicy


def correlation_reference(samples: ArrayLike, weight: ArrayLike) -> NDArray[np.float64]:
    """Weighted Pearson correlation of fields sampled at the same points.

    Parameters
    ----------
    samples : array_like, shape (K, N)
        K fields at N points. A vector field is three times as many points: lay its components side
        by side and repeat the weights.
    weight : array_like, shape (N,)
        Volume that each point stands for, m3.

    Returns
    -------
    ndarray, shape (K, K), float64
        r_ij = c_ij / sqrt(c_ii c_jj), c_ij = sum_n w_n (f_in - m_i) (f_jn - m_j) and
        m_i = sum_n w_n f_in / sum_n w_n.
    """
    f = np.asarray(samples, dtype=np.float64)
    w = np.asarray(weight, dtype=np.float64)
    centred = f - (f @ w / w.sum())[:, None]
    covariance = (centred * w) @ centred.T
    deviation = np.sqrt(np.diag(covariance))
    return np.asarray(covariance / np.outer(deviation, deviation))


def kappa_tau_reference(
    r: ArrayLike, winner: int, loser: int, *, policy: UpdatePolicy | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Update of every arm after ``winner`` (i) has won against ``loser`` (j).

    Parameters
    ----------
    r : array_like, shape (K, K)
        Correlations; they are rounded to float32 first, as in a store.
    winner, loser : int
        The arms that duelled.
    policy : UpdatePolicy, optional
        Options of the rule; see there for the equations.

    Returns
    -------
    kappa, tau : ndarray, shape (K,), float64
        What is added to the wins and to the plays of each arm.
    """
    policy = policy or UpdatePolicy()
    stored = np.asarray(r).astype(np.float32).astype(np.float64)
    shaped = np.clip(stored, policy.floor, 1.0)
    x, y, pair = shaped[winner], shaped[loser], shaped[winner, loser]
    touched = np.ones(len(x), bool)
    if policy.require_positive:
        touched = (stored[winner] > 0) & (stored[loser] > 0)

    tau = np.where(touched, (x + y) / (1.0 + pair), 0.0) if pair > -1.0 else np.zeros(len(x))
    if policy.clip:
        tau = np.minimum(1.0, tau)
    log_x, log_y = np.log(np.where(touched, x, 1.0)), np.log(np.where(touched, y, 1.0))
    total = log_x + log_y
    share = np.where(total < 0.0, log_y / np.where(total < 0.0, total, 1.0), 0.5)
    kappa = share * tau

    if policy.pin_duelled:
        kappa[winner], tau[winner] = 1.0, 1.0
        kappa[loser], tau[loser] = 0.0, 1.0
    return kappa, tau
