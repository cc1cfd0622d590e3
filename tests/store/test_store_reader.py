"""What consumers get from a store."""

import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.correlation.rule import kappa_tau_reference
from fieldcorr.correlation.tiles import correlation_rows
from fieldcorr.errors import ConfigurationError, StoreError
from fieldcorr.store import Options, Store, check_store, open_store
from tests.store.synthetic import make_store, values


@pytest.fixture(scope="module")
def store(small_store: Path) -> Store:
    return open_store(small_store)


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Return a slim store without matrix."""
    path = tmp_path_factory.mktemp("lean") / "lean.h5"
    return open_store(make_store(path, values(slim=True), options=Options(matrix=False)))


def test_arrays_are_what_was_written(store: Store) -> None:
    wanted = values()
    assert len(store) == 180
    np.testing.assert_array_equal(store.polarity, wanted["/configurations/polarity"])
    np.testing.assert_array_equal(store.ids, wanted["/configurations/id"])
    np.testing.assert_array_equal(store.current, wanted["/configurations/current"])
    np.testing.assert_array_equal(store.embedding, wanted["/correlation/embedding"])
    np.testing.assert_array_equal(store.contact_positions, wanted["/contacts/position"])
    assert store.contact_names == wanted["/contacts/name"]
    assert store.polarity.dtype == np.int8
    assert not store.embedding.flags.writeable


def test_rows_are_the_same_with_and_without_matrix(store: Store, lean: Store) -> None:
    want = correlation_rows(store.embedding, 0, len(store))
    for i in (0, 7, 179):
        np.testing.assert_array_equal(store.row(i), want[i])
        np.testing.assert_array_equal(lean.row(i), want[i])
        assert store.row(i).dtype == np.float32


def test_neighbours_are_the_positive_part_of_the_row(store: Store) -> None:
    for i in (0, 91, 179):
        indices, r = store.neighbours(i)
        row = store.row(i)
        row[i] = -1.0
        np.testing.assert_array_equal(indices, np.flatnonzero(row > 0))
        np.testing.assert_array_equal(r, row[indices])


def test_kappa_tau_follows_the_definition(store: Store) -> None:
    r = np.stack([store.row(i) for i in range(len(store))])
    kappa, tau = store.kappa_tau(3, 77)
    want_kappa, want_tau = kappa_tau_reference(r, 3, 77)
    np.testing.assert_allclose(kappa, want_kappa, atol=1e-12)
    np.testing.assert_allclose(tau, want_tau, atol=1e-12)


def test_configurations_are_found_by_text_and_id(store: Store) -> None:
    for i in (0, 42, 179):
        assert store.index_of(store.texts[i]) == i
        assert store.rows_of_ids(store.ids[i]).tolist() == [i]
    assert store.rows_of_ids(store.ids[[5, 3]]).tolist() == [5, 3]
    for absent in (-1, 0, 10**9):
        with pytest.raises(ConfigurationError, match=f"id {absent} is not in this store"):
            store.rows_of_ids([store.ids[3], absent])
    with pytest.raises(ConfigurationError, match="not in this store"):
        store.index_of("0+")
    with pytest.raises(ConfigurationError, match="unknown contact"):
        store.index_of("9- 0+")


@pytest.mark.parametrize("row", [-1, 180, 10**12])
def test_rows_that_do_not_exist_are_refused(store: Store, row: int) -> None:
    for read in (store.row, store.neighbours, lambda i: store.kappa_tau(i, 0)):
        with pytest.raises(ConfigurationError, match=f"no configuration {row}"):
            read(row)


def test_a_number_is_a_row_everywhere(store: Store) -> None:
    assert store.index_of(5) == 5
    assert store.index_of(np.array(5)) == 5  # type: ignore[arg-type]
    np.testing.assert_array_equal(store.row(np.int8(5)), store.row(5))  # type: ignore[arg-type]
    for wrong in (180, -1, 5.5, np.nan, None):
        with pytest.raises(ConfigurationError, match=f"no configuration {wrong}"):
            store.index_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(("start", "stop"), [(-3, 2), (2, 1), (0, 181), (None, 3), (0.5, 3)])
def test_ranges_that_do_not_exist_are_refused(
    store: Store, lean: Store, start: int, stop: int
) -> None:
    for read in (store.rows, store.neighbour_rows, lean.rows):
        with pytest.raises(ConfigurationError, match=r"no rows? "):
            read(start, stop)
    assert store.rows(7, 7).shape == (0, 180)


def test_the_nearest_come_best_first(store: Store, lean: Store) -> None:
    indices, r = store.nearest(17, 12)
    row = store.row(17)
    others = [j for j in range(180) if j != 17]
    want = sorted(others, key=lambda j: (-row[j], j))[:12]
    assert indices.tolist() == want
    np.testing.assert_array_equal(r, row[want])
    np.testing.assert_array_equal(lean.nearest(17, 12)[0], indices)
    assert store.nearest(17, 1000)[0].size == 179
    assert store.nearest(17, 0)[0].size == 0
    with pytest.raises(ConfigurationError, match="nearest: -1"):
        store.nearest(17, -1)


def test_the_hash_names_configurations_and_correlations(store: Store, lean: Store) -> None:
    assert store.hash == lean.hash
    assert len(store.hash) == 64


def test_the_hash_changes_with_the_correlations(store: Store, tmp_path: Path) -> None:
    other = values()
    other["/correlation/embedding"] = np.roll(other["/correlation/embedding"], 1, axis=1)
    with open_store(make_store(tmp_path / "other.h5", other)) as changed:
        assert changed.hash != store.hash


def test_potential_interpolates_with_the_basis_of_the_elements(store: Store) -> None:
    fields = store.fields
    i = store.index_of("0- 3+")
    samples, weight = store.array("/leadfield/potential"), store.array("/leadfield/weight")
    zero = store.current[i] @ samples @ weight / weight.sum()
    nodal = store.current[i] @ store.array("/leadfield/nodal").astype(np.float64) - zero
    nodes = fields.volume.space.points
    np.testing.assert_allclose(store.potential(i, nodes), nodal, rtol=1e-9, atol=1e-9)
    found = store.potential(i, store.array("/leadfield/points"))
    np.testing.assert_allclose(found, store.current[i] @ samples - zero, atol=1e-6)
    assert abs(found @ weight) < 1e-6 * np.abs(found).max() * weight.sum()
    assert np.isnan(store.potential(i, [[2.0, 0.5, 0.5], [np.nan, 0, 0]])).all()


def test_potential_of_a_configuration_that_is_no_row(tmp_path: Path, store: Store) -> None:
    with open_store(make_store(tmp_path / "few.h5", values(count=20))) as few:
        text = store.texts[150]
        with pytest.raises(ConfigurationError, match="not in this store"):
            few.index_of(text)
        point = [[0.3, 0.4, 0.5]]
        want = store.potential(150, point)
        np.testing.assert_allclose(few.potential(text, point), want, rtol=1e-9)
        np.testing.assert_allclose(few.potential(store.polarity[150], point), want, rtol=1e-9)


def test_a_polarity_of_the_wrong_kind_is_refused(store: Store) -> None:
    for wrong in ([1, -1], [2, -1, 0, 0, 0]):
        with pytest.raises(ConfigurationError, match="polarity"):
            store.currents_of(wrong)


def test_a_slim_store_says_that_it_has_no_fields(lean: Store) -> None:
    with pytest.raises(StoreError, match="slim"):
        lean.potential(0, [[0.5, 0.5, 0.5]])


def test_order_one_fields(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "one.h5", values(order=1))) as store:
        space = store.fields.volume.space
        assert space.order == 1
        nodal = store.fields.field_of(5).values
        np.testing.assert_allclose(store.potential(5, space.vertices), nodal, atol=1e-9)


def test_opening_and_reading_load_no_numba(small_store: Path) -> None:
    program = (
        "import sys; from fieldcorr.store import open_store\n"
        f"with open_store({str(small_store)!r}) as s:\n"
        "    s.polarity, s.row(3), s.neighbours(3), s.hash\n"
        "assert 'numba' not in sys.modules and 'scipy' not in sys.modules, 'heavy import'\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_many_readers_at_once(small_store: Path, store: Store) -> None:
    def read(i: int) -> bool:
        with open_store(small_store) as mine:
            return bool((mine.row(i) == store.row(i)).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(64)))


def test_threads_may_share_a_store_without_matrix(lean: Store) -> None:
    """Rows are computed then, and numba ends the process if two threads do so at once."""
    want = [lean.row(i) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(3):
            found = list(pool.map(lean.row, range(40)))
            assert all((a == b).all() for a, b in zip(found, want, strict=True))


def test_other_processes_may_read_at_the_same_time(small_store: Path, store: Store) -> None:
    program = (
        "import sys, h5py; from fieldcorr.store import open_store\n"
        "s = open_store(sys.argv[1]); f = h5py.File(sys.argv[1]); print(s.row(3)[4])"
    )
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(small_store)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for process in running:
        assert float(process.communicate(timeout=60)[0]) == pytest.approx(store.row(3)[4])


def test_a_store_can_be_sent_to_another_process(store: Store) -> None:
    again = pickle.loads(pickle.dumps(store))
    np.testing.assert_array_equal(again.row(5), store.row(5))


def test_closing_ends_reading_but_not_what_was_read(small_store: Path) -> None:
    with open_store(small_store) as closed:
        polarity = closed.polarity
    assert polarity.shape == (180, 5)
    for read in (closed.row, closed.neighbours, closed.lead_field):
        with pytest.raises(StoreError, match="the store is closed"):
            read(0)


def test_a_mistake_of_ours_is_not_called_damage(
    small_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fieldcorr.store import layout

    def mistake(*_: object) -> str:
        raise TypeError("a mistake")

    monkeypatch.setattr(layout, "digest_array", mistake)
    with pytest.raises(TypeError, match="a mistake"):
        open_store(small_store)


def test_info_says_what_a_person_wants_to_know(store: Store) -> None:
    facts = store.info
    assert facts["configurations"] == 180
    assert facts["size_bytes"] == os.path.getsize(store.path)
    # Every configuration has its mirror with the opposite sign: half of the others are positive.
    assert facts["neighbours_per_row"]["0"] == pytest.approx(89, abs=1)
    assert list(facts["neighbours_per_row"]) == ["0", "0.3", "0.5", "0.9"]


@pytest.mark.parametrize("content", [b"", b"not a store at all", b"\x89HDF\r\n\x1a\n" + bytes(99)])
def test_what_is_no_store_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.h5"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"no\.h5: damaged or not a store") as caught:
        open_store(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("contact", [-1, 5, None])
def test_a_contact_that_does_not_exist(store: Store, contact: int) -> None:
    with pytest.raises(ConfigurationError, match=f"no contact {contact}"):
        store.lead_field(contact)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        open_store(tmp_path / "absent.h5")


def test_error_bars_of_pairs_follow_from_the_companion(tmp_path: Path) -> None:
    content = values()
    gram, admittance = (content[f"/leadfield/{name}"] for name in ("gram", "admittance"))
    content["/leadfield/companion_gram"] = gram + 0.01 * np.diag(np.arange(1.0, 6.0))
    content["/leadfield/companion_admittance"] = 1.02 * admittance
    with open_store(make_store(tmp_path / "bars.h5", content)) as store:
        bars = np.array([store.r_error(i) for i in range(len(store))])
        np.testing.assert_allclose(bars, bars.T, atol=1e-7)
        assert (np.diag(bars) == 0.0).all()
        assert 1e-4 < np.median(bars) < 0.1
        # 2 Y - 1.02 Y: what the rims add halves with their size.
        inverse = np.linalg.pinv(0.98 * admittance)
        want = inverse[0, 0] + inverse[1, 1] - 2.0 * inverse[0, 1]
        assert store.impedances[0, 1] == pytest.approx(want)
    assert check_store(tmp_path / "bars.h5") == []
    with open_store(make_store(tmp_path / "none.h5")) as store:
        assert store.info["bipole_ohm"][0] > 0.0
        with pytest.raises(StoreError, match="has no error bars of r"):
            store.r_error(0)
