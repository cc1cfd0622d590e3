r"""Concentric spherical shells with current through the outer surface.

In a shell the degree-n part of the potential is a sum of r^n and r^-(n+1); the shells are joined by
the recursion of ``_waves``. An electrode is rotationally symmetric about its direction and has
current density

.. math:: J(\vartheta) = \frac{I}{4\pi R^2}\sum_n (2n+1)\,b^n P_n(\cos\vartheta).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fieldcorr.errors import ModelError
from fieldcorr.verification import _checks
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification._waves import Ladder, Waves, climb, modes_needed

MAX_DEGREE = 2000
"""Largest degree of the Legendre series."""


@dataclass(frozen=True)
class Spheres:
    """Shells from the centre outwards: outer radii in m, conductivities in S/m."""

    radii: tuple[float, ...]
    sigma: tuple[float, ...]

    def __post_init__(self) -> None:
        _checks.increasing("sphere radii", self.radii)
        _checks.positive("sphere conductivities", self.sigma, (len(self.radii),))


@dataclass(frozen=True)
class BlurredElectrode:
    """A smooth electrode: J = I (1 - b^2) / (4 pi R^2 (1 - 2 b t + b^2)^(3/2)).

    It sits in a ``direction`` from the centre and carries ``current`` (A) into the body; ``blur``,
    b, is above 0 (all over the sphere) and up to 1 (a point); its width is about (1 - b) R.
    """

    direction: tuple[float, float, float]
    current: float
    blur: float = 0.8

    def __post_init__(self) -> None:
        _direction(self.direction)
        _checks.share("blur", self.blur)

    def density(self, points: FloatArray, radius: float) -> FloatArray:
        """Return J (N,) in A/m2 in the directions of points (N, 3) on a sphere of some radius."""
        b, t = self.blur, _cosine(points, self.direction)
        shape = (1.0 - b * b) / (1.0 - 2.0 * b * t + b * b) ** 1.5
        return np.asarray(self.current / (4.0 * np.pi * radius**2) * shape)


def legendre(t: FloatArray, count: int) -> FloatArray:
    """Return P_n(t) for n = 0..count, (count + 1, N), by the three-term recurrence."""
    p = np.ones((count + 1, len(t)))
    p[1:2] = t
    for n in range(1, count):
        p[n + 1] = ((2 * n + 1) * t * p[n] - n * p[n - 1]) / (n + 1)
    return p


def sphere_potential(
    points: FloatArray,
    spheres: Spheres,
    electrodes: Sequence[BlurredElectrode],
    *,
    tolerance: float = 1e-14,
) -> FloatArray:
    """Return the potential (N,) in V inside layered spheres about the origin, zero at the centre.

    ``points`` (N, 3) in m lie within the last sphere (up to 1 % beyond is taken as its layer). The
    electrodes are on the outer surface; their currents sum to zero. Degrees that have decayed below
    ``tolerance`` are left out.
    """
    _checks.balanced([electrode.current for electrode in electrodes])
    points = _checks.numbers("points", points, (-1, 3))
    r = np.linalg.norm(points, axis=1)
    outer = spheres.radii[-1]
    if r.max() > 1.01 * outer:
        raise ModelError(f"points: radius {r.max():g} m lies outside the sphere of {outer:g} m")
    slowest = max(electrode.blur for electrode in electrodes)
    decay = -np.log(slowest) - np.log(max(r.max(), 1e-3 * outer) / outer)
    count = modes_needed(float(decay), tolerance, MAX_DEGREE, "sphere series")
    n = np.arange(1.0, count + 1.0)
    radial = _radial(r, spheres, n)
    weight = (2.0 * n + 1.0) / (4.0 * np.pi * outer**2)
    total = np.zeros(len(points))
    for electrode in electrodes:
        p = legendre(_cosine(points, electrode.direction), count)[1:]
        factors = electrode.current * weight * electrode.blur**n
        total += np.einsum("n,nj,nj->j", factors, p, radial)
    return total


def _direction(direction: tuple[float, float, float]) -> FloatArray:
    """Return the unit vector (3,) along a direction."""
    vector = _checks.numbers("direction", direction, (3,))
    length = np.linalg.norm(vector)
    if length == 0.0:
        raise ModelError("direction: must not be zero")
    return np.asarray(vector / length)


def _cosine(points: FloatArray, direction: tuple[float, float, float]) -> FloatArray:
    """Return the cosine (N,) of the angle between points (N, 3) and a direction."""
    axis = _direction(direction)
    r = np.linalg.norm(points, axis=1)
    return np.asarray(np.clip(points @ axis / np.where(r > 0.0, r, 1.0), -1.0, 1.0))


def _ladder(spheres: Spheres, n: FloatArray) -> Ladder:
    """Solve the shells for degrees n."""
    waves = []
    inner = spheres.radii[0]  # of the core: any radius serves, its reflection is zero
    for outer, sigma in zip(spheres.radii, spheres.sigma, strict=True):
        waves.append(
            Waves(
                sigma * n / inner,
                -sigma * (n + 1.0) / inner,
                sigma * n / outer,
                -sigma * (n + 1.0) / outer,
                (inner / outer) ** n,
                (inner / outer) ** (2.0 * n + 1.0),
            )
        )
        inner = outer
    return climb(waves, 0.0)


def _radial(r: FloatArray, spheres: Spheres, n: FloatArray) -> FloatArray:
    """Return the radial functions (degrees, N) in V per A/m2 at radii r (N,)."""
    ladder = _ladder(spheres, n)
    home = np.minimum(np.searchsorted(spheres.radii, r), len(spheres.radii) - 1)
    result = np.zeros((len(n), len(r)))
    for shell, outer in enumerate(spheres.radii):
        inside = home == shell
        growth = (r[inside] / outer) ** n[:, None]
        echo = np.zeros_like(growth)
        if shell:
            echo = (spheres.radii[shell - 1] / r[inside]) ** (2.0 * n[:, None] + 1.0)
        part = Ladder(ladder.reflection[..., None], ladder.scale[..., None])
        result[:, inside] = part.inside(shell, growth, echo)
    return result
