r"""Modified Bessel functions of all orders at once, as logarithms and logarithmic derivatives.

What flows in: the largest order, wave numbers, radii. What flows out: log I_m, log K_m and their
derivatives with respect to the radius, m = 0..M.

Both families come from ratios of neighbours, each taken in its stable direction:

.. math:: \frac{I_m}{I_{m-1}} = \frac{1}{2m/x + I_{m+1}/I_m} \;\text{(downwards)}, \qquad
          \frac{K_{m+1}}{K_m} = \frac{2m}{x} + \frac{K_{m-1}}{K_m} \;\text{(upwards)}.

Order 80 at x = 0.1 is about 1e-223 for I and 1e+221 for K; their logarithms are harmless.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, kve

FloatArray = NDArray[np.float64]
_EXTRA = 24  # orders above M at which the downward recurrence starts when I itself underflows


def log_bessel(order: int, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return log I_m(x), log K_m(x), I_m'/I_m and K_m'/K_m, each (order + 1, *x.shape), x > 0."""
    lower, upper = _ratios_i(order, x), _ratios_k(order, x)
    log_i = np.cumsum([np.log(ive(0, x)) + x, *np.log(lower[:-1])], axis=0)
    log_k = np.cumsum([np.log(kve(0, x)) - x, *np.log(upper[:-1])], axis=0)
    m_over_x = np.arange(order + 1.0).reshape(-1, *[1] * x.ndim) / x
    return log_i, log_k, lower + m_over_x, m_over_x - upper


def _ratios_i(order: int, x: FloatArray) -> FloatArray:
    """Return I_{m+1}/I_m for m = 0..order."""
    top = order + _EXTRA
    ratio = x / (top + 0.5 + np.sqrt((top + 1.5) ** 2 + x * x))
    result = np.empty((order + 1, *x.shape))
    for m in range(top - 1, -1, -1):
        ratio = 1.0 / (2.0 * (m + 1) / x + ratio)
        if m == order:  # large arguments need no start far above; there I does not underflow
            low, high = ive(m, x), ive(m + 1, x)
            ratio = np.divide(high, low, out=ratio, where=high > 1e-280)
        if m <= order:
            result[m] = ratio
    return result


def _ratios_k(order: int, x: FloatArray) -> FloatArray:
    """Return K_{m+1}/K_m for m = 0..order."""
    result = np.empty((order + 1, *x.shape))
    result[0] = kve(1, x) / kve(0, x)
    for m in range(1, order + 1):
        result[m] = 2.0 * m / x + 1.0 / result[m - 1]
    return result


def log_waves(
    order: int, kappa: FloatArray, r: FloatArray | float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the logarithms of both radial waves and their derivatives by r.

    Parameters
    ----------
    order : int
        Largest angular order M.
    kappa : array
        Radial wave numbers in 1/m, broadcast against r; the first along axis 0 is zero.
    r : array or float
        Radii in m, positive.

    Returns
    -------
    four (M + 1, ...) arrays: log u, log v, u'/u, v'/v with u = I_m(kappa r), v = K_m(kappa r),
    and u = r^m, v = r^-m where kappa is zero.
    """
    radius = np.broadcast_to(r, np.broadcast_shapes(kappa.shape, np.shape(r)))
    slope = np.broadcast_to(kappa, radius.shape)
    m = np.arange(order + 1.0).reshape(-1, *[1] * (radius.ndim - 1))
    log_i, log_k, d_i, d_k = log_bessel(order, slope[1:] * radius[1:])
    power = m * np.log(radius[0])
    flat = m / radius[0]
    return (
        np.concatenate([power[:, None], log_i], axis=1),
        np.concatenate([-power[:, None], log_k], axis=1),
        np.concatenate([flat[:, None], slope[1:] * d_i], axis=1),
        np.concatenate([-flat[:, None], slope[1:] * d_k], axis=1),
    )
