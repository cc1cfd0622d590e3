r"""Concentric spherical shells with current through the outer surface.

In a shell with conductivities s_r, s_t the degree-n part of the potential is a sum of r^nu and
r^-(nu+1), nu = (sqrt(1 + 4 n(n+1) s_t/s_r) - 1) / 2, and the shells are joined by
the recursion of ``_waves``. An electrode is rotationally symmetric about its direction and
has current density

.. math:: J(\vartheta) = \frac{I}{4\pi R^2}\sum_n (2n+1)\,f_n P_n(\cos\vartheta).
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
    """Shells from the centre outwards: outer radii in m, conductivities in S/m.

    ``sigma_tangential`` equals ``sigma`` (the radial one) when left out.
    """

    radii: tuple[float, ...]
    sigma: tuple[float, ...]
    sigma_tangential: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _checks.increasing("sphere radii", self.radii)
        _checks.positive("sphere conductivities", self.sigma, (len(self.radii),))
        _checks.positive("sphere conductivities", self.tangential, (len(self.radii),))

    @property
    def tangential(self) -> tuple[float, ...]:
        """Tangential conductivities in S/m."""
        return self.sigma if self.sigma_tangential is None else self.sigma_tangential


@dataclass(frozen=True)
class BlurredElectrode:
    r"""A smooth electrode: f_n = b^n, that is J = I (1 - b^2) / (4 pi R^2 (1 - 2 b t + b^2)^(3/2)).

    Parameters
    ----------
    direction : triple of float
        Where it sits, seen from the centre.
    current : float
        Current in A into the body.
    blur : float
        b above 0 (all over the sphere) and up to 1 (a point); its width is about (1 - b) R.
    """

    direction: tuple[float, float, float]
    current: float
    blur: float = 0.8

    def __post_init__(self) -> None:
        _direction(self.direction)
        _checks.share("blur", self.blur)

    def factors(self, count: int) -> FloatArray:
        """Return f_n for n < count."""
        return np.asarray(self.blur ** np.arange(count, dtype=np.float64))

    @property
    def decay(self) -> float:
        """Rate at which f_n falls."""
        return float(-np.log(self.blur))

    def density(self, points: FloatArray, radius: float) -> FloatArray:
        """Return J (N,) in A/m2 in the directions of points (N, 3) on a sphere of some radius."""
        b, t = self.blur, _cosine(points, self.direction)
        shape = (1.0 - b * b) / (1.0 - 2.0 * b * t + b * b) ** 1.5
        return np.asarray(self.current / (4.0 * np.pi * radius**2) * shape)


@dataclass(frozen=True)
class CapElectrode:
    """A spherical cap of uniform current density; ``half_angle`` in rad, 0 for a point."""

    direction: tuple[float, float, float]
    current: float
    half_angle: float

    def __post_init__(self) -> None:
        _direction(self.direction)
        if _checks.not_negative("half_angle", self.half_angle) > np.pi:
            raise ModelError(f"half_angle: must be at most pi, got {self.half_angle!r}")

    def factors(self, count: int) -> FloatArray:
        """Return f_n = (P_{n-1}(c) - P_{n+1}(c)) / ((2n+1)(1-c)), c the cosine of the rim."""
        if self.half_angle == 0.0:
            return np.ones(count)
        c = np.cos(self.half_angle)
        p = legendre(np.array([c]), count + 1)[:, 0]
        n = np.arange(1, count)
        return np.concatenate([[1.0], (p[n - 1] - p[n + 1]) / ((2 * n + 1) * (1.0 - c))])

    @property
    def decay(self) -> float:
        """Rate at which f_n falls: not exponentially."""
        return 0.0


Electrode = BlurredElectrode | CapElectrode


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
    electrodes: Sequence[Electrode],
    *,
    tolerance: float = 1e-14,
) -> FloatArray:
    """Return the potential inside layered spheres centred on the origin.

    Parameters
    ----------
    points : (N, 3) array
        Points in m, not outside the last sphere (up to 1 % is taken as on the surface's layer).
    spheres : Spheres
        The shells.
    electrodes : sequence of BlurredElectrode or CapElectrode
        Sources on the outer surface; their currents sum to zero.
    tolerance : float
        Degrees that have decayed below this share are left out.

    Returns
    -------
    (N,) array of V, zero at the centre.
    """
    _checks.balanced([electrode.current for electrode in electrodes])
    points = _checks.numbers("points", points, (-1, 3))
    r = np.linalg.norm(points, axis=1)
    outer = spheres.radii[-1]
    if r.max() > 1.01 * outer:
        raise ModelError(f"points: radius {r.max():g} m lies outside the sphere of {outer:g} m")
    decay = min(e.decay for e in electrodes) - np.log(max(r.max(), 1e-3 * outer) / outer)
    count = modes_needed(float(decay), tolerance, MAX_DEGREE, "sphere series")
    radial = _radial(r, spheres, np.arange(1.0, count + 1.0))
    weight = (2.0 * np.arange(1, count + 1) + 1.0) / (4.0 * np.pi * outer**2)
    total = np.zeros(len(points))
    for electrode in electrodes:
        p = legendre(_cosine(points, electrode.direction), count)[1:]
        factors = electrode.current * weight * electrode.factors(count + 1)[1:]
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


def _exponent(n: FloatArray, spheres: Spheres, shell: int) -> FloatArray:
    """Return nu of degrees n in a shell."""
    ratio = spheres.tangential[shell] / spheres.sigma[shell]
    return np.asarray(0.5 * (np.sqrt(1.0 + 4.0 * n * (n + 1.0) * ratio) - 1.0))


def _ladder(spheres: Spheres, n: FloatArray) -> Ladder:
    """Solve the shells for degrees n."""
    waves = []
    inner = spheres.radii[0]  # of the core: any radius serves, its reflection is zero
    for shell, outer in enumerate(spheres.radii):
        nu, sigma = _exponent(n, spheres, shell), spheres.sigma[shell]
        waves.append(
            Waves(
                sigma * nu / inner,
                -sigma * (nu + 1.0) / inner,
                sigma * nu / outer,
                -sigma * (nu + 1.0) / outer,
                (inner / outer) ** nu,
                (inner / outer) ** (2.0 * nu + 1.0),
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
        nu = _exponent(n, spheres, shell)[:, None]
        growth = (r[inside] / outer) ** nu
        echo = np.zeros_like(growth)
        if shell:
            echo = (spheres.radii[shell - 1] / r[inside]) ** (2.0 * nu + 1.0)
        part = Ladder(ladder.reflection[..., None], ladder.scale[..., None])
        result[:, inside] = part.inside(shell, growth, echo)
    return result
