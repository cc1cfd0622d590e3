"""A store whose configurations are defined and not listed serves what a listed one does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fieldcorr as fc
from fieldcorr.configurations.space import ProductSpace
from fieldcorr.correlation.whole import Whole
from fieldcorr.errors import ConfigurationError, CorrelationError, StoreError
from fieldcorr.store import Store, WorkFolder, check_store, open_store, write_store
from tests.correlation.circuits import circuit
from tests.store.synthetic import make_store, settings, values, whole_values

ROUNDING = 3 * 2.0**-24


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("listed") / "s.h5")) as store:
        yield store


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("whole") / "s.h5"
    with open_store(make_store(path, whole_values())) as store:
        yield store


def test_nothing_of_length_k_is_on_the_disk(whole: Store, listed: Store) -> None:
    assert not whole.members("/configurations")
    assert not whole.members("/correlation")
    assert not whole.members("/neighbourhoods")
    assert len(whole) == len(listed)


def test_rows_names_and_numbers_are_those_of_a_listed_store(whole: Store, listed: Store) -> None:
    rows = np.arange(len(listed))
    np.testing.assert_array_equal(whole.polarity[rows], listed.polarity)
    np.testing.assert_array_equal(whole.ids[:], listed.ids)
    np.testing.assert_array_equal(whole.current[rows], listed.current)
    assert list(whole.texts) == list(listed.texts)
    assert whole.texts[-1] == listed.texts[-1]
    np.testing.assert_array_equal(whole.rows_of_ids(listed.ids), rows)
    assert [whole.index_of(text) for text in listed.texts] == rows.tolist()
    assert whole.rank == listed.rank


def test_r_is_that_of_a_listed_store(whole: Store, listed: Store) -> None:
    r = listed.rows(0, len(listed))
    np.testing.assert_allclose(whole.rows(0, len(whole)), r, rtol=0.0, atol=ROUNDING)
    np.testing.assert_array_equal(whole.row(7), whole.rows(7, 8)[0])
    for ours, theirs in zip(whole.kappa_tau(3, 99), listed.kappa_tau(3, 99), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("store", ["whole", "listed"])
def test_nearest_and_neighbours_are_those_of_the_row(
    store: str, request: pytest.FixtureRequest
) -> None:
    opened: Store = request.getfixturevalue(store)
    r = opened.row(20)
    order = np.argsort(-r, kind="stable")
    order = order[order != 20]
    for configuration in (20, opened.texts[20]):
        rows, found = opened.nearest(configuration, 11)
        np.testing.assert_array_equal(rows, order[:11])
        np.testing.assert_array_equal(found, r[order[:11]])
    rows, found = opened.neighbours(20, top=11)
    np.testing.assert_array_equal(rows, np.sort(order[:11]))
    np.testing.assert_array_equal(found, r[rows])
    rows, found = opened.neighbours(20)
    np.testing.assert_array_equal(rows, np.setdiff1d(np.flatnonzero(r > 0), [20]))
    np.testing.assert_array_equal(found, r[rows])


def test_nearest_takes_a_pattern_that_is_no_row(tmp_path: Path, whole: Store) -> None:
    few = values(count=40)
    with open_store(make_store(tmp_path / "few.h5", few)) as store:
        text = whole.texts[100]
        rows, r = store.nearest(text, 5)
        full = whole.row(100)[:40]
        np.testing.assert_array_equal(rows, np.argsort(-full, kind="stable")[:5])
        np.testing.assert_allclose(r, full[rows], rtol=0.0, atol=ROUNDING)
    limited = whole_values(**{"/space/limits": [1, 1, 1, 1, 0, 5]})
    with open_store(make_store(tmp_path / "bipoles.h5", limited)) as store:
        rows, r = store.nearest(text, 3)
        full = np.array([whole.row(100)[whole.index_of(t)] for t in store.texts])
        np.testing.assert_array_equal(rows, np.argsort(-full, kind="stable")[:3])


def test_fields_are_those_of_a_listed_store(whole: Store, listed: Store) -> None:
    points = listed.array("/leadfield/points")[:4]
    np.testing.assert_array_equal(whole.potential(33, points), listed.potential(33, points))


def test_it_is_sound_and_says_what_it_holds(whole: Store) -> None:
    assert check_store(whole.path) == []
    assert whole.info["configurations"] == len(whole)
    assert whole.info["table_bytes"] > 0


def test_what_defines_r_is_in_the_hash(tmp_path: Path, whole: Store) -> None:
    record = json.dumps(settings(drive={"mode": "current", "fractions": None}))
    content = {**whole_values(), "/provenance/settings": record}
    with WorkFolder(tmp_path / "current.h5") as folder:
        write_store(folder, content, run=lambda: {"created": "now"})
    limits = whole_values(**{"/space/limits": [1, 1, 1, 1, 0, 5]})
    paths = tmp_path / "current.h5", make_store(tmp_path / "few.h5", limits)
    hashes = {whole.hash}
    for path in paths:
        with open_store(path) as store:
            hashes.add(store.hash)
            assert check_store(path) == []
    assert len(hashes) == 3


def test_what_it_cannot_do_is_said(whole: Store) -> None:
    with pytest.raises(StoreError, match="there is no embedding"):
        _ = whole.embedding
    with pytest.raises(StoreError, match="are not made at once"):
        np.asarray(whole.polarity)
    with pytest.raises(StoreError, match="is not in this store"):
        _ = whole.indptr
    with pytest.raises(IndexError, match="outside"):
        _ = whole.texts[len(whole)]
    with pytest.raises(ConfigurationError, match="is not in this store"):
        whole.rows_of_ids([0])
    with pytest.raises(CorrelationError, match="from the rules"):
        fc.CorrDuel(whole, horizon=5, via="embedding")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("/space/allowed", np.zeros((5, 3)), "without a polarity"),
        ("/space/allowed", np.full((5, 3), 7), "without a polarity"),
        ("/space/limits", [0, 5, 1, 5, 0, 5], "not within"),
        ("/space/limits", [1, 5, 1, 2**40, 0, 5], "not within"),
        ("/space/limits", [5, 5, 5, 5, 0, 5], "no space"),
    ],
)
def test_a_space_that_no_batch_writes_is_refused(
    name: str, value: Any, message: str, tmp_path: Path
) -> None:
    path = make_store(tmp_path / "bad.h5", whole_values(**{name: value}))
    assert any(message in str(finding) for finding in check_store(path))
    with open_store(path) as store, pytest.raises(ConfigurationError, match=message):
        len(store)


def test_neither_listed_nor_defined_is_refused(tmp_path: Path) -> None:
    content = {k: v for k, v in whole_values().items() if not k.startswith("/space")}
    with pytest.raises(StoreError, match="needs either"):
        open_store(make_store(tmp_path / "none.h5", content))


def test_tables_beyond_memory_are_refused_before_they_are_built() -> None:
    allowed = np.ones((19, 3), dtype=np.bool_)
    space = ProductSpace(allowed, (1, 19, 1, 19, 0, 19))
    with pytest.raises(CorrelationError, match=r"1,161,212,892 configurations would need tables"):
        Whole(space, circuit(19, 1))
