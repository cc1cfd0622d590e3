r"""Layers of diagonal anisotropy under rectangular contacts of uniform current density.

The body is a box 0 <= x <= a, 0 <= y <= b with insulated side walls, so the series over
cos(m pi x / a) cos(n pi y / b) is exact for a finite-element box of the same size, and approaches
the open layered medium as the box grows. A mode decays with depth at the rate

.. math:: g_i = \sqrt{(\sigma_x k_x^2 + \sigma_y k_y^2)/\sigma_z}, \qquad Y_i = \sigma_z g_i,

and the stack of layers is solved by the recursion of ``_waves``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ModelError
from fieldcorr.verification import _checks
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification._waves import Ladder, Waves, climb, modes_needed

MAX_MODES = 2000
"""Largest number of cosines in one direction: beyond it the points are too near the surface."""
_BLOCK = 64  # points that share one list of modes; 64 x 1e5 modes is 50 MB


@dataclass(frozen=True)
class Layer:
    """One layer: thickness in m (infinite for the last one if it is open), (sx, sy, sz) in S/m."""

    thickness: float
    sigma: tuple[float, float, float]


@dataclass(frozen=True)
class Slab:
    """A box, insulated all round: extent a, b along x and y in m, layers from the surface down."""

    size: tuple[float, float]
    layers: tuple[Layer, ...]

    def __post_init__(self) -> None:
        _checks.positive("slab size", self.size, (2,))
        depths = [layer.thickness for layer in self.layers]
        thickness = _checks.positive("layer thickness", depths, (-1,), infinite=True)
        if not np.isfinite(thickness[:-1]).all():
            raise ModelError("layer thickness: only the last layer may be infinite")
        for layer in self.layers:
            _checks.positive("layer conductivities", layer.sigma, (3,))

    @property
    def tops(self) -> FloatArray:
        """Depth (L,) in m of the upper face of each layer."""
        return np.cumsum([0.0, *(layer.thickness for layer in self.layers[:-1])])


@dataclass(frozen=True)
class Rectangle:
    """A contact on the surface: its x and y range in m and its current in A."""

    x: tuple[float, float]
    y: tuple[float, float]
    current: float = 1.0


def slab_potential(
    points: FloatArray, slab: Slab, contacts: Sequence[Rectangle], *, tolerance: float = 1e-13
) -> FloatArray:
    """Return the potential (N,) in V of rectangular contacts of uniform current on a layered box.

    ``points`` (N, 3) are x, y and depth in m; depth 0 is the surface that carries the contacts. The
    currents sum to zero. Modes that have decayed below ``tolerance`` at a point's depth are left
    out. The mean over every horizontal plane is zero.
    """
    points = _checks.numbers("points", points, (-1, 3))
    _require_inside(points, slab, contacts)
    k = _wave_numbers(float(points[:, 2].min()), slab, tolerance)
    echo = 1.0 if np.isfinite(slab.layers[-1].thickness) else 0.0  # from an insulated bottom
    ladder = climb([_waves(layer, _rates(layer, k)) for layer in slab.layers[::-1]], echo)
    amplitude = _amplitudes(slab, contacts, k)
    result = np.zeros(len(points))
    for block, layer in _blocks(points, slab):
        result[block] = _sum_modes(points[block], slab, layer, ladder, k, amplitude, tolerance)
    return result


def _require_inside(points: FloatArray, slab: Slab, contacts: Sequence[Rectangle]) -> None:
    """Refuse points and contacts that leave the slab, and currents that do not balance."""
    corner = np.array([*slab.size, slab.tops[-1] + slab.layers[-1].thickness])
    outside = ((points < 0.0) | (points > corner * (1.0 + 1e-9))).any(axis=1)
    if outside.any():
        raise ModelError(f"points: {points[outside][0].tolist()} m lies outside the slab")
    for contact in contacts:
        ranges = _checks.not_negative("contact", (contact.x, contact.y), (2, 2))
        if (ranges.max(axis=1) > slab.size).any():
            raise ModelError(f"contact: {contact} leaves the slab of {slab.size} m")
    _checks.balanced([contact.current for contact in contacts])


def _rates(layer: Layer, k: FloatArray) -> FloatArray:
    """Return g (K,) in 1/m of modes k (K, 2) in a layer."""
    sx, sy, sz = layer.sigma
    return np.asarray(np.sqrt((sx * k[:, 0] ** 2 + sy * k[:, 1] ** 2) / sz))


def _waves(layer: Layer, rate: FloatArray) -> Waves:
    """Return the waves exp(+-g r) of a layer; r points up to the driven surface."""
    admittance = layer.sigma[2] * rate
    transfer = np.exp(-rate * layer.thickness)
    return Waves(admittance, -admittance, admittance, -admittance, transfer, transfer**2)


def _attenuation(depth: float, slab: Slab, k: FloatArray) -> FloatArray:
    """Return the exponent (K,) by which modes have decayed at a depth."""
    return np.asarray(
        sum(
            np.clip(depth - top, 0.0, layer.thickness) * _rates(layer, k)
            for top, layer in zip(slab.tops, slab.layers, strict=True)
        )
    )


def _wave_numbers(depth: float, slab: Slab, tolerance: float) -> FloatArray:
    """Return all (kx, ky) (K, 2) in 1/m, without (0, 0), that still live at a depth."""
    steps = np.diag(np.pi / np.asarray(slab.size))
    decay = _attenuation(depth, slab, steps)
    count = [modes_needed(float(d), tolerance, MAX_MODES, "slab series") for d in decay]
    m, n = np.meshgrid(np.arange(count[0] + 1), np.arange(count[1] + 1), indexing="ij")
    k = np.column_stack([m.ravel(), n.ravel()])[1:] @ steps
    return np.asarray(k[_attenuation(depth, slab, k) <= -np.log(tolerance)])


def _amplitudes(slab: Slab, contacts: Sequence[Rectangle], k: FloatArray) -> FloatArray:
    """Return the cosine coefficients (K,) in A/m2 of the current density of all contacts."""
    total = np.zeros(len(k))
    for contact in contacts:
        total += contact.current * np.prod(
            [
                np.where(k[:, axis] > 0.0, 2.0, 1.0)
                / slab.size[axis]
                * np.cos(k[:, axis] * 0.5 * (low + high))
                * np.sinc(k[:, axis] * 0.5 * (high - low) / np.pi)
                for axis, (low, high) in enumerate((contact.x, contact.y))
            ],
            axis=0,
        )
    return total


def _blocks(points: FloatArray, slab: Slab) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Yield blocks of point numbers in order of depth, and the layer each block lies in."""
    home = np.maximum(np.searchsorted(slab.tops, points[:, 2], side="left") - 1, 0)
    for layer in range(len(slab.layers)):
        members = np.flatnonzero(home == layer)
        members = members[np.argsort(points[members, 2], kind="stable")]
        for first in range(0, len(members), _BLOCK):
            yield members[first : first + _BLOCK], layer


def _sum_modes(
    points: FloatArray,
    slab: Slab,
    layer: int,
    ladder: Ladder,
    k: FloatArray,
    amplitude: FloatArray,
    tolerance: float,
) -> FloatArray:
    """Return the sum over the modes that live at the shallowest of some points of one layer."""
    alive = _attenuation(points[0, 2], slab, k) <= -np.log(tolerance)
    k, amplitude = k[alive], amplitude[alive]
    rate = _rates(slab.layers[layer], k)
    depth = (points[:, 2] - slab.tops[layer])[:, None]
    growth = np.exp(-rate * depth)
    echo = np.exp(-2.0 * rate * (slab.layers[layer].thickness - depth))
    shape = np.cos(points[:, :1] * k[:, 0]) * np.cos(points[:, 1:2] * k[:, 1])
    modes = ladder.select(alive).inside(len(slab.layers) - 1 - layer, growth, echo) * shape
    return np.asarray(modes @ amplitude)
