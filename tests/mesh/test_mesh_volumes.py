"""Curved interfaces: after the correction the enclosed volumes are the exact ones."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.errors import MeshError
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.mesh.data import Ints, triangle_areas
from fieldcorr.mesh.gmsh.volumes import (
    Interface,
    Quadric,
    correct_volumes,
    elliptic_tube,
    safe_share,
    vertex_depths,
)
from fieldcorr.mesh.topology import all_faces

FOLDER = Path(__file__).resolve().parents[2] / "meshes" / "verification"
SPHERES = {"brain": 0.078, "csf": 0.080, "skull": 0.086, "scalp": 0.092}
CYLINDERS = {"white": 0.0045, "csf": 0.008, "fat": 0.010, "muscle": 0.020}


def surface_of(mesh: Mesh, name: str) -> Ints:
    """Return the facets between the tissues up to ``name`` and those beyond it."""
    faces = all_faces(mesh.cells)
    inside = np.append(mesh.cell_tags <= mesh.tissues.index(name), [False])
    between = inside[faces.cells[:, 0]] != inside[faces.cells[:, 1]]
    facets: Ints = faces.vertices[between]
    return facets


def ball(radius: float) -> Quadric:
    return Quadric((0.0, 0.0, 0.0), (radius,) * 3, 4 / 3 * np.pi * radius**3)


def sphere_interfaces(mesh: Mesh) -> dict[str, Interface]:
    return {
        name: Interface.of(mesh.points, surface_of(mesh, name), ball(radius))
        for name, radius in SPHERES.items()
    }


def test_spheres_get_their_volumes() -> None:
    mesh = read_mesh(FOLDER / "sphere-uncorrected.fcmesh")
    interfaces = sphere_interfaces(mesh)
    moved = correct_volumes(mesh.points, mesh.cells, interfaces.values())
    volumes = np.bincount(mesh.cell_tags, replace(mesh, points=moved).volumes())
    exact = np.diff([0.0, *(ball(radius).volume for radius in SPHERES.values())])
    assert volumes == pytest.approx(exact, rel=1e-9)
    for name, interface in interfaces.items():
        assert -0.01 < interface.volume_error(mesh.points) < -0.002
        assert abs(interface.volume_error(moved)) < 1e-12
        sphere = np.abs(np.linalg.norm(mesh.points, axis=1) - SPHERES[name]) < 2e-9
        moves = np.linalg.norm(moved[sphere] - mesh.points[sphere], axis=1)
        assert 0.0 < moves.max() < 0.004 * SPHERES[name]
    assert moved == pytest.approx(read_mesh(FOLDER / "sphere.fcmesh").points, abs=2e-9)


def test_points_off_the_interfaces_stay() -> None:
    mesh = read_mesh(FOLDER / "sphere-uncorrected.fcmesh")
    moved = correct_volumes(mesh.points, mesh.cells, sphere_interfaces(mesh).values())
    radii = np.linalg.norm(mesh.points, axis=1)
    on = np.min(np.abs(radii[:, None] - np.array(list(SPHERES.values()))), axis=1) < 2e-9
    assert np.array_equal(moved[~on], mesh.points[~on])
    assert np.all(np.linalg.norm(moved[on], axis=1) > radii[on])


def test_mean_depth_of_a_facet() -> None:
    """The mean distance of a facet from the sphere agrees with sum of edges squared / (24 R)."""
    corners = 0.08 * np.array([[0.0, 0.0, 1.0], [0.1, 0.0, 0.995], [0.03, 0.09, 0.9955]])
    corners *= 0.08 / np.linalg.norm(corners, axis=1, keepdims=True)
    facets = np.array([[0, 1, 2]], np.int32)
    depth = vertex_depths(corners, Interface(facets, ball(0.08)))
    shares = np.random.default_rng(5).dirichlet(np.ones(3), 200_000)
    measured = np.mean(0.08 - np.linalg.norm(shares @ corners, axis=1))
    assert depth == pytest.approx(np.full(3, measured), rel=5e-3)


@pytest.mark.parametrize(("name", "radius"), CYLINDERS.items())
def test_shipped_cylinder_is_right_and_its_twin_is_inscribed(name: str, radius: float) -> None:
    right, inscribed = (
        read_mesh(FOLDER / f"{file}.fcmesh") for file in ("cylinder", "cylinder-uncorrected")
    )
    assert np.array_equal(right.cells, inscribed.cells)
    exact = np.pi * radius**2 * 0.04
    tags = np.arange(right.tissues.index(name) + 1)
    within = [mesh.volumes()[np.isin(mesh.cell_tags, tags)].sum() for mesh in (right, inscribed)]
    assert within[0] == pytest.approx(exact, rel=1e-7)
    assert 0.98 * exact < within[1] < 0.999 * exact


def tube_mesh(a: float, b: float) -> tuple[Mesh, Interface]:
    """Return the inscribed cylinder mesh squeezed to an ellipse, with its innermost interface."""
    mesh = read_mesh(FOLDER / "cylinder-uncorrected.fcmesh")
    points = mesh.points * [a / 0.0045, b / 0.0045, 1.0] + [0.001, -0.002, 0.0]
    shape = elliptic_tube(0.001, -0.002, a, b, 0.04)
    squeezed = replace(mesh, points=points)
    return squeezed, Interface.of(points, surface_of(mesh, "white"), shape)


def test_elliptic_tube() -> None:
    mesh, interface = tube_mesh(0.005, 0.003)
    moved = correct_volumes(mesh.points, mesh.cells, [interface])
    volume = replace(mesh, points=moved).volumes()[mesh.cell_tags == 0].sum()
    assert volume == pytest.approx(np.pi * 0.005 * 0.003 * 0.04, rel=1e-12)
    assert interface.volume_error(mesh.points) < -0.005


def test_curvature_of_an_ellipse() -> None:
    shape = elliptic_tube(0.0, 0.0, 0.005, 0.003, 1.0)
    ends = np.array([[0.005, 0.0, 0.3], [0.0, -0.003, 0.0]])
    along = np.array([[0.0, 1e-3, 5.0], [1e-3, 0.0, 2.0]])  # the axial part does not bend
    curvature = np.array([0.005 / 0.003**2, 0.003 / 0.005**2])
    assert shape.bending(ends, along) == pytest.approx(1e-6 * curvature)
    assert shape.normals(ends) == pytest.approx(np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]))


def test_cells_are_never_used_up() -> None:
    """A base that would move through the apex moves by the first of 1, 1/2, 1/4, ... that fits."""
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    cells = np.array([[0, 1, 2, 3]], np.int32)
    upwards = np.array([[0.0, 0.0, 1.0]] * 3 + [[0.0, 0.0, 0.0]])
    assert safe_share(points, cells, 0.6 * upwards).tolist() == [1.0] * 4
    assert safe_share(points, cells, 0.8 * upwards).tolist() == [0.5] * 4
    assert safe_share(points, cells, 2.0 * upwards).tolist() == [0.25] * 4
    with pytest.raises(MeshError, match="cells would be inverted; choose smaller sizes"):
        safe_share(points, cells, 1e6 * upwards)


def test_facets_of_another_shape_are_refused() -> None:
    mesh, interface = tube_mesh(0.005, 0.003)
    wrong = Interface(interface.facets[:, [0, 2, 1]], interface.shape)
    with pytest.raises(MeshError, match="do not enclose their own shape"):
        correct_volumes(mesh.points, mesh.cells, [wrong])


def test_disc_has_its_area_and_the_spheroid_its_volume() -> None:
    mesh = read_mesh(FOLDER / "disc.fcmesh")
    disc = mesh.facets[mesh.facet_tags == mesh.facet_tag("disc")]
    assert triangle_areas(mesh.points, disc).sum() == pytest.approx(np.pi * 1e-6, rel=1e-7)
    assert mesh.volumes().sum() == pytest.approx(
        2 / 3 * np.pi * 1e-4 * np.sqrt(99) * 1e-3, rel=1e-7
    )
    assert np.all(mesh.points[disc][..., 2] == 0.0)
