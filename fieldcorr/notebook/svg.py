"""The array as an inline SVG, and the marks and colours that every picture of an array shares.

Seen from dorsal with rostral up, so the patient's left is on the left. An anode is an open box with
a plus, a cathode a filled one with a minus: they differ without colour.
"""

from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import checked_polarity, format_configuration
from fieldcorr.layout import CASE, ArrayLayout

FloatArray = NDArray[np.float64]

INK = "#333333"
PADDLE = "#f1efea"
STRETCH = 3.0
"""Widths are drawn larger than lengths by this factor; the columns would be too thin to label."""
ANODE, CATHODE, OFF, WHITE = "#b3400a", "#0b5a8f", "#8a8a8a", "#ffffff"
"""Colours of text and edges: vermilion, blue and grey, dark enough on white."""
MINUS = "\u2212"


@dataclass(frozen=True)
class Mark:
    """How a contact is drawn: colours of edge, area and text, and the sign after its name."""

    edge: str
    fill: str
    ink: str
    sign: str


CONTACT_MARKS = {
    1: Mark(ANODE, WHITE, ANODE, "+"),
    -1: Mark(CATHODE, CATHODE, WHITE, MINUS),
    0: Mark(OFF, WHITE, INK, ""),
}
"""Marks of anodes, cathodes and contacts that are off, by polarity."""


def array_svg(layout: ArrayLayout, polarity: ArrayLike | None = None, *, height: int = 240) -> str:
    """Draw the array.

    Parameters
    ----------
    layout
        Where the contacts are.
    polarity
        (E,) -1 cathode, 0 off, +1 anode; None draws all contacts as off.
    height
        Height of the picture in px.
    """
    signs = np.zeros(len(layout.names), dtype=np.int8)
    if polarity is not None:
        signs = checked_polarity(polarity, len(layout.names), ndim=1)
    if not layout.on_array.size:
        return ""
    scale, shapes, width = _to_pixels(layout, height)
    parts = [_paddle(layout, scale)]
    parts += [_contact(shapes[e], layout.names[e], int(signs[e])) for e in layout.on_array]
    parts.append(_side_marks(width))
    if layout.has_case:
        sign = int(signs[layout.names.index(CASE)])
        parts.append(_contact(_case_box(width, height), CASE, sign))
    title = escape(format_configuration(signs, layout.names)) if signs.any() else "array"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" font-family="sans-serif">'
        f"<title>{title}, seen from dorsal, rostral up</title>{''.join(parts)}</svg>"
    )


class _Scale:
    """Maps model axes (left, rostral) to pixels: left to the left, rostral up."""

    def __init__(self, points: FloatArray, height: float, head: float, foot: float) -> None:
        self._low, self._high = points.min(axis=0), points.max(axis=0)
        extent = np.maximum(self._high - self._low, 1e-6)
        self._unit = (height - head - foot) / extent[1]
        self._head = head
        # One column of contacts still needs room for the side marks.
        self.width = max(float(STRETCH * self._unit * extent[0]) + 2 * 8.0, 60.0)
        self._middle = 0.5 * (self._low[0] + self._high[0])

    def __call__(self, points: FloatArray) -> FloatArray:
        x = 0.5 * self.width - STRETCH * self._unit * (points[..., 0] - self._middle)
        y = self._head + self._unit * (self._high[1] - points[..., 1])
        return np.stack([x, y], axis=-1)


def _to_pixels(layout: ArrayLayout, height: float) -> tuple[_Scale, FloatArray, float]:
    """Return the map, the contact outlines (E, 4, 2) in px and the width in px."""
    flat = layout.corners[:, :, [0, 2]]
    shown = flat[layout.on_array].reshape(-1, 2)
    body = layout.body
    if body is not None:
        shown = np.concatenate([shown, body])
    scale = _Scale(shown, height, 18.0, 26.0 if layout.has_case else 6.0)
    return scale, scale(flat), scale.width


def _paddle(layout: ArrayLayout, scale: _Scale) -> str:
    if layout.body is None:
        return ""
    return f'<polygon points="{_points(scale(layout.body))}" fill="{PADDLE}"/>'


def _contact(outline: FloatArray, name: str, sign: int) -> str:
    """Draw one contact: name and sign inside its outline."""
    mark = CONTACT_MARKS[sign]
    label = escape(name) + mark.sign
    weight, line = ("bold", 2) if sign else ("normal", 0.8)
    x, y = outline.mean(axis=0)
    size = _font_size(outline, label)
    return (
        f'<polygon points="{_points(outline)}" fill="{mark.fill}" stroke="{mark.edge}" '
        f'stroke-width="{line}"/>'
        f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:.1f}" '
        f'font-weight="{weight}" text-anchor="middle" fill="{mark.ink}">{label}</text>'
    )


def _font_size(outline: FloatArray, label: str) -> float:
    """Return the largest font (px) up to 11 in which the label fits the outline's width."""
    width = float(np.ptp(outline[:, 0]))
    return max(5.0, min(11.0, 0.95 * width / (0.68 * max(len(label), 2))))


def _side_marks(width: float) -> str:
    style = f'font-size="10" fill="{INK}"'
    return (
        f'<text x="2" y="11" {style}>L</text>'
        f'<text x="{width - 2:.0f}" y="11" text-anchor="end" {style}>R</text>'
        f'<text x="{0.5 * width:.1f}" y="11" text-anchor="middle" {style}>\u2191 rostral</text>'
    )


def _case_box(width: float, height: float) -> FloatArray:
    left, right = 0.5 * width - 20.0, 0.5 * width + 20.0
    top, bottom = height - 19.0, height - 3.0
    return np.array([[left, top], [right, top], [right, bottom], [left, bottom]])


def _points(outline: FloatArray) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
