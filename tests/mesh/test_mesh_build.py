"""Meshes built with gmsh: any placement of the array, the same bits every time."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fieldcorr.errors import MeshError, MissingExtraError
from fieldcorr.mesh import Mesh, MeshSizes, build_mesh, check_mesh
from fieldcorr.mesh.gmsh.sizes import Stretch, largest_edges
from fieldcorr.model import Ellipse, Model
from fieldcorr.verification.meshes import verification_mesh

COARSE = MeshSizes(
    rim_mm=1.0, growth=1.0, cord_mm=4.0, end_mm=4.0, far_mm=60.0, stretch=3.0, end_stretch=12.0
)


@pytest.fixture(scope="module")
def tilted(bundled_model: Model) -> Model:
    return bundled_model.replace(
        {
            "array.yaw_degree": 4.0,
            "array.pitch_degree": -1.0,
            "array.offset_left_mm": 0.8,
            "array.offset_rostral_mm": 12.0,
            "geometry.canal.width_mm": 27.0,
            "geometry.canal.depth_mm": 24.0,
            "geometry.cord.offset_left_mm": 0.7,
            "boundary.case.angle_degree": -100.0,
        }
    )


@pytest.fixture(scope="module")
def built(tilted: Model) -> Mesh:
    return build_mesh(tilted, sizes=COARSE)


@pytest.mark.gmsh
def test_a_tilted_array_is_built_where_it_belongs(built: Mesh, tilted: Model) -> None:
    report = check_mesh(built, tissues=tuple(tilted.tissues))
    centroids, areas = built.points[built.facets].mean(axis=1), built.facet_areas()
    for tag, position in enumerate(tilted.contact_positions_m):
        own = built.facet_tags == tag
        assert areas[own].sum() == pytest.approx(6e-6, rel=1e-5)
        assert np.average(centroids[own], axis=0, weights=areas[own]) == pytest.approx(
            position, abs=1e-8
        )
    case = built.facet_tags == built.facet_tag("case")
    assert report.facets["case"][1] == pytest.approx(3e-3, rel=0.02)
    middle = np.average(centroids[case], axis=0, weights=areas[case])
    assert middle == pytest.approx(tilted.case_position_m, abs=3e-3)
    for error in built.origin["volume-error"].values():
        assert error["before"] < -1e-3
        assert abs(error["after"]) < 1e-6


@pytest.mark.gmsh
def test_the_boundary_is_contacts_paddle_case_and_outer(built: Mesh, tilted: Model) -> None:
    torso = tilted.geometry.torso
    around = built.facet_tags >= 16
    outer = built.facet_areas()[around].sum()
    x, y, z = 1e3 * built.points[built.facets[around]].mean(axis=1).T
    on_side = np.hypot(x, y - torso.offset_dorsal_mm) > 0.9 * torso.radius_mm
    assert np.all(on_side | np.isclose(np.abs(z), torso.length_mm / 2))
    side, ends = 2 * np.pi * torso.radius_mm * torso.length_mm, 2 * np.pi * torso.radius_mm**2
    assert outer == pytest.approx(1e-6 * (side + ends), rel=0.01)


@pytest.mark.gmsh
def test_building_again_gives_the_same_mesh(built: Mesh, tilted: Model) -> None:
    again = build_mesh(tilted, sizes=COARSE)
    assert again.hash == built.hash


@pytest.mark.gmsh
def test_verification_mesh_is_built_at_any_scale() -> None:
    mesh = verification_mesh("cylinder", scale=3.0)
    inscribed = verification_mesh("cylinder", scale=3.0, corrected=False)
    assert np.array_equal(mesh.cells, inscribed.cells)
    assert mesh.volumes().sum() == pytest.approx(np.pi * 0.02**2 * 0.04, rel=1e-6)
    assert inscribed.volumes().sum() < 0.995 * mesh.volumes().sum()


@pytest.mark.gmsh
def test_a_second_session_is_refused() -> None:
    import gmsh

    gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        with pytest.raises(MeshError, match="already in use"):
            verification_mesh("cylinder", scale=3.0)
    finally:
        gmsh.finalize()


def test_no_such_verification_mesh() -> None:
    with pytest.raises(MeshError, match="no verification mesh 'cube'; there are sphere"):
        verification_mesh("cube")


def test_gmsh_missing(bundled_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gmsh", None)
    with pytest.raises(MissingExtraError, match=r"needs gmsh, .* adds it"):
        build_mesh(bundled_model, sizes=COARSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rim_mm": 0.0}, "rim_mm = 0 must be above 0"),
        ({"far_mm": float("nan")}, "far_mm = nan must be above 0"),
        ({"far_mm": None}, "far_mm = None is not a number"),
        ({"far_mm": "wide"}, "far_mm = 'wide' is not a number"),
        ({"stretch": 20.0}, "end_stretch = 12 is below stretch = 20"),
    ],
)
def test_impossible_sizes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(MeshError, match=message):
        replace(COARSE, **changes)


def test_sizes_may_be_numbers_of_numpy() -> None:
    sizes = replace(COARSE, rim_mm=np.array(0.5), far_mm=np.float32(50))  # type: ignore[arg-type]
    assert (type(sizes.rim_mm), type(sizes.far_mm)) == (float, float)


def test_sizes_come_from_the_model(bundled_model: Model) -> None:
    sizes = MeshSizes.of(bundled_model.mesh.sizes, rim_mm=0.2)
    assert (sizes.rim_mm, sizes.cord_mm, sizes.end_stretch) == (0.2, 1.0, 3.0)
    assert MeshSizes.of(sizes, growth=0.3) == replace(sizes, growth=0.3)


def test_stretch_is_linear_around_the_array_smooth_and_invertible() -> None:
    stretch = Stretch(centre_mm=12.0, reach_mm=40.0, near=2.0, far=6.0)
    zeta = np.linspace(-80.0, 80.0, 4001)
    z = stretch.to_model(zeta)
    slope = np.diff(z) / np.diff(zeta)
    inner = np.abs(zeta[:-1]) < 19.9
    assert slope[inner] == pytest.approx(2.0)
    assert slope[np.abs(zeta[:-1]) > 35.1] == pytest.approx(6.0)
    assert np.all(np.abs(np.diff(slope)) < 0.02)
    for value in (-200.0, -3.0, 12.0, 31.0, 200.0):
        assert stretch.to_model(np.array([stretch.to_generator(value)]))[0] == pytest.approx(value)


def test_narrow_gaps_limit_the_facets(bundled_model: Model) -> None:
    corners = bundled_model.placement.corners_mm[:, :2]
    wide = largest_edges(bundled_model.geometry.ellipses(), corners)
    narrow = largest_edges(
        bundled_model.replace({"geometry.cord.width_mm": 7.2}).geometry.ellipses(), corners
    )
    assert narrow["cord"] < 0.6 * wide["cord"]
    assert narrow["grey-left"] < 0.9 * wide["grey-left"]
    assert narrow["canal"] == wide["canal"]
    assert wide["dura"] == wide["sac"]


def test_facet_limit_of_circles() -> None:
    """Circles of radius 10 and 9: a chord of edge h dips h^2 / 80 below the outer, half of 1."""
    circles = {name: Ellipse(0.0, 0.0, radius, radius) for name, radius in RADII.items()}
    limits = largest_edges(circles, np.array([[0.0, 0.0]]))
    assert limits["torso"] == pytest.approx(np.sqrt(0.5 * 8 * 10.0), rel=1e-3)
    assert limits["vertebra"] == pytest.approx(np.sqrt(0.5 * 8 * 9.0), rel=1e-3)


RADII = {
    "torso": 10.0,
    "vertebra": 9.0,
    "canal": 8.0,
    "dura": 7.0,
    "sac": 6.9,
    "cord": 5.0,
    "grey-left": 3.0,
    "grey-right": 3.0,
}
