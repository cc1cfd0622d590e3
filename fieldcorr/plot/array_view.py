"""Pictures of the array: one configuration, several side by side, the neighbours of one.

Seen from dorsal, rostral up, the patient's left on the left. Anodes are open boxes with a plus,
cathodes filled ones with a minus.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import (
    checked_polarity,
    format_configuration,
    parse_configuration,
)
from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import CASE, ArrayLayout, layout_of
from fieldcorr.notebook.svg import CONTACT_MARKS, INK, PADDLE, STRETCH
from fieldcorr.plot.style import (
    SMALL,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    Text,
    axes_or_new,
    figure_of,
    new_figure,
    root_figure,
)

if TYPE_CHECKING:
    from fieldcorr.store import Store

Configuration = int | str | ArrayLike

PANEL = (1.4, 3.1)
"""Width and height in inches of one array among several."""
TITLE_WIDTH = 16
"""Characters after which the text above an array is broken."""
_MM = 1e3


def polarity_of(source: object, configuration: Configuration) -> NDArray[np.int8]:
    """Return the polarity (E,) of a text, a polarity vector, or a row of a store."""
    names = layout_of(source).names
    if isinstance(configuration, str):
        return parse_configuration(configuration, names)
    if np.ndim(configuration) == 0:
        if not hasattr(source, "checked_row"):
            raise ConfigurationError(
                f"configuration {configuration}: only a store has rows; give a text or a polarity"
            )
        store = cast("Store", source)
        row = store.checked_row(np.asarray(configuration).item())
        return np.asarray(store.polarity[row], dtype=np.int8)
    return checked_polarity(configuration, len(names), ndim=1)


def text_of(source: object, configuration: Configuration) -> str:
    """Return the text form of a configuration."""
    return format_configuration(polarity_of(source, configuration), layout_of(source).names)


def array(
    source: object,
    configuration: Configuration | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw the array, with the polarities of a configuration.

    Parameters
    ----------
    source
        A model, mesh, lead field or store.
    configuration
        Text such as "0- 5+", polarity (E,), or row of a store; None draws all contacts as off.
    title
        Text above; None for the configuration's own.

    Notes
    -----
    Widths across the array are three times as large as lengths, so that the contact numbers can be
    read; a turned array keeps its shape.
    """
    layout = layout_of(source)
    signs = np.zeros(len(layout.names), dtype=np.int8)
    if configuration is not None:
        signs = polarity_of(source, configuration)
    ax = axes_or_new(ax, (PANEL[0] + 0.4, PANEL[1] + 0.7))
    _draw_array(ax, layout, signs)
    own = format_configuration(signs, layout.names) if configuration is not None else "array"
    ax.set_title(fill(own, TITLE_WIDTH) if title is None else title, fontsize=SMALL + 1)
    return figure_of(ax)


def arrays(
    source: object,
    configurations: Sequence[Configuration],
    *,
    titles: Sequence[str] | None = None,
    columns: int = 5,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw several configurations side by side, each as :func:`array` does, ``columns`` per row.

    ``titles`` are the texts above them; None for the configurations' own.
    """
    if not len(configurations):
        raise ConfigurationError("no configuration to draw")
    across = min(columns, len(configurations))
    down = -(-len(configurations) // across)
    if figure is None:
        figure = new_figure((max(2.0, across * PANEL[0]), down * PANEL[1] + 0.2))
    panels = figure.subplots(down, across, squeeze=False).ravel()
    for ax in panels[len(configurations) :]:
        ax.set_axis_off()
    for k, (ax, configuration) in enumerate(zip(panels, configurations, strict=False)):
        array(source, configuration, ax=ax, title=None if titles is None else titles[k])
    return root_figure(figure)


def neighbours(
    store: "Store",
    configuration: int | str,
    *,
    count: int = 9,
    columns: int = 5,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw a configuration of a store, by row or text, and the ``count`` nearest to it.

    They come by falling r, the correlation of their fields with its own, ``columns`` per row.
    """
    row = store.index_of(configuration)
    others, r = store.nearest(row, count)
    texts = [fill(store.texts[k], TITLE_WIDTH) for k in (row, *others)]
    notes = ["nearest:", *(f"r = {_r_text(float(x))}" for x in r)]
    titles = [f"{text}\n{note}" for text, note in zip(texts, notes, strict=True)]
    return arrays(store, [row, *others], titles=titles, columns=columns, figure=figure)


def _r_text(r: float) -> str:
    """Write r with as many digits as tell it from 1, up to four."""
    digits = next((d for d in (2, 3, 4) if round(r, d) < 1.0), 0)
    return f"{r:.{digits}f}"


def _draw_array(ax: Axes, layout: ArrayLayout, signs: NDArray[np.int8]) -> None:
    outlines, body = layout.stretched(STRETCH)
    if body is not None:
        _add_outline(ax, _MM * body, facecolor=PADDLE, edgecolor="none", zorder=0)
    beside = has_long_names_in_a_column([layout.names[e] for e in layout.on_array], outlines)
    for e in layout.on_array:
        _draw_contact(ax, _MM * outlines[e], layout.names[e], int(signs[e]), beside=beside)
    ax.set_aspect("equal")
    ax.margins(0.02, 0.01)
    ax.autoscale_view()
    if beside:  # room for names and side marks
        low, high = ax.get_xlim()
        ax.set_xlim(1.6 * low - 0.6 * high, 1.6 * high - 0.6 * low)
    if layout.has_case:
        _draw_case(ax, int(signs[layout.names.index(CASE)]))
    ax.set_xlim(*sorted(ax.get_xlim(), reverse=True))  # the patient's left is on the left
    ax.set_axis_off()
    _mark_sides(ax)


def _mark_sides(ax: Axes) -> None:
    style: dict[str, Any] = {"transform": ax.transAxes, "fontsize": SMALL, "color": INK}
    ax.text(0.02, 0.99, "L", ha="left", va="top", **style)
    ax.text(0.98, 0.99, "R", ha="right", va="top", **style)
    # Below the array: beside the last contact there is no room for it.
    ax.text(0.5, -0.005, "\u2191 rostral", ha="center", va="top", **style | {"fontsize": SMALL - 2})


def has_long_names_in_a_column(names: Sequence[str], outlines: FloatArray) -> bool:
    """Tell whether names are too long for contacts (E, 4, 2) of one column: they stand beside."""
    centres = outlines[..., 0].mean(axis=1)
    is_column = np.ptp(centres) < np.ptp(outlines[0, :, 0])
    return bool(is_column) and max(map(len, names)) > 2


def _draw_contact(
    ax: Axes, outline: FloatArray, name: str, sign: int, *, beside: bool = False
) -> None:
    mark = CONTACT_MARKS[sign]
    line = 1.8 if sign else 0.6
    _add_outline(ax, outline, facecolor=mark.fill, edgecolor=mark.edge, linewidth=line, zorder=2)
    text, weight = name + mark.sign, mark.weight
    if beside:
        ink = INK if sign == 0 else mark.edge
        place = (outline[:, 0].min(), outline[:, 1].mean())
        ax.annotate(
            text, place, xytext=(5, 0), textcoords="offset points", ha="left", va="center",
            fontsize=SMALL - 1, color=ink, fontweight=weight, zorder=3,
        )  # fmt: skip
    else:
        ax.add_artist(FittedText(outline, text, color=mark.ink, fontweight=weight, zorder=3))


def _draw_case(ax: Axes, sign: int) -> None:
    """Draw the case below the array: it lies too far away for a true place."""
    x, z = np.mean(ax.get_xlim()), ax.get_ylim()[0]
    half = 2.2 * STRETCH
    box = np.array([[x + half, z - 1], [x - half, z - 1], [x - half, z - 5], [x + half, z - 5]])
    _draw_contact(ax, box, CASE, sign)
    ax.set_ylim(z - 6.0, None)


def _add_outline(ax: Axes, outline: FloatArray, **style: object) -> None:
    from matplotlib.patches import Polygon

    ax.add_patch(Polygon(outline, closed=True, **style))


# -- labels that fit into boxes, whatever size the picture gets -----------------------------------

LARGEST = SMALL + 1.0
"""Largest font, points."""
_WIDTH_PER_CHARACTER = 0.72
"""Width of a bold character over the font size, about."""


class FittedText(Text):
    """A text in the middle of a box, whose corners (n, 2) are in data coordinates."""

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
