"""Pictures of r for notebooks and pages that say what is under the pointer: the map, the heat map.

Each is one SVG text that needs no package to be shown, so committed outputs and pages keep it.
"""

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.order import ordered, spread_rows
from fieldcorr.plot.correlation_view import (
    axis_meaning,
    chosen_block,
    is_store,
    name_of,
    named_groups,
    principal_axes,
    row_of,
)
from fieldcorr.plot.style import DIVERGING, FAINT, INK, SERIES, FloatArray

if TYPE_CHECKING:
    from fieldcorr.store import Store


@dataclass(frozen=True)
class HoverPicture:
    """An SVG picture that a notebook shows; it says what is under the pointer."""

    svg: str = field(repr=False)

    def _repr_html_(self) -> str:
        return self.svg


def hover_map(
    source: "Store | ArrayLike",
    *,
    reference: int | str | None = None,
    axes: tuple[int, int] = (0, 1),
    most: int = 2000,
) -> "HoverPicture":
    """Return the map of :func:`embedding` for a notebook: a point's name shows under the pointer.

    Of more than ``most`` configurations evenly spread ones are shown. ``.svg`` is the
    picture; it needs no script.
    """
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    z = np.asarray(source.embedding if is_store(source) else source, dtype=np.float64)
    flat, share = principal_axes(z, axes)
    row = None if reference is None else row_of(source, reference)
    r = np.zeros(len(z)) if row is None else z @ z[row]
    colours = colormaps[DIVERGING](0.5 + 0.5 * r)
    dots = []
    for k in spread_rows(len(z), most):
        x, y = 260.0 + 240.0 * flat[k, 0], 260.0 - 240.0 * flat[k, 1]
        fill = SERIES[0] if row is None else to_hex(colours[k])
        text = escape(name_of(source, int(k))) + ("" if row is None else f", r = {r[k]:.3f}")
        dots.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{fill}" stroke="{FAINT}" '
            f'stroke-width="0.4"><title>{text}</title></circle>'
        )
    names = [
        f"axis {axis + 1}, {100 * part:.0f} %: {axis_meaning(source, coordinate)}".rstrip(": ")
        for axis, part, coordinate in zip(axes, share, flat.T, strict=True)
    ]
    return HoverPicture(
        _MAP.format(dots="".join(dots), x=names[0], y=names[1], ink=INK, faint=FAINT)
    )


_MAP = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 560" width="520" '
    'font-family="sans-serif" font-size="12" role="img">'
    "<title>Configurations by their fields; hold the pointer over a point to see its name</title>"
    '<rect width="520" height="560" fill="#ffffff"/>'
    '<circle cx="260" cy="260" r="240" fill="none" stroke="{faint}"/>{dots}'
    '<text x="260" y="525" text-anchor="middle" fill="{ink}">across: {x}</text>'
    '<text x="260" y="545" text-anchor="middle" fill="{ink}">up: {y}</text></svg>'
)


def hover_heat_map(
    source: "Store | ArrayLike", *, rows: Sequence[int] | None = None, most: int = 200
) -> HoverPicture:
    """Return the heat map of :func:`heat_map` for a notebook: it names the pair under the pointer.

    ``rows`` are the configurations to show, None for up to ``most`` evenly spread ones.
    ``.svg`` is the picture, with a few lines of script.
    """
    chosen, r = chosen_block(source, rows, most)
    turned = ordered(r, "hierarchical")
    names = [name_of(source, int(row)) for row in chosen]
    step = 420.0 / len(names)
    parts = []
    for start, stop, name in named_groups(r, turned, names):
        ends = (20.0 + step * start, 20.0 + step * stop)
        parts.append(
            f'<text x="142" y="{sum(ends) / 2 + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<path d="M150 {ends[1]:.1f}h420M{ends[1] + 130:.1f} 20v420" stroke="white"/>'
        )
    turned_r = r[np.ix_(turned, turned)]
    data = {
        "names": [names[k] for k in turned],
        "r": b64encode(_hundredths(turned_r)).decode(),
    }
    mark = sha256(json.dumps(data).encode()).hexdigest()[:12]
    values = {
        "ink": INK, "image": b64encode(_png(turned_r)).decode(), "groups": "".join(parts),
        "mark": f"fieldcorr-{mark}", "data": json.dumps(data),
    }  # fmt: skip
    svg = _HEAT_MAP
    for key, value in values.items():
        svg = svg.replace(f"{{{key}}}", value)
    return HoverPicture(svg)


def _hundredths(r: FloatArray) -> bytes:
    """Return the lower triangle of r, row by row with the diagonal, as 100 + 100 r in bytes."""
    low = np.tril_indices(len(r))
    return np.rint(100.0 + 100.0 * r[low]).astype(np.uint8).tobytes()


def _png(r: FloatArray) -> bytes:
    """Return r as a PNG picture, one pixel per pair."""
    from matplotlib import colormaps
    from PIL import Image  # comes with matplotlib

    level: NDArray[np.uint8] = np.rint(127.5 + 127.5 * r).clip(0, 255).astype(np.uint8)
    picture = Image.fromarray(level, "P")
    palette = colormaps[DIVERGING](np.arange(256), bytes=True)[:, :3]
    picture.putpalette(palette.tobytes())
    buffer = BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


# The text is XML in a file and HTML in a notebook, so the script does without "<" and "&". It looks
# for its picture by a mark: in a notebook it runs after it was put into the page.
_HEAT_MAP = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 580 490" width="580" '
    'font-family="sans-serif" font-size="12" role="img" class="{mark}" fill="{ink}">'
    '<rect width="580" height="490" fill="#ffffff"/>'
    '<text x="360" y="13" text-anchor="middle">groups, named by their most typical member '
    "(number of members)</text>"
    '<image x="150" y="20" width="420" height="420" style="image-rendering:pixelated" '
    'preserveAspectRatio="none" href="data:image/png;base64,{image}"/>'
    '<g pointer-events="none">{groups}</g>'
    '<text x="360" y="462" text-anchor="middle" font-weight="bold" class="pair">'
    "point at a pair to see its r</text>"
    '<text x="360" y="481" text-anchor="middle">red: r = 1, white: 0, blue: \u22121</text>'
    "<script>(function(){var data={data},n=data.names.length,r=atob(data.r);"
    "document.querySelectorAll('.{mark}').forEach(function(svg){"
    "var image=svg.querySelector('image'),pair=svg.querySelector('.pair');"
    "function show(e){var box=image.getBoundingClientRect();"
    "function at(share){return Math.max(0,Math.min(n-1,Math.floor(n*share)));}"
    "var i=at((e.clientY-box.top)/box.height),j=at((e.clientX-box.left)/box.width);"
    "var k=Math.max(i,j),l=Math.min(i,j),value=r.charCodeAt(k*(k+1)/2+l)/100-1;"
    "pair.textContent=data.names[i]+'  with  '+data.names[j]+':  r = '+value.toFixed(2);}"
    "image.addEventListener('pointermove',show);image.addEventListener('pointerdown',show);"
    "});})();</script></svg>"
)
