"""Files that lie, point elsewhere or carry code are refused before anything is read from them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store import layout, open_store

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


@pytest.mark.parametrize("entry", layout.ENTRIES, ids=lambda entry: entry.path)
def test_a_missing_dataset(entry: layout.Entry, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        del file[entry.path]

    # The matrix and the area may be left out; of the mesh all or nothing.
    if entry.presence in ("matrix", "area"):
        open_store(changed(change)).close()
    else:
        assert entry.name in refusal(changed(change))


@pytest.mark.parametrize("entry", layout.ENTRIES, ids=lambda entry: entry.path)
def test_a_wrong_type(entry: layout.Entry, changed: Callable[[Change], Path]) -> None:
    other = np.uint16 if entry.dtype != "<u2" else np.float64

    def change(file: h5py.File) -> None:
        shape = file[entry.path].shape
        replace(entry.path, shape=shape, dtype=other, data=np.zeros(shape, other))(file)

    assert f"{entry.path} has type" in refusal(changed(change))


@pytest.mark.parametrize(
    "kind", [h5py.string_dtype(), h5py.vlen_dtype(np.int32), h5py.ref_dtype, h5py.regionref_dtype]
)
def test_object_types(kind: np.dtype, changed: Callable[[Change], Path]) -> None:
    change = replace("/contacts/name", shape=(5,), dtype=kind)
    assert "/contacts/name has type" in refusal(changed(change))


def test_a_big_endian_number_is_not_a_little_endian_one(changed: Callable[[Change], Path]) -> None:
    change = replace("/contacts/position", shape=(5, 3), dtype=">f8")
    assert "/contacts/position has type" in refusal(changed(change))


@pytest.mark.parametrize("entry", [e for e in layout.ENTRIES if e.dims], ids=lambda e: e.path)
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
        for item in layout.ENTRIES:
            if "K" in item.dims or "K+1" in item.dims or item.dims == ("Q",):
                del file[item.path]
        size = 10**7
        for item in layout.ENTRIES:
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
    assert "bytes; the file has" in message or "has shape" in message


def test_headers_of_an_older_kind(small_store: Path, tmp_path: Path) -> None:
    """Their metadata has no checksum."""
    path = tmp_path / "old.h5"
    shutil.copy(small_store, path)
    with h5py.File(path, "r+", libver=("earliest", "v110")) as file:
        replace("/contacts/position", data=file["/contacts/position"][...])(file)
    assert "no object header of version 2" in refusal(path)


def test_a_large_group_is_refused_before_hdf5_looks_into_it(
    changed: Callable[[Change], Path],
) -> None:
    """HDF5 crashes on forged trees of links; a store has none."""

    def change(file: h5py.File) -> None:
        for number in range(5):
            file["contacts"].create_group(f"more {number}")
        for number in range(5):
            file["contacts"].create_group(f"and more {number}")

    assert "/contacts is not kept in its header" in refusal(changed(change))


def test_other_chunk_indices(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        data = file["/correlation/matrix"][...]
        del file["/correlation/matrix"]
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((8, 180))
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        space = h5py.h5s.create_simple(data.shape)
        group = file["correlation"].id
        item = h5py.h5d.create(group, b"matrix", h5py.h5t.IEEE_F32LE, space, dcpl=plist)
        item.write(h5py.h5s.ALL, h5py.h5s.ALL, data)

    assert "another chunk index" in refusal(changed(change))


def test_a_dataset_that_may_grow(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        data = file["/contacts/position"][...]
        replace("/contacts/position", data=data, maxshape=(None, 3), chunks=(5, 3))(file)

    assert "not of fixed size" in refusal(changed(change))


def test_data_that_was_never_written(changed: Callable[[Change], Path]) -> None:
    """HDF5 reads zeros where nothing is stored; here the size alone would fit."""
    options = {"shape": (180, 180), "dtype": "<f4", "chunks": (8, 180), "fletcher32": True}
    message = refusal(changed(replace("/correlation/matrix", **options)))
    assert "/correlation/matrix holds 0 bytes instead of" in message


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


@pytest.mark.parametrize("options", [{"compression": "gzip"}, {"shuffle": True}])
def test_filters(options: dict[str, object], changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        data = file["/correlation/matrix"][...]
        replace("/correlation/matrix", data=data, chunks=(8, 180), **options)(file)

    assert "/correlation/matrix has the filters" in refusal(changed(change))


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


def test_other_chunks(changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        data = file["/correlation/matrix"][...]
        replace("/correlation/matrix", data=data, chunks=(180, 180), fletcher32=True)(file)

    assert "has chunks (180, 180)" in refusal(changed(change))


@pytest.mark.parametrize(
    ("row", "value"), [(0, 1), (3, -5), (90, 10**15), (180, 0), (60, -(2**62))]
)
def test_pointers_that_do_not_rise(row: int, value: int, changed: Callable[[Change], Path]) -> None:
    def change(file: h5py.File) -> None:
        file["/neighbourhoods/indptr"][row] = value

    assert "/neighbourhoods/indptr" in refusal(changed(change))


@pytest.mark.parametrize("value", [-1, 180, 2**62])
def test_indices_out_of_bounds_never_leave_the_store(
    value: int, changed: Callable[[Change], Path]
) -> None:
    def change(file: h5py.File) -> None:
        file["/neighbourhoods/indices"][5] = value

    with open_store(changed(change)) as store:
        with pytest.raises(StoreError, match="points outside"):
            store.neighbours(0)
        store.neighbours(100)


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
