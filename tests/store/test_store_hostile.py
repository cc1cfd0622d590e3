"""Files that lie, point elsewhere or carry code are refused before anything is read from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store import check_store, layout, open_store
from tests.store.synthetic import ENTRIES
from tests.store.test_store_check import rewrite_digests

Change = Callable[[h5py.File], None]


@pytest.fixture
def changed(small_store: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Return a function that changes a copy of the small store through h5py."""

    def apply(change: Change) -> Path:
        path = tmp_path / "changed.h5"
        shutil.copy(small_store, path)
        with h5py.File(path, "r+", libver=("v110", "v110")) as file:
            change(file)
        return path

    return apply


def refusal(path: Path) -> str:
    with pytest.raises(StoreError) as caught:
        open_store(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def replace(name: str, **options: object) -> Change:
    """Return a change that puts another dataset in the place of ``name``."""

    def change(file: h5py.File) -> None:
        del file[name]
        made = file.create_dataset(name, **options)
        made.attrs["encoding-type"], made.attrs["encoding-version"] = layout.BY_PATH[name].encoding

    return change


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.path)
def test_a_missing_dataset(entry: layout.Entry, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        del file[entry.path]

    # The matrix and the area may be left out; of the mesh all or nothing.
    if entry.presence in ("matrix", "area"):
        open_store(changed(change)).close()
    else:
        assert entry.name in refusal(changed(change))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.path)
def test_a_wrong_type(entry: layout.Entry, changed: Callable[[Change], Path]) -> None:
    other = np.uint16 if entry.dtype != "<u2" else np.float64

    def change(file: h5py.File) -> None:
        shape = file[entry.path].shape
        replace(entry.path, shape=shape, dtype=other, data=np.zeros(shape, other))(file)

    assert f"{entry.path} has another type" in refusal(changed(change))


@pytest.mark.parametrize(
    "kind", [h5py.string_dtype(), h5py.vlen_dtype(np.int32), h5py.ref_dtype, h5py.regionref_dtype]
)
def test_object_types(kind: np.dtype, changed: Callable[[Change], Path]) -> None:
    change = replace("/contacts/name", shape=(5,), dtype=kind)
    assert "/contacts/name has another type" in refusal(changed(change))


def test_a_big_endian_number_is_not_a_little_endian_one(changed: Callable[[Change], Path]) -> None:
    change = replace("/contacts/position", shape=(5, 3), dtype=">f8")
    assert "/contacts/position has another type" in refusal(changed(change))


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.dims], ids=lambda e: e.path)
def test_a_shape_that_contradicts_the_others(
    entry: layout.Entry, changed: Callable[[Change], Path]
) -> None:
    if entry.dims[0] in ("S", "Q", "N", "P", "T", "R") and len(entry.dims) == 1:
        return  # the only dataset with this symbol, or covered by others

    def change(file: h5py.File) -> None:
        old = file[entry.path]
        shape = (old.shape[0] + 1, *old.shape[1:])
        replace(entry.path, shape=shape, dtype=old.dtype)(file)

    refusal(changed(change))


@pytest.mark.parametrize("name", ["/correlation/matrix", "/neighbourhoods/data", "/mesh/cells"])
def test_a_declared_shape_without_data(name: str, changed: Callable[[Change], Path]) -> None:
    """Petabytes may be declared in a file of kilobytes: HDF5 allocates chunks when written."""

    def change(file: h5py.File) -> None:
        dtype = file[name].dtype
        for item in ENTRIES:
            if "K" in item.dims or "K+1" in item.dims or item.dims == ("Q",):
                del file[item.path]
        size = 10**7
        for item in ENTRIES:
            if item.path not in file:
                dims = [{"K": size, "K+1": size + 1, "Q": 10**12}.get(d, 5) for d in item.dims]
                shape = tuple(dims)
                file.create_dataset(
                    item.path,
                    shape,
                    item.dtype,
                    chunks=layout.chunk_shape(item, shape),
                    fletcher32=True,
                )
        if name == "/mesh/cells":
            del file[name]
            file.create_dataset(name, (10**9, 4), dtype, chunks=(4096, 4), fletcher32=True)

    message = refusal(changed(change))
    assert "declares" in message or "has shape" in message


def test_data_that_was_never_written(changed: Callable[[Change], Path]) -> None:
    """HDF5 reads zeros where nothing is stored; here the size alone would fit."""
    options = {"shape": (180, 180), "dtype": "<f4", "chunks": (8, 180), "fletcher32": True}
    message = refusal(changed(replace("/correlation/matrix", **options)))
    assert "/correlation/matrix declares (180, 180), 129600 bytes, and holds 0" in message


def test_a_compressed_dataset_cannot_claim_more_than_its_bytes_can_become(
    changed: Callable[[Change], Path],
) -> None:
    """One chunk of gzip is stored, and petabytes of rows declared beside it."""

    def change(file: h5py.File) -> None:
        del file["/leadfield/points"], file["/leadfield/weight"], file["/leadfield/potential"]
        shapes = {"points": (10**9, 3), "weight": (10**9,), "potential": (5, 10**9)}
        for name, shape in shapes.items():
            chunks = tuple(min(n, 2**20) for n in shape)
            options = {"chunks": chunks, "compression": "gzip"}
            item = file["leadfield"].create_dataset(name, shape, "<f8", **options)
            item[(0,) * len(shape)] = 1.0

    assert "/leadfield/points declares (1000000000, 3)" in refusal(changed(change))


def test_a_chunk_larger_than_the_file(changed: Callable[[Change], Path]) -> None:
    """HDF5 would allocate it to read a single number."""
    options = {"shape": (5, 3), "dtype": "<f8", "chunks": (2**26, 3), "maxshape": (None, 3)}
    change = replace("/contacts/position", **options, compression="gzip")
    assert "/contacts/position declares (5, 3), 1610612736 bytes" in refusal(changed(change))


@pytest.mark.parametrize("target", ["/correlation/embedding", "/contacts", "/mesh"])
@pytest.mark.parametrize("link", [h5py.SoftLink("/x"), h5py.ExternalLink("/etc/passwd", "/x")])
def test_links_that_leave(target: str, link: object, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file.move(target, "/x")
        file[target] = link

    assert "link" in refusal(changed(change))


def test_external_storage(changed: Callable[[Change], Path], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(bytes(120))
    change = replace("/contacts/position", shape=(5, 3), dtype="<f8", external=str(outside))
    assert "outside the file" in refusal(changed(change))


def test_virtual_storage(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        layout_ = h5py.VirtualLayout((5, 3), "<f8")
        layout_[...] = h5py.VirtualSource("/etc/passwd", "/x", (5, 3))
        del file["/contacts/position"]
        file.create_virtual_dataset("/contacts/position", layout_)

    assert "outside the file" in refusal(changed(change))


def test_a_filter_from_outside(changed: Callable[[Change], Path]) -> None:
    """A filter that HDF5 would have to load as code."""

    def change(file: h5py.File) -> None:
        del file["/correlation/matrix"]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 180))
        plist.set_filter(32015, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((180, 180))
        kind = h5py.h5t.IEEE_F32LE
        h5py.h5d.create(file["correlation"].id, b"matrix", kind, space, dcpl=plist)

    assert "has the filters [32015]" in refusal(changed(change))


@pytest.mark.parametrize(
    ("row", "value"), [(0, 1), (3, -5), (90, 10**15), (180, 0), (60, -(2**62))]
)
def test_pointers_that_do_not_rise(row: int, value: int, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file["/neighbourhoods/indptr"][row] = value

    path = changed(change)
    assert "/neighbourhoods/indptr does not match its recorded sha256" in refusal(path)
    rewrite_digests(path)
    assert "/neighbourhoods/indptr" in refusal(path)


@pytest.mark.parametrize("value", [-1, 180, 2**62])
def test_indices_out_of_bounds_never_leave_the_store(
    value: int, changed: Callable[[Change], Path]
) -> None:
    def change(file: h5py.File) -> None:
        """Keep the order, so that only the bounds are wrong."""
        place = 0 if value < 0 else file["/neighbourhoods/indptr"][1] - 1
        file["/neighbourhoods/indices"][place] = value

    with open_store(changed(change)) as store:
        with pytest.raises(StoreError, match=r"does not ascend in 0\.\.179"):
            store.neighbours(0)
        store.neighbours(100)


@pytest.mark.parametrize("name", ["/correlation/matrix", "/neighbourhoods/data"])
@pytest.mark.parametrize("blank", [0.0, np.nan, 2.0])
def test_blank_chunks_are_never_served(
    name: str, blank: float, changed: Callable[[Change], Path]
) -> None:
    """A chunk of zeros has a valid checksum of zero in HDF5."""

    def change(file: h5py.File) -> None:
        file[name][8:16] = blank

    with open_store(changed(change)) as store:
        read = store.row if "matrix" in name else store.neighbours
        with pytest.raises(StoreError, match=f"damaged: .*{name[1:]}"):
            read(8 if "matrix" in name else 0)
        if "matrix" in name:
            with pytest.raises(StoreError, match="damaged"):
                store.kappa_tau(9, 100)
            with pytest.raises(StoreError, match="damaged"):
                store.rows(0, 180)
        read(100)


@pytest.mark.parametrize("change", ["exchanged", "repeated", "own row"])
def test_neighbours_ascend_and_leave_oneself_out(
    change: str, changed: Callable[[Change], Path]
) -> None:
    def apply(file: h5py.File) -> None:
        indices = file["/neighbourhoods/indices"]
        if change == "own row":
            indices[0] = 0
        else:
            indices[4], indices[5] = indices[5], indices[4 if change == "exchanged" else 5]

    with open_store(changed(apply)) as store:
        with pytest.raises(StoreError, match="does not ascend"):
            store.neighbours(0)
        with pytest.raises(StoreError, match="in row 0"):
            store.neighbour_rows(0, 10)
        store.neighbour_rows(1, 180)


@pytest.mark.parametrize("value", [-1, 27, 2**31 - 1])
def test_cells_out_of_bounds_never_reach_a_kernel(
    value: int, changed: Callable[[Change], Path]
) -> None:
    def change(file: h5py.File) -> None:
        file["/mesh/cells"][5, 1] = value

    with open_store(changed(change)) as store, pytest.raises(StoreError, match="/mesh/cells"):
        store.potential(0, [[0.5, 0.5, 0.5]])


@pytest.mark.parametrize(("name", "value"), [("status", "building"), ("format", "2.0")])
def test_unfinished_or_unknown(name: str, value: str, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file.attrs[f"fieldcorr-{name}"] = value

    assert value in refusal(changed(change))


def test_a_newer_minor_version_may_hold_more(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file.attrs["fieldcorr-format"] = "1.7"
        file["extra"] = np.arange(3)

    with open_store(changed(change)) as store:
        assert store.format == "1.7"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("settings", b"[1, 2]"),
        ("settings", b"{"),
        ("settings", b'{"model": "m", "device": "d", "measure": 3}'),
        ("solver", b'{"residuals": 3, "identities": {}}'),
        ("origin", b"null"),
        ("error_estimate", b"3"),
        ("device", b"\xff"),
        ("settings", b"[" * 100),
    ],
)
def test_records_of_another_form(name: str, text: bytes, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        kind = h5py.string_dtype("utf-8", len(text))
        data = np.array(text, dtype=kind)
        replace(f"/provenance/{name}", data=data, dtype=kind)(file)

    path = changed(change)
    rewrite_digests(path)
    with open_store(path) as store:
        with pytest.raises(StoreError, match=f"/provenance/{name}") as caught:
            store.record(name)
        assert "\n" not in str(caught.value)
        if name not in ("device",):
            with pytest.raises(StoreError, match=f"/provenance/{name}"):
                _ = store.info
    assert any(f"/provenance/{name}" in str(finding) for finding in check_store(path))


@pytest.mark.parametrize("value", [np.zeros(7000), 3, "x" * 30000])
def test_attributes_of_the_wrong_kind(value: object, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file.attrs["fieldcorr-status"] = value

    refusal(changed(change))


def test_data_that_is_not_what_was_written(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file["/configurations/polarity"][3, 1] = 1 - file["/configurations/polarity"][3, 1]

    with open_store(changed(change)) as store, pytest.raises(StoreError, match="recorded sha256"):
        _ = store.polarity
