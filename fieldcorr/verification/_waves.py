r"""Waves in a stack of layers: one recursion for slabs, spheres and cylinders.

After separation of variables the potential of one mode inside a layer is a sum of a wave u that
grows towards the driven (outer) face and a wave v that decays,

.. math:: f(r) = c\,\frac{u(r)}{u(r_o)}\,\big(1 + \rho\,D(r)\big), \qquad
          D(r) = \frac{v(r)\,u(r_i)}{v(r_i)\,u(r)} \le 1,

with r_i and r_o the inner and outer face. Only ratios at most 1 appear, so nothing overflows for
any wave number. Continuity of potential and normal current fixes the reflection from the
admittance B (inward current density per potential) below the layer,

.. math:: \rho = \frac{y_u(r_i) - B}{B - y_v(r_i)}, \qquad
          B' = \frac{y_u(r_o) + \rho D(r_o)\, y_v(r_o)}{1 + \rho D(r_o)}, \qquad y_w = \sigma w'/w.

For a slab, y_u = -y_v = Y and this is B_i = Y_i (B_{i+1} + Y_i t) / (Y_i + B_{i+1} t) with
t = tanh(g_i h_i).

The waves of a cylinder are modified Bessel functions. All orders come at once, as logarithms and
logarithmic derivatives, from ratios of neighbours, each taken in its stable direction:

.. math:: \frac{I_m}{I_{m-1}} = \frac{1}{2m/x + I_{m+1}/I_m} \;\text{(downwards)}, \qquad
          \frac{K_{m+1}}{K_m} = \frac{2m}{x} + \frac{K_{m-1}}{K_m} \;\text{(upwards)}.

Order 80 at x = 0.1 is about 1e-223 for I and 1e+221 for K; their logarithms are harmless.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ive, kve

from fieldcorr.errors import ConvergenceError
from fieldcorr.verification._checks import FloatArray, share

_EXTRA = 24  # orders above M at which the downward recurrence starts when I itself underflows


@dataclass(frozen=True)
class Waves:
    """The waves u and v of one layer, each array over modes.

    Admittances y_u and y_v in S/m2 at both faces, u(r_i) / u(r_o) and D(r_o).
    """

    inner_u: FloatArray
    inner_v: FloatArray
    outer_u: FloatArray
    outer_v: FloatArray
    transfer: FloatArray
    echo: FloatArray


@dataclass(frozen=True)
class Ladder:
    """Solved stack, layers counted from the far end, each array (L, ...) over layers and modes.

    ``reflection`` is rho, ``scale`` the factor c in V per A/m2.
    """

    reflection: FloatArray
    scale: FloatArray

    def inside(self, layer: int, growth: FloatArray, echo: FloatArray) -> FloatArray:
        """Return the potential in V per A/m2 inside a layer, from u(r)/u(r_o) and D(r)."""
        return np.asarray(self.scale[layer] * growth * (1.0 + self.reflection[layer] * echo))

    def select(self, modes: NDArray[np.bool_]) -> "Ladder":
        """Return the ladder of a subset of the modes."""
        return Ladder(self.reflection[:, modes], self.scale[:, modes])


def climb(waves: Sequence[Waves], start: float) -> Ladder:
    """Solve a stack given from its far end to its driven surface.

    ``start`` is the reflection in the first layer: 0 at a centre or for a half-space, 1 for an
    insulated far face.
    """
    reflection = [np.full_like(waves[0].outer_u, start)]
    admittance = _admittance(waves[0], reflection[0])
    for layer in waves[1:]:
        reflection.append((layer.inner_u - admittance) / (admittance - layer.inner_v))
        admittance = _admittance(layer, reflection[-1])
    face, scale = 1.0 / admittance, []
    for layer, rho in zip(waves[::-1], reflection[::-1], strict=True):
        scale.append(face / (1.0 + rho * layer.echo))
        face = scale[-1] * layer.transfer * (1.0 + rho)
    return Ladder(np.array(reflection), np.array(scale[::-1]))


def _admittance(layer: Waves, rho: FloatArray) -> FloatArray:
    """Return the admittance seen at a layer's outer face."""
    echo = rho * layer.echo
    return np.asarray((layer.outer_u + echo * layer.outer_v) / (1.0 + echo))


def modes_needed(decay: float, tolerance: float, limit: int, what: str) -> int:
    """Return n with exp(-n decay) <= tolerance, at least 1.

    A ConvergenceError says that more than ``limit`` are needed: points too near a sharp source.
    """
    share("tolerance", tolerance)
    count = math.inf if decay <= 0.0 else math.ceil(-math.log(tolerance) / decay)
    if count > limit:
        bound = math.exp(-limit * max(decay, 0.0))
        raise ConvergenceError(
            f"{what}: {count} terms are needed and {limit} allowed; move the points away from "
            f"the driven surface or blur the source (bound reached {bound:.1e})",
            residual=bound,
            iterations=limit,
        )
    return max(1, int(count))


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
    """Return log u, log v, u'/u and v'/v of the radial waves, each (order + 1, ...).

    u = I_m(kappa r) and v = K_m(kappa r), or r^m and r^-m where kappa is zero: the first along its
    axis 0. Wave numbers kappa (1/m) are broadcast against the positive radii r (m).
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
