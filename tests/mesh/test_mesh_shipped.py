"""The meshes that come with the package are sound, exact in their volumes, small and documented."""

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.mesh import Mesh, check_mesh, read_mesh
from fieldcorr.mesh.fcmesh import SEAL, SUMS
from fieldcorr.model import Model, resolve_mesh

SPINAL = ("tiny", "companion", "standard")


@pytest.fixture(scope="module")
def recipes(repository: Path) -> dict[str, tuple[str, Callable[[], Mesh]]]:
    """Return what ``scripts/build-meshes`` can build: name -> file, builder."""
    script = runpy.run_path(str(repository / "scripts" / "build_meshes.py"))
    found: dict[str, tuple[str, Callable[[], Mesh]]] = script["shipped_recipes"]()
    return found


@pytest.fixture(scope="module", params=SPINAL)
def spinal(request: pytest.FixtureRequest, bundled_model: Model) -> Mesh:
    return read_mesh(resolve_mesh(bundled_model, request.param))


@pytest.mark.slow
def test_mesh_fits_the_model(spinal: Mesh, bundled_model: Model) -> None:
    names = (*bundled_model.device.contact_names, "outer", "case")
    report = check_mesh(spinal, tissues=tuple(bundled_model.tissues), contacts=names)
    assert spinal.facet_names == names
    assert spinal.origin["shape-sha256"] == bundled_model.shape_hash
    for name in bundled_model.device.contact_names:
        assert report.facets[name][1] == pytest.approx(4e-3 * 1.5e-3, rel=1e-6)
    assert report.facets["case"][1] == pytest.approx(60e-3 * 50e-3, rel=0.01)


def test_contacts_lie_where_the_model_puts_them(spinal: Mesh, bundled_model: Model) -> None:
    areas = spinal.facet_areas()
    centroids = spinal.points[spinal.facets].mean(axis=1)
    for tag, position in enumerate(bundled_model.contact_positions_m):
        own = spinal.facet_tags == tag
        centre = np.average(centroids[own], axis=0, weights=areas[own])
        assert centre == pytest.approx(position, abs=2e-9)
    case = spinal.facet_tags == spinal.facet_tag("case")
    middle = np.average(centroids[case], axis=0, weights=areas[case])
    assert middle == pytest.approx(bundled_model.case_position_m, abs=3e-3)


def test_volumes_are_exact(spinal: Mesh, bundled_model: Model) -> None:
    volumes = dict(
        zip(spinal.tissues, np.bincount(spinal.cell_tags, spinal.volumes()), strict=True)
    )
    for tissue, exact in exact_volumes(bundled_model).items():
        assert volumes[tissue] == pytest.approx(exact, rel=1e-6), tissue


def exact_volumes(model: Model) -> dict[str, float]:
    """Return the volume of every tissue in m3: differences of elliptic cylinders, paddle void."""
    area = {
        name: np.pi * ellipse.half_width * ellipse.half_depth
        for name, ellipse in model.geometry.ellipses().items()
    }
    length, paddle = model.geometry.torso.length_mm, model.device.paddle
    grey = area["grey-left"] + area["grey-right"]
    sections = {
        "grey": grey,
        "white": area["cord"] - grey,
        "csf": area["sac"] - area["cord"],
        "dura": area["dura"] - area["sac"],
        "fat": area["canal"] - area["dura"],
        "bone": area["vertebra"] - area["canal"],
        "muscle": area["torso"] - area["vertebra"],
    }
    volumes = {name: 1e-9 * length * section for name, section in sections.items()}
    volumes["fat"] -= 1e-9 * paddle.length_mm * paddle.width_mm * paddle.thickness_mm
    return volumes


def test_rims_and_bulk_have_the_sizes_asked_for(spinal: Mesh) -> None:
    sizes = spinal.origin["sizes"]
    contacts = spinal.facets[spinal.facet_tags < 16]
    pairs = np.sort(contacts[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    edges, uses = np.unique(pairs, axis=0, return_counts=True)
    rim = spinal.points[edges[uses == 1]]
    lengths = 1e3 * np.linalg.norm((rim[:, 0] - rim[:, 1]) / [1, 1, sizes["stretch"]], axis=1)
    assert np.median(lengths) == pytest.approx(sizes["rim_mm"], rel=0.3)


def test_files_are_small_and_every_recipe_has_its_file(
    repository: Path, recipes: dict[str, tuple[str, Callable[[], Mesh]]]
) -> None:
    folder = repository / "meshes"
    files = {name: folder / file for name, (file, _) in recipes.items()}
    sizes = {name: path.stat().st_size for name, path in files.items()}
    assert sum(sizes[name] for name in SPINAL) < 10e6
    assert sum(size for name, size in sizes.items() if name not in SPINAL) < 3e6
    assert set(folder.rglob("*.fcmesh")) == set(files.values())


def test_every_file_without_a_checksum_is_listed(
    repository: Path, recipes: dict[str, tuple[str, Callable[[], Mesh]]]
) -> None:
    for file, _ in recipes.values():
        path = repository / "meshes" / file
        assert SEAL in path.read_bytes() or path.name in path.with_name(SUMS).read_text()


def test_readme_lists_every_hash(
    repository: Path, recipes: dict[str, tuple[str, Callable[[], Mesh]]]
) -> None:
    text = (repository / "meshes" / "README.md").read_text()
    for name, (file, _) in recipes.items():
        mesh = read_mesh(repository / "meshes" / file)
        assert f"`{mesh.hash}`" in text, name


@pytest.mark.parametrize("name", ["sphere", "cylinder", "disc"])
def test_verification_meshes_are_sound(name: str, repository: Path) -> None:
    report = check_mesh(read_mesh(repository / "meshes" / "verification" / f"{name}.fcmesh"))
    assert report.dihedral_degree[0] > 8
