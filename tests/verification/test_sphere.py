"""Concentric spheres."""

import numpy as np
import pytest

from fieldcorr.errors import ConvergenceError, ModelError
from fieldcorr.verification import BlurredElectrode, Spheres, sphere_potential
from tests.verification.differences import second_derivatives, slope

RNG = np.random.default_rng(5)
HEAD = Spheres((0.78, 0.80, 0.86, 0.92), (0.33, 1.79, 0.01, 0.43))
PAIR = (
    BlurredElectrode((0.0, 0.3, 1.0), 1.0, blur=0.6),
    BlurredElectrode((1.0, -0.2, 0.1), -1.0, blur=0.7),
)


def directions(count: int = 30) -> np.ndarray:
    d = RNG.normal(size=(count, 3))
    return np.asarray(d / np.linalg.norm(d, axis=1)[:, None])


def homogeneous(
    points: np.ndarray, radius: float, sigma: float, b: float, axis: np.ndarray
) -> np.ndarray:
    """Sum of the series for one sphere: 2 (1/s - 1) + log(2 / (1 - x t + s)), x = b r / R."""
    r = np.linalg.norm(points, axis=1)
    t = points @ axis / r
    x = b * r / radius
    s = np.sqrt(1 - 2 * x * t + x * x)
    total = 2 * (1 / s - 1) + np.log(2 / (1 - x * t + s))
    return np.asarray(total / (4 * np.pi * sigma * radius))


@pytest.mark.parametrize("cut", [(0.92,), (0.5, 0.7, 0.92)])
def test_homogeneous_sphere_has_a_closed_sum(cut: tuple[float, ...]) -> None:
    points = directions() * RNG.uniform(0.1, 0.9, size=(30, 1))
    up, left = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    spheres = Spheres(cut, (0.4,) * len(cut))
    pair = (BlurredElectrode((0, 0, 2), 1.0, blur=0.8), BlurredElectrode((1, 0, 0), -1.0, blur=0.5))
    expected = homogeneous(points, 0.92, 0.4, 0.8, up) - homogeneous(points, 0.92, 0.4, 0.5, left)
    np.testing.assert_allclose(
        sphere_potential(points, spheres, pair), expected, rtol=0, atol=1e-12
    )
    point = (
        BlurredElectrode((0, 0, 1), 1.0, blur=1.0),
        BlurredElectrode((1, 0, 0), -1.0, blur=1.0),
    )
    inside = points * 0.7
    expected = homogeneous(inside, 0.92, 0.4, 1.0, up) - homogeneous(inside, 0.92, 0.4, 1.0, left)
    np.testing.assert_allclose(
        sphere_potential(inside, spheres, point), expected, rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("r", [0.3, 0.79, 0.83, 0.89])
def test_equation_holds_in_every_shell(r: float) -> None:
    second = second_derivatives(lambda p: sphere_potential(p, HEAD, PAIR), r * directions(), 2e-3)
    assert np.abs(second.sum(axis=1)).max() < 1e-5 * np.abs(second).max()


def test_potential_and_radial_current_cross_shells() -> None:
    def potential(p: np.ndarray) -> np.ndarray:
        return sphere_potential(p, HEAD, PAIR)

    for shell, radius in enumerate(HEAD.radii[:-1]):
        ray = 1e-3 * directions()
        out = HEAD.sigma[shell + 1] * slope(potential, (1e3 * radius + 1e-9) * ray, ray)
        into = -HEAD.sigma[shell] * slope(potential, (1e3 * radius - 1e-9) * ray, -ray)
        np.testing.assert_allclose(out, into, atol=1e-5 * np.abs(out).max())


def test_surface_carries_the_density() -> None:
    ray = directions()
    points = HEAD.radii[-1] * ray
    current = -HEAD.sigma[-1] * slope(
        lambda p: sphere_potential(p, HEAD, PAIR), points, -1e-3 * ray
    )
    density = sum(e.density(points, HEAD.radii[-1]) for e in PAIR)
    np.testing.assert_allclose(current, density, atol=1e-5 * np.abs(density).max())


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ModelError, match="zero sum"):
        sphere_potential(np.zeros((1, 3)), HEAD, PAIR[:1])
    with pytest.raises(ModelError, match="lies outside"):
        sphere_potential(np.ones((1, 3)), HEAD, PAIR)
    with pytest.raises(ModelError, match="increase"):
        Spheres((0.5, 0.4), (1.0, 1.0))
    with pytest.raises(ModelError, match="2 numbers needed"):
        Spheres((0.4, 0.5), (1.0,))
    points = (BlurredElectrode((0, 0, 1), 1.0, blur=1.0), PAIR[1])
    with pytest.raises(ConvergenceError):
        sphere_potential(np.array([[0.0, 0.0, 0.92]]), HEAD, points)
