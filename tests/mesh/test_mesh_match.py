"""A mesh that does not belong to the model is refused, whichever way it comes in."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import fieldcorr as fc
from fieldcorr.cli import build_app
from fieldcorr.errors import FieldcorrError, MeshError
from fieldcorr.mesh import Mesh, check_mesh, read_mesh, write_mesh
from fieldcorr.model import Model, bundled_devices, load_model, resolve_mesh

OTHER_GEOMETRY = "was made for another geometry than"


@pytest.fixture(scope="module")
def tiny(bundled_model: Model) -> Mesh:
    return read_mesh(resolve_mesh(bundled_model, "tiny"))


def command(*words: str | Path) -> None:
    """Run a command; raise its error, which must be one line on stderr."""
    result = CliRunner().invoke(build_app(), [str(word) for word in words])
    if result.exit_code:
        assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)
        raise MeshError(result.stderr)


def by_lead_field(model: Model, mesh: Mesh, folder: Path) -> None:
    fc.compute_lead_field(model, mesh)


def by_batch(model: Model, mesh: Mesh, folder: Path) -> None:
    fc.precompute(model, folder / "s.h5", mesh=str(folder / "m.fcmesh"), cache=folder).close()


def by_fields(model: Model, mesh: Mesh, folder: Path) -> None:
    command("fields", folder / "model.toml", "--mesh", folder / "m.fcmesh")


def by_check(model: Model, mesh: Mesh, folder: Path) -> None:
    command("mesh", folder / "model.toml", "--check", folder / "m.fcmesh")


Way = Callable[[Model, Mesh, Path], None]
ways = pytest.mark.parametrize("way", [by_lead_field, by_batch, by_fields, by_check])


def message_of(way: Way, model: Model, mesh: Mesh, folder: Path) -> str:
    """Return what is said when a mesh and a model come in together."""
    write_mesh(mesh, folder / "m.fcmesh")
    (folder / "model.toml").write_text(model.text, encoding="utf-8")
    with pytest.raises(FieldcorrError) as caught:
        way(model, mesh, folder)
    return str(caught.value)


@ways
def test_a_mesh_of_another_geometry(
    way: Way, bundled_model: Model, tiny: Mesh, tmp_path: Path
) -> None:
    wider = bundled_model.replace({"geometry.cord.width_mm": 9.0})
    assert OTHER_GEOMETRY in message_of(way, wider, tiny, tmp_path)


@ways
def test_contacts_numbered_the_other_way_round(
    way: Way, bundled_model: Model, tiny: Mesh, tmp_path: Path
) -> None:
    contacts = bundled_model.device.contact_names
    names = (*reversed(contacts), *tiny.facet_names[len(contacts) :])
    message = message_of(way, bundled_model, replace(tiny, facet_names=names, origin={}), tmp_path)
    assert "contact '0' lies at left -2.5, dorsal 6.9, rostral -17.0 mm in the mesh" in message
    assert "but at left 2.5, dorsal 6.9, rostral 17.0 mm by" in message
    assert "'paddle-565'" in message


@ways
def test_a_device_whose_contacts_lie_elsewhere(
    way: Way, bundled_model: Model, tiny: Mesh, tmp_path: Path
) -> None:
    """The device says that contacts 1 and 4 are where the mesh has 4 and 1, 25.5 mm apart."""
    text = bundled_devices()["paddle-565"].read_text(encoding="utf-8")
    swapped = text.replace('name = "1"', 'name = "x"').replace('name = "4"', 'name = "1"')
    (tmp_path / "own.toml").write_text(swapped.replace('name = "x"', 'name = "4"'))
    path = tmp_path / "model.toml"
    path.write_text(bundled_model.text.replace('"paddle-565"', '"own.toml"'), encoding="utf-8")
    message = message_of(way, load_model(path), replace(tiny, origin={}), tmp_path)
    assert "contact '4' lies at left 2.5, dorsal 6.9, rostral -17.0 mm in the mesh" in message


@pytest.mark.parametrize(("shift", "is_near"), [(0.9e-3, True), (1.1e-3, False)])
def test_a_millimetre_is_the_limit(
    shift: float, is_near: bool, bundled_model: Model, tiny: Mesh
) -> None:
    moved = replace(tiny, points=tiny.points + np.array([0.0, 0.0, shift]), origin={})
    if is_near:
        fc.mesh.check_mesh_of_model(bundled_model, moved)
    else:
        with pytest.raises(MeshError, match="contact '0' lies at"):
            fc.mesh.check_mesh_of_model(bundled_model, moved)


def test_the_case_may_lie_elsewhere(bundled_model: Model, tiny: Mesh) -> None:
    model = bundled_model.replace({"boundary.outer": "case", "boundary.case.angle_degree": 90.0})
    fc.mesh.check_mesh_of_model(model, replace(tiny, origin={}))


def test_a_missing_contact_is_named(bundled_model: Model, tiny: Mesh) -> None:
    names = tuple("x" if name == "7" else name for name in tiny.facet_names)
    with pytest.raises(MeshError, match=r"m\.msh: contact '7' has no faces"):
        fc.mesh.require_same_geometry(bundled_model, replace(tiny, facet_names=names), name="m.msh")


def test_an_unsound_mesh_gives_no_lead_field(bundled_model: Model, tiny: Mesh) -> None:
    cells = tiny.cells.copy()
    cells[5] = cells[5, [1, 0, 2, 3]]
    with pytest.raises(MeshError, match="1 cells are inverted, first cell 5"):
        fc.compute_lead_field(bundled_model, replace(tiny, cells=cells))


def test_a_mesh_is_looked_through_once(
    bundled_model: Model, tiny: Mesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fieldcorr.mesh import match

    seen = []

    def spy(mesh: Mesh, **options: object) -> None:
        seen.append(mesh.hash)
        check_mesh(mesh, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(match, "refuse_unsound", spy)
    moved = replace(tiny, points=tiny.points + np.array([0.0, 0.0, 0.5e-3]), origin={})
    for mesh in (moved, moved, replace(moved, origin={"made-by": "someone"})):
        match.check_mesh_of_model(bundled_model, mesh)
    assert seen == [moved.hash]
