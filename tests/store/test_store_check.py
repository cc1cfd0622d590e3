"""``check`` finds what is wrong, also where the digests have been made to fit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from fieldcorr.store import Options, check_store, layout
from fieldcorr.store.layout import digest_array
from tests.store.synthetic import make_store, settings, values


def test_a_sound_store_has_no_findings(small_store: Path) -> None:
    assert check_store(small_store) == []


def test_progress_names_the_stages(small_store: Path) -> None:
    seen: dict[str, float] = {}
    check_store(small_store, progress=lambda stage, done: seen.__setitem__(stage, done))
    assert {"checksums", "currents", "embedding", "rows"} <= set(seen)
    assert set(seen.values()) == {1.0}


def test_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    path.write_bytes(b"nothing")
    (finding,) = check_store(path)
    assert finding.where == "structure"
    assert "damaged" in str(finding)


def rewrite_digests(path: Path) -> None:
    """Make the recorded digests fit the data: what a careful forger would do."""
    with h5py.File(path, "r+") as file:
        room = file["/provenance/sha256"]
        recorded = json.loads(room.asstr()[()])
        for name in recorded:
            recorded[name] = digest_array(layout.BY_PATH[name], file[name][()])
        room[...] = np.array(json.dumps(recorded, sort_keys=True).encode(), dtype=room.dtype)


def _set(name: str, place: Any, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][place] = value

    return change


def _add(name: str, place: Any, value: Any) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][place] = file[name][place] + value

    return change


def _swap(name: str, one: int, other: int) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][one], file[name][other] = file[name][other], file[name][one]

    return change


def _both(name: str, i: int, j: int, value: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        file[name][i, j] = value
        file[name][j, i] = value

    return change


def _flatten(cell: int) -> Callable[[h5py.File], None]:
    """Move one corner of a cell onto another."""

    def change(file: h5py.File) -> None:
        *_, onto, moved = file["/mesh/cells"][cell]
        file["/mesh/points"][moved] = file["/mesh/points"][onto]

    return change


FORGERIES = {
    "r above one": (_both("/correlation/matrix", 3, 5, 1.5), "outside [-1, 1]"),
    "r that is no number": (_both("/correlation/matrix", 3, 5, np.nan), "outside [-1, 1]"),
    "diagonal": (_set("/correlation/matrix", (4, 4), 0.99), "diagonal other than 1"),
    "r that is not Z Z'": (_both("/correlation/matrix", 3, 5, 0.123), "not what the embedding"),
    "asymmetric r": (_set("/correlation/matrix", (3, 5), 0.123), "not what the embedding"),
    "neighbour's r": (_set("/neighbourhoods/data", 7, 0.123), "row 0 is not what r gives"),
    "exchanged neighbours": (_swap("/neighbourhoods/indices", 7, 8), "row 0 is not what r gives"),
    "pointers": (_add("/neighbourhoods/indptr", 9, 1), "row 8 has not all its neighbours"),
    "id": (_swap("/configurations/id", 7, 8), "row 7 is not the code of its polarity"),
    "polarity": (_set("/configurations/polarity", (7, 0), 2), "other than -1, 0, 1"),
    "current": (_add("/configurations/current", (7, 0), 1e-3), "row 7 does not sum to zero"),
    "scaled current": (
        lambda f: _set("/configurations/current", 7, 2 * f["/configurations/current"][7])(f),
        "row 7 is not what the admittance gives",
    ),
    "unit rows": (_add("/correlation/embedding", (7, 0), 1e-3), "row 7 is not a unit vector"),
    "turned row": (
        lambda f: _set("/correlation/embedding", 7, f["/correlation/embedding"][8])(f),
        "from the Gram matrix's r",
    ),
    "gram": (_add("/leadfield/gram", (0, 1), 0.5), "/leadfield/gram: is not symmetric"),
    "negative gram": (_set("/leadfield/gram", (2, 2), -9.0), "has a negative eigenvalue"),
    "admittance": (_add("/leadfield/admittance", (0, 1), 0.5), "admittance: is not symmetric"),
    "weight": (_set("/leadfield/weight", 3, -1.0), "has a negative weight"),
    "point": (_set("/leadfield/points", (3, 0), np.inf), "points: has a value that is not finite"),
    "sample": (_add("/leadfield/potential", (2, 3), 0.1), "V/A from /leadfield/potential"),
    "node": (_set("/leadfield/nodal", (2, 3), np.nan), "nodal: has a value that is not finite"),
    "cell": (_set("/mesh/cells", (2, 3), 99), "points outside /mesh/points"),
    "tag": (_set("/mesh/tags", 3, 4), "names a tissue that is not"),
    "name": (_set("/contacts/name", 1, b"0"), "names a contact twice"),
    "residual": (
        lambda f: _set(
            "/provenance/solver", (), f["/provenance/solver"][()].replace(b"1e-09", b"NaN", 1)
        )(f),
        "has a residual that is not finite",
    ),
    "settings": (_set("/provenance/settings", (), b"{"), "/provenance/settings is no JSON"),
    "settings of another form": (
        _set("/provenance/settings", (), b'{"model": 3}'),
        "/provenance/settings lacks 'device'",
    ),
    "residuals of another form": (
        _set("/provenance/solver", (), b'{"residuals": ["?"], "identities": {}}'),
        "/provenance/solver.residuals[0] is '?'",
    ),
    "origin of another form": (
        _set("/provenance/origin", (), b"[]"),
        "/provenance/origin is not an object",
    ),
    "vertex that is no number": (
        _set("/mesh/points", (2, 1), np.nan),
        "/mesh/points has a vertex that is nowhere in a body",
    ),
    "flat cell": (
        _flatten(cell=2),
        "has no volume",
    ),
    "threshold": (
        lambda f: f["/neighbourhoods"].attrs.modify("threshold", 0.5),
        "threshold is 0.5, the settings say 0.0",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_with_fitting_digests_is_found(name: str, tmp_path: Path) -> None:
    change, message = FORGERIES[name]
    path = make_store(tmp_path / "forged.h5", values(count=40))
    with h5py.File(path, "r+") as file:
        change(file)
    if name != "threshold":
        assert any("sha256" in str(finding) for finding in check_store(path)), "digest must fail"
    rewrite_digests(path)
    found = [str(finding) for finding in check_store(path)]
    assert any(message in text for text in found), found


def test_exchanged_datasets_are_found(tmp_path: Path, small_store: Path) -> None:
    path = tmp_path / "swapped.h5"
    path.write_bytes(small_store.read_bytes())
    with h5py.File(path, "r+") as file:
        file.move("/leadfield/gram", "/x")
        file.move("/leadfield/admittance", "/leadfield/gram")
        file.move("/x", "/leadfield/admittance")
    where = {finding.where for finding in check_store(path)}
    assert where == {"/leadfield/gram", "/leadfield/admittance"}


def test_unknown_members_and_encodings_are_found(tmp_path: Path, small_store: Path) -> None:
    path = tmp_path / "more.h5"
    path.write_bytes(small_store.read_bytes())
    with h5py.File(path, "r+") as file:
        file["/correlation/extra"] = 3
        file["/contacts/position"].attrs["encoding-type"] = "dataframe"
    found = {finding.where: finding.problem for finding in check_store(path)}
    assert found["/correlation/extra"] == "is not part of format 1.1"
    assert "dataframe" in found["/contacts/position"]


def test_settings_of_a_magnitude_store_skip_the_gram_matrix(tmp_path: Path) -> None:
    content = values(count=20)
    rows = np.random.default_rng(0).normal(size=(20, 30))
    content["/correlation/embedding"] = rows / np.linalg.norm(rows, axis=1)[:, None]
    path = make_store(tmp_path / "m.h5", content)
    assert any("Gram" in str(finding) for finding in check_store(path))
    with h5py.File(path, "r+", libver=("v110", "v110")) as file:
        text = json.dumps(settings(measure={"kind": "magnitude"}))
        del file["/provenance/settings"]
        item = file.create_dataset(
            "/provenance/settings", data=text, dtype=h5py.string_dtype("utf-8", len(text))
        )
        item.attrs["encoding-type"], item.attrs["encoding-version"] = "string", "0.2.0"
    rewrite_digests(path)
    assert check_store(path) == []


def test_memory_does_not_change_the_verdict(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.h5", options=Options(threshold=0.3))
    assert check_store(path, memory=1) == check_store(path, memory=1 << 30, threads=1) == []
