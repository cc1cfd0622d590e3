"""Finite differences of a potential function: independent of every series they judge."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Potential = Callable[[FloatArray], FloatArray]


def second_derivatives(potential: Potential, points: FloatArray, step: float) -> FloatArray:
    """Return d2/dx2, d2/dy2, d2/dz2 (N, 3), fourth order."""
    weights = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / (12.0 * step**2)
    result = np.empty_like(points)
    for axis in range(3):
        shift = np.eye(3)[axis] * step
        samples = [potential(points + s * shift) for s in (-2, -1, 0, 1, 2)]
        result[:, axis] = weights @ np.array(samples)
    return result


def slope(potential: Potential, points: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the derivative (N,) into a direction (N, 3): one-sided, fourth order.

    The length of the direction is the step: a short one for accuracy, its sign for the side.
    """
    weights = np.array([-25.0, 48.0, -36.0, 16.0, -3.0]) / 12.0
    samples = [potential(points + s * direction) for s in range(5)]
    return np.asarray(weights @ np.array(samples) / np.linalg.norm(direction, axis=1))
