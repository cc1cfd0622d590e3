r"""An equipotential disc on an insulated plane, and the contact-impedance slab.

With s1, s2 the distances of a point to the near and far ends of the rim (in the plane through the
axis), the equipotentials of the disc are the confocal oblate spheroids s1 + s2 = 2A. A conductor
bounded by one of them at 0 V is therefore solved exactly too, which makes a finite-element test
free of any truncation error. Near the rim the field grows like the inverse root of the distance.
"""

import numpy as np

from fieldcorr.errors import ModelError
from fieldcorr.verification import _checks
from fieldcorr.verification._checks import FloatArray


def _spheroid(points: FloatArray, radius: float) -> FloatArray:
    """Return the semi-major axis (N,) of the confocal spheroid through each point (N, 3)."""
    rho = np.hypot(points[:, 0], points[:, 1])
    near = np.hypot(rho - radius, points[:, 2])
    far = np.hypot(rho + radius, points[:, 2])
    return np.asarray(0.5 * (near + far))


def _ground_angle(radius: float, ground: float) -> float:
    """Return asin(a/A), with the disc smaller than the spheroid that is grounded."""
    ratio = _checks.positive("disc radius", radius) / _checks.positive(
        "disc ground", ground, infinite=True
    )
    if ratio >= 1.0:
        raise ModelError(f"disc ground: must exceed the radius of {radius} m, got {ground} m")
    return float(np.arcsin(ratio))


def disc_potential(
    points: FloatArray, radius: float, *, voltage: float = 1.0, ground: float = np.inf
) -> FloatArray:
    """Return the potential (N,) V below a disc held at ``voltage`` on an insulated plane z = 0.

    phi = V (asin(2 a / (s1 + s2)) - asin(a / A)) / (pi / 2 - asin(a / A)) with s1 and s2 the
    distances to the near and the far end of the rim.

    The disc of radius a (m) is centred on the origin of the points (N, 3) in m; ``ground`` is the
    semi-major axis A (m) of the confocal spheroid held at 0 V, infinite for the half-space.
    """
    points = _checks.numbers("points", points, (-1, 3))
    volts, floor = _checks.numbers("disc voltage", voltage), _ground_angle(radius, ground)
    angle = np.arcsin(radius / np.maximum(_spheroid(points, radius), radius))
    return np.asarray(volts * (angle - floor) / (0.5 * np.pi - floor))


def disc_current(
    radius: float, sigma: float, *, voltage: float = 1.0, ground: float = np.inf
) -> float:
    """Return the current in A of the disc, I = 4 s a V / (1 - (2/pi) asin(a/A)).

    ``sigma`` is the conductivity s in S/m, the rest as in :func:`disc_potential`.
    """
    volts = _checks.numbers("disc voltage", voltage)
    share = 1.0 - _ground_angle(radius, ground) / (0.5 * np.pi)
    return float(4.0 * _checks.positive("disc conductivity", sigma) * radius * volts / share)


def slab_resistance(
    lengths: FloatArray, sigmas: FloatArray, area: float, impedances: tuple[float, float]
) -> float:
    """Return R = (sum_i L_i / s_i + z1 + z2) / A in ohm of a stack between two contacts.

    Each layer has a length (m) and a conductivity (S/m); contacts of impedances z1, z2 (ohm m2)
    cover the whole cross-section of ``area`` (m2).
    """
    thickness = _checks.positive("slab lengths", lengths, (-1,))
    sigma = _checks.positive("slab conductivities", sigmas, (len(thickness),))
    contacts = _checks.not_negative("contact impedances", impedances, (2,))
    return float((np.sum(thickness / sigma) + contacts.sum()) / _checks.positive("slab area", area))
