"""Concentric cylinders and the Bessel functions below them."""

import numpy as np
import pytest
from scipy.special import iv, ivp, kv, kvp

from fieldcorr.errors import ModelError
from fieldcorr.verification import BlurredPatch, Cylinders, cylinder_potential
from fieldcorr.verification._waves import log_bessel
from tests.verification.differences import second_derivatives, slope

RNG = np.random.default_rng(13)
CORD = Cylinders((0.45, 0.8, 1.0, 2.0), 4.0, (0.083, 1.7, 0.04, 0.25), (0.6, 1.7, 0.04, 0.35))
PAIR = (
    BlurredPatch(0.3, -0.4, 1.0, around=0.5, along=0.6),
    BlurredPatch(2.0, 0.7, -1.0, around=0.4, along=0.7),
)


def ring(radius: float, count: int = 20) -> tuple[np.ndarray, np.ndarray]:
    angle = RNG.uniform(0, 2 * np.pi, count)
    ray = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(count)])
    height = np.column_stack([np.zeros((count, 2)), RNG.uniform(-1.8, 1.8, count)])
    return radius * ray + height, ray


def potential(p: np.ndarray) -> np.ndarray:
    return cylinder_potential(p, CORD, PAIR)


def test_bessel_functions_agree_with_scipy_where_it_can_go() -> None:
    x = np.geomspace(0.05, 300.0, 40)
    log_i, log_k, d_i, d_k = log_bessel(25, x)
    for m in (0, 1, 2, 10, 25):
        np.testing.assert_allclose(log_i[m], np.log(iv(m, x)), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(log_k[m], np.log(kv(m, x)), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(d_i[m], ivp(m, x) / iv(m, x), rtol=1e-11)
        np.testing.assert_allclose(d_k[m], kvp(m, x) / kv(m, x), rtol=1e-11)


def test_bessel_functions_go_where_scipy_overflows() -> None:
    x = np.array([1e-8, 1e-3, 0.1, 30.0, 900.0])
    log_i, log_k, d_i, d_k = log_bessel(300, x)
    assert np.isfinite([log_i, log_k, d_i, d_k]).all()
    wronskian = np.exp(log_i + log_k) * (d_i - d_k) * x  # I K' - I' K = -1/x
    np.testing.assert_allclose(wronskian, 1.0, rtol=1e-9)


@pytest.mark.parametrize("r", [0.2, 0.6, 0.9, 1.5])
def test_equation_holds_in_every_layer(r: float) -> None:
    layer = int(np.searchsorted(CORD.radii, r))
    sigma = np.array([CORD.across[layer], CORD.across[layer], CORD.along[layer]])
    second = second_derivatives(potential, ring(r)[0], 5e-3) * sigma
    assert np.abs(second.sum(axis=1)).max() < 1e-5 * np.abs(second).max()


def test_potential_and_radial_current_cross_layers() -> None:
    for layer, radius in enumerate(CORD.radii[:-1]):
        points, ray = ring(radius)
        ray = ray * 2e-3
        out = CORD.across[layer + 1] * slope(potential, points + 1e-9 * ray, ray)
        into = -CORD.across[layer] * slope(potential, points - 1e-9 * ray, -ray)
        np.testing.assert_allclose(out, into, atol=1e-5 * np.abs(out).max())
        np.testing.assert_allclose(
            potential(points + 1e-9 * ray), potential(points - 1e-9 * ray), atol=1e-9
        )


def test_surface_carries_the_density_and_the_ends_are_insulated() -> None:
    points, ray = ring(CORD.radii[-1])
    current = -CORD.across[-1] * slope(potential, points, -2e-3 * ray)
    density = sum(e.density(points, CORD) for e in PAIR)
    np.testing.assert_allclose(current, density, atol=1e-5 * np.abs(density).max())
    for z in (-2.0, 2.0):
        ends = ring(0.7)[0] * np.array([1, 1, 0]) + np.array([0, 0, z])
        inward = np.broadcast_to([0.0, 0.0, -1e-3 * z], ends.shape)
        assert np.abs(slope(potential, ends, inward)).max() < 1e-5 * np.ptp(potential(ring(0.7)[0]))


def test_density_integrates_to_the_current() -> None:
    a, z = np.meshgrid(
        np.arange(64) * 2 * np.pi / 64, (np.arange(64) + 0.5) / 16 - 2, indexing="ij"
    )
    points = np.column_stack([2 * np.cos(a.ravel()), 2 * np.sin(a.ravel()), z.ravel()])
    area = 2 * np.pi * 2 * 4 / 64**2
    for electrode in PAIR:
        assert electrode.density(points, CORD).sum() * area == pytest.approx(electrode.current)


def test_evenly_along_it_is_the_plane_disc() -> None:
    disc = Cylinders((0.7, 2.0), 4.0, (0.3, 0.3), (0.3, 0.3))
    pair = (BlurredPatch(0.0, 0.0, 1.0, 0.8, 1e-14), BlurredPatch(2.0, 0.0, -1.0, 0.8, 1e-14))
    points, _ = ring(1.1)
    theta = np.arctan2(points[:, 1], points[:, 0])
    x = 0.8 * 1.1 / 2.0
    green = [-np.log(1 - 2 * x * np.cos(theta - a) + x * x) for a in (0.0, 2.0)]
    expected = (green[0] - green[1]) / (2 * np.pi * 0.3 * 4.0)
    np.testing.assert_allclose(cylinder_potential(points, disc, pair), expected, atol=1e-12)


def test_axis_is_smooth_and_blurred_electrodes_spread_evenly() -> None:
    near = potential(np.array([[0.0, 0.0, 0.1], [1e-7, 0.0, 0.1], [0.0, -1e-7, 0.1]]))
    np.testing.assert_allclose(near, near[0], rtol=1e-5)
    even = [BlurredPatch(angle, 0.0, 1.0 - 2 * angle, 1e-14, 1e-14) for angle in (0.0, 1.0)]
    np.testing.assert_allclose(cylinder_potential(ring(0.5)[0], CORD, even), 0.0, atol=1e-12)


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ModelError, match="lies outside"):
        cylinder_potential(np.array([[3.0, 0.0, 0.0]]), CORD, PAIR)
    with pytest.raises(ModelError, match="zero sum"):
        cylinder_potential(np.zeros((1, 3)), CORD, PAIR[1:])
    with pytest.raises(ModelError, match="1 numbers needed"):
        Cylinders((1.0,), 1.0, (1.0, 2.0), (1.0,))
