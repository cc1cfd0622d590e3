"""Where r comes from: a store, an embedding, a matrix, a sparse matrix, a function of features.

Every source gives rows of r, adds the update of a duel to a tally, names its arms, and has a
fingerprint that tells one set of correlations from another. r is float32 in every source, so all
that know the same r give the same kappa and tau to the last bit. Sources hold no state that a call
changes: any number of engines and threads may share one.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
    get_args,
)

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import format_configuration
from fieldcorr.correlation import _update_kernels as kernels
from fieldcorr.correlation.rule import DEFAULT, UpdatePolicy
from fieldcorr.errors import CorrelationError

if TYPE_CHECKING:
    from fieldcorr.store import Store

Via = Literal["auto", "embedding", "matrix", "neighbours", "rules", "damped"]
"""How a store is read; "auto" is the embedding, or the rules where nothing is listed. "damped" is
r less its spread over the samples of the store's sweep."""

_ROUNDING = 1e-6
_ROWS_KEPT = 64


@dataclass(eq=False)
class Tally:
    """Wins and plays of all arms, (K,): w_b and n_b of the paper, without the background.

    ``background`` (2,) is what every arm has on top: wins, plays. Sparse sources add the update of
    all arms outside the two neighbourhoods here, so that a duel costs as much as its neighbours.
    """

    wins: NDArray[np.generic]
    plays: NDArray[Any]
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
        return np.asarray(self.wins + self.background[0])

    @property
    def all_plays(self) -> NDArray[np.float64]:
        """n_b of every arm, (K,)."""
        return np.asarray(self.plays + self.background[1])


class Identity(TypedDict, total=False):
    """What tells a source and its arms from others; see :class:`CorrelationSource`."""

    store: "Store | None"
    fingerprint: Callable[[], str] | None
    labels: Sequence[str] | None


Correlations: TypeAlias = "CorrelationSource | Store | ArrayLike"
"""Whatever :func:`as_source` takes; sparse matrices and DataFrames too, which have no types."""


class CorrelationSource(ABC):
    """Correlated arms as an engine sees them; ``store``, if any, names and identifies them.

    ``via`` is what r is read from: part of a journal, since ways differ where a store is sparse.
    """

    via: ClassVar[str]

    def __init__(
        self,
        size: int,
        *,
        store: "Store | None" = None,
        fingerprint: Callable[[], str] | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        if size < 1:
            raise CorrelationError("a source of correlations needs at least one arm")
        self._size = size
        self.store = store
        self._fingerprint = fingerprint
        self._labels = labels

    def __len__(self) -> int:
        """Return the number of arms K."""
        return self._size

    @abstractmethod
    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,); 1 at the arm itself, 0 where nothing is known.

        The array is the caller's own.
        """

    def add(
        self,
        tally: Tally,
        winner: int,
        loser: int,
        *,
        policy: UpdatePolicy = DEFAULT,
        tie: bool = False,
    ) -> None:
        """Add the update of one duel to the tally, in place (Algorithm 4).

        In a tie nobody won: wins get tau / 2, since the kappas of the two outcomes add up to tau.
        """
        self._check_pair(winner, loser)
        self._check_tally(tally)
        self._add(policy.as_rule(tie=tie), tally, winner, loser)

    def tally(self) -> Tally:
        """Return the tally of these arms before the first duel."""
        return Tally.zeros(self._size)

    def kappa_tau(
        self, winner: int, loser: int, *, policy: UpdatePolicy = DEFAULT
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (kappa, tau) of every arm after ``winner`` has won against ``loser``."""
        self._check_pair(winner, loser)
        kappa, tau = np.zeros(self._size), np.zeros(self._size)
        rows = self.row(winner), self.row(loser)
        kernels.add_from_rows(policy.as_rule(), *rows, winner, loser, kappa, tau)
        return kappa, tau

    def fingerprint(self) -> str:
        """Return a sha256 that tells these correlations from others."""
        if self.store is not None:
            return self.store.hash
        if self._fingerprint is None:
            raise CorrelationError("this source has no fingerprint: make it by a source_from_...")
        return self._fingerprint()

    def label(self, arm: int) -> str:
        """Return the name of an arm: its label, its number, or the text of a configuration."""
        if self.store is None:
            return str(arm) if self._labels is None else self._labels[arm]
        return format_configuration(self.store.polarity[arm], self.store.contact_names)

    @abstractmethod
    def _add(self, rule: kernels.Rule, tally: Tally, winner: int, loser: int) -> None:
        """Do what :meth:`add` says, with checked arguments."""

    def _check_tally(self, tally: Tally) -> None:
        for name, shape in (
            ("wins", (self._size,)),
            ("plays", (self._size,)),
            ("background", (2,)),
        ):
            values = getattr(tally, name)
            sound = values.dtype == np.float64 and values.shape == shape
            if not (sound and values.flags.c_contiguous and values.flags.writeable):
                raise CorrelationError(
                    f"{name} must be a writeable contiguous float64 array of shape {shape}, "
                    f"not {values.dtype} of shape {values.shape}"
                )

    def _check_pair(self, winner: int, loser: int) -> None:
        self._check_arm(winner)
        self._check_arm(loser)
        if winner == loser:
            raise CorrelationError(f"arm {winner} cannot duel with itself")

    def _check_arm(self, arm: int) -> None:
        if not 0 <= arm < self._size:
            raise CorrelationError(f"arm {arm} is not one of the {self._size} arms")


class EmbeddingSource(CorrelationSource):
    """r from unit rows (K, R): r_ij = z_i . z_j, added up in float64 and rounded to float32."""

    via = "embedding"

    def __init__(self, embedding: ArrayLike, **identity: Unpack[Identity]) -> None:
        rows = np.asarray(embedding, dtype=np.float64)
        if rows.ndim != 2 or not np.isfinite(rows).all():
            raise CorrelationError(f"an embedding is a finite (K, R) array, not {rows.shape}")
        size, rank = rows.shape
        super().__init__(size, **identity)
        # Blocks of nearly equal width: little is padding, and vector registers are full.
        count = -(-size // kernels.BLOCK)
        width = -(-size // (8 * count)) * 8
        padded = np.zeros((count * width, rank + -rank % 4))
        padded[:size, :rank] = rows
        blocks = padded.reshape(count, width, padded.shape[1]).swapaxes(1, 2)
        self._blocks = np.ascontiguousarray(blocks)

    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,)."""
        self._check_arm(arm)
        row = self._rows(arm, arm)[0]
        row[arm] = 1.0
        return row

    def _rows(self, i: int, j: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return r of two arms with everyone, as the embedding gives it."""
        rows = np.empty(self._size, np.float32), np.empty(self._size, np.float32)
        kernels.rows_from_embedding(self._blocks, i, j, np.empty((2, self._blocks.shape[2])), *rows)
        return rows

    def _add(self, rule: kernels.Rule, tally: Tally, winner: int, loser: int) -> None:
        rows = self._rows(winner, loser)
        kernels.add_from_rows(rule, *rows, winner, loser, tally.wins, tally.plays)


class RowSource(CorrelationSource):
    """r from whole rows: a (K, K) array, or a function ``i -> (K,) array``, which needs ``size`` K.

    Values are rounded to float32, and values above 1 are read as 1.
    """

    via = "matrix"

    def __init__(
        self,
        row: Callable[[int], ArrayLike] | ArrayLike,
        size: int | None = None,
        **identity: Unpack[Identity],
    ) -> None:
        if callable(row):
            if size is None:
                raise CorrelationError("size is needed when rows of r come from a function")
            super().__init__(size, **identity)
            self._read = row
        else:
            matrix = np.asarray(row, dtype=np.float32)
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise CorrelationError(f"a matrix of r is square, not {matrix.shape}")
            super().__init__(matrix.shape[0], **identity)
            self._read = matrix.__getitem__

    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,)."""
        self._check_arm(arm)
        values = np.asarray(self._read(arm))
        if values.shape != (self._size,):
            raise CorrelationError(
                f"row {arm} of r has shape {values.shape}, expected ({self._size},)"
            )
        row = np.empty(self._size, dtype=np.float32)
        np.minimum(values, 1.0, out=row, casting="same_kind")
        if not np.isfinite(row).all():
            raise CorrelationError(f"row {arm} of r is not finite")
        row[arm] = 1.0
        return row

    def _add(self, rule: kernels.Rule, tally: Tally, winner: int, loser: int) -> None:
        rows = self.row(winner), self.row(loser)
        kernels.add_from_rows(rule, *rows, winner, loser, tally.wins, tally.plays)


class DampedSource(RowSource):
    """r of a store with a sweep, less its standard deviation over the samples, not beyond 0.

    What a duel tells about an arm is then taken to be as little as the less favourable samples say.
    """

    via = "damped"

    def __init__(self, store: "Store") -> None:
        def row(arm: int) -> NDArray[np.float64]:
            r = store.row(arm).astype(np.float64)
            return np.sign(r) * np.maximum(np.abs(r) - store.ensemble.spread(arm), 0.0)

        super().__init__(row, len(store), store=store)


class NeighbourSource(CorrelationSource):
    """r from sparse neighbourhoods of ``size`` arms; what is not listed is read as unrelated.

    ``neighbours`` is a function ``i -> (indices, r)``: sorted, without i, as ``store.neighbours``.
    """

    via = "neighbours"

    def __init__(
        self,
        neighbours: Callable[[int], tuple[NDArray[np.generic], NDArray[np.generic]]],
        size: int,
        **identity: Unpack[Identity],
    ) -> None:
        super().__init__(size, **identity)
        self._read = neighbours

    @classmethod
    def from_csr(
        cls,
        indptr: NDArray[np.generic],
        indices: NDArray[np.generic],
        data: NDArray[np.generic],
        **identity: Unpack[Identity],
    ) -> "NeighbourSource":
        """Return a source over the three arrays of a CSR matrix without diagonal."""

        def neighbours(arm: int) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
            entries = slice(int(indptr[arm]), int(indptr[arm + 1]))
            return indices[entries], data[entries]

        return cls(neighbours, len(indptr) - 1, **identity)

    def row(self, arm: int) -> NDArray[np.float32]:
        """Return r of one arm with everyone, (K,): 0 for arms that are not listed."""
        self._check_arm(arm)
        indices, values = self._neighbours(arm)
        r = np.zeros(self._size, dtype=np.float32)
        r[indices] = values
        r[arm] = 1.0
        return r

    def _neighbours(self, arm: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return a neighbourhood in the types that kernels take, or say that it is damaged."""
        indices, values = self._read(arm)
        near = np.ascontiguousarray(indices, dtype=np.int64)
        r = np.ascontiguousarray(values, dtype=np.float32)
        sound = len(near) == len(r)
        if not (sound and kernels.neighbours_are_sound(arm, near, r, self._size)):
            raise CorrelationError(f"neighbourhood {arm} is not sorted, not finite or out of range")
        return near, r

    def _add(self, rule: kernels.Rule, tally: Tally, winner: int, loser: int) -> None:
        near = *self._neighbours(winner), *self._neighbours(loser)
        arrays = tally.wins, tally.plays, tally.background
        kernels.add_from_neighbours(rule, *near, winner, loser, *arrays)


# -- from whatever holds the correlations ---------------------------------------------------------


def as_source(correlation: Correlations, *, via: Via = "auto") -> CorrelationSource:
    """Return the source of a source, an open store, a square array, or a scipy sparse matrix.

    A pandas DataFrame is a square array whose index names the arms; its columns must be the same.

    An embedding or a kernel function cannot be told from other arrays and functions: use
    :func:`source_from_embedding` or :func:`source_from_kernel`. A store is read via "embedding",
    "matrix" or "neighbours"; "auto" is the embedding, which is fastest, or "rules" where
    configurations are not listed.
    """
    if isinstance(correlation, CorrelationSource):
        return correlation
    if hasattr(correlation, "contact_names"):
        return source_from_store(cast("Store", correlation), via=via)
    if hasattr(correlation, "tocsr"):
        return source_from_sparse(correlation)
    if callable(correlation):
        raise CorrelationError(
            "a kernel function needs its features: source_from_kernel(function, ...)"
        )
    if hasattr(correlation, "columns") and hasattr(correlation, "index"):
        return _source_from_frame(correlation)
    array = np.asarray(correlation)
    if array.ndim == 2 and array.shape[0] != array.shape[1]:
        raise CorrelationError(f"shape {array.shape} is not square; see source_from_embedding")
    return source_from_matrix(array)


def source_from_store(store: "Store", *, via: Via = "auto") -> CorrelationSource:
    """Return the source of an open store; its hash does not depend on the way of reading it."""
    if store.is_whole:
        if via not in ("auto", "rules"):
            raise CorrelationError(f"{store.path}: r is computed from the rules, not via {via!r}")
        return store.source
    if via in ("auto", "embedding"):
        return EmbeddingSource(store.embedding, store=store)
    if via == "neighbours":
        return NeighbourSource(store.neighbours, len(store), store=store)
    if via == "damped":
        store.ensemble  # noqa: B018 - says that there is no sweep in this store, before any duel
        return DampedSource(store)
    if via == "rules":
        raise CorrelationError(f"{store.path}: configurations are listed: use the embedding")
    if via != "matrix":
        raise CorrelationError(f"via {via!r} is not one of {', '.join(get_args(Via))}")
    if not store.has_matrix:
        raise CorrelationError(f"{store.path}: the store has no matrix; use the embedding")
    return RowSource(store.row, len(store), store=store)


def _source_from_frame(frame: Any) -> CorrelationSource:
    """Return the source of a DataFrame of r: pandas is not needed, only what it has."""
    labels = [str(name) for name in frame.index]
    if labels != [str(name) for name in frame.columns]:
        raise CorrelationError("correlation table: its rows and columns are not named alike")
    if len(set(labels)) < len(labels):
        raise CorrelationError("correlation table: two rows have the same name")
    return source_from_matrix(np.asarray(frame), labels=labels)


def source_from_matrix(
    matrix: ArrayLike, *, labels: Sequence[str] | None = None
) -> CorrelationSource:
    """Return the source of a symmetric (K, K) matrix with ones on the diagonal."""
    array = _real_array(matrix, "correlation matrix")
    _check_square(array.shape)
    r = np.ascontiguousarray(_clamped(array), dtype=np.float32)
    if not np.allclose(np.diagonal(r), 1.0, rtol=0.0, atol=_ROUNDING):
        raise CorrelationError("correlation matrix: the diagonal is not 1")
    if not np.allclose(r, r.T, rtol=0.0, atol=_ROUNDING):
        raise CorrelationError("correlation matrix: it is not symmetric")
    return RowSource(r, fingerprint=lambda: _digest("matrix", r), labels=labels)


def source_from_embedding(embedding: ArrayLike) -> CorrelationSource:
    """Return the source of unit rows (K, R) with r_ij = z_i . z_j."""
    z = np.ascontiguousarray(_real_array(embedding, "embedding"), dtype=np.float64)
    if z.ndim != 2 or z.shape[0] < 2:
        raise CorrelationError(f"embedding: shape {z.shape} is not (arms, rank)")
    if not np.allclose(np.linalg.norm(z, axis=1), 1.0, rtol=0.0, atol=_ROUNDING):
        raise CorrelationError("embedding: the rows are not of length 1")
    return EmbeddingSource(z, fingerprint=lambda: _digest("embedding", z))


def source_from_kernel(
    function: Callable[[NDArray[Any], NDArray[Any]], ArrayLike],
    features: ArrayLike,
    *,
    name: str = "kernel",
) -> CorrelationSource:
    """Return the source of a correlation function over features (K, ...), one entry per arm.

    ``function(features[i], features)`` returns r of arm i with everyone, (K,); the last rows are
    remembered. ``name`` tells functions apart in the fingerprint: they have no content to hash.
    """
    points = np.asarray(features)
    if points.ndim < 1 or points.shape[0] < 2:
        raise CorrelationError(f"kernel source: features of shape {points.shape} hold no arms")

    @lru_cache(maxsize=_ROWS_KEPT)
    def row(arm: int) -> NDArray[np.generic]:
        return _clamped(_real_array(function(points[arm], points), "kernel function"))

    digest = f"kernel {name}"
    return RowSource(row, points.shape[0], fingerprint=lambda: _digest(digest, points))


def source_from_sparse(matrix: object) -> CorrelationSource:
    """Return the source of a symmetric scipy sparse matrix; what is not stored is unrelated."""
    csr = _sound_csr(matrix)
    _check_square(csr.shape)
    if abs(csr - csr.T).max() > _ROUNDING:
        raise CorrelationError("sparse correlation: it is not symmetric")
    coo = csr.tocoo()
    keep = coo.row != coo.col
    row, column, value = coo.row[keep], coo.col[keep], _clamped(coo.data[keep])
    order = np.lexsort((column, row))
    indices, data = column[order].astype(np.int64), value[order].astype(np.float32)
    indptr = np.searchsorted(row[order], np.arange(csr.shape[0] + 1))
    return NeighbourSource.from_csr(
        indptr, indices, data, fingerprint=lambda: _digest("sparse", indptr, indices, data)
    )


def _sound_csr(matrix: Any) -> Any:
    """Return a sparse matrix as CSR; scipy's own routines crash on indices out of range."""
    try:
        if hasattr(matrix, "check_format"):  # csr, csc, bsr
            matrix.check_format(full_check=True)
        if hasattr(matrix, "row") and matrix.nnz:  # coo
            for place, limit in zip((matrix.row, matrix.col), matrix.shape, strict=True):
                if place.min() < 0 or place.max() >= limit:
                    raise ValueError(f"an index is outside 0..{limit - 1}")
        csr = matrix.tocsr()
        csr.check_format(full_check=True)
    except ValueError as error:
        raise CorrelationError(f"sparse correlation: it is damaged: {error}") from error
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _real_array(values: ArrayLike, name: str) -> NDArray[np.generic]:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise CorrelationError(f"{name}: holds something else than real numbers")
    return array


def _check_square(shape: tuple[int, ...]) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise CorrelationError(f"correlation matrix: shape {shape} is not (K, K) with K > 1")


def _clamped(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return r limited to [-1, 1]; refuse what is no correlation even up to rounding."""
    if not np.all(np.abs(values) <= 1.0 + _ROUNDING):
        raise CorrelationError("correlation: an entry is not finite or outside [-1, 1]")
    limited: NDArray[np.generic] = np.clip(values, -1.0, 1.0)
    return limited


def _digest(kind: str, *arrays: NDArray[np.generic]) -> str:
    digest = hashlib.sha256(kind.encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
