"""The compact file: it gives back every bit, and refuses what is damaged or hostile."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fieldcorr.errors import MeshError
from fieldcorr.mesh import Mesh, fcmesh, read_mesh, tidy, write_mesh
from fieldcorr.mesh.fcmesh import SEAL, decode_rows, encode_rows
from tests.mesh.boxes import layered_box

BOX = tidy(layered_box())
indices = hnp.arrays(
    np.int32, st.tuples(st.integers(0, 6), st.just(5)), elements=st.integers(0, 2**31 - 1)
)


@given(indices)
def test_rows_are_coded_without_loss(values: np.ndarray) -> None:
    rows, tags = values[:, :4], values[:, 4]
    coded = encode_rows(rows, tags)
    back, back_tags = decode_rows(coded)
    assert np.array_equal(back, rows)
    assert np.array_equal(back_tags, tags)


coordinates = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**31), 2**31).map(lambda nanometres: nanometres / 1e9),
)


@given(points=hnp.arrays(np.float64, (5, 3), elements=coordinates))
def test_every_coordinate_comes_back(
    points: np.ndarray, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("m") / "m.fcmesh"
    mesh = replace(BOX, points=points, cells=BOX.cells % 5, facets=BOX.facets % 5)
    write_mesh(mesh, path)
    back = read_mesh(path)
    assert back.points.tobytes() == mesh.points.tobytes()
    assert back.hash == mesh.hash


def test_everything_comes_back(tmp_path: Path) -> None:
    mesh = replace(BOX, origin={"made-by": "a test", "sizes": {"rim_mm": 0.1}, "list": [1, 2]})
    write_mesh(mesh, tmp_path / "m.fcmesh")
    back = read_mesh(tmp_path / "m.fcmesh")
    assert (back.tissues, back.facet_names) == (mesh.tissues, mesh.facet_names)
    assert back.origin == mesh.origin
    for name in ("points", "cells", "cell_tags", "facets", "facet_tags"):
        assert np.array_equal(getattr(back, name), getattr(mesh, name))


def test_a_file_is_small_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    mesh = tidy(layered_box(12))
    write_mesh(mesh, tmp_path / "m.fcmesh")
    arrays = mesh.points.nbytes + mesh.cells.nbytes + mesh.cell_tags.nbytes
    assert (tmp_path / "m.fcmesh").stat().st_size < arrays / 5
    assert [path.name for path in tmp_path.iterdir()] == ["m.fcmesh"]


def test_negative_zero_is_kept(tmp_path: Path) -> None:
    points = BOX.points.copy()
    points[0] = [-0.0, 0.0, -0.0]
    write_mesh(replace(BOX, points=points), tmp_path / "m.fcmesh")
    assert np.signbit(read_mesh(tmp_path / "m.fcmesh").points[0]).tolist() == [True, False, True]


def test_the_same_mesh_makes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_mesh(BOX, tmp_path / f"{name}.fcmesh")
    assert (tmp_path / "a.fcmesh").read_bytes() == (tmp_path / "b.fcmesh").read_bytes()


def test_no_file_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match="no such mesh file"):
        read_mesh(tmp_path / "none.fcmesh")
    with pytest.raises(MeshError, match="cannot be written"):
        write_mesh(BOX, tmp_path / "none" / "m.fcmesh")


def test_a_unit_cannot_be_given(tmp_path: Path) -> None:
    with pytest.raises(MeshError, match=r"part of a \.fcmesh file"):
        read_mesh(tmp_path / "m.fcmesh", unit="mm")


Damage = Callable[[h5py.File], None]


def seal(path: Path) -> None:
    """Give a changed file the right checksum: only its content is wrong."""
    content = path.read_bytes().split(SEAL)[0]
    path.write_bytes(content + SEAL + hashlib.sha256(content).hexdigest().encode() + b"\n")


def replaced(file: h5py.File, name: str, **options: object) -> None:
    del file[name]
    file.create_dataset(name, **options)


def external_link(file: h5py.File) -> None:
    del file["points"]
    file["points"] = h5py.ExternalLink("/etc/hostname", "/points")


def soft_link(file: h5py.File) -> None:
    del file["cells"]
    file["cells"] = h5py.SoftLink("/points")


def external_storage(file: h5py.File) -> None:
    replaced(file, "points", shape=(3, 2), dtype="<f8", external=[("/etc/passwd", 0, 48)])


def virtual(file: h5py.File) -> None:
    layout = h5py.VirtualLayout(shape=(3, 2), dtype="<f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", shape=(3, 2))
    del file["points"]
    file.create_virtual_dataset("points", layout)


def mostly_missing(file: h5py.File) -> None:
    replaced(file, "points", shape=(3, 300_000), dtype="<i4", chunks=(1, 1000))
    file["points"][0, :1000] = 1


def deflated_bomb(file: h5py.File) -> None:
    """Claim 720 MB, of which 0.67 MB are there."""
    replaced(file, "points", shape=(3, 60_000_000), dtype="<i4", chunks=(1, 167_500))
    file["points"][0, :167_500] = 1


def group(file: h5py.File) -> None:
    del file["facets"]
    file.create_group("facets")


def index_too_large(file: h5py.File) -> None:
    file["cells"][1, 0] = 10_000


def index_negative(file: h5py.File) -> None:
    file["cells"][0, 0] = -5


def index_beyond_32_bits(file: h5py.File) -> None:
    file["cells"][0, :3] = 2**31 - 1


def moved_point(file: h5py.File) -> None:
    file["points"][0, 5] += 1


def other_tissue(file: h5py.File) -> None:
    file["cells"][4, -1] = 7


DAMAGES: list[tuple[Damage, str]] = [
    (external_link, "points is missing or links elsewhere"),
    (soft_link, "cells is missing or links elsewhere"),
    (external_storage, "points keeps its numbers in another file"),
    (virtual, "points keeps its numbers in another file"),
    (group, "facets is not an array"),
    (lambda file: file.__delitem__("cells"), "cells is missing"),
    (lambda file: replaced(file, "cells", data=np.zeros((5, 4))), "cells has type float64"),
    (lambda file: replaced(file, "cells", data=np.zeros((4, 4), "<i4")), r"expected \(5, N\)"),
    (lambda file: replaced(file, "cells", data=np.zeros(20, "<i4")), r"has shape \(20,\)"),
    (
        lambda file: replaced(file, "points", shape=(3, 10**12), dtype="<f8", chunks=(1, 1024)),
        "points claims 24000000000000 bytes in a file of",
    ),
    (
        lambda file: replaced(
            file, "points", shape=(3, 2), maxshape=(3, None), dtype="<f8", chunks=(3, 2**26)
        ),
        "too large",
    ),
    (
        lambda file: replaced(
            file, "points", shape=(3, 8), dtype="<f8", chunks=(3, 8), compression="lzf"
        ),
        "filters that are not allowed",
    ),
    (mostly_missing, "points claims 3600000 bytes, of which some are missing"),
    (deflated_bomb, "points claims 720000000 bytes in a file of"),
    (index_too_large, "allowed are 0..111"),
    (index_negative, "holds -"),
    (index_beyond_32_bits, "out of range"),
    (other_tissue, "cell_tags holds"),
    (moved_point, "damaged: the arrays do not match the sha256"),
    (lambda file: file.attrs.__delitem__("sha256"), "attribute sha256 is missing"),
    (lambda file: file.attrs.__setitem__("sha256", 5), "attribute sha256 is missing or not a text"),
    (lambda file: file.attrs.__delitem__("fieldcorr-mesh-format"), "not a fieldcorr mesh"),
    (lambda file: file.attrs.__setitem__("fieldcorr-mesh-format", "2.0"), "mesh format '2.0'"),
    (lambda file: file.attrs.__setitem__("tissues", "[1, 2]"), "tissues must be a list of names"),
    (lambda file: file.attrs.__setitem__("tissues", '["a", "a"]'), "different printable names"),
    (lambda file: file.attrs.__setitem__("tissues", '["a", ""]'), "different printable names"),
    (lambda file: file.attrs.__setitem__("tissues", '["a", "\\ud800"]'), "printable names"),
    (lambda file: file.attrs.__setitem__("tissues", '["a", "\\u001b"]'), "printable names"),
    (lambda file: file.attrs.__setitem__("tissues", "{"), "tissues is not a JSON list"),
    (lambda file: file.attrs.__setitem__("origin", "[" * 50_000), "origin is not a JSON dict"),
    (lambda file: file.attrs.__setitem__("origin", json.dumps([])), "origin is not a JSON dict"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_damage_is_named(damage: Damage, message: str, tmp_path: Path) -> None:
    path = tmp_path / "m.fcmesh"
    write_mesh(BOX, path)
    with h5py.File(path, "r+") as file:
        damage(file)
    seal(path)
    with pytest.raises(MeshError, match=message) as caught:
        read_mesh(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_is_not_a_mesh(tmp_path: Path) -> None:
    (tmp_path / "m.fcmesh").write_text("solid cube")
    with pytest.raises(MeshError, match=r"not a readable \.fcmesh file"):
        read_mesh(tmp_path / "m.fcmesh")


def file_bytes(tmp_path: Path, mesh: Mesh) -> bytes:
    write_mesh(mesh, tmp_path / "whole.fcmesh")
    return (tmp_path / "whole.fcmesh").read_bytes()


def test_a_cut_or_flipped_file_is_refused_by_its_checksum(tmp_path: Path) -> None:
    whole = file_bytes(tmp_path, BOX)
    rng = np.random.default_rng(3)
    path = tmp_path / "m.fcmesh"
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole) - 100)] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        with pytest.raises(MeshError, match="damaged: the file does not match its checksum"):
            read_mesh(path)
    path.write_bytes(whole[:-10])
    with pytest.raises(MeshError, match="damaged: the checksum at its end is missing"):
        read_mesh(path)


def unsealed(path: Path, mesh: Mesh) -> bytes:
    """Return the bytes of a file as version 1.0 wrote it, without a checksum."""
    write_mesh(mesh, path)
    with h5py.File(path, "r+") as file:
        file.attrs["fieldcorr-mesh-format"] = "1.0"
    return path.read_bytes().split(SEAL)[0]


def test_a_damaged_file_without_checksum_never_passes_as_another_mesh(tmp_path: Path) -> None:
    whole = unsealed(tmp_path / "old.fcmesh", BOX)
    rng = np.random.default_rng(3)
    path = tmp_path / "m.fcmesh"
    path.write_bytes(whole)
    assert read_mesh(path).hash == BOX.hash
    for _ in range(60):
        damaged = bytearray(whole)
        if rng.random() < 0.3:
            damaged = damaged[: rng.integers(len(whole))]
        else:
            damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            mesh = fcmesh._read(path, is_sealed=False)
        except MeshError:
            continue
        assert mesh.hash == BOX.hash


def test_a_file_without_checksum_on_which_hdf5_hangs_or_dies_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.fcmesh"
    whole = bytearray(unsealed(path, BOX))
    heap = whole.index(b"GCOL")  # of the texts; HDF5 2.0 loops for ever
    whole[heap + 24 : heap + 32] = (2**64 - 16).to_bytes(8, "little")
    path.write_bytes(whole)
    monkeypatch.setattr(fcmesh, "PATIENCE", 3.0)
    with pytest.raises(MeshError, match=r"HDF5 hangs on it \(3 s\)|not a readable"):
        read_mesh(path)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(MeshError, match=r"HDF5 crashes on it \(exit code 1\)"):
        read_mesh(path)


def test_a_list_of_checksums_beside_is_believed_before_the_file(tmp_path: Path) -> None:
    whole = bytearray(unsealed(tmp_path / "m.fcmesh", BOX))
    (tmp_path / "m.fcmesh").write_bytes(whole)
    other = f"{64 * '0'}  other.fcmesh\n"
    (tmp_path / "sha256sums.txt").write_text(
        f"{hashlib.sha256(whole).hexdigest()}  m.fcmesh\n{other}"
    )
    assert read_mesh(tmp_path / "m.fcmesh").hash == BOX.hash
    whole[100] ^= 1
    (tmp_path / "m.fcmesh").write_bytes(whole)
    with pytest.raises(MeshError, match="damaged: the file does not match its checksum"):
        read_mesh(tmp_path / "m.fcmesh")


@pytest.mark.parametrize("name", ["m.fcmesh", "m.msh", "m.vtu"])
def test_an_existing_file_is_replaced_only_by_force(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("notes")
    with pytest.raises(MeshError, match=f"{name}: exists already"):
        write_mesh(BOX, path)
    assert path.read_text() == "notes"
    write_mesh(BOX, path, force=True)
    assert path.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "m.fcmesh").symlink_to(tmp_path / "other")
    (tmp_path / "m.fcmesh.partial").write_text("notes")
    with pytest.raises(MeshError, match="exists already"):
        write_mesh(BOX, tmp_path / "m.fcmesh")
    write_mesh(BOX, tmp_path / "m.fcmesh", force=True)
    assert not (tmp_path / "other").exists()
    assert (tmp_path / "m.fcmesh.partial").read_text() == "notes"
