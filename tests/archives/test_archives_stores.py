"""Stores of every released format version stay readable, with the same answers."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.store import check_store, layout, open_store

FOLDER = Path(__file__).parent
STORES = sorted(FOLDER.glob("store-*.h5"))


FROZEN = {
    "store-1.0": "8b3f82e8480e0e70f11eeb75ce0277cd1623fb3097190f31427d3a0832600de1",
    "store-1.1": "acb95c2325be29ecfa8b4e23f8efa9678322731a5b4094d0e2388c1d5295c19a",
}
"""Sha256 of every archived store. They are never made again: a reader that needs that is wrong."""


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_an_archived_store_never_changes(path: Path) -> None:
    assert hashlib.sha256(path.read_bytes()).hexdigest() == FROZEN[path.stem]


def test_there_is_a_store_of_the_present_version() -> None:
    assert FOLDER / f"store-{layout.FORMAT}.h5" in STORES


@pytest.mark.parametrize("path", STORES, ids=lambda path: path.stem)
def test_an_old_store_is_sound(path: Path) -> None:
    assert check_store(path) == []
    with open_store(path) as store:
        assert store.format == path.stem.removeprefix("store-")


def test_a_store_of_format_1_0_gives_the_answers_it_always_gave() -> None:
    with open_store(FOLDER / "store-1.0.h5") as store:
        assert store.hash == "81f65615f233c6cf25da6c968b64544e1c1b888e324a40ccad798217e49b2b0f"
        assert store.texts[:3] == ["0- 1+", "0+ 1-", "0- 2+"]
        assert store.ids.tolist() == [5, 7, 11, 14, 15, 16, 17, 19, 21, 22, 23, 25, 29, 32]
        assert store.row(3)[:4].tolist() == [
            0.990959882736206,
            -0.990959882736206,
            0.9822139739990234,
            1.0,
        ]
        assert store.neighbours(5)[0].tolist() == [1, 4, 7, 9, 11]
        np.testing.assert_allclose(store.current[2], [-3.099727089031462, 0, 3.099727089031462, 0])
        lead = store.fields.lead_fields([[0.3, 0.4, 0.5]])
        np.testing.assert_allclose(store.current[2] @ lead, [0.37690315], rtol=1e-7)
        np.testing.assert_allclose(store.potential(2, [[0.3, 0.4, 0.5]]), [0.23722592], rtol=1e-7)


def test_both_versions_of_the_same_content_have_the_same_digests() -> None:
    """What stands in a store of 1.1 was written from the values of that of 1.0."""
    with open_store(FOLDER / "store-1.0.h5") as old, open_store(FOLDER / "store-1.1.h5") as new:
        same = {path for path, digest in old.digests.items() if new.digests[path] == digest}
        assert set(old.digests) == set(new.digests)
        assert set(old.digests) - same <= {"/provenance/settings", "/provenance/origin"}
