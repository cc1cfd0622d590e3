"""The compared region, samples, derivatives and Gram matrices."""

import numpy as np
import pytest
from numpy.typing import NDArray

from fieldcorr.elements import basis
from fieldcorr.errors import FieldError, ModelError
from fieldcorr.fem.reference import cell_quadrature
from fieldcorr.leadfield import LeadField, compared_region
from fieldcorr.leadfield.data import FIBRE_STEP_M, LINEAR_MEASURES, sum_of_grams
from fieldcorr.leadfield.region import window
from fieldcorr.mesh import Mesh
from fieldcorr.model import Model


def test_window_is_flat_then_a_cosine_then_zero() -> None:
    z = np.array([0.0, 0.019, 0.020, 0.025, 0.030, 0.031, -0.025, -0.05])
    found = window(z - 0.003, -0.003, 0.03, 0.01)
    np.testing.assert_allclose(found, [1, 1, 1, 0.5, 0, 0, 0.5, 0], atol=1e-12)
    assert window(np.array([0.01, 0.02, 0.03]), 0.0, 0.02, 0.0).tolist() == [1.0, 1.0, 0.0]


def test_weight_is_the_windowed_volume_of_the_cord(bundled_model: Model, tiny_mesh: Mesh) -> None:
    region = compared_region(bundled_model, tiny_mesh)
    cord = bundled_model.geometry.cord
    area = np.pi / 4 * cord.width_mm * cord.depth_mm * 1e-6
    # A cosine taper of 10 mm at both ends of 60 mm leaves an effective length of 50 mm.
    assert region.weight.sum() == pytest.approx(area * 0.05, rel=0.02)
    tissues = {tiny_mesh.tissues[tag] for tag in np.unique(tiny_mesh.cell_tags[region.cells])}
    assert tissues == {"grey", "white"}


def test_half_box_and_tissues_restrict_the_region(bundled_model: Model, tiny_mesh: Mesh) -> None:
    whole = compared_region(bundled_model, tiny_mesh)
    dorsal = compared_region(bundled_model.replace({"region.half": "dorsal"}), tiny_mesh)
    assert 0.35 < dorsal.weight.sum() / whole.weight.sum() < 0.65
    middle = 1e-3 * bundled_model.geometry.cord_dorsal_mm
    assert dorsal.points[:, 1].min() > middle
    box = [[-100.0, 0.0], [-100.0, 100.0], [-100.0, 100.0]]
    right = compared_region(bundled_model.replace({"region.box_mm": box}), tiny_mesh)
    assert right.points[:, 0].max() <= 0.0
    grey = compared_region(bundled_model.replace({"region.tissues": ["grey"]}), tiny_mesh)
    assert 0 < grey.weight.sum() < whole.weight.sum()


def test_an_empty_region_is_an_error(bundled_model: Model, tiny_mesh: Mesh) -> None:
    box = [[90.0, 91.0], [-100.0, 100.0], [-100.0, 100.0]]
    with pytest.raises(ModelError, match=r"\[region\] holds no cell"):
        compared_region(bundled_model.replace({"region.box_mm": box}), tiny_mesh)


def gram_by_quadrature(lead_field: LeadField) -> NDArray[np.float64]:
    """Integrate the mean-removed products with a rule of higher degree than needed."""
    bary, weights = cell_quadrature(7)
    shapes = basis(bary, lead_field.order)
    dofs = lead_field.space.cell_dofs[lead_field.region.cells]
    windows = lead_field.region.moments @ bary.T * weights
    values = np.einsum("enk,qk->enq", lead_field.nodal[:, dofs], shapes)
    means = np.einsum("enq,nq->e", values, windows) / windows.sum()
    values -= means[:, None, None]
    return np.asarray(np.einsum("anq,bnq,nq->ab", values, values, windows, optimize=True))


def test_gram_is_exact(tiny_lead_field: LeadField) -> None:
    expected = gram_by_quadrature(tiny_lead_field)
    gram = tiny_lead_field.gram
    assert (gram == gram.T).all()
    np.testing.assert_allclose(gram, expected, atol=1e-12 * np.abs(expected).max())
    assert np.abs(gram.sum(axis=0)).max() < 1e-9 * np.abs(gram).max()


def test_samples_are_the_potential_at_the_centroids(tiny_lead_field: LeadField) -> None:
    found = tiny_lead_field.potential_at(tiny_lead_field.points)
    scale = np.abs(found).max()
    np.testing.assert_allclose(tiny_lead_field.potential, found, atol=1e-12 * scale)
    assert np.isnan(tiny_lead_field.potential_at([[1.0, 0.0, 0.0]])).all()


def test_field_is_minus_the_gradient(tiny_lead_field: LeadField) -> None:
    """Central differences inside a cell are exact for piecewise quadratics."""
    points, step = tiny_lead_field.points[::25], 1e-6
    for axis in range(3):
        shift = np.eye(3)[axis] * step
        ahead = tiny_lead_field.potential_at(points + shift)
        behind = tiny_lead_field.potential_at(points - shift)
        slope = -(ahead - behind) / (2 * step)
        scale = np.abs(slope).max()
        found = tiny_lead_field.field[:, ::25, axis]
        np.testing.assert_allclose(found, slope, atol=1e-6 * scale)


def test_the_potential_of_a_configuration_is_zero_in_the_mean(tiny_lead_field: LeadField) -> None:
    volume, currents = tiny_lead_field.volume, np.cos(np.arange(16.0))
    currents -= currents.mean()
    found = volume.of_currents(currents).potential(tiny_lead_field.points)
    assert abs(found @ tiny_lead_field.weight) < 1e-12 * np.abs(found) @ tiny_lead_field.weight
    assert volume.zero == "mean over the compared region"
    # The constant aside it is the sum of the lead fields.
    summed = currents @ tiny_lead_field.potential
    np.testing.assert_allclose(found - found[0], summed - summed[0], atol=1e-9 * np.ptp(summed))


def test_activating_function_is_the_second_difference(tiny_lead_field: LeadField) -> None:
    points, step = tiny_lead_field.points[::50], FIBRE_STEP_M
    shift = np.array([0.0, 0.0, step])
    expected = (
        tiny_lead_field.potential_at(points + shift)
        - 2 * tiny_lead_field.potential_at(points)
        + tiny_lead_field.potential_at(points - shift)
    ) / step**2
    np.testing.assert_allclose(tiny_lead_field.activating[:, ::50], expected, rtol=1e-9)
    assert np.isfinite(tiny_lead_field.activating).all()


def test_grams_of_all_linear_measures(tiny_lead_field: LeadField) -> None:
    for measure in LINEAR_MEASURES:
        eigenvalues = np.linalg.eigvalsh(tiny_lead_field.gram_of(measure))
        assert abs(eigenvalues[0]) < 1e-9 * eigenvalues[-1], measure
        assert eigenvalues[1] > 0.0
    with pytest.raises(FieldError, match="measure 'smell': must be one of potential"):
        tiny_lead_field.gram_of("smell")


def test_sampled_gram_equals_weighted_covariance() -> None:
    rng = np.random.default_rng(3)
    samples, weight = rng.normal(size=(1, 4, 500)), rng.random(500)
    expected = np.cov(samples[0], aweights=weight, ddof=0) * weight.sum()
    np.testing.assert_allclose(sum_of_grams(samples, weight), expected, rtol=1e-12)
