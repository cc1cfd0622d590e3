"""A store is readable by plain h5py, scipy and anndata, without fieldcorr."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import scipy.sparse

from fieldcorr.store import layout, open_store


def test_plain_h5py_reads_rows(small_store: Path) -> None:
    with h5py.File(small_store) as file, open_store(small_store) as store:
        assert file.attrs["fieldcorr-format"] == "1.0"
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
        for group in layout.GROUPS[1:]:
            anndata.read_elem(file[group.path])
    assert set(everything) == {group.path[1:] for group in layout.GROUPS[1:]}
    assert scipy.sparse.issparse(everything["neighbourhoods"])
    assert everything["neighbourhoods"].shape == everything["correlation"]["matrix"].shape
    assert list(everything["contacts"]["name"]) == ["0", "1", "2", "3", "4"]
    assert everything["provenance"]["model"] == 'name = "synthetic"\n'
