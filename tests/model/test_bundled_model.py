"""The bundled model and device: what they hold, and what follows from them."""

from pathlib import Path

import numpy as np
import pytest

from fieldcorr.errors import ModelError
from fieldcorr.model import (
    REQUIRED_TISSUES,
    Model,
    bundled_devices,
    bundled_models,
    load_device,
    load_model,
    resolve_mesh,
)


def test_bundled_model_is_found_by_name_and_by_path() -> None:
    path = bundled_models()["lumbosacral-565"]
    assert load_model("lumbosacral-565") == load_model(path) == load_model()
    assert load_model(path).path == path


def test_text_is_the_exact_file(bundled_model: Model) -> None:
    assert bundled_model.text == bundled_model.path.read_text(encoding="utf-8")


def test_outer_boundary_and_window_are_as_the_accuracy_of_r_needs(bundled_model: Model) -> None:
    assert bundled_model.geometry.torso.radius_mm >= 120
    assert bundled_model.geometry.torso.length_mm >= 300
    assert bundled_model.region.window_half_length_mm == 30
    assert bundled_model.region.taper_mm == 10


def test_every_tissue_has_a_source(bundled_model: Model) -> None:
    assert set(bundled_model.tissues) == set(REQUIRED_TISSUES)
    assert all(tissue.source for tissue in bundled_model.tissues.values())
    assert bundled_model.tissues["dura"].nominal
    assert not bundled_model.tissues["csf"].nominal


def test_white_matter_conducts_better_along_the_cord(bundled_model: Model) -> None:
    assert bundled_model.tissues["white"].principal_S_per_m == (0.083, 0.083, 0.6)
    assert bundled_model.tissues["csf"].principal_S_per_m == (1.7, 1.7, 1.7)


def test_paddle_has_columns_of_five_six_and_five() -> None:
    device = load_device("paddle-565")
    assert device.contact_names == tuple(str(i) for i in range(16))
    left, face, rostral = 1e3 * device.positions_m.T
    assert np.all(face == 0)
    np.testing.assert_allclose(left, [2.5] * 5 + [0.0] * 6 + [-2.5] * 5)
    for column in (slice(0, 5), slice(5, 11), slice(11, 16)):
        np.testing.assert_allclose(np.diff(rostral[column]), -8.5)
        assert rostral[column].mean() == pytest.approx(0.0, abs=1e-12)
    assert device.nominal


def test_contact_field_has_the_published_extent() -> None:
    device = load_device("paddle-565")
    extent = 1e3 * np.ptp(device.positions_m, axis=0)
    assert extent[0] + device.contact.width_mm == pytest.approx(6.5)
    assert extent[2] + device.contact.length_mm == pytest.approx(46.5)


def test_untilted_paddle_lies_one_gap_above_the_dura(bundled_model: Model) -> None:
    sac, gap = bundled_model.geometry.sac, bundled_model.array.gap_to_dura_mm
    height = sac.depth_mm / 2 + sac.dura_thickness_mm + gap
    np.testing.assert_allclose(bundled_model.contact_positions_m[:, 1], 1e-3 * height)
    np.testing.assert_allclose(
        bundled_model.contact_positions_m[:, [0, 2]],
        bundled_model.device.positions_m[:, [0, 2]],
        atol=1e-15,
    )


def test_cord_lies_below_the_dorsal_csf(bundled_model: Model) -> None:
    ellipses = bundled_model.geometry.ellipses()
    cord, sac = ellipses["cord"], ellipses["sac"]
    csf = (sac.dorsal + sac.half_depth) - (cord.dorsal + cord.half_depth)
    assert csf == pytest.approx(bundled_model.geometry.cord.dorsal_csf_mm)


def test_case_joins_the_electrodes_only_when_it_is_one(bundled_model: Model) -> None:
    assert "case" not in bundled_model.electrode_names
    with_case = bundled_model.replace({"boundary.outer": "case"})
    assert with_case.electrode_names[-1] == "case"
    assert with_case.electrode_positions_m.shape == (17, 3)
    x, y, _ = with_case.case_position_m
    assert np.hypot(x, y) == pytest.approx(1e-3 * with_case.geometry.torso.radius_mm)
    assert x > 0
    assert y > 0


def test_resolve_mesh_looks_beside_the_model_first(bundled_model: Model, tmp_path: Path) -> None:
    model_path = tmp_path / "own.toml"
    model_path.write_text(bundled_model.text, encoding="utf-8")
    own_mesh = tmp_path / "lumbosacral-565-tiny.fcmesh"
    own_mesh.write_bytes(b"")
    assert resolve_mesh(load_model(model_path), "tiny") == own_mesh


def test_resolve_mesh_takes_a_path_as_it_is(bundled_model: Model) -> None:
    assert resolve_mesh(bundled_model, "some/own.msh") == Path("some/own.msh")


def test_resolve_mesh_names_what_is_missing(bundled_model: Model) -> None:
    absent = bundled_model.replace({"mesh.tiny": "absent.fcmesh"})
    with pytest.raises(ModelError, match=r'mesh\.tiny = "absent\.fcmesh": no such file'):
        resolve_mesh(absent, "tiny")
    unnamed = bundled_model.replace({"mesh.tiny": None})
    with pytest.raises(ModelError, match=r"mesh\.tiny: the model names no such mesh"):
        resolve_mesh(unnamed, "tiny")


def test_bundled_devices_are_listed() -> None:
    assert "paddle-565" in bundled_devices()
