r"""One recursion for every stack of layers: slabs, spheres, cylinders.

What flows in: per layer, the two waves u, v of each mode. What flows out: the potential on every
interface for a unit current density through the driven surface.

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
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Waves:
    """The two waves of one layer, each array over modes.

    Parameters
    ----------
    inner_u, inner_v, outer_u, outer_v : array
        Admittances sigma w'/w in S/m2 of the growing (u) and decaying (v) wave at both faces.
    transfer : array
        u(r_i) / u(r_o).
    echo : array
        D(r_o).
    """

    inner_u: FloatArray
    inner_v: FloatArray
    outer_u: FloatArray
    outer_v: FloatArray
    transfer: FloatArray
    echo: FloatArray


@dataclass(frozen=True)
class Ladder:
    """Solved stack, layers counted from the far end.

    Parameters
    ----------
    reflection : (L, ...) array
        rho of each layer and mode.
    scale : (L, ...) array
        Factor c in V per A/m2 of each layer and mode, divided by 1 + rho D(r_o).
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

    Parameters
    ----------
    waves : sequence of Waves
        The layers, the one farthest from the driven surface first.
    start : float
        Reflection in the first layer: 0 at a centre or for a half-space, 1 for an insulated and
        -1 for a grounded far face.
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
