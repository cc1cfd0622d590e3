"""What all sections show beside the field: borders of tissues, contacts, names, sides.

Borders and contacts are exact cuts of the mesh by the plane, not contours of a pixel image.
"""

from typing import Any

import numpy as np

from fieldcorr.elements.section import (
    AXES,
    NAME_ROOM_M,
    outline_cut,
    roomy_places,
    tissue_outlines,
)
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
    halo,
)

MM = 1e3


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

    lines = tissue_outlines(cut.what.volume.space.mesh, axis=cut.plane.normal, at=cut.at)
    flat = list(MM * cut.plane.flat(lines))
    borders = LineCollection(flat, colors=INK, linewidths=0.7, label="borders")
    ax.add_collection(borders, autolim=False)


def _draw_contacts(ax: Axes, cut: Section) -> None:
    """Draw contacts that the plane cuts as thick lines, in coronal views the others as outlines."""
    layout, plane = cut.what.layout, cut.plane
    for e in layout.on_array:
        sign = int(cut.what.signs[e])
        colour = {1: ANODE, -1: CATHODE, 0: OFF}[sign]
        corners = layout.corners[e]
        outline = MM * plane.flat(outline_cut(corners, axis=plane.normal, at=cut.at))
        if len(outline):
            ax.plot(*outline.T, color=colour, linewidth=3.0, solid_capstyle="butt", zorder=5)
        elif plane.name == "coronal":
            outline = MM * plane.flat(corners)
            closed = np.concatenate([outline, outline[:1]])
            ax.plot(*closed.T, color=colour if sign else FAINT, linewidth=1.4 if sign else 0.6)
        if sign and len(outline):
            # In the outline, or dorsal of a cut contact, inside the paddle.
            ax.annotate(
                layout.names[e] + ("+" if sign > 0 else MINUS),
                outline.mean(axis=0),
                xytext={"axial": (0, 7), "sagittal": (9, 0), "coronal": (0, 0)}[plane.name],
                textcoords="offset points",
                fontsize=SMALL,
                fontweight="bold",
                color=colour,
                zorder=6,
                **_centred(),
            )


def _centred() -> dict[str, Any]:
    return {"ha": "center", "va": "center", "path_effects": halo()}


def _name_tissues(ax: Axes, cut: Section) -> None:
    """Write each tissue's name at the place farthest from its borders, where it fits."""
    step = float(cut.across[1] - cut.across[0])
    for tag, row, column in roomy_places(cut.tissue, NAME_ROOM_M / step):
        x, y = MM * cut.across[column], MM * cut.up[row]
        name = cut.what.volume.space.mesh.tissues[tag]
        ax.text(x, y, name, fontsize=SMALL - 2, color=INK, **_centred())


def mark_planes(panels: list[Axes], cuts: list[Section]) -> None:
    """Mark in each section where the others lie."""
    style: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": ":"}
    for ax, cut in zip(panels, cuts, strict=True):
        for other in cuts:
            if other.plane.normal == cut.plane.across:
                ax.axvline(MM * other.at, **style)
            elif other.plane.normal == cut.plane.up:
                ax.axhline(MM * other.at, **style)
