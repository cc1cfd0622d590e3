"""What all sections show beside the field: borders of tissues, contacts, names, sides.

What flows in: an axes and a section. What flows out: the axes, dressed.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.plot.cuts import outline_cuts, tissue_outlines
from fieldcorr.plot.planes import AXES
from fieldcorr.plot.section_grid import Section
from fieldcorr.plot.style import (
    ANODE,
    CATHODE,
    FAINT,
    INK,
    MINUS,
    OFF,
    SMALL,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    halo,
    new_figure,
)

MM = 1e3


def three_panels(
    figure: Figure | SubFigure | None, cuts: list[Section]
) -> tuple[Figure | SubFigure, list[Axes]]:
    """Return a figure with one panel per section, as wide as the sections are."""
    widths = [float(np.ptp(cut.across)) for cut in cuts]
    if figure is None:
        figure = new_figure((9.0, 4.6))
    panels = figure.subplots(1, len(cuts), width_ratios=widths)
    return figure, list(panels)


def panel_size(cut: Section) -> tuple[float, float]:
    """Return width and height in inches of a figure with this section alone."""
    width, height = float(np.ptp(cut.across)), float(np.ptp(cut.up))
    unit = min(4.2 / width, 4.6 / height)
    return max(3.6, width * unit + 1.8), height * unit + 1.1


def dress(ax: Axes, cut: Section) -> None:
    """Add borders, contacts, tissue names, labels and side marks."""
    plane = cut.plane
    _draw_borders(ax, cut)
    _draw_contacts(ax, cut)
    if plane.name == "axial":
        _name_tissues(ax, cut)
    ax.set_aspect("equal")
    left, right = MM * cut.across[[0, -1]]
    ax.set_xlim(*((right, left) if plane.reversed else (left, right)))
    ax.set_ylim(*(MM * cut.up[[0, -1]]))
    ax.set_xlabel(f"{AXES[plane.across]} (mm)", fontsize=SMALL)
    ax.set_ylabel(f"{AXES[plane.up]} (mm)", fontsize=SMALL)
    ax.tick_params(labelsize=SMALL - 1)
    for x, mark, side in zip((0.02, 0.98), plane.corner_marks, ("left", "right"), strict=True):
        style: dict[str, Any] = {"fontweight": "bold", "path_effects": halo()}
        ax.text(x, 0.985, mark, ha=side, va="top", transform=ax.transAxes, **style)
    place = round(MM * cut.at, 1) + 0.0  # no minus before a zero
    ax.set_title(f"{plane.name}, {AXES[plane.normal]} {place:g} mm", fontsize=SMALL + 1)


def _draw_borders(ax: Axes, cut: Section) -> None:
    from matplotlib.collections import LineCollection

    volume = cut.volume
    lines = tissue_outlines(
        volume.points, volume.cells, volume.tags, axis=cut.plane.normal, at=cut.at
    )
    ax.add_collection(
        LineCollection(
            list(MM * cut.plane.flat(lines)), colors=INK, linewidths=0.7, label="borders"
        ),
        autolim=False,
    )


def _draw_contacts(ax: Axes, cut: Section) -> None:
    """Draw contacts that the plane cuts as thick lines, in coronal views the others as outlines."""
    layout, plane = cut.volume.layout, cut.plane
    cuts = outline_cuts(layout.corners[layout.on_array], axis=plane.normal, at=cut.at)
    for e, line in zip(layout.on_array, cuts, strict=True):
        sign = int(cut.what.signs[e])
        colour = {1: ANODE, -1: CATHODE, 0: OFF}[sign]
        outline = MM * plane.flat(line)
        if len(line):
            ax.plot(*outline.T, color=colour, linewidth=3.0, solid_capstyle="butt", zorder=5)
        elif plane.name == "coronal":
            outline = MM * plane.flat(layout.corners[e])
            closed = np.concatenate([outline, outline[:1]])
            ax.plot(*closed.T, color=colour if sign else FAINT, linewidth=1.4 if sign else 0.6)
        if sign and len(outline):
            _label_contact(ax, outline, layout.names[e], sign, cut)


def _label_contact(ax: Axes, outline: FloatArray, name: str, sign: int, cut: Section) -> None:
    """Write name and sign: in the outline, or dorsal of a cut contact, inside the paddle."""
    offset = {"axial": (0, 7), "sagittal": (9, 0), "coronal": (0, 0)}[cut.plane.name]
    ax.annotate(
        name + ("+" if sign > 0 else MINUS),
        outline.mean(axis=0),
        xytext=offset,
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=SMALL,
        fontweight="bold",
        color=ANODE if sign > 0 else CATHODE,
        path_effects=halo(),
        zorder=6,
    )


def _name_tissues(ax: Axes, cut: Section) -> None:
    """Write each tissue's name at the place farthest from its borders, where it fits."""
    from scipy.ndimage import distance_transform_edt

    tags = cut.tissue
    step = float(cut.across[1] - cut.across[0])
    for tag, name in enumerate(cut.volume.tissues):
        inside = np.pad(tags == tag, 1)
        room: NDArray[np.float64] = distance_transform_edt(inside)[1:-1, 1:-1]
        row, column = np.unravel_index(int(room.argmax()), room.shape)
        if room[row, column] * step > 0.6e-3:
            ax.text(
                MM * cut.across[column],
                MM * cut.up[row],
                name,
                ha="center",
                va="center",
                fontsize=SMALL - 2,
                color=INK,
                path_effects=halo(),
            )


def mark_planes(panels: list[Axes], cuts: list[Section]) -> None:
    """Mark in each section where the others lie."""
    style: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": ":"}
    for ax, cut in zip(panels, cuts, strict=True):
        for other in cuts:
            if other.plane.normal == cut.plane.across:
                ax.axvline(MM * other.at, **style)
            elif other.plane.normal == cut.plane.up:
                ax.axhline(MM * other.at, **style)
