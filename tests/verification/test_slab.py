"""Layered slab: equation, boundary and interface conditions determine it uniquely."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from fieldcorr.errors import ConvergenceError, ModelError
from fieldcorr.verification import Layer, Rectangle, Slab, slab_potential
from fieldcorr.verification.slab import _amplitudes, _wave_numbers
from tests.verification.differences import second_derivatives, slope
from tests.verification.point_sources import anisotropic_point_source

RNG = np.random.default_rng(11)
LAYERS = (
    Layer(0.2, (0.04, 0.04, 0.04)),
    Layer(0.3, (1.7, 1.2, 0.9)),
    Layer(0.5, (0.6, 0.1, 0.083)),
)
CONTACTS = (Rectangle((0.5, 0.9), (0.6, 0.75), 1.0), Rectangle((1.3, 1.5), (0.3, 0.7), -1.0))
SLAB = Slab((2.0, 1.2), LAYERS)


def points_in(layer: int, count: int = 30) -> np.ndarray:
    top = SLAB.tops[layer]
    low, high = np.array([0.1, 0.1, top + 0.08]), np.array([1.9, 1.1, top + 0.12])
    return RNG.uniform(low, high, size=(count, 3))


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_equation_holds_in_every_layer(layer: int) -> None:
    second = second_derivatives(
        lambda p: slab_potential(p, SLAB, CONTACTS), points_in(layer), 2e-3
    ) * np.array(LAYERS[layer].sigma)
    assert np.abs(second.sum(axis=1)).max() < 1e-5 * np.abs(second).max()


@pytest.mark.parametrize("interface", [1, 2])
def test_potential_and_normal_current_cross_interfaces(interface: int) -> None:
    points = points_in(interface)
    points[:, 2] = SLAB.tops[interface]
    down = np.broadcast_to([0.0, 0.0, 1e-3], points.shape)

    def potential(p: np.ndarray) -> np.ndarray:
        return slab_potential(p, SLAB, CONTACTS)

    below = LAYERS[interface].sigma[2] * slope(potential, points + 1e-12 * down, down)
    above = -LAYERS[interface - 1].sigma[2] * slope(potential, points - 1e-12 * down, -down)
    np.testing.assert_allclose(below, above, rtol=1e-5, atol=1e-6 * np.abs(above).max())


def test_walls_and_bottom() -> None:
    def potential(p: np.ndarray) -> np.ndarray:
        return slab_potential(p, SLAB, CONTACTS)

    inside = points_in(1)
    for point, normal in (
        ([0.0, 0.4, 0.3], [1.0, 0.0, 0.0]),
        ([2.0, 0.7, 0.3], [-1.0, 0.0, 0.0]),
        ([0.7, 1.2, 0.3], [0.0, -1.0, 0.0]),
        ([0.7, 0.4, 1.0], [0.0, 0.0, -1.0]),
    ):
        across = slope(potential, np.array([point]), 2e-3 * np.array([normal]))
        assert abs(across[0]) < 1e-4 * np.ptp(potential(inside))


def test_amplitudes_are_those_of_the_rectangles() -> None:
    k = _wave_numbers(0.3, SLAB, 1e-3)
    xs, ys = (np.arange(2000) + 0.5) / 1000, (np.arange(1200) + 0.5) / 1000
    inside = np.zeros((2000, 1200))
    for c in CONTACTS:
        mask = np.outer((xs > c.x[0]) & (xs < c.x[1]), (ys > c.y[0]) & (ys < c.y[1]))
        inside += c.current * mask / ((c.x[1] - c.x[0]) * (c.y[1] - c.y[0]))
    wx, wy = np.cos(np.outer(k[:, 0], xs)), np.cos(np.outer(k[:, 1], ys))
    factor = np.where(k > 0, 2.0, 1.0).prod(axis=1) / 2.4
    expected = factor * np.einsum("kx,xy,ky->k", wx, inside, wy, optimize=True) * 1e-6
    np.testing.assert_allclose(_amplitudes(SLAB, CONTACTS, k), expected, atol=2e-3)


def test_open_half_space_is_the_sum_of_mirrored_point_sources() -> None:
    sigma = (0.6, 0.3, 0.083)
    slab = Slab((30.0, 20.0), (Layer(np.inf, sigma),))
    contacts = (
        Rectangle((14.0, 14.5), (10.0, 10.2), 1.0),
        Rectangle((15.5, 16.0), (10.0, 10.2), -1.0),
    )
    points = np.array([[14.4, 10.5, 0.8], [15.7, 9.6, 1.1], [15.0, 10.1, 0.9], [16.5, 11.0, 1.0]])
    expected = np.zeros(4)
    for c in contacts:
        for source, share in _mirrored_samples(c, slab.size):
            phi = anisotropic_point_source(points, source, np.array(sigma), current=c.current)
            expected += 2.0 * share * phi
    computed = slab_potential(points, slab, contacts, tolerance=1e-9)
    # The finite lattice of images is not centred: it leaves a constant.
    np.testing.assert_allclose(computed - computed[0], expected - expected[0], atol=1e-6)


def _mirrored_samples(
    contact: Rectangle, size: tuple[float, float]
) -> Iterator[tuple[np.ndarray, float]]:
    """Yield Gauss points of a rectangle and of its images in the walls, with their weights."""
    nodes, weight = np.polynomial.legendre.leggauss(6)
    cells = np.arange(-4, 5)
    for u, wu in zip(nodes, weight, strict=True):
        for v, wv in zip(nodes, weight, strict=True):
            x = np.mean(contact.x) + 0.5 * np.ptp(contact.x) * u
            y = np.mean(contact.y) + 0.5 * np.ptp(contact.y) * v
            xs = np.concatenate([2 * size[0] * cells + x, 2 * size[0] * cells - x])
            ys = np.concatenate([2 * size[1] * cells + y, 2 * size[1] * cells - y])
            for image in product(xs, ys):
                yield np.array([*image, 0.0]), wu * wv / 4.0


def test_a_split_layer_is_the_same_layer_and_tolerance_is_kept() -> None:
    split = Slab(
        SLAB.size, (Layer(0.05, LAYERS[0].sigma), Layer(0.15, LAYERS[0].sigma), *LAYERS[1:])
    )
    points = np.concatenate([points_in(layer, 10) for layer in range(3)])
    reference = slab_potential(points, SLAB, CONTACTS)
    size = np.abs(reference).max()
    np.testing.assert_allclose(
        slab_potential(points, split, CONTACTS), reference, atol=1e-12 * size
    )
    coarse = slab_potential(points, SLAB, CONTACTS, tolerance=1e-10)
    np.testing.assert_allclose(coarse, reference, atol=1e-8 * size)


def test_thin_and_thick_layers_stay_finite() -> None:
    slab = Slab((1.0, 1.0), (Layer(1e-6, (1e-6, 1e-6, 1e-6)), Layer(1e3, (5.0, 5.0, 5.0))))
    contacts = (Rectangle((0.1, 0.2), (0.1, 0.2), 1.0), Rectangle((0.8, 0.9), (0.8, 0.9), -1.0))
    phi = slab_potential(np.array([[0.3, 0.3, 0.1], [0.3, 0.3, 900.0]]), slab, contacts)
    assert np.isfinite(phi).all()
    assert abs(phi[0]) > 0.0


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ModelError, match=r"zero sum, got 1\.0 A"):
        slab_potential(points_in(1), SLAB, CONTACTS[:1])
    with pytest.raises(ModelError, match="lies outside the slab"):
        slab_potential(np.array([[0.1, 0.1, 1.2]]), SLAB, CONTACTS)
    with pytest.raises(ConvergenceError, match="move the points away") as caught:
        slab_potential(np.array([[0.1, 0.1, 1e-4]]), SLAB, CONTACTS)
    assert caught.value.residual > 1e-13
    with pytest.raises(ModelError, match="only the last layer"):
        Slab((1.0, 1.0), (Layer(np.inf, (1, 1, 1)), Layer(1.0, (1, 1, 1))))
    with pytest.raises(ModelError, match="positive"):
        Slab((1.0, 1.0), (Layer(1.0, (1, -1, 1)),))
