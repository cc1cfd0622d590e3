"""The paddle's resting place against brute force over a dense sampling."""

import re
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial import KDTree

from fieldcorr.errors import MisfitError
from fieldcorr.model import Ellipse, Model, load_model

WIDE = {
    "geometry.canal.width_mm": 200.0,
    "geometry.canal.depth_mm": 200.0,
    "geometry.vertebra.width_mm": 280.0,
    "geometry.vertebra.depth_mm": 280.0,
    "geometry.vertebra.offset_dorsal_mm": 0.0,
}


@cache
def roomy() -> Model:
    """Return a model whose canal has room for any tilt."""
    return load_model("lumbosacral-565").replace(WIDE)


def least_distance(corners: NDArray[np.float64], dura: Ellipse) -> float:
    """Return the distance of all segments between corners from the dura, by sampling (mm)."""
    share = np.linspace(0.0, 1.0, 401)[:, None]
    points = np.concatenate([share * a + (1 - share) * b for a, b in combinations(corners, 2)])
    distance, _ = KDTree(dura.outline(2880)).query(points[:, :2])
    return float(distance.min())


@pytest.mark.slow
@given(
    yaw=st.floats(-45.0, 45.0),
    pitch=st.floats(-25.0, 25.0),
    left=st.floats(-11.0, 11.0),
    gap=st.floats(0.1, 3.0),
)
@settings(max_examples=40)
def test_least_distance_from_the_dura_is_the_gap(
    yaw: float, pitch: float, left: float, gap: float
) -> None:
    model = roomy().replace(
        {
            "array.yaw_degree": yaw,
            "array.pitch_degree": pitch,
            "array.offset_left_mm": left,
            "array.gap_to_dura_mm": gap,
        }
    )
    dura = model.geometry.ellipses()["dura"]
    # Sampling can only miss the nearest points, by less than 0.02 mm.
    found = least_distance(model.placement.corners_mm, dura)
    assert gap - 1e-6 <= found <= gap + 0.02
    assert np.all(dura.level(model.placement.corners_mm[:, :2]) > 1.0)


def test_positive_yaw_moves_the_rostral_end_left() -> None:
    turned = roomy().replace({"array.yaw_degree": 10.0}).contact_positions_m
    assert turned[5, 0] > 0 > turned[10, 0]
    assert turned[5, 2] > turned[10, 2]
    assert np.ptp(turned[:, 1]) == pytest.approx(0.0, abs=1e-15)


def test_positive_pitch_moves_the_rostral_end_towards_the_cord() -> None:
    tilted = roomy().replace({"array.pitch_degree": 10.0}).contact_positions_m
    assert tilted[5, 1] < tilted[10, 1]
    np.testing.assert_allclose(tilted[5:11, 0], 0.0, atol=1e-15)


def test_turning_keeps_distances_between_contacts() -> None:
    model = roomy().replace({"array.yaw_degree": 20.0, "array.pitch_degree": 10.0})
    here, there = model.contact_positions_m, model.device.positions_m
    np.testing.assert_allclose(
        np.linalg.norm(here[:, None] - here, axis=-1),
        np.linalg.norm(there[:, None] - there, axis=-1),
        atol=1e-15,
    )


def test_tilt_and_turn_mirror_at_the_midline() -> None:
    angles = {"array.yaw_degree": 8.0, "array.pitch_degree": 5.0, "array.offset_left_mm": 2.0}
    mirrored = {**angles, "array.yaw_degree": -8.0, "array.offset_left_mm": -2.0}
    one = roomy().replace(angles).placement.centre_mm
    other = roomy().replace(mirrored).placement.centre_mm
    np.testing.assert_allclose(one * [-1, 1, 1], other, atol=1e-9)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("array.gap_to_dura_mm", 1.5),
        ("array.yaw_degree", 6.0),
        ("array.pitch_degree", -3.0),
        ("array.offset_left_mm", 4.5),
        ("geometry.cord.width_mm", 17.0),
        ("geometry.cord.dorsal_csf_mm", 6.0),
        ("geometry.sac.width_mm", 23.0),
        ("geometry.torso.radius_mm", 30.0),
    ],
)
def test_what_a_misfit_proposes_fits(key: str, value: float) -> None:
    bundled = load_model("lumbosacral-565")
    with pytest.raises(MisfitError) as caught:
        bundled.replace({key: value})
    proposals = re.findall(
        r"((?:array|geometry)\.[\w.]+) = (-?[\d.]+)(?= or | would)", str(caught.value)
    )
    assert proposals
    for name, number in proposals:
        bundled.replace({key: value, name: float(number)})
