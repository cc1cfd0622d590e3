"""Orders in which a correlation matrix shows its blocks."""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConfigurationError

ORDERS = ("hierarchical", "spectral", "stored")


def ordered(r: NDArray[np.float64], order: str) -> NDArray[np.int64]:
    """Return the permutation (m,) of the rows of r (m, m).

    Parameters
    ----------
    r
        Symmetric, ones on the diagonal.
    order
        "hierarchical": the leaves of average linkage on 1 - r, turned so that neighbours are close.
        "spectral": by the Fiedler vector of the graph with weights (1 + r) / 2. "stored": as it is.
    """
    if order not in ORDERS:
        raise ConfigurationError(f"order {order!r} is not one of {', '.join(ORDERS)}")
    if order == "stored" or len(r) < 3:
        return np.arange(len(r))
    return _hierarchical(r) if order == "hierarchical" else _spectral(r)


def _hierarchical(r: NDArray[np.float64]) -> NDArray[np.int64]:
    from scipy.cluster.hierarchy import leaves_list, linkage

    upper = np.triu_indices(len(r), 1)
    tree = linkage(1.0 - np.clip(r[upper], -1.0, 1.0), method="average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _spectral(r: NDArray[np.float64]) -> NDArray[np.int64]:
    weight = 0.5 * (1.0 + np.clip(r, -1.0, 1.0))
    laplacian = np.diag(weight.sum(axis=1)) - weight
    _, vectors = np.linalg.eigh(laplacian)
    fiedler = vectors[:, 1]
    # The sign of an eigenvector is free; the first row comes in the first half.
    fiedler = fiedler if fiedler[0] <= 0.0 else -fiedler
    return np.argsort(fiedler, kind="stable")
