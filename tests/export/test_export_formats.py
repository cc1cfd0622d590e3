"""What other programs read from an export."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import meshio
import numpy as np
import pytest
import scipy.io
import scipy.sparse
from typer.testing import CliRunner

from fieldcorr import export
from fieldcorr.cli import build_app
from fieldcorr.elements import basis
from fieldcorr.errors import ConfigurationError, ExportError, MissingExtraError, StoreError
from fieldcorr.export import export_store
from fieldcorr.export.vtk import activating, vtk_cells
from fieldcorr.store import Options, Store, open_store
from tests.store.synthetic import make_store, values, whole_values


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("export") / "store.h5"
    return open_store(make_store(path, values(count=60)))


@pytest.mark.parametrize("ending", [".vtu", ".xdmf"])
def test_fields_for_paraview(ending: str, store: Store, tmp_path: Path) -> None:
    pyvista = pytest.importorskip("pyvista")
    path = tmp_path / f"field{ending}"
    texts = ["0- 1+", "0+ 2- 4-"]
    files = export_store(store, path, configurations=texts)
    assert path in files
    assert path.with_name(f"field-contacts{ending}") in files
    grid = pyvista.read(path)
    space = store.fields.volume.space
    np.testing.assert_allclose(grid.points, space.points, atol=1e-12)
    middle = space.centroids(np.arange(len(space.cells)))
    for text in texts:
        found = grid.point_data[f"potential {text} (V)"]
        np.testing.assert_allclose(found, store.potential(text, space.points), rtol=1e-9, atol=1e-9)
        field = store.fields.field_of(text).electric_field(middle)
        np.testing.assert_allclose(grid.cell_data[f"E {text} (V/m)"], field, rtol=1e-9)
    end = path.read_text().splitlines()[-1]
    assert end.endswith("potentials in V, 0 = mean over the compared region -->")
    assert all(name in end for name in space.mesh.tissues)
    assert (grid.celltypes == 24).all()
    np.testing.assert_array_equal(grid.cell_data["tissue"], store.array("/mesh/tags"))
    if ending == ".vtu":
        numbers = [int(grid.field_data[f"tissue {name}"][0]) for name in space.mesh.tissues]
        assert numbers == list(range(len(numbers)))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(f.name for f in files)


def test_the_activating_function_is_the_second_difference(store: Store) -> None:
    field = store.fields.field_of("0- 1+")
    space = field.space
    found = activating(store, field)
    cell = int(np.flatnonzero(np.isfinite(found))[0])
    point = space.vertices[space.cells[cell]].mean(axis=0)
    step = np.array([0.0, 0.0, 1e-3])
    ends = np.stack([point + step, point, point - step])
    ahead, here, behind = store.potential("0- 1+", ends)
    assert found[cell] == pytest.approx((ahead - 2 * here + behind) / 1e-6)


def test_edge_nodes_are_where_vtk_expects_them(store: Store) -> None:
    space = store.fields.volume.space
    cells, points = vtk_cells(space.cell_dofs), space.points
    # The file formats' own order: the base's edges in turn, then those to the top.
    for place, (a, b) in enumerate([(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3)]):
        middle = 0.5 * (points[cells[:, a]] + points[cells[:, b]])
        np.testing.assert_allclose(points[cells[:, 4 + place]], middle, atol=1e-12)
    assert basis(np.eye(4), 2).shape == (4, 10)


def test_fields_of_order_one(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "one.h5", values(order=1, count=9))) as one:
        export_store(one, tmp_path / "one.vtu", configurations=["0- 1+"])
    assert meshio.read(tmp_path / "one.vtu").cells[0].type == "tetra"


def test_npz(store: Store, tmp_path: Path) -> None:
    export_store(store, tmp_path / "all.npz")
    with np.load(tmp_path / "all.npz") as file:
        np.testing.assert_array_equal(file["polarity"], store.polarity)
        np.testing.assert_array_equal(file["r"][17], store.row(17))
        start, stop = file["neighbour_indptr"][17:19]
        np.testing.assert_array_equal(
            file["neighbour_indices"][start:stop], store.neighbours(17)[0]
        )
        assert file["text"].tolist() == list(store.texts)


def test_mat(store: Store, tmp_path: Path) -> None:
    export_store(store, tmp_path / "all.mat")
    content = scipy.io.loadmat(tmp_path / "all.mat")
    np.testing.assert_array_equal(content["r"][17], store.row(17))
    row = content["neighbourhoods"].tocsr()[17]
    np.testing.assert_array_equal(row.indices, store.neighbours(17)[0])
    assert content["text"].ravel()[3][0] == store.texts[3]
    assert content["neighbour_threshold"].item() == 0.0


@pytest.mark.parametrize("table", export.TABLES[:3])
def test_csv(table: str, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    export_store(store, path, table=table)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if table == "configurations":
        assert [row["configuration"] for row in rows] == list(store.texts)
        assert [int(row["polarity 2"]) for row in rows] == store.polarity[:, 2].tolist()
        np.testing.assert_array_equal(
            [float(row["current 2 (A)"]) for row in rows], store.current[:, 2]
        )
    elif table == "matrix":
        r = [np.float32(rows[17][text]) for text in store.texts]
        np.testing.assert_array_equal(r, store.row(17))
    else:
        mine = [row for row in rows if row["row"] == "17"]
        indices, r_of = store.neighbours(17)
        np.testing.assert_array_equal([int(row["neighbour"]) for row in mine], indices)
        np.testing.assert_array_equal([np.float32(row["r"]) for row in mine], r_of)


@pytest.mark.parametrize("table", export.TABLES[:3])
def test_parquet(table: str, store: Store, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "table.parquet"
    export_store(store, path, table=table)
    found = parquet.read_table(path)
    if table == "configurations":
        assert found["id"].to_pylist() == store.ids.tolist()
    elif table == "matrix":
        assert found[store.texts[3]].to_numpy().tolist() == store.row(3).tolist()
    else:
        assert found.num_rows == store.nnz


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_h5ad(store: Store, tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    export_store(store, tmp_path / "all.h5ad")
    data = anndata.read_h5ad(tmp_path / "all.h5ad")
    assert data.shape == (60, 5)
    assert data.obs_names.tolist() == list(store.texts)
    np.testing.assert_array_equal(data.obsm["embedding"], store.embedding)
    np.testing.assert_array_equal(data.obsp["correlation"][17], store.row(17))
    assert scipy.sparse.issparse(data.obsp["neighbourhoods"])
    assert data.uns["fieldcorr"]["hash"] == store.hash


def test_a_store_without_matrix_exports_what_it_has(tmp_path: Path) -> None:
    path = make_store(tmp_path / "lean.h5", values(slim=True), options=Options(matrix=False))
    with open_store(path) as lean:
        export_store(lean, tmp_path / "lean.npz")
        export_store(lean, tmp_path / "lean.csv", table="matrix")
        with pytest.raises(StoreError, match="slim"):
            export_store(lean, tmp_path / "lean.vtu", configurations=["0- 1+"])
    with np.load(tmp_path / "lean.npz") as file:
        assert "r" not in file.files
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lean.csv", "lean.h5", "lean.npz"]


def test_nothing_is_overwritten_without_force(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(b"mine")
    with pytest.raises(ExportError, match="exists already"):
        export_store(store, path)
    assert path.read_bytes() == b"mine"
    export_store(store, path, force=True)
    assert path.stat().st_size > 1000
    assert [p.name for p in tmp_path.iterdir()] == ["mine.npz"]


def test_a_failed_export_leaves_what_was_there(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "mine.vtu"
    path.write_bytes(b"mine")
    with pytest.raises(ConfigurationError):
        export_store(store, path, configurations=["0- 1+", "0- 99+"], force=True)
    assert path.read_bytes() == b"mine"
    assert [p.name for p in tmp_path.iterdir()] == ["mine.vtu"]


def test_the_store_itself_is_never_overwritten(tmp_path: Path) -> None:
    """XDMF keeps its numbers in a file with the ending of stores."""
    path = make_store(tmp_path / "field.h5", values(count=9))
    (tmp_path / "link.npz").symlink_to(path)
    before = path.read_bytes()
    with open_store(path) as opened:
        for name in ("field.xdmf", "link.npz"):
            with pytest.raises(ExportError, match="is being read and cannot be replaced"):
                export_store(opened, tmp_path / name, configurations=["0- 1+"], force=True)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["field.h5", "link.npz"]


def test_a_second_file_is_not_overwritten_either(store: Store, tmp_path: Path) -> None:
    (tmp_path / "field.h5").write_bytes(b"mine")
    with pytest.raises(ExportError, match=r"field\.h5: exists already"):
        export_store(store, tmp_path / "field.xdmf", configurations=["0- 1+"])
    assert [p.name for p in tmp_path.iterdir()] == ["field.h5"]
    assert (tmp_path / "field.h5").read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("a.xyz", {}, "unknown ending; known are .vtu"),
        ("a.vtu", {}, "name at least one configuration"),
        ("a.csv", {"table": "all"}, "must be one of"),
        ("absent/a.npz", {}, "cannot be written"),
    ],
)
def test_what_cannot_be_exported(
    name: str, options: dict[str, str], message: str, store: Store, tmp_path: Path
) -> None:
    with pytest.raises(ExportError, match=message):
        export_store(store, tmp_path / name, **options)  # type: ignore[arg-type]


def test_a_missing_package_is_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="needs pyarrow, which is not installed"):
        export_store(store, tmp_path / "a.parquet")


def test_the_command(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "field.vtu"
    arguments = ["export", str(store.path), str(path), "-c", "0- 1+", "-c", "2+ 3-"]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    assert result.output.split() == [str(tmp_path / "field-contacts.vtu"), str(path)]
    assert len(meshio.read(path).point_data) == 2
    assert CliRunner().invoke(build_app(), arguments).exit_code == 2


@pytest.mark.parametrize("kind", [values, whole_values])
def test_chosen_rows(kind: Callable[[], dict[str, Any]], tmp_path: Path) -> None:
    texts = ["0- 1+", "1- 2+ 4+", "0+ 3-"]
    with open_store(make_store(tmp_path / "s.h5", kind())) as store:
        rows = [store.index_of(text) for text in texts]
        tables = {}
        for table in ("configurations", "matrix", "neighbourhoods"):
            path = tmp_path / f"{table}.csv"
            export_store(store, path, configurations=texts, table=table, top=4)
            with path.open(newline="") as file:
                tables[table] = list(csv.DictReader(file))
        assert [line["configuration"] for line in tables["configurations"]] == texts
        assert [int(line["row"]) for line in tables["configurations"]] == rows
        for row, line in zip(rows, tables["matrix"], strict=True):
            assert [np.float32(line[text]) for text in texts] == store.row(row)[rows].tolist()
        found = [(int(line["row"]), int(line["neighbour"])) for line in tables["neighbourhoods"]]
        assert found == [(row, k) for row in rows for k in store.neighbours(row, top=4)[0].tolist()]


@pytest.mark.parametrize("name", ["a.csv", "a.npz", "a.h5ad"])
def test_rows_that_are_not_listed_are_chosen(name: str, tmp_path: Path) -> None:
    path = make_store(tmp_path / "s.h5", whole_values())
    with open_store(path) as store, pytest.raises(ExportError, match="180 configurations are not"):
        export_store(store, tmp_path / name)


def test_stimsets_as_oss_dbs_reads_them(store: Store, tmp_path: Path) -> None:
    """The rules of its documentation: a header, mA, a column per contact, a row per protocol."""
    chosen = list(store.texts[:3])
    export_store(store, tmp_path / "s.csv", configurations=chosen, table="stimsets")
    # As run_pathway_activation reads it.
    read = np.genfromtxt(tmp_path / "s.csv", dtype=float, delimiter=",", names=True)
    assert read.dtype.names == tuple(f"Contact{n}" for n in range(len(store.contact_names)))
    protocols = np.array([list(read[row]) for row in range(read.shape[0])])
    current = store.current[:3]
    np.testing.assert_allclose(protocols.sum(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.maximum(protocols, 0.0).sum(axis=1), 1.0)
    ratio = protocols / np.where(current == 0.0, 1.0, current)
    np.testing.assert_allclose(ratio, ratio.max(axis=1, keepdims=True) * (current != 0.0))
    for name, rows in (("one.csv", chosen[:1]), ("s.parquet", chosen)):
        with pytest.raises(ExportError, match="two configurations at least"):
            export_store(store, tmp_path / name, configurations=rows, table="stimsets")
