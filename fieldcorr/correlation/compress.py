"""Fewer columns for an embedding that has one per sample, with r the same to a bound.

Fields are smooth, so a few hundred directions hold what thousands of samples say; r, stores and
updates cost as many times less.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr import _parallel
from fieldcorr.correlation import _embedding_kernels as embedding_kernels
from fieldcorr.correlation import _kernels as kernels
from fieldcorr.correlation.tiles import pack_embedding

_SEARCHED = 8 * kernels.PANEL  # rows with the largest residuals, among which pivots are looked for
_WORTHWHILE = 0.1  # of the largest residual: a pivot with less waits for a later round


def compress_embedding(
    embedding: NDArray[np.float64], *, tolerance: float, threads: int | None = None
) -> NDArray[np.float64]:
    """Return unit rows W with fewer columns and |(W W')_ij - (Z Z')_ij| <= tolerance.

    Pivoted Cholesky factor of r = Z Z' that ends early. With d_i what is left of the diagonal,
    Cauchy-Schwarz bounds what is left of r_ij by sqrt(d_i d_j), and making the rows unit ones
    again changes r by as much once more: the factor ends when no d_i exceeds 0.45 tolerance.
    Only the pivots' rows of r are ever computed.

    Z is (K, S) and W (K, R); equal rows stay equal, and Z itself is returned if R would not be
    below S / 2. The bits do not depend on ``threads``.
    """
    packed = pack_embedding(embedding)
    size, most = len(embedding), embedding.shape[1] // 2
    columns, products = np.empty((most, size)), np.empty((kernels.PANEL, size))
    residual, count = np.ones(size), 0
    while residual.max() > 0.45 * tolerance:
        pivots = _choose(residual)
        with _parallel.threads(threads):
            # Up to 16 rows are one panel, zeros after the last.
            rows = pack_embedding(embedding[pivots]).panels
            panels = packed.panels
            _parallel.run_ranges(kernels.fill_products, len(panels), rows, panels, products)
        least = max(0.45 * tolerance, _WORTHWHILE * residual.max())
        for product, pivot in zip(products, pivots, strict=False):
            if residual[pivot] < least:
                continue
            if count == most:
                return embedding
            embedding_kernels.add_column(product, pivot, count, columns, residual)
            count += 1
    z = np.empty((size, count))
    embedding_kernels.normalised_rows(columns[:count], z)
    return z


def _choose(residual: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return up to 16 rows with the largest residuals, no two of them equal.

    Equal residuals are mostly equal rows (a configuration and its mirror image have the same |E|),
    of which one says it all.
    """
    order = np.argsort(-residual, kind="stable")[:_SEARCHED]
    values = residual[order]
    first = np.concatenate([[True], values[1:] != values[:-1]])
    return np.asarray(order[first][: kernels.PANEL])
