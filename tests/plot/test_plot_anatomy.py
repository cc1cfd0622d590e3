"""The anatomy is drawn as the model has it, and so is what does not fit."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from fieldcorr import plot
from fieldcorr.errors import MisfitError
from fieldcorr.model import Model
from fieldcorr.plot.anatomy_view import BAD
from fieldcorr.plot.style import TISSUES


def filled(ax: Any, colour: str) -> list[Any]:
    patches = [p for p in ax.patches if isinstance(p, Polygon)]
    return [p.get_xy() for p in patches if to_hex(p.get_facecolor()) == to_hex(colour)]


def texts(figure: Figure) -> str:
    return " ".join(text.get_text() for ax in figure.axes for text in ax.texts)


def test_compartments_have_their_sizes(bundled_model: Model) -> None:
    axial = plot.anatomy(bundled_model).axes[0]
    (sac,) = filled(axial, TISSUES["csf"])
    np.testing.assert_allclose(np.ptp(sac, axis=0), [16.0, 12.5], rtol=1e-3)
    (cord,) = filled(axial, TISSUES["white"])
    assert sac[:, 1].max() - cord[:, 1].max() == pytest.approx(3.0, abs=1e-3)


def test_left_is_left_in_cross_section_and_array(bundled_model: Model) -> None:
    axial, _, array = plot.anatomy(bundled_model).axes
    for ax in (axial, array):
        left, right = ax.get_xlim()
        assert left > right


def test_distances_are_said(bundled_model: Model) -> None:
    figure = plot.anatomy(bundled_model)
    assert "0.3 mm to dura" in texts(figure)
    corners, canal = bundled_model.placement.corners_mm, bundled_model.geometry.canal.ellipse()
    apart = np.linalg.norm(corners[:, None, :2] - canal.outline(20_000), axis=2).min()
    assert f"{apart:.2g} mm from bone" in texts(figure)


def test_keys_are_written(bundled_model: Model) -> None:
    shown = texts(plot.anatomy(bundled_model, keys=True))
    for key in ("cord.dorsal_csf_mm 3", "sac.width_mm 16", "array.gap_to_dura_mm 0.3"):
        assert key in shown


def test_a_paddle_that_does_not_fit_is_drawn(bundled_model: Model) -> None:
    with pytest.raises(MisfitError, match=r"0\.84 mm outside") as caught:
        bundled_model.replace({"array.yaw_degree": 6.0})
    figure = plot.anatomy(caught.value)
    assert "0.84 mm into bone" in texts(figure)
    edges = [to_hex(p.get_edgecolor()) for p in figure.axes[0].patches]
    assert to_hex(BAD) in edges


def test_compartments_that_do_not_fit_are_drawn(bundled_model: Model) -> None:
    with pytest.raises(MisfitError) as caught:
        bundled_model.replace({"geometry.cord.width_mm": 17.0})
    (axial,) = plot.anatomy(caught.value).axes
    (cord,) = filled(axial, TISSUES["white"])
    assert np.ptp(cord[:, 0]) == pytest.approx(17.0, rel=1e-3)
