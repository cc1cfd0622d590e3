"""Sections: data equal to the field, orientation, units, symmetric limits, borders of the mesh."""

import sys
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from fieldcorr import plot
from fieldcorr.batch import precompute
from fieldcorr.drive import contact_currents
from fieldcorr.elements.section import outline_cut, tissue_outlines
from fieldcorr.errors import ConfigurationError, MissingExtraError, StoreError
from fieldcorr.leadfield import LeadField, solve_configurations
from fieldcorr.mesh.structured import box_mesh
from fieldcorr.model import Model
from fieldcorr.plot.array_view import polarity_of
from fieldcorr.plot.section_grid import MARGIN_M, default_places, sample_section
from fieldcorr.plot.section_parts import joined, smoothed
from fieldcorr.plot.section_view import isolevels
from fieldcorr.plot.volume import shown, volume_of
from fieldcorr.store import Store

STEP = 1e-3
FloatArray = NDArray[np.float64]


def currents(field: LeadField | Store, text: str, *, mode: str = "voltage") -> FloatArray:
    rows = polarity_of(field, text)[None]
    return np.asarray(contact_currents(rows, field.admittance, mode=mode)[0])


def mean_free(field: LeadField, text: str, points: FloatArray) -> FloatArray:
    """Return the potential less its weighted mean over the region, straight from the lead field."""
    current = currents(field, text)
    mean = current @ field.potential @ field.weight / field.weight.sum()
    return np.asarray(current @ field.potential_at(points) - mean)


def image(ax: Any) -> tuple[Any, FloatArray]:
    """Return the coloured mesh of a panel and the picture coordinates (m * n, 2) of its values."""
    (mesh,) = [item for item in ax.collections if isinstance(item, QuadMesh)]
    corners: Any = mesh.get_coordinates()
    centres = 0.25 * (corners[1:, 1:] + corners[:-1, 1:] + corners[1:, :-1] + corners[:-1, :-1])
    return mesh, np.asarray(centres).reshape(-1, 2)


def panels(figure: Figure) -> dict[str, Any]:
    return {
        ax.get_title().splitlines()[-1].split(",")[0]: ax for ax in figure.axes if ax.get_title()
    }


@pytest.fixture(scope="module")
def three(lead_field: LeadField) -> Figure:
    return plot.sections(lead_field, "1- 7+", step=STEP)


def test_pixels_are_the_potential(three: Figure, lead_field: LeadField) -> None:
    ax = panels(three)["axial"]
    mesh, centres = image(ax)
    # The strongest contacts are 1 and 7, with the same current; argmax takes the first.
    height = float(ax.get_title().split()[-2])
    assert height == pytest.approx(8.5, abs=0.05)
    points = 1e-3 * np.column_stack([centres, np.full(len(centres), 8.5)])
    wanted = mean_free(lead_field, "1- 7+", points)
    values = np.ma.getdata(mesh.get_array()).ravel()
    inside = np.isfinite(wanted)
    assert 0.5 < inside.mean() < 1.0  # the paddle is void
    np.testing.assert_array_equal(~np.ma.getmaskarray(mesh.get_array()).ravel(), inside)
    np.testing.assert_allclose(values[inside], 1e3 * wanted[inside], rtol=1e-9, atol=1e-9)


def test_cathode_is_negative_and_on_the_left(three: Figure) -> None:
    ax = panels(three)["coronal"]
    mesh, centres = image(ax)
    assert ax.xaxis_inverted()
    assert not ax.yaxis_inverted()
    values = np.ma.getdata(mesh.get_array()).ravel()
    assert np.nanmean(values[centres[:, 1] > 12]) < 0 < np.nanmean(values[centres[:, 1] < 0])
    marks = {t.get_text(): t for t in ax.texts}
    x = {name: t.get_transform().transform(t.get_position())[0] for name, t in marks.items()}
    assert x["L"] < x["R"]


def test_limits_are_symmetric_with_units(three: Figure) -> None:
    for ax in panels(three).values():
        mesh, _ = image(ax)
        low, high = mesh.get_clim()
        assert low == -high < 0
    labels = [ax.get_ylabel() for ax in three.axes if "potential" in ax.get_ylabel()]
    assert labels == ["potential (mV)\n0 = mean over the compared region"]


def test_panels_are_labelled(three: Figure) -> None:
    found = panels(three)
    assert list(found) == ["axial", "sagittal", "coronal"]
    names = {name: (ax.get_xlabel(), ax.get_ylabel()) for name, ax in found.items()}
    assert names == {
        "axial": ("left (mm)", "dorsal (mm)"),
        "sagittal": ("dorsal (mm)", "rostral (mm)"),
        "coronal": ("left (mm)", "rostral (mm)"),
    }
    assert {t.get_text() for t in found["sagittal"].texts} >= {"V", "D", "1\u2212"}
    assert not found["sagittal"].xaxis_inverted()
    assert "1- 7+ at 1 V" in three.get_suptitle()


def test_active_contacts_are_named_with_signs(three: Figure) -> None:
    texts = {t.get_text() for t in panels(three)["coronal"].texts}
    assert {"1\u2212", "7+"} <= texts


def test_tissues_are_named_in_all_planes(three: Figure) -> None:
    named = {name: {t.get_text() for t in ax.texts} for name, ax in panels(three).items()}
    assert {"white", "CSF", "fat", "bone"} <= named["axial"]
    assert {"CSF", "bone"} <= named["sagittal"]
    assert {"grey", "fat"} <= named["coronal"]


def test_names_do_not_cover_each_other(three: Figure) -> None:
    three.draw_without_rendering()
    for ax in panels(three).values():
        boxes = [text.get_window_extent() for text in ax.texts]
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_planes_go_through_the_contacts_with_the_current(lead_field: LeadField) -> None:
    places = default_places(shown(lead_field, "1- 3+ 7+"))
    names = lead_field.contact_names
    left = lead_field.contact_positions[:, 0]
    assert places["sagittal"] == pytest.approx(left[names.index("1")])
    alone = default_places(shown(lead_field, "6- 8+"))
    assert alone["sagittal"] == pytest.approx(left[names.index("6")], abs=1e-9)


def test_signs_of_a_difference_are_explained(lead_field: LeadField) -> None:
    figure = plot.section(lead_field, "1- 7+", minus="6- 8+", step=STEP)
    assert "signs are those of the difference" in figure.axes[0].get_title()


def test_outlines_are_smooth_and_as_large() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 13)
    ring = 2.0 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    smooth = smoothed(ring)
    turns = np.diff(np.unwrap(np.arctan2(*np.diff(smooth, axis=0).T[::-1])))
    assert np.abs(turns).max() < np.deg2rad(8.0)
    radius = np.linalg.norm(smooth, axis=1)
    assert radius.min() > 1.85
    assert radius.max() < 2.01


def test_true_corners_stay() -> None:
    square = np.array([[0.0, 0], [1, 0], [2, 0], [2, 1], [2, 2], [0, 2], [0, 1], [0, 0]])
    smooth = smoothed(square)
    for corner in ([0, 0], [2, 0], [2, 2], [0, 2]):
        assert np.linalg.norm(smooth - corner, axis=1).min() < 1e-9


def test_segments_are_joined_to_lines() -> None:
    corners = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    ring = np.stack([corners, np.roll(corners, -1, axis=0)], axis=1)
    open_line = np.array([[[5.0, 0], [6, 0]], [[7, 0], [6, 0]]])
    lines = joined(np.concatenate([ring[[2, 0, 3, 1]], open_line]))
    assert sorted(len(line) for line in lines) == [3, 5]
    (closed,) = [line for line in lines if len(line) == 5]
    np.testing.assert_allclose(closed[0], closed[-1])


def test_negative_isopotentials_are_dashed(three: Figure) -> None:
    (contours,) = [c for c in panels(three)["axial"].collections if hasattr(c, "levels")]
    for level, style in zip(contours.levels, contours.get_linestyles(), strict=True):
        assert (style[1] is not None) == (level < 0)


def test_a_difference_is_the_difference(lead_field: LeadField) -> None:
    def values(**options: Any) -> FloatArray:
        figure = plot.section(lead_field, plane="coronal", step=STEP, limit=1e-3, **options)
        mesh, _ = image(figure.axes[0])
        return np.asarray(np.ma.getdata(mesh.get_array()))

    one, other = values(configuration="1- 7+"), values(configuration="1- 6+")
    both = values(configuration="1- 7+", minus="1- 6+")
    np.testing.assert_allclose(both, one - other, rtol=1e-8, atol=1e-6)


def test_a_difference_with_itself_can_be_drawn(lead_field: LeadField) -> None:
    figure = plot.section(lead_field, "1- 7+", minus="1- 7+", at=0.0, step=STEP)
    assert image(figure.axes[0])[0].get_clim() == (-1.0, 1.0)


def test_amplitude_and_drive_scale(lead_field: LeadField) -> None:
    one = shown(lead_field, "1- 7+")
    two = shown(lead_field, "1- 7+", amplitude=2.5)
    np.testing.assert_allclose(two.currents, 2.5 * one.currents)
    assert two.title == "1- 7+ at 2.5 V"
    milli = shown(lead_field, "1- 7+", drive="current", amplitude=1e-3)
    assert milli.title == "1- 7+ at 1 mA"
    np.testing.assert_allclose(milli.currents[[1, 7]], [-1e-3, 1e-3])


def test_store_and_lead_field_draw_the_same(lead_field: LeadField, store: Store) -> None:
    points = lead_field.points[::40]
    for text in ("1- 7+", "0- 5+ 11+"):  # the second one is no row of the store
        wanted, drawn = (shown(s, text).field.potential(points) for s in (lead_field, store))
        # The store keeps nodal lead fields in single precision.
        np.testing.assert_allclose(drawn, wanted, atol=1e-6 * np.abs(wanted).max() + 1e-7)
        # A picture and the store have the same zero: the mean over the compared region.
        np.testing.assert_allclose(store.potential(text, points), drawn, rtol=1e-12, atol=1e-15)
    every = store.potential("1- 7+", lead_field.points)
    assert abs(every @ lead_field.weight) < 1e-5 * np.abs(every) @ lead_field.weight


def test_field_is_minus_the_gradient(lead_field: LeadField) -> None:
    what = shown(lead_field, "1- 7+")
    points = lead_field.points[5::60]
    field = what.field.electric_field(points)
    # At centroids of cells the lead field has its own gradient.
    own = np.einsum("e,end->nd", what.currents, lead_field.field)[5::60]
    np.testing.assert_allclose(field, own, rtol=1e-8, atol=1e-12)


def test_plane_search_finds_the_cells_of_the_full_search(lead_field: LeadField) -> None:
    volume = volume_of(lead_field)
    cut = sample_section(shown(lead_field, "1- 7+"), "axial", None, step=STEP, margin=MARGIN_M)
    points = cut.plane.points(cut.across, cut.up, cut.at)
    full = volume.space.locate(points)
    np.testing.assert_array_equal(full.inside, cut.where.inside)
    tissue = np.where(full.inside, lead_field.mesh.cell_tags[full.cell], -1)
    np.testing.assert_array_equal(tissue, cut.tissue.ravel())
    nowhere = volume.space.locate_in_plane(points + 9.0, axis=2, at=9.0)
    assert not nowhere.inside.any()


def test_magnitude_is_logarithmic_in_volt_per_metre(lead_field: LeadField) -> None:
    figure = plot.field_sections(
        lead_field,
        "1- 7+",
        places={"sagittal": 1.1e-3},
        step=STEP,
        lines=0.4,
        drive="current",
        amplitude=1e-3,
    )
    ax = panels(figure)["sagittal"]
    mesh, centres = image(ax)
    assert isinstance(mesh.norm, LogNorm)
    points = 1e-3 * np.column_stack([np.full(len(centres), 1.1), centres])
    volume = volume_of(lead_field)
    current = 1e-3 * currents(lead_field, "1- 7+", mode="current")
    field = volume.of_currents(current).electric_field(points)
    wanted = np.linalg.norm(field, axis=1)
    values = np.ma.getdata(mesh.get_array()).ravel()
    inside = np.isfinite(wanted)
    np.testing.assert_allclose(values[inside], wanted[inside], rtol=1e-9)
    assert "|E| (V/m)" in [a.get_ylabel() for a in figure.axes]


def test_field_lines_run_from_anode_to_cathode(bundled_model: Model, lead_field: LeadField) -> None:
    """E integrated along the cord from anode to cathode is positive: the potential falls."""
    what = shown(lead_field, "6- 8+")
    z = np.linspace(-4.25e-3, 12.75e-3, 60)
    line = np.column_stack([np.zeros(60), np.full(60, 5e-3), z])
    field = what.field.electric_field(line)
    assert np.trapezoid(field[:, 2], z) > 0
    potential = what.field.potential(line[[0, -1]])
    assert potential[0] > 0 > potential[1]


def test_one_volt_lies_between_the_contacts(bundled_model: Model, lead_field: LeadField) -> None:
    """The picture's drive is the direct solution's: 1 V between the two active contacts."""
    what = shown(lead_field, "6- 8+")
    inward = 1e-7 * np.array([0.0, -1.0, 0.0])
    high, low = what.field.potential(what.layout.centres[[8, 6]] + inward)
    assert high - low == pytest.approx(1.0, abs=1e-3)
    direct = solve_configurations(
        bundled_model, lead_field.mesh, polarity_of(lead_field, "6- 8+")[None]
    )
    np.testing.assert_allclose(what.currents, direct.currents[0], atol=1e-9)


def test_a_slim_store_says_that_it_has_no_fields(
    bundled_model: Model, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("slim")
    model = bundled_model.replace({"configurations.preset": "up-to-two", "solver.order": 1})
    with (
        precompute(
            model, folder / "s.h5", mesh="tiny", slim=True, estimate=False, cache=folder
        ) as slim,
        pytest.raises(StoreError, match="slim store"),
    ):
        plot.sections(slim, "1- 7+")


def test_wrong_requests_are_named(lead_field: LeadField, bundled_model: Model) -> None:
    with pytest.raises(ConfigurationError, match="plane 'oblique' is not one of axial"):
        plot.section(lead_field, "1- 7+", plane="oblique")
    with pytest.raises(ConfigurationError, match="plane 'x' is not"):
        plot.sections(lead_field, "1- 7+", places={"x": 0.0})
    with pytest.raises(ConfigurationError, match="a Model has no fields"):
        plot.sections(bundled_model, "1- 7+")  # type: ignore[arg-type]


# -- cuts -----------------------------------------------------------------------------------------


def test_outlines_of_a_box_of_two_tissues() -> None:
    mesh = box_mesh(4, 4, 4, tag=lambda c: (c[:, 0] > 0.5).astype(int), tissues=("low", "high"))
    for axis, at in ((2, 0.3), (2, 0.5)):  # the second plane holds vertices
        lines = tissue_outlines(mesh, axis=axis, at=at)
        np.testing.assert_allclose(lines[..., axis], at, atol=1e-9)
        total = np.linalg.norm(lines[:, 1] - lines[:, 0], axis=1).sum()
        assert total == pytest.approx(4.0 + 1.0)  # the rim of the box, and the interface
        inner = np.abs(lines[..., 0] - 0.5).max(axis=1) < 1e-9
        assert np.ptp(lines[inner][..., 1]) == pytest.approx(1.0)


def test_outlines_outside_the_mesh_are_empty() -> None:
    mesh = box_mesh(2, 2, 2)
    assert tissue_outlines(mesh, axis=0, at=7.0).shape == (0, 2, 3)


def test_borders_in_a_section_follow_the_anatomy(
    three: Figure, lead_field: LeadField, bundled_model: Model
) -> None:
    ax = panels(three)["axial"]
    (borders,) = [c for c in ax.collections if type(c) is LineCollection]
    ends = np.concatenate(borders.get_segments())
    sac = bundled_model.geometry.ellipses()["sac"]
    near = np.abs(np.sqrt(sac.level(ends)) - 1.0) < 0.02
    angle = np.arctan2(ends[near, 1] - sac.dorsal, ends[near, 0] - sac.left)
    assert len(np.unique(np.round(angle, 1))) > 20  # all around


def test_contact_cuts() -> None:
    square = np.array([[1.0, 0, 1], [-1, 0, 1], [-1, 0, -1], [1, 0, -1]])
    line = outline_cut(square, axis=2, at=0.25)
    assert sorted(line[:, 0]) == pytest.approx([-1.0, 1.0])
    np.testing.assert_allclose(line[:, 2], 0.25)
    assert outline_cut(square, axis=2, at=2.0).shape == (0, 3)


def test_isolevels() -> None:
    np.testing.assert_allclose(isolevels(0.3, 12.0), [0.5, 1.0, 2.0, 5.0, 10.0])


# -- pyvista --------------------------------------------------------------------------------------


def test_three_dimensions_without_pyvista(
    lead_field: LeadField, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyvista", None)
    with pytest.raises(MissingExtraError, match="needs pyvista, which is not installed"):
        plot.volume_grid(lead_field, ["1- 7+"])


def test_three_dimensions_give_vtk_what_it_expects(lead_field: LeadField) -> None:
    pytest.importorskip("pyvista")
    grid = plot.volume_grid(lead_field, ["1- 7+", "6- 8+"])
    cells = grid.cells.reshape(-1, 11)
    assert (cells[:, 0] == 10).all()
    assert (grid.celltypes == 24).all()
    # VTK puts the middle of vertices 0 and 1 fifth, of 1 and 2 sixth, of 2 and 3 last.
    corner = np.asarray(grid.points)[cells[:, 1:]]
    for place, (a, b) in ((4, (0, 1)), (5, (1, 2)), (9, (2, 3))):
        np.testing.assert_allclose(corner[:, place], 0.5 * (corner[:, a] + corner[:, b]))
    assert list(grid.point_data) == ["potential 1- 7+ (V)", "potential 6- 8+ (V)"]
    assert len(grid.cell_data["tissue"]) == len(cells)
    assert list(grid.field_data["zero of the potential"]) == ["mean over the compared region"]
    assert list(grid.field_data["tissues"]) == list(lead_field.mesh.tissues)
