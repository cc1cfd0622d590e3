"""Where r comes from: a store, a matrix, a sparse matrix, an embedding, a kernel over rows.

What flows in: any of these. What flows out: a :class:`CorrelationSource`, which adds to the update
rule (:mod:`fieldcorr.correlation.update`) what a session needs: names of the arms, and a
fingerprint that tells one set of correlations from another.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.policy import UpdatePolicy
from fieldcorr.correlation.update import EmbeddingSource, NeighbourSource, RowSource, UpdateSource
from fieldcorr.errors import DuelError

if TYPE_CHECKING:
    from fieldcorr.store import Store

Via = Literal["auto", "embedding", "matrix", "neighbours"]
_ROUNDING = 1e-6
_ROWS_KEPT = 64


@dataclass(frozen=True, eq=False)
class Tally:
    """Wins and plays of all arms.

    Attributes
    ----------
    wins, plays : (K,) float64
        w_b and n_b of the paper, without the background.
    background : (2,) float64
        What every arm has on top: wins, plays. Sparse sources add the increment of all arms outside
        the two neighbourhoods here, so that a duel costs as much as its neighbours.
    """

    wins: NDArray[np.float64]
    plays: NDArray[np.float64]
    background: NDArray[np.float64]

    @classmethod
    def zeros(cls, arms: int) -> "Tally":
        """Return the tally before the first duel."""
        return cls(np.zeros(arms), np.zeros(arms), np.zeros(2))

    def clear(self) -> None:
        """Forget everything, in place."""
        for array in (self.wins, self.plays, self.background):
            array.fill(0.0)

    @property
    def all_wins(self) -> NDArray[np.float64]:
        """w_b of every arm, (K,)."""
        total: NDArray[np.float64] = self.wins + self.background[0]
        return total

    @property
    def all_plays(self) -> NDArray[np.float64]:
        """n_b of every arm, (K,)."""
        total: NDArray[np.float64] = self.plays + self.background[1]
        return total


class CorrelationSource:
    """Correlated arms as an engine sees them.

    Parameters
    ----------
    update
        Rows of r and the update rule.
    fingerprint
        Returns a sha256 that tells these correlations from others; called only for journals.
    label
        Returns the name of an arm.
    picture
        Returns the drawing of an arm as SVG, for notebooks; empty where there is nothing to draw.
    """

    def __init__(
        self,
        update: UpdateSource,
        *,
        fingerprint: Callable[[], str],
        label: Callable[[int], str] = str,
        picture: Callable[[int], str] = lambda arm: "",
    ) -> None:
        self._update = update
        self._fingerprint = fingerprint
        self._label = label
        self._picture = picture

    def __len__(self) -> int:
        """Return the number of arms K."""
        return self._update.size

    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,)."""
        return self._update.row(arm)

    def add(
        self, tally: Tally, winner: int, loser: int, *, policy: UpdatePolicy, tie: bool = False
    ) -> None:
        """Add the CorrUpdate of one duel to the tally, in place (Algorithm 4)."""
        self._update.add(
            tally.wins, tally.plays, tally.background, winner, loser, policy=policy, tie=tie
        )

    def fingerprint(self) -> str:
        """Return a sha256 that tells these correlations from others."""
        return self._fingerprint()

    def label(self, arm: int) -> str:
        """Return the name of an arm."""
        return self._label(arm)

    def picture(self, arm: int) -> str:
        """Return the drawing of an arm as SVG; empty where there is nothing to draw."""
        return self._picture(arm)


def as_source(correlation: Any, *, via: Via = "auto") -> CorrelationSource:
    """Return the source for whatever holds the correlations.

    Parameters
    ----------
    correlation
        A source, an open store, a square array, or a scipy sparse matrix. An embedding or a kernel
        function cannot be told from other arrays and functions: use :func:`source_from_embedding`
        or :func:`source_from_kernel`.
    via
        For a store: "embedding", "matrix" or "neighbours"; "auto" takes the embedding, which every
        store has and which is fastest.
    """
    if isinstance(correlation, CorrelationSource):
        return correlation
    if hasattr(correlation, "contact_names"):
        return source_from_store(correlation, via=via)
    if hasattr(correlation, "tocsr"):
        return source_from_sparse(correlation)
    if callable(correlation):
        raise DuelError("a kernel function needs its features: source_from_kernel(function, ...)")
    array = np.asarray(correlation)
    if array.ndim == 2 and array.shape[0] != array.shape[1]:
        raise DuelError(f"shape {array.shape} is not square; see source_from_embedding")
    return source_from_matrix(array)


def source_from_store(store: "Store", *, via: Via = "auto") -> CorrelationSource:
    """Return the source of an open store; its hash does not depend on the way of reading it."""
    update: UpdateSource
    if via == "neighbours":
        update = NeighbourSource(store.neighbours, len(store))
    elif via == "matrix":
        if not store.has_matrix:
            raise DuelError(f"{store.path}: the store has no matrix; use the embedding")
        update = RowSource(store.row, len(store))
    else:
        update = EmbeddingSource(store.embedding)
    return CorrelationSource(
        update,
        fingerprint=lambda: store.hash,
        label=lambda arm: store.texts[arm],
        picture=lambda arm: _array_picture(store, arm),
    )


def _array_picture(store: "Store", arm: int) -> str:
    from fieldcorr.layout import layout_of
    from fieldcorr.notebook.svg import array_svg

    return array_svg(layout_of(store), store.polarity[arm])


def source_from_matrix(matrix: ArrayLike) -> CorrelationSource:
    """Return the source of a symmetric (K, K) matrix with ones on the diagonal."""
    array = np.asarray(matrix)
    _check_square(array.shape)
    r = np.ascontiguousarray(_clamped(array), dtype=np.float32)
    if not np.allclose(np.diagonal(r), 1.0, rtol=0.0, atol=_ROUNDING):
        raise DuelError("correlation matrix: the diagonal is not 1")
    if not np.allclose(r, r.T, rtol=0.0, atol=_ROUNDING):
        raise DuelError("correlation matrix: it is not symmetric")
    return CorrelationSource(RowSource(r), fingerprint=lambda: _digest("matrix", r))


def source_from_embedding(embedding: ArrayLike) -> CorrelationSource:
    """Return the source of unit rows (K, R) with r_ij = z_i . z_j."""
    z = np.ascontiguousarray(embedding, dtype=np.float64)
    if z.ndim != 2 or z.shape[0] < 2:
        raise DuelError(f"embedding: shape {z.shape} is not (arms, rank)")
    if not np.allclose(np.linalg.norm(z, axis=1), 1.0, rtol=0.0, atol=_ROUNDING):
        raise DuelError("embedding: the rows are not of length 1")
    return CorrelationSource(EmbeddingSource(z), fingerprint=lambda: _digest("embedding", z))


def source_from_kernel(
    function: Callable[[NDArray[Any], NDArray[Any]], ArrayLike],
    features: ArrayLike,
    *,
    name: str = "kernel",
) -> CorrelationSource:
    """Return the source of a correlation function over rows of features.

    Parameters
    ----------
    function
        Called as ``function(features[i], features)``; returns r of arm i with everyone, (K,). The
        last rows are remembered.
    features : (K, ...) array_like
        One entry per arm.
    name
        Says which function it is, in the fingerprint: a function has no content to hash.
    """
    points = np.asarray(features)
    if points.ndim < 1 or points.shape[0] < 2:
        raise DuelError(f"kernel source: features of shape {points.shape} hold no arms")

    @lru_cache(maxsize=_ROWS_KEPT)
    def row(arm: int) -> NDArray[Any]:
        return _clamped(np.asarray(function(points[arm], points)))

    return CorrelationSource(
        RowSource(row, points.shape[0]), fingerprint=lambda: _digest(f"kernel {name}", points)
    )


def source_from_sparse(matrix: Any) -> CorrelationSource:
    """Return the source of a symmetric scipy sparse matrix; what is not stored is unrelated."""
    csr = matrix.tocsr()
    _check_square(csr.shape)
    if abs(csr - csr.T).max() > _ROUNDING:
        raise DuelError("sparse correlation: it is not symmetric")
    coo = csr.tocoo()
    keep = coo.row != coo.col
    row, column, value = coo.row[keep], coo.col[keep], _clamped(coo.data[keep])
    order = np.lexsort((column, row))
    indices, data = column[order].astype(np.int64), value[order].astype(np.float32)
    indptr = np.searchsorted(row[order], np.arange(csr.shape[0] + 1))
    return CorrelationSource(
        NeighbourSource.from_csr(indptr, indices, data),
        fingerprint=lambda: _digest("sparse", indptr, indices, data),
    )


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise DuelError(f"correlation matrix: shape {shape} is not (K, K) with K > 1")


def _clamped(values: NDArray[Any]) -> NDArray[Any]:
    """Return r limited to [-1, 1]; refuse what is no correlation even up to rounding."""
    if not np.all(np.abs(values) <= 1.0 + _ROUNDING):
        raise DuelError("correlation: an entry is not finite or outside [-1, 1]")
    limited: NDArray[Any] = np.clip(values, -1.0, 1.0)
    return limited


def _digest(kind: str, *arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256(kind.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
