"""Concentric spheres."""

import numpy as np
import pytest

from fieldcorr.errors import ConvergenceError, ModelError
from fieldcorr.verification import BlurredElectrode, CapElectrode, Spheres, sphere_potential
from tests.verification.differences import second_derivatives, slope

RNG = np.random.default_rng(5)
HEAD = Spheres((0.78, 0.80, 0.86, 0.92), (0.33, 1.79, 0.01, 0.43))
WOODEN = Spheres((0.5, 0.7, 1.0), (0.3, 0.02, 0.4), (0.3, 0.2, 0.1))
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
    point = (CapElectrode((0, 0, 1), 1.0, 0.0), CapElectrode((1, 0, 0), -1.0, 0.0))
    inside = points * 0.7
    expected = homogeneous(inside, 0.92, 0.4, 1.0, up) - homogeneous(inside, 0.92, 0.4, 1.0, left)
    np.testing.assert_allclose(
        sphere_potential(inside, spheres, point), expected, rtol=0, atol=1e-11
    )


@pytest.mark.parametrize("r", [0.3, 0.6, 0.85])
def test_equation_with_tangential_anisotropy(r: float) -> None:
    def potential(p: np.ndarray) -> np.ndarray:
        return sphere_potential(p, WOODEN, PAIR)

    shell = int(np.searchsorted(WOODEN.radii, r))
    points = r * directions()
    step = 2e-3
    laplace = second_derivatives(potential, points, step).sum(axis=1)
    ray = points / r
    samples = np.array([potential(points + s * step * ray) for s in (-2, -1, 0, 1, 2)])
    first = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) @ samples / (12 * step)
    second = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) @ samples / (12 * step**2)
    radial = second + 2.0 * first / r
    residual = WOODEN.sigma[shell] * radial + WOODEN.tangential[shell] * (laplace - radial)
    assert np.abs(residual).max() < 1e-5 * np.abs(WOODEN.tangential[shell] * radial).max()


@pytest.mark.parametrize("spheres", [HEAD, WOODEN])
def test_potential_and_radial_current_cross_shells(spheres: Spheres) -> None:
    def potential(p: np.ndarray) -> np.ndarray:
        return sphere_potential(p, spheres, PAIR)

    for shell, radius in enumerate(spheres.radii[:-1]):
        ray = 1e-3 * directions()
        out = spheres.sigma[shell + 1] * slope(potential, (1e3 * radius + 1e-9) * ray, ray)
        into = -spheres.sigma[shell] * slope(potential, (1e3 * radius - 1e-9) * ray, -ray)
        np.testing.assert_allclose(out, into, atol=1e-5 * np.abs(out).max())


def test_surface_carries_the_density() -> None:
    ray = directions()
    points = HEAD.radii[-1] * ray
    current = -HEAD.sigma[-1] * slope(
        lambda p: sphere_potential(p, HEAD, PAIR), points, -1e-3 * ray
    )
    density = sum(e.density(points, HEAD.radii[-1]) for e in PAIR)
    np.testing.assert_allclose(current, density, atol=1e-5 * np.abs(density).max())


def test_small_caps_become_points_and_match_averaged_points() -> None:
    points = 0.5 * directions()
    caps = (CapElectrode((0, 0, 1), 1.0, 1e-3), CapElectrode((0, 0, -1), -1.0, 0.2))
    u = (np.arange(400) + 0.5) / 400
    t = 1 - u * (1 - np.cos(0.2))
    a = np.arange(24) * 2 * np.pi / 24
    expected = homogeneous(points, 0.92, 0.4, 1.0, np.array([0.0, 0.0, 1.0]))
    for angle in a:
        axes = np.column_stack(
            [np.sqrt(1 - t**2) * np.cos(angle), np.sqrt(1 - t**2) * np.sin(angle), -t]
        )
        expected = (
            expected - np.mean([homogeneous(points, 0.92, 0.4, 1.0, x) for x in axes], axis=0) / 24
        )
    computed = sphere_potential(points, Spheres((0.92,), (0.4,)), caps)
    np.testing.assert_allclose(computed, expected, atol=1e-5)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ModelError, match="zero sum"):
        sphere_potential(np.zeros((1, 3)), HEAD, PAIR[:1])
    with pytest.raises(ModelError, match="lies outside"):
        sphere_potential(np.ones((1, 3)), HEAD, PAIR)
    with pytest.raises(ModelError, match="increase"):
        Spheres((0.5, 0.4), (1.0, 1.0))
    with pytest.raises(ModelError, match="2 numbers needed"):
        Spheres((0.4, 0.5), (1.0,))
    caps = (CapElectrode((0, 0, 1), 1.0, 0.1), CapElectrode((0, 0, -1), -1.0, 0.1))
    with pytest.raises(ConvergenceError):
        sphere_potential(np.array([[0.0, 0.0, 0.92]]), HEAD, caps)
