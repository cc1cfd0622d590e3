"""Layout of the array, wherever it is read from, and its drawing as SVG."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.leadfield import LeadField
from fieldcorr.mesh import Mesh
from fieldcorr.model import Model
from fieldcorr.notebook.svg import array_svg
from fieldcorr.notebook.units import prefix, quantity
from fieldcorr.store import Store

SVG = "{http://www.w3.org/2000/svg}"


def test_every_source_gives_the_same_layout(
    bundled_model: Model, tiny_mesh: Mesh, lead_field: LeadField, store: Store
) -> None:
    wanted = layout_of(bundled_model)
    for source in (tiny_mesh, lead_field, store):
        found = layout_of(source)
        assert found.names == wanted.names
        np.testing.assert_allclose(found.corners, wanted.corners, atol=1e-9)
    found_paddle, wanted_paddle = layout_of(store).paddle, wanted.paddle
    assert found_paddle is not None
    assert wanted_paddle is not None
    np.testing.assert_allclose(found_paddle, wanted_paddle, atol=1e-9)


def test_contacts_have_the_device_sizes(bundled_model: Model) -> None:
    corners = layout_of(bundled_model).corners
    np.testing.assert_allclose(np.ptp(corners[:, :, 0], axis=1), 1.5e-3)
    np.testing.assert_allclose(np.ptp(corners[:, :, 2], axis=1), 4e-3)
    np.testing.assert_allclose(corners.mean(axis=1), bundled_model.contact_positions_m, atol=1e-12)


class TurnedStore:
    """What the layout asks of a store, for a paddle that was turned and tilted."""

    def __init__(self, model: Model, device: str) -> None:
        self.contact_names = model.electrode_names
        self.contact_positions = model.electrode_positions_m
        self._device = device

    def text(self, name: str) -> str:
        assert name == "device"
        return self._device


@pytest.fixture
def turned(bundled_model: Model) -> Model:
    return bundled_model.replace(
        {
            "array.yaw_degree": 4.0,
            "array.pitch_degree": -1.5,
            "geometry.canal.width_mm": 30.0,
            "geometry.canal.depth_mm": 26.0,
            "boundary.outer": "case",
        }
    )


def test_a_turned_paddle_is_found_from_positions_alone(turned: Model) -> None:
    device = turned.device.model_dump_json()
    found, wanted = layout_of(TurnedStore(turned, device)), layout_of(turned)
    np.testing.assert_allclose(found.corners, wanted.corners, atol=1e-9)
    assert found.has_case
    assert np.isnan(found.corners[-1]).all()


def test_a_store_without_device_gets_squares(turned: Model) -> None:
    found = layout_of(TurnedStore(turned, "no device = here ["))
    assert found.paddle is None
    np.testing.assert_allclose(found.centres[:-1], turned.contact_positions_m, atol=1e-12)
    sides = np.ptp(found.corners[:-1], axis=1)
    np.testing.assert_allclose(sides[:, 0], sides[:, 2])


def test_something_else_has_no_array() -> None:
    with pytest.raises(ConfigurationError, match="a list has no array"):
        layout_of([1, 2])


def texts_with_places(svg: str) -> dict[str, tuple[float, float]]:
    root = ElementTree.fromstring(svg)
    return {
        str(text.text): (float(text.attrib["x"]), float(text.attrib["y"]))
        for text in root.iter(f"{SVG}text")
    }


def test_svg_shows_left_on_the_left_and_rostral_up(bundled_model: Model) -> None:
    svg = array_svg(layout_of(bundled_model), _polarity("0- 5+ 11+"))
    places = texts_with_places(svg)
    assert places["L"][0] < places["0\u2212"][0] < places["5+"][0] < places["11+"][0]
    assert places["11+"][0] < places["R"][0]
    assert places["5+"][1] < places["0\u2212"][1] < places["1"][1] < places["10"][1]


def test_svg_tells_signs_without_colour(bundled_model: Model) -> None:
    root = ElementTree.fromstring(array_svg(layout_of(bundled_model), _polarity("0- 5+")))
    fills = [p.attrib["fill"] for p in root.iter(f"{SVG}polygon")][1:]
    assert fills[5] == "#ffffff"  # anode: open
    assert fills[0] not in ("#ffffff", fills[5])  # cathode: filled
    assert len(fills) == 16


def test_svg_shows_the_case_below(turned: Model) -> None:
    polarity = np.zeros(17, dtype=np.int8)
    polarity[[3, 16]] = -1, 1
    places = texts_with_places(array_svg(layout_of(turned), polarity))
    assert places["case+"][1] > places["10"][1]


def test_svg_stays_inside_its_box(turned: Model) -> None:
    for height in (100, 240):
        root = ElementTree.fromstring(array_svg(layout_of(turned), height=height))
        width = float(root.attrib["width"])
        for shape in root.iter(f"{SVG}polygon"):
            x, y = np.array([p.split(",") for p in shape.attrib["points"].split()], float).T
            assert x.min() >= 0
            assert x.max() <= width
            assert y.min() >= 0
            assert y.max() <= height


def test_names_are_escaped() -> None:
    corners = np.array([[[1.0, 0.0, 1.0], [-1, 0, 1], [-1, 0, -1], [1, 0, -1]]]) * 1e-3
    svg = array_svg(ArrayLayout(("<b>",), corners))
    assert "<b>" not in svg
    assert "&lt;b&gt;" in svg


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e-3, "1 mV"), (0.0123, "12.3 mV"), (1.0, "1 V"), (2.5e-7, "250 nV"), (0.0, "0 V"),
     (-4.2e3, "-4.2 kV")],
)  # fmt: skip
def test_quantities_have_prefixes(value: float, text: str) -> None:
    assert quantity(value, "V") == text


@pytest.mark.parametrize("value", [1e-12, 3.3e-5, 0.999, 1.0, 999.0, 5e8])
def test_prefixes_bring_values_between_1_and_1000(value: float) -> None:
    _, factor = prefix(value)
    assert 1.0 <= value / factor * (1 + 1e-9) < 1000.0 * (1 + 1e-9)


def _polarity(text: str) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    polarity = np.zeros(16, dtype=np.int8)
    for name, sign in re.findall(r"(\d+)([+-])", text):
        polarity[int(name)] = 1 if sign == "+" else -1
    return polarity


def test_a_turned_array_keeps_its_shape(turned: Model) -> None:
    """Stretched contacts and paddle stay rectangles, wider by the factor and no longer."""
    outlines, body = layout_of(turned).stretched(3.0)
    assert body is not None
    for outline in (*outlines[:-1], body):
        sides = np.diff(np.concatenate([outline, outline[:1]]), axis=0)
        assert abs(sides[0] @ sides[1]) < 1e-3 * np.linalg.norm(sides[0]) * np.linalg.norm(sides[1])
    contact = outlines[0]
    # Tilted by 1.5 degrees, a contact looks shorter by 0.03 %.
    np.testing.assert_allclose(np.linalg.norm(contact[0] - contact[1]), 3 * 1.5e-3, rtol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(contact[1] - contact[2]), 4e-3, rtol=2e-3)
