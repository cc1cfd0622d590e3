"""FORMAT.md, the declaration in code and a written file say the same."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from fieldcorr.store import layout
from tests.store.synthetic import ENTRIES, GROUPS


def tables(text: str) -> dict[str, list[str]]:
    """Return the cells of every table row whose first cell is a path, by path."""
    rows = re.findall(r"^\| `(/[^`]*)` \| (.*) \|$", text, flags=re.MULTILINE)
    return {path: cells.split(" | ") for path, cells in rows}


@pytest.fixture(scope="module")
def documented(repository: Path) -> dict[str, list[str]]:
    return tables((repository / "FORMAT.md").read_text())


def test_format_md_names_exactly_what_the_code_declares(documented: dict[str, list[str]]) -> None:
    declared = {g.path for g in layout.GROUPS} | {e.path for e in layout.ENTRIES}
    assert set(documented) == declared


@pytest.mark.parametrize("entry", layout.ENTRIES, ids=lambda entry: entry.path)
def test_a_dataset_is_documented_as_declared(
    entry: layout.Entry, documented: dict[str, list[str]]
) -> None:
    kind = entry.dtype if entry.dtype == layout.TEXT else np.dtype(entry.dtype).name
    shape = f"({', '.join(entry.dims)})" if entry.dims else "scalar"
    encoding = " ".join(entry.encoding)
    wanted = [kind, shape, entry.unit or "-", entry.presence, encoding, entry.since, entry.meaning]
    assert documented[entry.path] == wanted


@pytest.mark.parametrize("group", layout.GROUPS, ids=lambda group: group.path)
def test_a_group_is_documented_as_declared(
    group: layout.Group, documented: dict[str, list[str]]
) -> None:
    attributes = ", ".join(group.attributes) or "-"
    assert documented[group.path] == [" ".join(group.encoding), group.presence, attributes]


def test_the_version_is_documented(repository: Path) -> None:
    text = (repository / "FORMAT.md").read_text()
    assert text.startswith(f"# The fieldcorr store, format {layout.FORMAT}\n")
    assert f"\n| {layout.FORMAT} |" in text


def test_a_file_holds_exactly_what_is_declared(small_store: Path) -> None:
    found: dict[str, h5py.HLObject] = {}
    with h5py.File(small_store) as file:
        file.visititems(lambda name, item: found.update({f"/{name}": item}))
        groups = {path for path, item in found.items() if isinstance(item, h5py.Group)}
        assert groups == {g.path for g in GROUPS[1:]}
        assert set(found) - groups == {e.path for e in ENTRIES}
        for entry in ENTRIES:
            item = found[entry.path]
            encoding = (item.attrs["encoding-type"], item.attrs["encoding-version"])
            assert encoding == entry.encoding
            assert len(item.shape) == len(entry.dims)
            assert item.chunks == layout.chunk_shape(entry, item.shape)
            assert bool(item.fletcher32) == (item.chunks is not None)
            if entry.dtype != layout.TEXT:
                assert item.dtype == np.dtype(entry.dtype)


def test_chunks_are_whole_row_blocks() -> None:
    shape = layout.chunk_shape
    assert shape(layout.BY_PATH["/correlation/matrix"], (3600, 3600)) == (8, 3600)
    assert shape(layout.BY_PATH["/correlation/matrix"], (3, 3)) == (3, 3)
    assert shape(layout.BY_PATH["/neighbourhoods/data"], (10**6,)) == (16384,)
    assert shape(layout.BY_PATH["/neighbourhoods/data"], (0,)) is None
    assert shape(layout.BY_PATH["/leadfield/nodal"], (16, 10**5)) == (1, 16384)
    assert shape(layout.BY_PATH["/configurations/current"], (10**5, 16)) == (1024, 16)
    assert shape(layout.BY_PATH["/correlation/embedding"], (9, 70000)) == (1, 16384)


def test_sizes_that_contradict_each_other_are_named() -> None:
    sizes = layout.Symbols()
    assert sizes.mismatch(layout.BY_PATH["/configurations/id"], (7,)) is None
    assert sizes.mismatch(layout.BY_PATH["/neighbourhoods/indptr"], (8,)) is None
    problem = sizes.mismatch(layout.BY_PATH["/correlation/matrix"], (7, 6))
    assert problem == "/correlation/matrix has shape (7, 6), but K is 7"
