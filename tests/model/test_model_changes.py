"""Round trips: values, TOML text, hashes; and files damaged at random."""

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldcorr.errors import ModelError
from fieldcorr.model import Model, bundled_models, load_model
from fieldcorr.model._toml import dump_toml
from fieldcorr.model.load import model_from_text

TEXT = bundled_models()["lumbosacral-565"].read_text(encoding="utf-8")

finite = st.floats(allow_nan=False, allow_infinity=False)
# TOML text cannot hold lone surrogates, nor can a UTF-8 file.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
scalars = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), finite, texts)
values = st.one_of(scalars, st.lists(scalars, max_size=3))
tables = st.recursive(
    st.dictionaries(texts, values, max_size=4),
    lambda inner: st.dictionaries(texts, st.one_of(values, inner), max_size=4),
    max_leaves=6,
)


@given(tables)
@settings(max_examples=100)
def test_written_toml_reads_back(table: dict[str, Any]) -> None:
    assert tomllib.loads(dump_toml(table)) == table


changes = st.fixed_dictionaries(
    {},
    optional={
        "geometry.cord.width_mm": st.floats(7.0, 10.0),
        "geometry.cord.offset_left_mm": st.floats(-0.5, 0.5),
        "geometry.cord.dorsal_csf_mm": st.floats(2.0, 3.5),
        "geometry.torso.radius_mm": st.floats(60.0, 400.0),
        "array.offset_left_mm": st.floats(-1.0, 1.0),
        "array.yaw_degree": st.floats(-1.0, 1.0),
        "tissues.csf.conductivity_S_per_m": st.floats(0.1, 10.0),
        "drive.mode": st.sampled_from(["voltage", "current"]),
        "boundary.outer": st.sampled_from(["insulated", "grounded", "case"]),
        "configurations.excluded": st.lists(st.sampled_from(["3", "7"]), max_size=2),
        "configurations.on": st.just({"4": "-"}),
        "region.box_mm": st.just([[-1.0, 1.0], [-2.0, 2.0], [-3.0, 3.0]]),
        "description": texts,
    },
)


@pytest.mark.slow
@given(changes)
@settings(max_examples=50)
def test_changed_model_survives_its_own_text(change: dict[str, Any]) -> None:
    model = load_model("lumbosacral-565").replace(change)
    again = model.replace({})
    assert again.content() == model.content()
    assert again.hash == model.hash
    assert again.text == model.text


def test_changed_model_file_is_the_same_model(bundled_model: Model, tmp_path: Path) -> None:
    changed = bundled_model.replace({"geometry.cord.width_mm": 9.0, "solver.order": 1})
    path = tmp_path / "changed.toml"
    path.write_text(changed.text, encoding="utf-8")
    loaded = load_model(path)
    assert loaded.hash == changed.hash != bundled_model.hash
    assert (loaded.geometry.cord.width_mm, loaded.solver.order) == (9.0, 1)


def test_comments_order_and_spelling_of_numbers_do_not_change_the_hash(
    bundled_model: Model, tmp_path: Path
) -> None:
    path = tmp_path / "model.toml"
    text = TEXT.replace("radius_mm = 150.0", "radius_mm = 15e1 # far").replace(
        "= 0.0\n", "= -0.0\n"
    )
    path.write_text(text, encoding="utf-8")
    assert load_model(path).text != bundled_model.text
    assert load_model(path).hash == bundled_model.hash
    assert load_model(path).geometry_hash == bundled_model.geometry_hash


def test_windows_line_ends_are_read(bundled_model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.toml"
    path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    assert load_model(path).hash == bundled_model.hash


# key, value, and whether it changes the model, the mesh to build, and the shapes
HASHED = [
    ("tissues.csf.conductivity_S_per_m", 1.8, (True, False, False)),
    ("configurations.preset", "all", (True, False, False)),
    ("geometry.cord.source", "x", (True, False, False)),
    ("mesh.sizes.rim_mm", 0.1, (True, True, False)),
    ("geometry.cord.width_mm", 9.0, (True, True, True)),
    ("array.yaw_degree", 0.5, (True, True, True)),
    ("boundary.case.angle_degree", 90.0, (True, True, True)),
]


@pytest.mark.parametrize(("key", "value", "expected"), HASHED)
def test_hashes_see_what_they_should(
    bundled_model: Model, key: str, value: Any, expected: tuple[bool, bool, bool]
) -> None:
    changed = bundled_model.replace({key: value})
    found = tuple(
        getattr(changed, name) != getattr(bundled_model, name)
        for name in ("hash", "geometry_hash", "shape_hash")
    )
    assert found == expected


def test_device_file_is_part_of_the_hash(bundled_model: Model, tmp_path: Path) -> None:
    device = (bundled_model.path.parent / "devices" / "paddle-565.toml").read_text(encoding="utf-8")
    model = tmp_path / "model.toml"
    model.write_text(TEXT.replace('"paddle-565"', '"own.toml"'), encoding="utf-8")
    hashes = []
    for thickness in ("2.0", "1.9"):
        own = device.replace("thickness_mm = 2.0", f"thickness_mm = {thickness}")
        (tmp_path / "own.toml").write_text(own, encoding="utf-8")
        loaded = load_model(model)
        hashes.append((loaded.hash, loaded.geometry_hash))
    assert hashes[0][0] != hashes[1][0]
    assert hashes[0][1] == bundled_model.geometry_hash != hashes[1][1]


def test_replace_refuses_unknown_keys_and_values_used_as_tables(bundled_model: Model) -> None:
    with pytest.raises(ModelError, match='did you mean "width_mm"'):
        bundled_model.replace({"geometry.cord.widht_mm": 9.0})
    with pytest.raises(ModelError, match='"name" is not a table'):
        bundled_model.replace({"name.first": "x"})


@pytest.mark.parametrize("nine", [9, np.float64(9.0), np.float32(9.0), np.int64(9), np.array(9.0)])
def test_numbers_of_numpy_are_numbers(nine: Any, bundled_model: Model) -> None:
    changed = bundled_model.replace({"geometry.cord.width_mm": nine})
    assert changed.hash == bundled_model.replace({"geometry.cord.width_mm": 9.0}).hash


def test_arrays_of_numpy_are_lists(bundled_model: Model) -> None:
    box = np.array([[-1.0, 1.0], [-2.0, 2.0], [-3.0, 3.0]])
    changed = bundled_model.replace(
        {"region.box_mm": box, "configurations.excluded": np.array(["3"])}
    )
    assert changed.region.box_mm == ((-1.0, 1.0), (-2.0, 2.0), (-3.0, 3.0))
    assert changed.rules.excluded == ("3",)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "geometry.cord.width_mm: missing"),
        (np.nan, "geometry.cord.width_mm = nan: must be a finite number"),
        (np.array([9.0]), r"geometry.cord.width_mm = \[9.0\]: must be a number"),
        (object(), "geometry.cord.width_mm = <object .*>: must be a number, a text, a list or"),
        ([None], "geometry.cord.width_mm = None: must be a number, a text, a list or"),
    ],
)
def test_what_is_no_number_is_named(value: Any, reason: str, bundled_model: Model) -> None:
    with pytest.raises(ModelError, match=reason):
        bundled_model.replace({"geometry.cord.width_mm": value})


def test_model_is_frozen(bundled_model: Model) -> None:
    with pytest.raises(ValueError, match="frozen"):
        bundled_model.geometry.cord.width_mm = 3.0


@given(st.integers(0, len(TEXT) - 1), st.integers(0, 12), st.text(max_size=4))
@settings(max_examples=150)
def test_damaged_file_loads_or_gives_one_line(start: int, length: int, inserted: str) -> None:
    damaged = TEXT[:start] + inserted + TEXT[start + length :]
    # No file is needed: an example takes a millisecond.
    path = Path("damaged.toml")
    message = "damaged.toml: none"
    try:
        model_from_text(damaged, path)
    except ModelError as error:
        message = str(error)
    assert message.isprintable()
    assert message.startswith(str(path))
