"""Features of the arms: what a utility that is linear in its weights can be made of.

Seven groups, as far as the source of r gives them; the weights of a utility have a normal prior.

* ``field``: unit rows Z, r = Z Z', or as many leading eigenfeatures of r;
* ``near``: eigenfeatures of exp(-(1 - r) / 0.3), which tell single arms apart;
* ``broad``: those of its square, the covariance of a sum of such bumps around arms drawn at
  random: smoother, and arms with many others around them differ more;
* ``even``: eigenfeatures of r^2, the same for a configuration and its polarity mirror;
* ``current``: the contact currents of a store, whitened over its arms: linear in the field, whose
  strength r alone does not know;
* ``strength``: eigenfeatures of a Matern-3/2 kernel over those;
* ``recruited``: eigenfeatures of what a configuration recruits, a sigmoid of the cathodic potential
  at each of 64 places of the compared region, with each of four thresholds.

Eigenfeatures come from a pivoted Cholesky factor, so any K will do. Every column has mean 0 (what
all arms share cannot be seen in duels), every group a mean squared length of 1.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation import _feature_kernels as kernels
from fieldcorr.correlation.sources import CorrelationSource, EmbeddingSource

if TYPE_CHECKING:
    from fieldcorr.store import Store

Float64s = NDArray[np.float64]
Int64s = NDArray[np.int64]

NEAR = 0.3
"""Range of the bumps, in 1 - r."""

BANK: Mapping[str, Mapping[str, float]] = {
    "field": {"field": 1.0},
    "current": {"current": 1.0},
    "near": {"field": 0.3, "near": 0.7},
    "broad": {"broad": 1.0},
    "even": {"even": 1.0},
    "strength": {"near": 0.5, "strength": 0.5},
    "recruited": {"recruited": 1.0},
}
"""Models of a utility: the prior variance that each gives to the groups of features."""

PLACES = 64
THRESHOLDS = np.array([0.0, 0.5, 1.0, 1.5])
"""Places that may be recruited, and thresholds in standard deviations of the potential there."""

_WIDTH = 0.3  # of the sigmoid, in the same unit
_PIVOTS = 160
_MOST = {"field": 50, "near": 50, "even": 60, "strength": 40, "recruited": 50}
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


def models_of(groups: Mapping[str, slice]) -> dict[str, tuple[Int64s, Float64s]]:
    """Return the columns and their scale of every model of the bank that the features allow."""
    models: dict[str, tuple[Int64s, Float64s]] = {}
    for name, variances in BANK.items():
        known = {group: v for group, v in variances.items() if group in groups}
        if not known or (len(known) == 1 < len(variances)):  # the one group has a model of its own
            continue
        total = sum(known.values())
        columns = [np.r_[groups[group]] for group in known]
        scale = [
            np.full(c.size, math.sqrt(v / total))
            for c, v in zip(columns, known.values(), strict=True)
        ]
        models[name] = np.concatenate(columns).astype(np.int64), np.concatenate(scale)
    return models


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

    near = _eigenfeatures(lambda arm: np.exp((r(arm) - 1.0) / NEAR), ones, key, _MOST["near"])
    groups = {
        "field": _eigenfeatures(r, ones, key, _MOST["field"])
        if store is None
        else _plain(store.embedding.copy()),
        "near": near,
        "broad": _squared(near),
        "even": _eigenfeatures(lambda arm: r(arm) ** 2, ones, key, _MOST["even"]),
    }
    if store is not None:
        white = _whitened(store.current)
        groups["current"] = _plain(white.copy())
        matern = _eigenfeatures(lambda arm: _matern(white, arm), ones, key, _MOST["strength"])
        groups["strength"] = matern
        parts = _recruited(store)
        variance = np.einsum("kp,kp->k", parts, parts)
        groups["recruited"] = _eigenfeatures(
            lambda arm: np.einsum("kp,p->k", parts, parts[arm]), variance, key, _MOST["recruited"]
        )
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


def _squared(group: _Group) -> _Group:
    """Return the eigenfeatures of the square of a kernel, from its own."""
    values = np.einsum("kf,kf->f", group.values, group.values)
    return _Group(_scaled(group.values * np.sqrt(values)), group.mixing)


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


def _recruited(store: "Store") -> Float64s:
    """Return what each configuration recruits, (K, places x thresholds), squares adding up to <= 1.

    Places are spread over the region so that each stands for the same volume.
    """
    share = np.cumsum(store.array("/leadfield/weight"))
    places = np.searchsorted(share, share[-1] * (np.arange(PLACES) + 0.5) / PLACES)
    lead = store.array("/leadfield/potential")[:, places]
    drive = -np.einsum("ke,ep->kp", store.current, lead)
    drive = (drive - drive.mean(axis=0)) / np.maximum(drive.std(axis=0), 1e-300)
    parts = 1.0 / (1.0 + np.exp((THRESHOLDS - drive[:, :, None]) / _WIDTH))
    return np.asarray(parts.reshape(len(drive), -1) / np.sqrt(PLACES * THRESHOLDS.size))


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
