"""r under several circuits: what is not known exactly is a sample of circuits, each with a weight.

A circuit is a Gram matrix, an admittance and a drive: all that r of the rules' configurations
depends on. A few hundred numbers per sample are therefore kept, and mean, spread and quantiles of r
are computed for a row when it is asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.correlation.whole import Circuit
from fieldcorr.errors import CorrelationError

Floats = NDArray[np.float64]

MOST_BYTES = 4 << 30
"""Unit rows of more samples than this are not held in memory."""


@dataclass(frozen=True, eq=False)
class Ensemble:
    """M circuits of the same configurations, and how much each counts.

    ``polarity`` is (K, E); ``weight`` (M,) is not negative and sums to 1.
    """

    polarity: NDArray[np.int8]
    circuits: Sequence[Circuit]
    weight: Floats

    def __post_init__(self) -> None:
        need = 8 * len(self.circuits) * self.polarity.size
        if need > MOST_BYTES:
            raise CorrelationError(
                f"{len(self.circuits)} samples of {len(self.polarity):,} configurations need "
                f"{need:,} bytes, more than {MOST_BYTES:,}; use rules that leave fewer"
            )

    def __len__(self) -> int:
        """Return the number of samples M."""
        return len(self.circuits)

    @cached_property
    def embeddings(self) -> Floats:
        """(M, K, R) unit rows of every sample; those of less rank are padded with zeros."""
        return self._embed(self.polarity)

    def _embed(self, polarity: NDArray[np.int8]) -> Floats:
        parts = [embedding_from_gram(one.currents(polarity), one.gram) for one in self.circuits]
        out = np.zeros((len(parts), len(polarity), max(part.shape[1] for part in parts)))
        for rows, part in zip(out, parts, strict=True):
            rows[:, : part.shape[1]] = part
        return out

    def rows(self, i: int) -> Floats:
        """Return r of configuration i with everyone in every sample, (M, K)."""
        return _products(self.embeddings, self.embeddings[:, i])

    def rows_of(self, polarity: NDArray[np.int8]) -> Floats:
        """Return r of any configuration (E,) with everyone in every sample, (M, K)."""
        both = np.vstack([polarity[None], self.polarity])
        return _products((every := self._embed(both))[:, 1:], every[:, 0])

    def mean(self, i: int) -> Floats:
        """Return the mean of r over the samples, (K,)."""
        return average(self.rows(i), self.weight)

    def spread(self, i: int) -> Floats:
        """Return the standard deviation of r over the samples, (K,)."""
        return deviation(self.rows(i), self.weight)

    def quantiles(self, i: int, levels: ArrayLike) -> Floats:
        """Return r at levels (L,) between 0 and 1 of its distribution over the samples, (L, K).

        Each is the least r of a sample at which the weights of all samples up to it reach the
        level.
        """
        wanted = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        if not ((wanted >= 0.0) & (wanted <= 1.0)).all():
            raise CorrelationError(f"quantiles: {levels!r} is not between 0 and 1")
        r = self.rows(i)
        order = np.argsort(r, axis=0, kind="stable")
        reached = np.cumsum(self.weight[order], axis=0)
        # What a sum of weights lacks to the level is rounding, not a sample.
        place = (reached[None] < wanted[:, None, None] - 1e-12).sum(axis=1)
        place = np.minimum(place, len(r) - 1)
        return np.take_along_axis(np.take_along_axis(r, order, axis=0), place, axis=0)

    def above(self, i: int, threshold: float) -> Floats:
        """Return the probability (K,) that r with configuration i exceeds a threshold."""
        return average((self.rows(i) > threshold).astype(np.float64), self.weight)

    def among_nearest(self, i: int, n: int) -> Floats:
        """Return the probability (K,) that each is among the n of largest r with i, itself out."""
        return average(nearest_marks(self.rows(i), i, n).astype(np.float64), self.weight)

    def mean_embedding(self) -> Floats:
        """Return unit rows (K, M R) whose products are the mean of r over the samples.

        sum_s w_s z_i^s . z_j^s is the product of the rows (sqrt(w_1) z^1, sqrt(w_2) z^2, ...), and
        those are unit rows because the weights sum to 1.
        """
        scaled = np.sqrt(self.weight)[:, None, None] * self.embeddings
        samples, count, rank = scaled.shape
        return np.ascontiguousarray(scaled.swapaxes(0, 1).reshape(count, samples * rank))


def average(values: Floats, weight: Floats) -> Floats:
    """Return the weighted mean of values (M, ...) over the first axis."""
    return np.asarray(np.einsum("m,m...->...", weight, values))


def deviation(values: Floats, weight: Floats) -> Floats:
    """Return the weighted standard deviation of values (M, ...) over the first axis."""
    return np.asarray(np.sqrt(average((values - average(values, weight)) ** 2, weight)))


def nearest_marks(r: Floats, i: int, n: int) -> NDArray[np.bool_]:
    """Mark in rows of r (M, K) the n largest besides column i; of equal r the lower column."""
    others = r.copy()
    others[:, i] = -np.inf
    order = np.argsort(-others, axis=1, kind="stable")[:, : min(n, r.shape[1] - 1)]
    marks = np.zeros(r.shape, dtype=np.bool_)
    np.put_along_axis(marks, order, np.True_, axis=1)
    return marks


def effective_size(weight: ArrayLike) -> float:
    """Return the number of equally weighted samples that say as much: 1 / sum w^2."""
    w: Floats = np.asarray(weight, dtype=np.float64)
    return float(w.sum() ** 2 / (w @ w))


def _products(embeddings: Floats, ones: Floats) -> Floats:
    """Return the products (M, K) of unit rows (M, K, R) with one row of each sample (M, R)."""
    # einsum without BLAS: one order of summation, whatever the number of threads.
    products = np.einsum("mkr,mr->mk", embeddings, ones, optimize=False)
    return np.asarray(np.clip(products, -1.0, 1.0))
