"""A store is readable by plain h5py, scipy and anndata, without fieldcorr."""

import json
import shutil
import subprocess
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse

from fieldcorr.store import check_store, layout, open_store
from tests.store.synthetic import GROUPS


def test_plain_h5py_reads_rows(small_store: Path) -> None:
    with h5py.File(small_store) as file, open_store(small_store) as store:
        assert file.attrs["fieldcorr-format"] == layout.FORMAT
        assert file.attrs["fieldcorr-status"] == "complete"
        assert file["contacts/name"].asstr()[:].tolist() == list(store.contact_names)
        np.testing.assert_array_equal(file["correlation/matrix"][17], store.row(17))
        assert json.loads(file["provenance/settings"].asstr()[()])["model"] == "synthetic"
        assert json.loads(file["provenance/run"].asstr()[()]) == {"created": "now"}


def test_scipy_reads_the_neighbourhoods(small_store: Path) -> None:
    with h5py.File(small_store) as file:
        group = file["neighbourhoods"]
        parts = (group["data"][...], group["indices"][...], group["indptr"][...])
        matrix = scipy.sparse.csr_matrix(parts, shape=group.attrs["shape"])
        r = file["correlation/matrix"][...]
    np.fill_diagonal(r, 0.0)
    np.testing.assert_array_equal(matrix.toarray(), np.where(r > 0, r, 0))
    assert matrix.has_sorted_indices


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_anndata_reads_every_group(small_store: Path) -> None:
    anndata = pytest.importorskip("anndata.io")
    with h5py.File(small_store) as file:
        everything = anndata.read_elem(file["/"])
        for group in GROUPS[1:]:
            anndata.read_elem(file[group.path])
    assert set(everything) == {group.path[1:] for group in GROUPS[1:]}
    assert scipy.sparse.issparse(everything["neighbourhoods"])
    assert everything["neighbourhoods"].shape == everything["correlation"]["matrix"].shape
    assert list(everything["contacts"]["name"]) == ["0", "1", "2", "3", "4"]
    assert everything["provenance"]["model"] == 'name = "synthetic"\n'


COPIES: dict[str, dict[str, object]] = {
    "contiguous": {},
    "gzip": {"chunks": True, "compression": "gzip"},
    "gzip and shuffle": {"chunks": True, "compression": "gzip", "shuffle": True},
    "lzf": {"chunks": True, "compression": "lzf"},
    "other chunks": {"chunks": True, "fletcher32": True},
}


def copy_with(source: Path, target: Path, options: dict[str, object]) -> Path:
    """Copy a store dataset by dataset through h5py, as others keep their data."""
    with h5py.File(source) as old, h5py.File(target, "w") as new:
        new.attrs.update(old.attrs)

        def copy(name: str, item: h5py.HLObject) -> None:
            if isinstance(item, h5py.Dataset):
                chosen = options if item.size and item.shape else {}
                made = new.create_dataset(name, data=item[...], dtype=item.dtype, **chosen)
            else:
                made = new.create_group(name)
            made.attrs.update(item.attrs)

        old.visititems(copy)
    return target


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_made_by_h5py_is_a_store(name: str, small_store: Path, tmp_path: Path) -> None:
    path = copy_with(small_store, tmp_path / "copy.h5", COPIES[name])
    assert check_store(path) == []
    with open_store(path) as copy, open_store(small_store) as store:
        assert copy.hash == store.hash
        np.testing.assert_array_equal(copy.row(17), store.row(17))
        np.testing.assert_array_equal(copy.neighbours(17)[0], store.neighbours(17)[0])


def test_a_changed_number_in_a_copy_is_found(small_store: Path, tmp_path: Path) -> None:
    path = copy_with(small_store, tmp_path / "copy.h5", COPIES["gzip"])
    with h5py.File(path, "r+") as file:
        file["correlation/matrix"][100, 3] = 0.5
    (finding,) = check_store(path)
    assert str(finding) == "/correlation/matrix: does not match its recorded sha256"


@pytest.mark.skipif(shutil.which("h5repack") is None, reason="h5repack is not installed")
@pytest.mark.parametrize("options", [["-f", "GZIP=4"], ["-l", "CONTI"], ["-f", "NONE"]])
def test_a_store_that_was_repacked_is_a_store(
    options: list[str], small_store: Path, tmp_path: Path
) -> None:
    path = tmp_path / "repacked.h5"
    subprocess.run(["h5repack", *options, str(small_store), str(path)], check=True)
    assert check_store(path) == []
