"""Scenes are rendered without a screen, and show what they say."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import image

from fieldcorr import plot
from fieldcorr.errors import ConfigurationError
from fieldcorr.leadfield import LeadField

pytest.importorskip("pyvista")


def rendered(lead_field: LeadField, folder: Path, **options: Any) -> Any:
    plotter = plot.scene(lead_field, "5- 7+", size=(300, 240), off_screen=True, **options)
    plotter.screenshot(str(folder / "scene.png"))
    plotter.close()
    return image.imread(folder / "scene.png")[..., :3]


@pytest.mark.slow
@pytest.mark.parametrize("show", ["cord", "isosurfaces", "slice"])
def test_cathode_is_blue_above_the_red_anode(
    show: str, lead_field: LeadField, tmp_path: Path
) -> None:
    pixels = rendered(lead_field, tmp_path, show=show, caption=False)
    assert pixels.shape == (240, 300, 3)
    red, blue = pixels[..., 0] - pixels[..., 2] > 0.25, pixels[..., 2] - pixels[..., 0] > 0.25
    rows = np.arange(240)
    assert red.sum() > 50
    assert blue.sum() > 50
    # Contact 5 lies rostral of 7, and rostral is up.
    assert np.average(rows, weights=blue.sum(axis=1)) < np.average(rows, weights=red.sum(axis=1))
    assert (pixels[[0, -1]] == 1.0).all()  # nothing is cut off above and below


def test_unknown_views_are_refused(lead_field: LeadField) -> None:
    with pytest.raises(ConfigurationError, match="show 'all' is not one of cord, isosurfaces"):
        plot.scene(lead_field, "5- 7+", show="all")
