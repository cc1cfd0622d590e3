"""Point sources, the disc and the contact-impedance slab."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.verification import disc_current, disc_potential, slab_resistance
from tests.verification.differences import Potential, second_derivatives, slope
from tests.verification.point_sources import anisotropic_point_source, two_half_spaces

RNG = np.random.default_rng(7)
SOURCE = np.array([0.1, -0.2, 0.7])


def test_anisotropic_source_solves_the_equation_and_carries_its_current() -> None:
    sigma = np.array([0.3, 0.7, 2.0])
    points = SOURCE + RNG.normal(size=(50, 3))
    points = points[np.linalg.norm(points - SOURCE, axis=1) > 0.5]
    residual = second_derivatives(
        lambda p: anisotropic_point_source(p, SOURCE, sigma), points, 1e-2
    )
    assert np.abs(residual @ sigma).max() < 1e-5 * np.abs(residual * sigma).max()
    assert _flux(lambda p: anisotropic_point_source(p, SOURCE, sigma), sigma) == pytest.approx(
        1.0, abs=1e-6
    )


def _flux(potential: Potential, sigma: np.ndarray) -> float:
    """Return the current through a sphere about the source by quadrature."""
    t, wt = np.polynomial.legendre.leggauss(40)
    azimuth = np.arange(80) * 2 * np.pi / 80
    z, a = np.meshgrid(t, azimuth, indexing="ij")
    s = np.sqrt(1 - z**2)
    normal = np.stack([s * np.cos(a), s * np.sin(a), z], -1).reshape(-1, 3)
    weight = np.repeat(wt * 2 * np.pi / 80, 80)
    gradient = np.stack(
        [
            slope(potential, SOURCE + 0.4 * normal, np.broadcast_to(1e-3 * e, normal.shape))
            for e in np.eye(3)
        ],
        axis=1,
    )
    return float(-0.16 * weight @ np.sum(normal * sigma * gradient, axis=1))


def test_half_spaces_join_at_the_plane() -> None:
    points = np.column_stack([RNG.normal(size=(40, 2)), np.zeros(40)])
    up = np.broadcast_to([0.0, 0.0, 1e-3], points.shape)

    def potential(p: np.ndarray) -> np.ndarray:
        return two_half_spaces(p, SOURCE, 0.3, 1.7)

    above = 0.3 * slope(potential, points + 1e-12 * up, up)
    below = -1.7 * slope(potential, points - 1e-12 * up, -up)
    np.testing.assert_allclose(above, below, rtol=1e-6)
    np.testing.assert_allclose(potential(points + 1e-9 * up), potential(points - 1e-9 * up))


def test_equal_half_spaces_are_one_medium() -> None:
    points = RNG.normal(size=(30, 3))
    np.testing.assert_allclose(
        two_half_spaces(points, SOURCE, 0.4, 0.4, current=3.0),
        anisotropic_point_source(points, SOURCE, np.full(3, 0.4), current=3.0),
    )


@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_half_spaces_are_reciprocal(first: float, second: float) -> None:
    here, there = np.array([0.3, 0.1, 0.5]), np.array([-0.2, 0.4, -0.9])
    forth = two_half_spaces(there[None], here, first, second)
    back = two_half_spaces(here[None], there, second, first)
    np.testing.assert_allclose(forth, back, rtol=1e-12)


@pytest.mark.parametrize("ground", [np.inf, 10.0, 1.5])
def test_disc_solves_the_equation(ground: float) -> None:
    points = RNG.normal(size=(40, 3)) * 0.5 - np.array([0.0, 0.0, 1.5])

    def potential(p: np.ndarray) -> np.ndarray:
        return disc_potential(p, 1.0, ground=ground)

    second = second_derivatives(potential, points, 1e-2)
    assert np.abs(second.sum(axis=1)).max() < 1e-5 * np.abs(second).max()


def test_disc_meets_its_boundary_conditions() -> None:
    plane = np.column_stack([RNG.uniform(-3, 3, size=(200, 2)), np.zeros(200)])
    rho = np.hypot(plane[:, 0], plane[:, 1])
    np.testing.assert_allclose(disc_potential(plane[rho < 1], 1.0, voltage=2.0), 2.0)
    free = plane[rho > 1.05]
    down = np.broadcast_to([0.0, 0.0, -1e-4], free.shape)
    assert np.abs(slope(lambda p: disc_potential(p, 1.0), free, down)).max() < 1e-5
    shell = RNG.normal(size=(20, 3))
    shell *= np.array([4.0, 4.0, np.sqrt(15.0)]) / np.linalg.norm(shell, axis=1)[:, None]
    np.testing.assert_allclose(disc_potential(shell, 1.0, ground=4.0), 0.0, atol=1e-12)


@pytest.mark.parametrize("ground", [np.inf, 10.0])
def test_disc_current_is_the_flux_through_a_far_hemisphere(ground: float) -> None:
    t, weight = np.polynomial.legendre.leggauss(60)
    z = -(t + 1.0) / 2.0
    normal = np.column_stack([np.sqrt(1 - z**2), 0.0 * z, z])
    outward = slope(lambda p: disc_potential(p, 1.0, ground=ground), 3.0 * normal, 1e-3 * normal)
    flux = -0.7 * 2 * np.pi * 9.0 * (weight / 2.0) @ outward
    assert disc_current(1.0, 0.7, ground=ground) == pytest.approx(flux, rel=1e-8)


def test_slab_resistance_adds_layers_and_interfaces() -> None:
    value = slab_resistance(np.array([0.01, 0.02]), np.array([0.5, 2.0]), 1e-4, (1e-3, 2e-3))
    assert value == pytest.approx((0.02 + 0.01 + 0.003) / 1e-4)
