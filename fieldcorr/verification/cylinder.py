r"""Concentric cylinders, anisotropic along the axis, with current through the outer surface.

The ends z = +-L/2 are insulated, so a mode is cos(m (theta - theta_0)) cos(k (z + L/2)) with
k = p pi / L: exact for a finite-element cylinder of the same length. Its radial part is a sum of
I_m(kappa r) and K_m(kappa r), kappa = k sqrt(s_z / s_r) (r^m and r^-m for k = 0); the layers are
joined by the recursion of ``_waves``. The Bessel functions enter through logarithms and ratios
only, which neither overflow nor cancel.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fieldcorr.errors import ModelError
from fieldcorr.verification import _checks
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification._waves import Ladder, Waves, climb, log_waves, modes_needed

MAX_ORDER = 1000
"""Largest number of angular orders, and of axial wave numbers."""
_BLOCK = 128  # points summed at once: 128 x 60 x 100 modes is 6 MB per array


@dataclass(frozen=True)
class Cylinders:
    """Layers from the axis outwards: outer radii in m, length in m, conductivities in S/m."""

    radii: tuple[float, ...]
    length: float
    across: tuple[float, ...]
    along: tuple[float, ...]

    def __post_init__(self) -> None:
        _checks.increasing("cylinder radii", self.radii)
        _checks.positive("cylinder length", self.length)
        _checks.positive("cylinder conductivities", self.across, (len(self.radii),))
        _checks.positive("cylinder conductivities", self.along, (len(self.radii),))


@dataclass(frozen=True)
class BlurredPatch:
    """A smooth electrode on the outer surface: coefficients b^m around and c^p along.

    It sits at an angle (rad, from the x axis towards y) and a height z (m, from -L/2 to L/2) and
    carries ``current`` (A) into the body. ``around`` and ``along`` are b and c, above 0 (spread
    evenly) and up to 1 (a point).
    """

    angle: float
    z: float
    current: float
    around: float = 0.7
    along: float = 0.8

    def __post_init__(self) -> None:
        _checks.numbers("electrode angle and height", (self.angle, self.z), (2,))
        _checks.share("blur around", self.around)
        _checks.share("blur along", self.along)

    def density(self, points: FloatArray, cylinders: Cylinders) -> FloatArray:
        """Return the current density (N,) in A/m2 at points (N, 3) of the outer surface."""
        theta = np.arctan2(points[:, 1], points[:, 0]) - self.angle
        length = cylinders.length
        z, z0 = points[:, 2] + 0.5 * length, self.z + 0.5 * length
        around = _poisson(theta, self.around) / (2.0 * np.pi * cylinders.radii[-1])
        mirrored = sum(_poisson(np.pi * (z + s * z0) / length, self.along) for s in (-1.0, 1.0))
        return np.asarray(self.current * around * mirrored / (2.0 * length))


def _poisson(t: FloatArray, b: float) -> FloatArray:
    """Return 1 + 2 sum_m b^m cos(m t) in closed form."""
    return np.asarray((1.0 - b * b) / (1.0 - 2.0 * b * np.cos(t) + b * b))


def cylinder_potential(
    points: FloatArray,
    cylinders: Cylinders,
    electrodes: Sequence[BlurredPatch],
    *,
    tolerance: float = 1e-13,
) -> FloatArray:
    """Return the potential (N,) in V inside layered cylinders along z, centred on the origin.

    ``points`` (N, 3) in m lie within the cylinder (up to 1 % beyond is taken as its layer). The
    electrodes are on the outer surface; their currents sum to zero. Modes that have decayed below
    ``tolerance`` are left out. The mean over the volume of every layer is zero.
    """
    _checks.balanced([electrode.current for electrode in electrodes])
    points = _checks.numbers("points", points, (-1, 3))
    r = np.hypot(points[:, 0], points[:, 1])
    half = 0.5 * cylinders.length
    outside = (r > 1.01 * cylinders.radii[-1]) | (np.abs(points[:, 2]) > 1.01 * half)
    if outside.any():
        raise ModelError(f"points: {points[outside][0].tolist()} m lies outside the cylinder")
    heights = [electrode.z for electrode in electrodes]
    if max(map(abs, heights)) > half:
        raise ModelError(f"electrodes: heights {heights} m leave the cylinder")
    order, k = _mode_list(float(r.max()), cylinders, electrodes, tolerance)
    ladder = _ladder(cylinders, order, k)
    total = np.zeros(len(points))
    home = np.minimum(np.searchsorted(cylinders.radii, r), len(cylinders.radii) - 1)
    for layer in range(len(cylinders.radii)):
        members = np.flatnonzero(home == layer)
        for first in range(0, len(members), _BLOCK):
            block = members[first : first + _BLOCK]
            radial = _radial(r[block], cylinders, layer, ladder, order, k)
            total[block] = _sum_modes(points[block], cylinders, electrodes, radial, k)
    return total


def _mode_list(
    r: float, cylinders: Cylinders, electrodes: Sequence[BlurredPatch], tolerance: float
) -> tuple[int, FloatArray]:
    """Return the largest angular order and the wave numbers (P,) that live at a radius."""
    outer = cylinders.radii[-1]
    edges = np.minimum(np.maximum((0.0, *cylinders.radii), r), outer)
    stretch = np.sqrt(np.asarray(cylinders.along) / cylinders.across)
    path = float(np.diff(edges) @ stretch) * np.pi / cylinders.length
    around = -np.log(max(e.around for e in electrodes)) - np.log(max(r, 1e-3 * outer) / outer)
    along = -np.log(max(e.along for e in electrodes)) + path
    order = modes_needed(float(around), tolerance, MAX_ORDER, "cylinder series, around")
    count = modes_needed(float(along), tolerance, MAX_ORDER, "cylinder series, along")
    return order, np.arange(count + 1.0) * (np.pi / cylinders.length)


def _ladder(cylinders: Cylinders, order: int, k: FloatArray) -> Ladder:
    """Solve the layers for all modes; arrays are (layers, order + 1, P)."""
    waves = []
    inner = cylinders.radii[0]  # of the core: any radius serves, its reflection is zero
    for layer, outer in enumerate(cylinders.radii):
        sigma = cylinders.across[layer]
        kappa = k * np.sqrt(cylinders.along[layer] / sigma)
        u_in, v_in, yu_in, yv_in = log_waves(order, kappa, inner)
        u_out, v_out, yu_out, yv_out = log_waves(order, kappa, outer)
        transfer = np.exp(u_in - u_out)
        echo = transfer * np.exp(v_out - v_in)
        waves.append(
            Waves(sigma * yu_in, sigma * yv_in, sigma * yu_out, sigma * yv_out, transfer, echo)
        )
        inner = outer
    with np.errstate(divide="ignore", invalid="ignore"):
        ladder = climb(waves, 0.0)
    ladder.scale[:, 0, 0] = 0.0  # the net current is zero, and with it this mode
    ladder.reflection[:, 0, 0] = 0.0
    return ladder


def _radial(
    r: FloatArray, cylinders: Cylinders, layer: int, ladder: Ladder, order: int, k: FloatArray
) -> FloatArray:
    """Return the radial functions (order + 1, P, N) in V per A/m2 at radii of one layer."""
    kappa = k * np.sqrt(cylinders.along[layer] / cylinders.across[layer])
    least = np.maximum(r, 1e-9 * cylinders.radii[0])  # log 0 on the axis
    u, v, _, _ = log_waves(order, kappa[:, None], least)
    u_out, _, _, _ = log_waves(order, kappa, cylinders.radii[layer])
    growth = np.exp(u - u_out[..., None])
    echo = np.zeros_like(growth)
    if layer:
        u_in, v_in, _, _ = log_waves(order, kappa, cylinders.radii[layer - 1])
        echo = np.exp(v - v_in[..., None] + u_in[..., None] - u)
    part = Ladder(ladder.reflection[..., None], ladder.scale[..., None])
    return part.inside(layer, growth, echo)


def _sum_modes(
    points: FloatArray,
    cylinders: Cylinders,
    electrodes: Sequence[BlurredPatch],
    radial: FloatArray,
    k: FloatArray,
) -> FloatArray:
    """Return the sum over modes (N,) in V from the radial functions (order + 1, P, N)."""
    m = np.arange(len(radial), dtype=np.float64)
    theta = np.arctan2(points[:, 1], points[:, 0])
    half, length = 0.5 * cylinders.length, cylinders.length
    area = 2.0 * np.pi * cylinders.radii[-1] * length
    z_shape = np.cos(k[:, None] * (points[:, 2] + half))
    total = np.zeros(len(points))
    for electrode in electrodes:
        around = electrode.around**m * np.where(m > 0.0, 2.0, 1.0) * electrode.current / area
        along = electrode.along ** (k * length / np.pi) * np.where(k > 0.0, 2.0, 1.0)
        along = along * np.cos(k * (electrode.z + half))
        shape = np.cos(m[:, None] * (theta - electrode.angle))
        total += np.einsum("m,p,mj,pj,mpj->j", around, along, shape, z_shape, radial, optimize=True)
    return total
