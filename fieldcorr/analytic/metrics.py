"""How far a computed field is from the true one: shape (RDM) and size (lnMAG).

What flows in: two potentials sampled at the same points, and the volume that each sample stands
for. What flows out: one number each. Potentials of an insulated body are known up to a constant:
:func:`without_mean` removes it from both before they are compared.
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def norm(values: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the weighted L2 norm sqrt(sum_n w_n v_n^2) of samples (N,)."""
    weights = np.ones(len(values)) if weight is None else weight
    return float(np.sqrt(np.sum(weights * values**2)))


def without_mean(values: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return samples (N,) less their weighted mean."""
    return values - np.average(values, weights=weight)


def rdm(a: FloatArray, b: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the relative difference measure, || a/|a| - b/|b| ||, between 0 and 2.

    Parameters
    ----------
    a, b : (N,) array
        Samples of the two fields.
    weight : (N,) array, optional
        Volume of each sample; equal volumes when left out.
    """
    return norm(a / norm(a, weight) - b / norm(b, weight), weight)


def lnmag(a: FloatArray, b: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the logarithm of the magnitude ratio, ln(|a| / |b|), of samples (N,)."""
    return float(np.log(norm(a, weight) / norm(b, weight)))
