"""Labels that fit into boxes, whatever size the picture gets.

What flows in: a box in data coordinates and a text. What flows out: a matplotlib text that chooses
its font size when it is drawn, since only then the size of the axes is known.
"""

from typing import Any

import numpy as np

from fieldcorr.plot.style import SMALL, FloatArray, Text

LARGEST = SMALL + 1.0
"""Largest font, points."""
_WIDTH_PER_CHARACTER = 0.72
"""Width of a bold character over the font size, about."""


class FittedText(Text):
    """A text in the middle of a box.

    Parameters
    ----------
    box
        (n, 2) corners in data coordinates.
    text
        What is written.
    style
        Further properties of a matplotlib text.
    """

    def __init__(self, box: FloatArray, text: str, **style: Any) -> None:
        x, y = box.mean(axis=0)
        super().__init__(float(x), float(y), text, ha="center", va="center_baseline", **style)
        self._box = box
        self.set_in_layout(False)

    def draw(self, renderer: Any) -> None:
        """Choose the font for the axes as they are, and draw."""
        self.fit()
        super().draw(renderer)

    def fit(self) -> None:
        """Set the largest font, up to :data:`LARGEST`, with which the text fits the box."""
        if self.axes is None or self.figure is None:
            return
        extent = np.ptp(self.axes.transData.transform(self._box), axis=0) * 72.0 / self.figure.dpi
        across = 0.92 * extent[0] / (_WIDTH_PER_CHARACTER * max(len(self.get_text()), 2))
        self.set_fontsize(max(1.0, min(across, 0.75 * extent[1], LARGEST)))
