"""Meshes of other programs: tags, names, units."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest

from fieldcorr.errors import MeshError
from fieldcorr.mesh import Mesh, check_mesh, read_mesh, tidy, write_mesh
from tests.mesh.boxes import layered_box

BOX = tidy(layered_box())
TISSUES = {"1": "white", "2": "fat"}
CONTACTS = {"1": "0", "2": "1", "3": "outer"}


def same_mesh(first: Mesh, second: Mesh) -> None:
    assert (first.tissues, first.facet_names) == (second.tissues, second.facet_names)
    assert first.points == pytest.approx(second.points, abs=1e-12)
    for name in ("cells", "cell_tags", "facets", "facet_tags"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def test_gmsh_keeps_names(tmp_path: Path) -> None:
    write_mesh(BOX, tmp_path / "m.msh")
    back = read_mesh(tmp_path / "m.msh")
    same_mesh(back, BOX)
    assert back.origin == {"read-from": "m.msh", "unit": "m"}
    check_mesh(back, tissues=("white", "fat"), contacts=("0", "1"))


@pytest.mark.parametrize("ending", ["vtu", "vtk", "xdmf", "mesh"])
def test_other_formats_need_names(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"m.{ending}"
    write_mesh(BOX, path)
    with pytest.raises(MeshError, match=r"162 cells carry the tag 1.*--tissue-tag 1=NAME"):
        read_mesh(path)
    with pytest.raises(MeshError, match=r"6 triangles carry the tag 1.*--contact-tag 1=NAME"):
        read_mesh(path, tissue_names=TISSUES)
    same_mesh(read_mesh(path, tissue_names=TISSUES, facet_names=CONTACTS), BOX)


def test_names_in_the_file_can_be_changed_and_joined(tmp_path: Path) -> None:
    write_mesh(BOX, tmp_path / "m.msh")
    back = read_mesh(
        tmp_path / "m.msh", tissue_names={"white": "cord", "fat": "cord"}, facet_names={"1": "15"}
    )
    assert back.tissues == ("cord",)
    assert back.facet_names == ("15", "1", "outer")  # tag 1 is the contact named "0" in the file


def written(tmp_path: Path, *, points: Any = None, cells: Any = None, data: Any = None) -> Path:
    """Write the box with some of its parts replaced, as VTU."""
    blocks = [("tetra", BOX.cells)] if cells is None else cells
    tags = {"tissue": [BOX.cell_tags]} if data is None else data
    mesh = meshio.Mesh(BOX.points if points is None else points, blocks, cell_data=tags)
    meshio.write(tmp_path / "m.vtu", mesh)
    return tmp_path / "m.vtu"


def test_millimetres(tmp_path: Path) -> None:
    path = written(tmp_path, points=1e3 * BOX.points)
    names = {"0": "white", "1": "fat"}
    assert read_mesh(path, unit="mm", tissue_names=names).points == pytest.approx(BOX.points)
    with pytest.raises(MeshError, match=r"read in m the mesh is 30 m large, read in mm .* 0\.03 m"):
        read_mesh(path, tissue_names=names)
    same = written(tmp_path)
    with pytest.raises(
        MeshError, match=r"read in mm the mesh is 3e-05 m large, read in m .* 0\.03 m"
    ):
        read_mesh(same, unit="mm", tissue_names=names)


def test_the_only_integer_data_holds_the_tags(tmp_path: Path) -> None:
    extra = {"tissue": [BOX.cell_tags], "quality": [np.ones(BOX.n_cells)]}
    path = written(tmp_path, data=extra)
    assert read_mesh(path, tissue_names={"0": "white", "1": "fat"}).tissues == BOX.tissues


def test_data_must_be_named_where_it_is_not_clear(tmp_path: Path) -> None:
    both = {"tissue": [BOX.cell_tags], "part": [BOX.cell_tags * 0 + 4]}
    path = written(tmp_path, data=both)
    with pytest.raises(MeshError, match=r"missing tags.*\(part, tissue\)"):
        read_mesh(path)
    assert read_mesh(path, tag_data="part", tissue_names={"4": "all"}).tissues == ("all",)
    with pytest.raises(MeshError, match="no integer cell data 'region'; it has part, tissue"):
        read_mesh(path, tag_data="region")
    with pytest.raises(MeshError, match=r"missing tags.*\(none\)"):
        read_mesh(written(tmp_path, data={}))


def test_only_tetrahedra(tmp_path: Path) -> None:
    hexahedra = written(
        tmp_path, cells=[("hexahedron", np.arange(8)[None])], data={"tissue": [np.ones(1, int)]}
    )
    with pytest.raises(MeshError, match="cells of type 'hexahedron'"):
        read_mesh(hexahedra)
    triangles = written(
        tmp_path, cells=[("triangle", BOX.facets)], data={"tissue": [BOX.facet_tags]}
    )
    with pytest.raises(MeshError, match="there are no tetrahedra, only triangle"):
        read_mesh(triangles)


def test_nodes_of_nothing_are_dropped(tmp_path: Path) -> None:
    points = np.vstack(([[0.5, 0.5, 0.5]], BOX.points))
    path = written(tmp_path, points=points, cells=[("tetra", BOX.cells + 1)])
    mesh = read_mesh(path, tissue_names={"0": "white", "1": "fat"})
    assert mesh.n_points == BOX.n_points
    check_mesh(mesh)


def test_the_other_vertex_order_is_turned_but_mixed_orders_are_not(tmp_path: Path) -> None:
    names = {"0": "white", "1": "fat"}
    turned = written(tmp_path, cells=[("tetra", BOX.cells[:, [1, 0, 2, 3]])])
    assert np.all(read_mesh(turned, tissue_names=names).volumes() > 0)
    mixed = BOX.cells.copy()
    mixed[4] = mixed[4, [1, 0, 2, 3]]
    mesh = read_mesh(written(tmp_path, cells=[("tetra", mixed)]), tissue_names=names)
    with pytest.raises(MeshError, match="1 cells are inverted, first cell 4"):
        check_mesh(mesh)


def test_nan_comes_through_to_the_check(tmp_path: Path) -> None:
    points = BOX.points.copy()
    points[3, 2] = np.nan
    mesh = read_mesh(written(tmp_path, points=points), tissue_names={"0": "white", "1": "fat"})
    with pytest.raises(MeshError, match="not finite, first node 3"):
        check_mesh(mesh)


@pytest.mark.parametrize("name", ["m.msh", "m.vtu", "m.xdmf", "m.inp", "m.unknown", "m"])
def test_rubbish_gives_one_line(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"$MeshFormat\n4.1 0 8\n\xff\xfe rubbish\n")
    with pytest.raises(MeshError, match=r"cannot be read as a mesh|no tetrahedra") as caught:
        read_mesh(path)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")
    with pytest.raises(MeshError, match="no such mesh file"):
        read_mesh(tmp_path / f"none-{name}")


def test_a_format_that_meshio_does_not_know_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match="cannot be written"):
        write_mesh(BOX, tmp_path / "m.unknown")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_half_way(path: Path, *_: object) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    write_mesh(BOX, tmp_path / "m.vtu")
    before = (tmp_path / "m.vtu").read_bytes()
    monkeypatch.setattr(meshio, "write", fail_half_way)
    with pytest.raises(MeshError, match=r"m\.vtu: cannot be written .*No space left"):
        write_mesh(BOX, tmp_path / "m.vtu", force=True)
    assert (tmp_path / "m.vtu").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["m.vtu"]


def test_only_metres_and_millimetres(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match="unit = 'cm': must be"):
        read_mesh(tmp_path / "m.vtu", unit="cm")  # type: ignore[arg-type]


def test_a_mesh_without_contacts_can_be_written(tmp_path: Path) -> None:
    bare = replace(BOX, facets=BOX.facets[:0], facet_tags=BOX.facet_tags[:0], facet_names=())
    write_mesh(bare, tmp_path / "m.msh")
    same_mesh(read_mesh(tmp_path / "m.msh"), bare)


@pytest.mark.gmsh
@pytest.mark.parametrize("version", [2.2, 4.1])
def test_a_file_that_gmsh_itself_has_written(version: float, tmp_path: Path) -> None:
    """Two boxes in mm, named by physical groups; the whole geometry is saved with them."""
    import gmsh

    gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        gmsh.option.setNumber("General.Terminal", 0)
        gmsh.option.setNumber("Mesh.MshFileVersion", version)
        gmsh.option.setNumber("Mesh.MeshSizeMax", 10.0)
        below = gmsh.model.occ.addBox(0, 0, 0, 30, 30, 10)
        above = gmsh.model.occ.addBox(0, 0, 10, 30, 30, 10)
        gmsh.model.occ.fragment([(3, below)], [(3, above)])
        gmsh.model.occ.synchronize()
        top = gmsh.model.getEntitiesInBoundingBox(-1, -1, 19, 31, 31, 21, 2)[0][1]
        gmsh.model.addPhysicalGroup(3, [below], tag=5, name="white")
        gmsh.model.addPhysicalGroup(3, [above], tag=6, name="Fat tissue")
        gmsh.model.addPhysicalGroup(2, [top], tag=5, name="0")
        gmsh.model.mesh.generate(3)
        gmsh.write(str(tmp_path / "m.msh"))
    finally:
        gmsh.finalize()
    mesh = read_mesh(tmp_path / "m.msh", unit="mm", tissue_names={"Fat tissue": "fat"})
    report = check_mesh(mesh, tissues=("white", "fat"), contacts=("0",))
    assert report.tissues["fat"][1] == pytest.approx(9e-6)
    assert report.facets["0"][1] == pytest.approx(9e-4)


def test_a_second_file_of_the_format_is_not_replaced(tmp_path: Path) -> None:
    """XDMF keeps its numbers in an HDF5 file beside, which may be somebody's store."""
    beside = tmp_path / "my.h5"
    beside.write_text("something else")
    with pytest.raises(MeshError, match=r"my\.h5: exists already"):
        write_mesh(BOX, tmp_path / "my.xdmf")
    assert [path.name for path in tmp_path.iterdir()] == ["my.h5"]
    assert beside.read_text() == "something else"
    write_mesh(BOX, tmp_path / "my.xdmf", force=True)
    assert {path.name for path in tmp_path.iterdir()} == {"my.h5", "my.xdmf"}
