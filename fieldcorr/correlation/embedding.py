"""From contact currents to points on a sphere: Z with unit rows and r = Z Z'.

A measure that is linear in the current needs the Gram matrix of the lead fields; the magnitude |E|,
which is not, the lead fields at sample points; anything else its own sampled features. The same
input gives the same bits, and for a linear measure the mirrored currents give exactly the mirrored
row. :func:`correlation_reference` is the definition of r that everything is judged against.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr import _parallel
from fieldcorr.correlation import _embedding_kernels as kernels
from fieldcorr.correlation.compress import compress_embedding
from fieldcorr.correlation.sampling import Samples, choose_samples
from fieldcorr.errors import CorrelationError

Labels = Sequence[str] | Callable[[int], str] | None
"""Names of configurations for error messages: a list, or a function of the row."""

_ROUNDING = 1e-14  # of the largest diagonal entry: pivots below are rounding, not directions
_ASYMMETRY = 1e-8


def correlation_reference(samples: ArrayLike, weight: ArrayLike) -> NDArray[np.float64]:
    """Weighted Pearson correlation of fields sampled at the same points, in plain NumPy.

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


def embedding_from_gram(
    currents: ArrayLike, gram: ArrayLike, *, labels: Labels = None
) -> NDArray[np.float64]:
    """Return unit rows z_i = L' a_i / |L' a_i| with G = L L', so that r = Z Z'.

    Parameters
    ----------
    currents : array_like, shape (K, E)
        Contact currents a_i, A.
    gram : array_like, shape (E, E)
        G_ab, integral over the compared region of the mean-removed lead fields of contacts a and
        b: the covariance of two configurations is a_i' G a_j.
    labels : sequence of str or callable, optional
        What to call a configuration in an error message.

    Returns
    -------
    ndarray, shape (K, R), float64
        R is the numerical rank of G; where all rows of currents sum to zero, only that subspace
        counts, so R is at most E - 1.

    Raises
    ------
    CorrelationError
        If a row makes no field or a constant one, is not finite, or if G is no Gram matrix.
    """
    a = _checked_currents(currents, labels)
    g = _checked_gram(gram, a.shape[1])
    size = len(g)
    balanced = bool((np.abs(a.sum(axis=1)) <= 1e-9 * np.abs(a).sum(axis=1)).all())
    if balanced:
        g = _centred(g)
    factor = _factor(g, size - 1 if balanced else size)
    z = np.empty((len(a), factor.shape[1]))
    bad = kernels.unit_rows(a, factor, np.sqrt(np.maximum(np.diag(g), 0.0)), z)
    if bad >= 0:
        raise _no_variance(bad, labels)
    return z


def centred_gram(gram: ArrayLike, n_contacts: int) -> NDArray[np.float64]:
    """Return a checked Gram matrix (E, E) for currents that sum to zero."""
    return _centred(_checked_gram(gram, n_contacts))


def gram_root(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return L (E, R) with G = L L', G the Gram matrix (E, E) of currents that sum to zero."""
    return _factor(gram, len(gram) - 1)


def _centred(g: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return P G P, P the projection on currents that sum to zero: same r, one rank less."""
    rows = g - g.mean(axis=1)[:, None]
    both = rows - rows.mean(axis=0)[None, :]
    return np.asarray((both + both.T) / 2)


def _factor(g: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return L (E, R) with G = L L', or say that G is not positive semidefinite."""
    scale = float(np.diag(g).max())
    if not scale > 0.0:
        raise CorrelationError("the Gram matrix is zero: the lead fields are constant")
    rest, factor = g.copy(), np.zeros_like(g)
    rank = kernels.factor_gram(rest, _ROUNDING * scale, most, factor)
    left = float(np.abs(rest).max() / scale)
    if left > _ASYMMETRY:
        raise CorrelationError(
            f"the Gram matrix is not positive semidefinite: G - L L' is {left:.1e} of its largest"
        )
    return np.ascontiguousarray(factor[:, :rank])


@dataclass(frozen=True, eq=False)
class SampledEmbedding:
    """An embedding by sampled features, and which samples those are."""

    embedding: NDArray[np.float64]  # (K, R), unit rows; R is at most the number of samples
    samples: Samples


def embedding_from_samples(
    currents: ArrayLike,
    field: NDArray[np.float64],
    weight: ArrayLike,
    *,
    count: int = 4096,
    seed: int = 1,
    tolerance: float = 1e-5,
    points: NDArray[np.float64] | None = None,
    labels: Labels = None,
    threads: int | None = None,
) -> SampledEmbedding:
    """Return unit rows for the field magnitude |E|, through sampled features.

    z_is = sqrt(w_s) (f_is - m_i) / norm with f_is = |sum_a I_ia E_a(x_s)| and m_i the weighted
    mean, so that Z Z' is the weighted correlation over the samples; then as few columns as r needs,
    to the tolerance. A mirrored configuration has the same magnitude, hence the same row.

    Parameters
    ----------
    currents : array_like, shape (K, E)
        Contact currents, A.
    field : ndarray, shape (E, N, 3)
        Field of each contact per ampere at the points of the region, V/m.
    weight : array_like, shape (N,)
        Volume that each point stands for, m3.
    count : int
        Number of samples S; all points if there are no more than that.
    seed : int
        Seed of the choice.
    tolerance : float
        Largest change of r for which columns are left out; 0 keeps all. At 1e-5, far below the
        error of sampling and of the fields, an eighth of 4096 columns remains.
    points : ndarray, shape (N, 3), optional
        Where the points are, m; spreads the samples evenly in space.
    labels : sequence of str or callable, optional
        What to call a configuration in an error message.
    threads : int, optional
        Number of threads, all by default. The bits do not depend on it.
    """
    a = _checked_currents(currents, labels)
    lead = np.asarray(field, dtype=np.float64)
    if lead.ndim != 3 or lead.shape[0] != a.shape[1] or lead.shape[2] != 3:
        raise CorrelationError(
            f"field has shape {lead.shape}, expected ({a.shape[1]}, N, 3) for {a.shape[1]} contacts"
        )
    samples = choose_samples(weight, count, seed=seed, points=points, n_points=lead.shape[1])
    chosen = np.ascontiguousarray(lead[:, samples.index].swapaxes(1, 2))
    z, sound = np.empty((len(a), len(samples.index))), np.empty(len(a), dtype=np.bool_)
    with _parallel.threads(threads):
        weights = _weights(samples.weight)
        _parallel.run_ranges(kernels.magnitude_rows, len(a), a, chosen, *weights, sound, z)
    _check_sound(sound, labels)
    if tolerance > 0:
        z = compress_embedding(z, tolerance=tolerance, threads=threads)
    return SampledEmbedding(z, samples)


def embedding_from_features(
    features: ArrayLike, weight: ArrayLike, *, labels: Labels = None
) -> NDArray[np.float64]:
    """Return unit rows for explicitly sampled fields: Z Z' is their weighted correlation.

    ``features`` (K, S) has one row of values per configuration, ``weight`` (S,) is that of each
    column, and ``labels`` says what to call a configuration in an error message.
    """
    z = np.array(features, dtype=np.float64, order="C", ndmin=2)
    w = np.asarray(weight, dtype=np.float64)
    if w.shape != z.shape[1:] or not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise CorrelationError(f"weight must be {z.shape[1:]} numbers, none negative, not all zero")
    sound = np.empty(len(z), dtype=np.bool_)
    kernels.feature_rows(*_weights(w), sound, z)
    _check_sound(sound, labels)
    return z


def _weights(w: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Return weights, their roots and their sum; the sum in order, not pairwise."""
    return np.ascontiguousarray(w), np.sqrt(w), float(np.cumsum(w)[-1])


def _checked_currents(currents: ArrayLike, labels: Labels) -> NDArray[np.float64]:
    a = np.ascontiguousarray(currents, dtype=np.float64)
    if a.ndim != 2 or 0 in a.shape:
        raise CorrelationError(f"currents have shape {a.shape}, expected (K, E)")
    finite = np.isfinite(a).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise CorrelationError(f"the currents of configuration {_name(row, labels)} are not finite")
    return a


def _checked_gram(gram: ArrayLike, n_contacts: int) -> NDArray[np.float64]:
    g = np.asarray(gram, dtype=np.float64)
    if g.shape != (n_contacts, n_contacts):
        raise CorrelationError(
            f"the Gram matrix has shape {g.shape}, expected ({n_contacts}, {n_contacts})"
        )
    if not np.isfinite(g).all():
        raise CorrelationError("the Gram matrix is not finite")
    if np.abs(g - g.T).max() > _ASYMMETRY * np.abs(g).max():
        raise CorrelationError("the Gram matrix is not symmetric")
    return np.asarray((g + g.T) / 2)


def _check_sound(sound: NDArray[np.bool_], labels: Labels) -> None:
    if not sound.all():
        raise _no_variance(int(np.argmin(sound)), labels)


def _no_variance(row: int, labels: Labels) -> CorrelationError:
    return CorrelationError(
        f"configuration {_name(row, labels)} makes a field without variance in the compared "
        "region: its correlation is not defined"
    )


def _name(row: int, labels: Labels) -> str:
    """Return what to call a row in a message."""
    if labels is None:
        return f"in row {row}"
    return repr(labels(row) if callable(labels) else labels[row])
