"""What all plots share: colours, sizes, new figures, labels with SI prefixes.

matplotlib is imported here first, so that its absence is said in one line; its settings (rcParams)
are never changed.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import missing_extra
from fieldcorr.notebook.svg import ANODE as ANODE
from fieldcorr.notebook.svg import CATHODE as CATHODE
from fieldcorr.notebook.svg import INK as INK
from fieldcorr.notebook.svg import MINUS as MINUS
from fieldcorr.notebook.svg import OFF as OFF
from fieldcorr.notebook.svg import PADDLE as PADDLE
from fieldcorr.notebook.units import prefix

try:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
    from matplotlib.figure import SubFigure as SubFigure
    from matplotlib.text import Text as Text
except ImportError as error:
    raise missing_extra("fieldcorr.plot", "matplotlib", "plot") from error

if TYPE_CHECKING:
    from matplotlib.patheffects import AbstractPathEffect

DIVERGING = "RdBu_r"
"""Red above zero, blue below: told apart by every common kind of colour vision."""
SEQUENTIAL = "YlGnBu"
"""Light below and dark above, so that dark lines and labels stay legible over most of a picture."""
FAINT = "#999999"
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Okabe and Ito's colours, told apart by every common kind of colour vision."""
DASHES: Sequence[str | tuple[int, tuple[float, ...]]] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.5, 1)),
    (0, (5, 1.5, 1, 1.5)),
)
MARKS = ("o", "s", "^", "D", "v", "P", "X")
TISSUES = {
    "muscle": "#f3ddd6",
    "bone": "#e6dfd0",
    "fat": "#fbf3cf",
    "dura": "#8c6d8f",
    "csf": "#d3e8f5",
    "white": "#fbfbf8",
    "grey": "#c9bcc4",
}
"""Colours of tissues in drawings of the anatomy; light, so that lines and letters are read."""
METAL = "#5f6b76"
PLATE: dict[str, object] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}
"""What lies below letters, so that no line crosses them."""
WIDTH = 7.0
"""Width of a full figure in inches: that of a notebook."""
SMALL = 8
"""Font size of labels inside a picture."""

FloatArray = NDArray[np.float64]


def new_figure(size: tuple[float, float]) -> Figure:
    """Return an empty figure that pyplot does not know of, so that nothing piles up."""
    return Figure(figsize=size, layout="constrained")


def axes_or_new(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes given, or the only axes of a new figure."""
    return new_figure(size).add_subplot() if ax is None else ax


def figure_of(ax: Axes) -> Figure:
    """Return the whole figure that an axes belongs to."""
    return root_figure(ax.figure)


def root_figure(figure: Figure | SubFigure) -> Figure:
    """Return the whole figure that holds a part of a figure."""
    while isinstance(figure, SubFigure):
        figure = figure.figure
    return figure


def symmetric_limit(values: NDArray[np.generic], *, share: float = 100.0) -> float:
    """Return the ``share``-th percentile of |values|, NaN left out; 1 when all are 0 or NaN."""
    sizes = np.abs(values[np.isfinite(values)])
    limit = float(np.percentile(sizes, share)) if sizes.size else 0.0
    return limit if limit > 0.0 else 1.0


def scaled(limit: float, unit: str) -> tuple[float, str]:
    """Return factor and unit with prefix: dividing by the factor brings ``limit`` to 1..1000."""
    letter, factor = prefix(limit)
    return factor, f"{letter}{unit}"


def series(k: int) -> dict[str, Any]:
    """Return colour and dashes of the k-th line of a picture."""
    return {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)]}


def finish(ax: Axes, title: str, x: str, y: str) -> Figure:
    """Write title and labels, leave only the lower and the left frame line, return the figure."""
    ax.set_title(title, fontsize=SMALL + 2)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return figure_of(ax)


def halo() -> "list[AbstractPathEffect]":
    """Return the path effect that sets text off from what lies behind it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.0, foreground="white")]
