"""Features of the arms: what a utility that is linear in its weights can be made of.

Four groups, as far as the source of r gives them; the weights of a utility have a normal prior.

* ``field``: unit rows Z, r = Z Z', or as many leading eigenfeatures of r;
* ``near``: eigenfeatures of exp(-(1 - r) / 0.3), bumps around single arms;
* ``current``: the contact currents of a store, whitened over its arms: linear in the field, whose
  strength r alone does not know;
* ``strength``: eigenfeatures of a Matern-3/2 kernel over those.

Eigenfeatures come from a pivoted Cholesky factor, so any K will do. Every column has mean 0 (what
all arms share cannot be seen in duels), every group a mean squared length of 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation import _feature_kernels as kernels
from fieldcorr.correlation.sources import CorrelationSource, EmbeddingSource

Float64s = NDArray[np.float64]

NEAR = 0.3
"""Range of the bumps, in 1 - r."""

_PIVOTS = 160
_MOST = {"field": 50, "near": 50, "strength": 40}
_LEAST = 1e-5  # of the largest variance: what float32 rows of r can tell from nothing
_KEYED_ARMS = 20_000
_SWEEPS = 30


@dataclass(frozen=True, eq=False)
class Features:
    """Features of K arms, in groups.

    ``values`` (K, F) holds the groups side by side, ``groups`` says which columns are whose.
    ``mixing`` (P, F) has orthonormal columns: normal numbers in a basis that does not depend on how
    arms are numbered, times it, are normal weights that do not either.
    """

    values: Float64s
    mixing: Float64s
    groups: dict[str, slice]


_KNOWN: "WeakKeyDictionary[CorrelationSource, Features]" = WeakKeyDictionary()


def features_of(source: CorrelationSource) -> Features:
    """Return the features of a source; they are made once."""
    if source not in _KNOWN:
        _KNOWN[source] = _made(source)
    return _KNOWN[source]


@dataclass(frozen=True, eq=False)
class _Group:
    values: Float64s  # (K, F)
    mixing: Float64s  # (P, F)


def _made(source: CorrelationSource) -> Features:
    store = source.store
    exact = source if store is None else EmbeddingSource(store.embedding, store=store)
    key = _row_key(exact) if store is None else _projected(store.embedding)
    ones = np.ones(len(source))

    def r(arm: int) -> Float64s:
        return np.maximum(exact.row(arm), -1.0, dtype=np.float64)

    groups = {
        "field": _eigenfeatures(r, ones, key, _MOST["field"])
        if store is None
        else _plain(store.embedding.copy()),
        "near": _eigenfeatures(lambda arm: np.exp((r(arm) - 1.0) / NEAR), ones, key, _MOST["near"]),
    }
    if store is not None:
        white = _whitened(store.current)
        groups["current"] = _plain(white.copy())
        matern = _eigenfeatures(lambda arm: _matern(white, arm), ones, key, _MOST["strength"])
        groups["strength"] = matern
    return _joined(groups)


def _joined(groups: dict[str, _Group]) -> Features:
    """Put groups side by side; their mixing has blocks."""
    values = np.ascontiguousarray(np.concatenate([g.values for g in groups.values()], axis=1))
    shape = np.sum([g.mixing.shape for g in groups.values()], axis=0)
    mixing, row, column, columns = np.zeros(shape), 0, 0, {}
    for name, group in groups.items():
        tall, wide = group.mixing.shape
        mixing[row : row + tall, column : column + wide] = group.mixing
        columns[name] = slice(column, column + wide)
        row, column = row + tall, column + wide
    return Features(values, mixing, columns)


def _plain(rows: Float64s) -> _Group:
    """Return rows (K, F) as a group in their own basis."""
    return _Group(_scaled(rows), np.eye(rows.shape[1]))


def _scaled(rows: Float64s) -> Float64s:
    return np.asarray(rows / np.sqrt(max(kernels.centre(rows), 1e-300)))


def _eigenfeatures(
    row: Callable[[int], Float64s], variance: Float64s, key: Float64s, most: int
) -> _Group:
    """Return the leading eigenfeatures of a kernel given by its rows: a group of <= ``most``."""
    rest, count = variance.copy(), 0
    factor = np.zeros((rest.size, min(_PIVOTS, rest.size)))
    while count < factor.shape[1]:
        # The arm with the most variance left; of nearly equal ones that of the largest key.
        pivot = int(np.argmax(np.where(rest > _LEAST, rest + 1e-6 * key, -1.0)))
        if rest[pivot] <= _LEAST:
            break
        kernels.add_column(row(pivot), pivot, count, factor, rest)
        count += 1
    factor = np.ascontiguousarray(factor[:, :count])
    kernels.centre(factor)
    values, vectors = _eigen(factor)
    keep = _cut(values, most)
    mixing = np.ascontiguousarray(vectors[:, :keep])
    rows = np.empty((rest.size, keep))
    kernels.times(factor, mixing, rows)
    return _Group(_scaled(rows), mixing)


def _eigen(rows: Float64s) -> tuple[Float64s, Float64s]:
    """Return eigenvalues, largest first, and eigenvectors, in columns, of X' X / K."""
    moments = np.empty((rows.shape[1],) * 2)
    kernels.times(np.ascontiguousarray(rows.T), rows, moments)
    moments /= len(rows)
    vectors = np.empty_like(moments)
    kernels.jacobi(moments, vectors, _SWEEPS)
    order = np.argsort(-np.diag(moments), kind="stable")
    return np.diag(moments)[order], vectors[order].T


def _cut(values: Float64s, most: int) -> int:
    """Return how many eigenvalues to keep: never a part of several equal ones."""
    keep = int(np.count_nonzero(values > _LEAST * values[0]))
    if keep > most:
        gaps = np.flatnonzero(values[:most] - values[1 : most + 1] > 1e-8 * values[0])
        keep = int(gaps[-1]) + 1 if gaps.size else most
    return max(keep, 1)


def _whitened(currents: Float64s) -> Float64s:
    """Return currents (K, E) with mean 0 and covariance 1 on the directions that they have.

    The symmetric root is taken, so the basis is that of the contacts.
    """
    rows = np.array(currents, dtype=np.float64)
    kernels.centre(rows)
    values, vectors = _eigen(rows)
    keep = values > 1e-10 * values[0]
    directions = vectors[:, keep]
    root = np.einsum("ef,f,gf->eg", directions, values[keep] ** -0.5, directions)
    white = np.empty_like(rows)
    kernels.times(rows, np.ascontiguousarray(root), white)
    return white


def _matern(white: Float64s, arm: int) -> Float64s:
    """Return (1 + a) exp(-a), a = sqrt(3) d / l, of one arm; l^2 is the mean of d^2."""
    square = np.einsum("kf,kf->k", white - white[arm], white - white[arm])
    mean = 2.0 * np.einsum("kf,kf->", white, white) / len(white)
    a = np.sqrt(3.0 * square / mean)
    return np.asarray((1.0 + a) * np.exp(-a))


def _projected(rows: Float64s) -> Float64s:
    """Return a number in [0, 1] per row that does not depend on where the row stands."""
    wave = np.einsum("kf,f->k", rows, np.sqrt(np.arange(2.0, rows.shape[1] + 2.0)))
    return np.asarray((np.sin(3.0 * wave) + 1.0) / 2.0)


def _row_key(source: CorrelationSource) -> Float64s:
    """Return a number in [0, 1] per arm from its row of r; 0 for very many arms."""
    if len(source) > _KEYED_ARMS:
        return np.zeros(len(source))
    rows = (source.row(arm).astype(np.float64) for arm in range(len(source)))
    sums = np.array([np.einsum("k,k->", r, r * r + r) for r in rows])
    spread = max(float(np.ptp(sums)), 1e-300)
    return np.asarray((sums - sums.min()) / spread)
