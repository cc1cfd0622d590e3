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
    """How a contact is drawn: colours of edge, area and text, sign after its name, its weight."""

    edge: str
    fill: str
    ink: str
    sign: str
    weight: str = "bold"


CONTACT_MARKS = {
    1: Mark(ANODE, WHITE, ANODE, "+"),
    -1: Mark(CATHODE, CATHODE, WHITE, MINUS),
    0: Mark(OFF, WHITE, INK, "", weight="normal"),
}
"""Marks of anodes, cathodes and contacts that are off, by polarity."""


def array_svg(layout: ArrayLayout, polarity: ArrayLike | None = None, *, height: int = 240) -> str:
    """Draw the array ``height`` px high with a polarity (E,); None draws all contacts as off."""
    signs = np.zeros(len(layout.names), dtype=np.int8)
    if polarity is not None:
        signs = checked_polarity(polarity, len(layout.names), ndim=1)
    if not layout.on_array.size:
        return ""
    outlines, body, width = _to_pixels(layout, height)
    parts = [] if body is None else [f'<polygon points="{_points(body)}" fill="{PADDLE}"/>']
    parts += [_contact(outlines[e], layout.names[e], int(signs[e])) for e in layout.on_array]
    parts.append(_side_marks(width))
    if layout.has_case:
        box = np.array([[-20.0, -19.0], [20.0, -19.0], [20.0, -3.0], [-20.0, -3.0]])
        box += 0.5 * width, height
        sign = int(signs[layout.names.index(CASE)])
        parts.append(_contact(box, CASE, sign))
    title = escape(format_configuration(signs, layout.names)) if signs.any() else "array"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.0f} {height}" role="img" font-family="sans-serif">'
        f"<title>{title}, seen from dorsal, rostral up</title>{''.join(parts)}</svg>"
    )


def _to_pixels(layout: ArrayLayout, height: float) -> tuple[FloatArray, FloatArray | None, float]:
    """Return contact outlines (E, 4, 2), the paddle's body (4, 2) or None, and the width, in px."""
    flat, body = layout.stretched(STRETCH)
    shown = flat[layout.on_array].reshape(-1, 2)
    shown = shown if body is None else np.concatenate([shown, body])
    low, high = shown.min(axis=0), shown.max(axis=0)
    extent = np.maximum(high - low, 1e-6)
    head, foot = 18.0, 26.0 if layout.has_case else 6.0
    unit = (height - head - foot) / extent[1]
    # One column of contacts still needs room for the side marks.
    width = max(float(unit * extent[0]) + 2 * 8.0, 60.0)

    def pixels(points: FloatArray) -> FloatArray:
        x = 0.5 * width - unit * (points[..., 0] - 0.5 * (low[0] + high[0]))
        y = head + unit * (high[1] - points[..., 1])
        return np.stack([x, y], axis=-1)

    return pixels(flat), None if body is None else pixels(body), width


def _contact(outline: FloatArray, name: str, sign: int) -> str:
    """Draw one contact: name and sign inside its outline, in the largest font up to 11 px."""
    mark = CONTACT_MARKS[sign]
    label = escape(name) + mark.sign
    x, y = outline.mean(axis=0)
    across = float(np.ptp(outline[:, 0]))
    size = max(5.0, min(11.0, 0.95 * across / (0.68 * max(len(label), 2))))
    return (
        f'<polygon points="{_points(outline)}" fill="{mark.fill}" stroke="{mark.edge}" '
        f'stroke-width="{2 if sign else 0.8}"/>'
        f'<text x="{x:.1f}" y="{y + 0.36 * size:.1f}" font-size="{size:.1f}" '
        f'font-weight="{mark.weight}" text-anchor="middle" fill="{mark.ink}">{label}</text>'
    )


def _side_marks(width: float) -> str:
    style = f'font-size="10" fill="{INK}"'
    return (
        f'<text x="2" y="11" {style}>L</text>'
        f'<text x="{width - 2:.0f}" y="11" text-anchor="end" {style}>R</text>'
        f'<text x="{0.5 * width:.1f}" y="11" text-anchor="middle" {style}>\u2191 rostral</text>'
    )


def _points(outline: FloatArray) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in outline)
