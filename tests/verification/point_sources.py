"""Point sources in unbounded media: what the closed forms with contacts are judged against."""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def anisotropic_point_source(
    points: FloatArray, source: FloatArray, sigma: FloatArray, *, current: float = 1.0
) -> FloatArray:
    r"""Return the potential of a point source in an infinite anisotropic medium.

    .. math:: \phi = \frac{I}{4\pi\sqrt{\sigma_y\sigma_z x^2 + \sigma_x\sigma_z y^2
                                       + \sigma_x\sigma_y z^2}}

    Parameters
    ----------
    points : (N, 3) array
        Observation points in m.
    source : (3,) array
        Position of the source in m.
    sigma : (3,) array
        Conductivities along x, y, z in S/m.
    current : float
        Injected current in A.

    Returns
    -------
    (N,) array of V.
    """
    stretched = (points - source) ** 2 @ (np.prod(sigma) / np.asarray(sigma))
    return np.asarray(current / (4.0 * np.pi * np.sqrt(stretched)))


def two_half_spaces(
    points: FloatArray,
    source: FloatArray,
    sigma_source: float,
    sigma_other: float,
    *,
    current: float = 1.0,
) -> FloatArray:
    r"""Return the potential of a point source beside the plane z = 0 between two media.

    The source lies at height h != 0 in medium 1. With k = (s1 - s2) / (s1 + s2) and r' the
    distance to the mirrored source,

    .. math:: \phi_1 = \frac{I}{4\pi\sigma_1}\Big(\frac1r + \frac{k}{r'}\Big), \qquad
              \phi_2 = \frac{I}{2\pi(\sigma_1+\sigma_2) r}.

    Parameters
    ----------
    points : (N, 3) array
        Observation points in m.
    source : (3,) array
        Position of the source in m, off the plane z = 0.
    sigma_source, sigma_other : float
        Conductivity in S/m on the source's side and on the other; 0 for an insulator there.
    current : float
        Injected current in A.

    Returns
    -------
    (N,) array of V.
    """
    mirror = np.asarray(source) * np.array([1.0, 1.0, -1.0])
    direct = 1.0 / np.linalg.norm(points - source, axis=1)
    image = 1.0 / np.linalg.norm(points - mirror, axis=1)
    k = (sigma_source - sigma_other) / (sigma_source + sigma_other)
    same = (direct + k * image) / (4.0 * np.pi * sigma_source)
    other = direct / (2.0 * np.pi * (sigma_source + sigma_other))
    return np.asarray(current * np.where(points[:, 2] * source[2] >= 0.0, same, other))
