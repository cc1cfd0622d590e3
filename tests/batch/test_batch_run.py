"""From a model to a store: what is in it, and what is done only once."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fieldcorr
from fieldcorr.batch import fields, plan, plan_batch, precompute
from fieldcorr.batch.embed import drive_currents, embed
from fieldcorr.configurations.space import ProductSpace
from fieldcorr.correlation.whole import table_bytes
from fieldcorr.errors import ConfigurationError, CorrelationError, MeshError, StoreError
from fieldcorr.leadfield import LeadField
from fieldcorr.model import Model
from fieldcorr.store import Store, check_store, open_store
from tests.store.synthetic import content_hash


def test_the_store_is_sound(store: Store) -> None:
    assert check_store(store.path) == []
    assert len(store) == 240
    assert store.contact_names == tuple(str(k) for k in range(16))
    assert store.has_matrix
    assert store.has_fields


def test_provenance_says_where_it_came_from(store: Store, small_model: Model) -> None:
    assert store.text("model") == small_model.text
    origin = store.record("origin")
    hashes = origin["hashes"]
    assert hashes["model"] == small_model.hash
    assert len(hashes["mesh main"]) == 64
    assert origin["versions"]["fieldcorr"] == fieldcorr.__version__
    assert max(store.record("solver")["residuals"]) <= 1e-8
    identities = store.record("solver")["identities"]
    assert max(identities.values()) < 1e-5
    assert identities["direct solve"] < 1e-6
    run = store.record("run")
    assert {"created", "threads", "memory_bytes", "seconds"} <= set(run)
    assert {"lead fields", "embedding", "correlation"} <= set(run["seconds"])


@pytest.mark.slow
def test_fields_are_not_solved_again_when_the_rules_change(
    store: Store,
    bundled_model: Model,
    cache: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("solved again")

    monkeypatch.setattr(fields, "compute_lead_field", refuse)
    with precompute(bundled_model, tmp_path / "more.h5", mesh="tiny", cache=cache) as more:
        assert len(more) == 3600
        i, j = more.index_of("0- 1+"), more.index_of("3+ 9-")
        old = store.row(store.index_of("0- 1+"))[store.index_of("3+ 9-")]
        assert more.row(i)[j] == old
    changed = bundled_model.replace({"solver.tolerance": 1e-7})
    with pytest.raises(AssertionError, match="solved again"):
        precompute(changed, tmp_path / "x.h5", mesh="tiny", cache=cache, estimate=False)


@pytest.mark.slow
def test_a_damaged_cache_is_solved_again(
    store: Store, small_model: Model, cache: Path, tmp_path: Path
) -> None:
    own = tmp_path / "cache"
    own.mkdir()
    for file in cache.glob("*.npz"):
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 255
        (own / file.name).write_bytes(content)
    precompute(small_model, tmp_path / "again.h5", mesh="tiny", cache=own).close()
    assert content_hash(tmp_path / "again.h5") == content_hash(store.path)


def test_threads_and_memory_change_no_byte(
    store: Store, small_model: Model, tmp_path: Path
) -> None:
    """Solved from scratch on one thread, with the least memory."""
    options: dict[str, Any] = {"mesh": "tiny", "cache": tmp_path, "threads": 1, "memory": 1 << 24}
    precompute(small_model, tmp_path / "one.h5", **options).close()
    assert content_hash(tmp_path / "one.h5") == content_hash(store.path)


def test_a_cache_that_cannot_be_written_does_not_matter(small_model: Model, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cache = tmp_path / "file" / "cache"
    path = tmp_path / "a.h5"
    precompute(small_model, path, mesh="tiny", cache=cache, estimate=False, slim=True).close()
    assert check_store(path) == []


MODELS: dict[str, dict[str, Any]] = {
    "field": {"measure.kind": "field"},
    "activating function": {"measure.kind": "activating"},
    "magnitude": {"measure.kind": "magnitude", "measure.samples": 64},
    "current drive": {"drive.mode": "current"},
    "given fractions": {"drive.mode": "current", "drive.fractions": {"0": 2.0, "5": 0.5}},
    "dorsal half": {"region.half": "dorsal"},
    "white matter only": {"region.tissues": ["white"]},
}


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_gives_a_sound_store(
    name: str, store: Store, small_model: Model, cache: Path, tmp_path: Path
) -> None:
    model = small_model.replace(MODELS[name])
    path = tmp_path / "kind.h5"
    options: dict[str, Any] = {"mesh": "tiny", "cache": cache, "estimate": False, "slim": True}
    with precompute(model, path, **options) as made:
        assert check_store(path) == []
        assert made.hash != store.hash
        assert made.record("error_estimate") is None
        text = "0+ 5-"
        if name == "magnitude":
            assert made.row(made.index_of(text))[made.index_of("0- 5+")] == 1.0
        else:
            assert made.row(made.index_of(text))[made.index_of("0- 5+")] == -1.0
        np.testing.assert_array_equal(made.currents_of(text), -made.currents_of("0- 5+"))


@pytest.mark.slow
def test_the_case_is_one_more_contact(small_model: Model, tmp_path: Path) -> None:
    model = small_model.replace({"boundary.outer": "case", "configurations.case": "anode"})
    path = tmp_path / "case.h5"
    precompute(model, path, mesh="tiny", cache=tmp_path, estimate=False, slim=True).close()
    assert check_store(path) == []
    with open_store(path) as store:
        assert store.contact_names[-1] == "case"
        assert "0- case+" in store.texts


def test_thresholds_top_k_and_slim(
    small_model: Model, cache: Path, store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "lean.h5"
    options: dict[str, Any] = {"threshold": 0.5, "top_k": 10, "slim": True, "estimate": False}
    with precompute(small_model, path, mesh="tiny", cache=cache, **options) as made:
        assert not made.has_fields
        assert (made.threshold, made.top_k) == (0.5, 10)
        assert np.diff(made.indptr).max() <= 10
        assert made.hash == store.hash
    assert check_store(path) == []


def test_a_large_matrix_is_left_out(
    small_model: Model, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "MATRIX_BYTES", 1000)
    path = tmp_path / "a.h5"
    options: dict[str, Any] = {"estimate": False, "slim": True}
    with precompute(small_model, path, mesh="tiny", cache=cache, **options) as made:
        assert not made.has_matrix
        assert made.row(3)[3] == 1.0
    assert check_store(path) == []


def test_an_existing_store_is_kept(
    store: Store, small_model: Model, cache: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.h5"
    path.write_bytes(b"mine")
    with pytest.raises(StoreError, match="exists already; use --force"):
        precompute(small_model, path, mesh="tiny", cache=cache)
    assert path.read_bytes() == b"mine"
    precompute(small_model, path, mesh="tiny", cache=cache, force=True).close()
    assert content_hash(path) == content_hash(store.path)


def test_a_mesh_of_another_geometry_is_refused(
    small_model: Model, cache: Path, tmp_path: Path
) -> None:
    model = small_model.replace({"geometry.cord.width_mm": 9.0})
    with pytest.raises(MeshError, match="made for another geometry"):
        precompute(model, tmp_path / "a.h5", mesh="tiny", cache=cache)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.0}, "threshold = 1.0: must be"),
        ({"threshold": float("nan")}, "threshold = nan"),
        ({"top_k": -1}, "top-k = -1"),
        ({"memory": 1}, "at least 16 MiB"),
        ({"threads": 0}, "threads = 0"),
    ],
)
def test_numbers_that_make_no_sense(
    options: dict[str, Any], message: str, small_model: Model, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match=message):
        precompute(small_model, tmp_path / "a.h5", mesh="tiny", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_without_variance_is_named(small_model: Model, solved: LeadField) -> None:
    flat = replace(solved, nodal=np.ones_like(solved.nodal))
    polarity = np.zeros((1, 16), dtype=np.int8)
    polarity[0, [2, 7]] = 1, -1
    current = drive_currents(small_model, polarity, solved)
    model = small_model.replace({"measure.kind": "magnitude"})
    with pytest.raises(CorrelationError, match=r"'2\+ 7-' makes a field without variance"):
        embed(model, polarity, current, flat)


def test_counts_are_known_before_anything_is_computed(bundled_model: Model) -> None:
    found = plan_batch(bundled_model)
    assert (found.contacts, found.space, found.configurations) == (16, 3**16, 3600)
    assert found.matrix_bytes == 4 * 3600**2
    assert found.matrix
    everything = plan_batch(bundled_model.replace({"configurations.preset": "all"}))
    assert everything.configurations == 3**16 - 2 * 2**16 + 1
    assert not everything.matrix
    assert found.table_bytes == 0
    assert 3.4e8 < everything.table_bytes < 3.6e8


@pytest.mark.parametrize("mode", ["voltage", "current"])
def test_all_configurations_are_defined_and_not_listed(
    bundled_model: Model, store: Store, cache: Path, tmp_path: Path, mode: str
) -> None:
    everything = bundled_model.replace({"configurations.preset": "all", "drive.mode": mode})
    with precompute(everything, tmp_path / "a.h5", mesh="tiny", cache=cache) as whole:
        assert len(whole) == 42_915_650
        assert whole.path.stat().st_size < store.path.stat().st_size
        rows = whole.rows_of_ids(store.ids)
        np.testing.assert_array_equal(whole.polarity[rows], store.polarity)
        assert whole.index_of(store.texts[77]) == rows[77]
        assert whole.texts[rows[77]] == store.texts[77]
        if mode == "voltage":
            np.testing.assert_array_equal(whole.current[rows], store.current)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"measure.kind": "magnitude"}, r"42,915,650 configurations, but \|E\| is not linear"),
        ({"configurations.connected": ["cathodes"]}, "left only by rules about single contacts"),
        ({"configurations.exclude": ["0- 5+"]}, "not by .*include or exclude"),
    ],
)
def test_what_is_too_many_to_list_and_cannot_be_defined_is_refused(
    bundled_model: Model, changes: dict[str, Any], message: str, cache: Path, tmp_path: Path
) -> None:
    everything = bundled_model.replace({"configurations.preset": "all", **changes})
    with pytest.raises(ConfigurationError, match=message):
        precompute(everything, tmp_path / "a.h5", mesh="tiny", cache=cache)
    assert list(tmp_path.iterdir()) == []


def test_spaces_beyond_memory_are_refused_with_count_and_bytes(
    bundled_model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    contacts = np.ones((32, 3), dtype=np.bool_)
    assert table_bytes(ProductSpace(contacts, (1, 32, 1, 32, 0, 32)), "voltage") > 1e16
    assert 1e11 < table_bytes(ProductSpace(contacts, (1, 6, 1, 6, 0, 6)), "voltage") < 1e12
    monkeypatch.setattr(plan, "MOST_TABLE_BYTES", 10**8)
    everything = bundled_model.replace({"configurations.preset": "all"})
    with pytest.raises(
        ConfigurationError, match=r"42,915,650 .* 3\d\d,\d+,\d+ bytes .* active_max"
    ):
        plan_batch(everything)


def test_the_progress_runs_through_the_stages(
    small_model: Model, cache: Path, tmp_path: Path
) -> None:
    seen: dict[str, float] = {}

    def follow(stage: str, done: float) -> None:
        assert 0.0 <= done <= 1.0
        seen[stage] = done

    options: dict[str, Any] = {"cache": cache, "progress": follow, "estimate": False}
    precompute(small_model, tmp_path / "a.h5", mesh="tiny", **options).close()
    stages = ["mesh", "configurations", "lead fields", "embedding", "correlation", "to disk"]
    assert list(seen) == stages
    assert set(seen.values()) == {1.0}


def test_the_cache_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fieldcorr.batch import cache as module

    monkeypatch.setattr(module, "LIMIT_BYTES", 3000)
    kept = module.Cache(tmp_path, fallback=tmp_path)
    for number in range(4):
        kept.save(f"key{number}", {"x": np.zeros(128)})
        os.utime(tmp_path / f"key{number}.npz", (number, number))
    kept.save("last", {"x": np.zeros(128)})
    assert {p.stem for p in tmp_path.iterdir()} == {"key3", "last"}
    assert kept.load("key0") is None
    loaded = kept.load("last")
    assert loaded is not None
    assert loaded["x"].size == 128


def test_the_cache_executes_nothing(tmp_path: Path) -> None:
    from fieldcorr.batch.cache import Cache

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "trapped",))

    np.savez(tmp_path / "key.npz", x=np.array([Trap()], dtype=object))
    assert Cache(tmp_path, fallback=tmp_path).load("key") is None
    assert not (tmp_path / "trapped").exists()


def test_the_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fieldcorr.batch.cache import default_folder

    monkeypatch.setenv("FIELDCORR_CACHE", str(tmp_path))
    assert default_folder() == tmp_path
    monkeypatch.delenv("FIELDCORR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    assert default_folder() == tmp_path / "fieldcorr"
