"""Rows of r to look at: a few of many, in an order that shows the blocks of the matrix."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConfigurationError

FloatArray = NDArray[np.float64]


def spread_rows(total: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` of ``total`` rows, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def ordered(r: FloatArray, order: str) -> NDArray[np.int64]:
    """Return the permutation (m,) of the rows of r (m, m), in the order of that name."""
    if order not in _ORDERS:
        raise ConfigurationError(f"order {order!r} is not one of {', '.join(_ORDERS)}")
    return np.arange(len(r)) if len(r) < 3 else _ORDERS[order](np.clip(r, -1.0, 1.0))


def _hierarchical(r: FloatArray) -> NDArray[np.int64]:
    from scipy.cluster.hierarchy import leaves_list

    return np.asarray(leaves_list(similarity_tree(r)), dtype=np.int64)


def similarity_tree(r: FloatArray) -> FloatArray:
    """Return the tree that joins the most alike of the rows of r (m, m) first, as scipy has it."""
    from scipy.cluster.hierarchy import linkage

    upper = np.triu_indices(len(r), 1)
    distance = 1.0 - np.clip(r[upper], -1.0, 1.0)
    tree: FloatArray = linkage(distance, method="average", optimal_ordering=True)
    return tree


def _spectral(r: FloatArray) -> NDArray[np.int64]:
    weight = 0.5 * (1.0 + r)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    _, vectors = np.linalg.eigh(laplacian)
    fiedler = vectors[:, 1]
    # The sign of an eigenvector is free; the first row comes in the first half.
    fiedler = fiedler if fiedler[0] <= 0.0 else -fiedler
    return np.argsort(fiedler, kind="stable")


_ORDERS: dict[str, Callable[[FloatArray], NDArray[np.int64]]] = {
    "hierarchical": _hierarchical,
    "spectral": _spectral,
    "stored": lambda r: np.arange(len(r)),
}
