"""What all sections show beside the field: borders of tissues, contacts, names, sides.

Borders and contacts are exact cuts of the mesh by the plane, not contours of a pixel image.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.plot.section_grid import AXES, Section
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
_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


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

    mesh = cut.what.volume.space.mesh
    lines = tissue_outlines(
        mesh.points, mesh.cells, mesh.cell_tags, axis=cut.plane.normal, at=cut.at
    )
    ax.add_collection(
        LineCollection(
            list(MM * cut.plane.flat(lines)), colors=INK, linewidths=0.7, label="borders"
        ),
        autolim=False,
    )


def _draw_contacts(ax: Axes, cut: Section) -> None:
    """Draw contacts that the plane cuts as thick lines, in coronal views the others as outlines."""
    layout, plane = cut.what.layout, cut.plane
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
    for tag, name in enumerate(cut.what.volume.space.mesh.tissues):
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


# -- cuts of the mesh -----------------------------------------------------------------------------


def tissue_outlines(
    points: FloatArray,
    cells: NDArray[np.int32],
    tags: NDArray[np.int32],
    *,
    axis: int,
    at: float,
) -> FloatArray:
    """Return the segments (M, 2, 3) in which a plane cuts the borders of tissues.

    Parameters
    ----------
    points, cells, tags
        (P, 3) m, (T, 4), (T,): the mesh and its tissues. The surface of the mesh is a border too.
    axis, at
        The plane: coordinate ``axis`` equals ``at``, m.
    """
    height = points[:, axis] - at  # a vertex on the plane counts as below it
    above = height[cells] > 0.0
    cut = np.flatnonzero(above.any(axis=1) & ~above.all(axis=1))
    faces = np.sort(cells[cut][:, _FACES].reshape(-1, 3), axis=1)
    owner = np.repeat(tags[cut], 4)
    crossed = (height[faces] > 0.0).any(axis=1) & ~(height[faces] > 0.0).all(axis=1)
    borders = _borders(faces[crossed], owner[crossed])
    return _cut_triangles(points[borders], height[borders])


def outline_cuts(outlines: FloatArray, *, axis: int, at: float) -> list[FloatArray]:
    """Return the cut (2, 3) of each flat convex outline (E, 4, 3); (0, 3) where there is none."""
    cuts = []
    for outline in outlines:
        triangles = outline[[[0, 1, 2], [0, 2, 3]]]
        ends = _cut_triangles(triangles, triangles[..., axis] - at).reshape(-1, 3)
        cuts.append(_farthest_pair(ends))
    return cuts


def _borders(faces: NDArray[np.int32], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the faces (sorted vertices) that two tissues share, or that belong to one cell."""
    order = np.lexsort((faces[:, 2], faces[:, 1], faces[:, 0]))
    faces, owner = faces[order], owner[order]
    same = (faces[1:] == faces[:-1]).all(axis=1)
    first = np.concatenate([[True], ~same])[: len(faces)]
    starts = np.flatnonzero(first)
    last = np.concatenate([starts[1:], [len(faces)]])[: len(starts)] - 1
    is_border = (starts == last) | (owner[starts] != owner[last])
    return np.asarray(faces[starts[is_border]])


def _cut_triangles(triangles: FloatArray, height: NDArray[Any]) -> FloatArray:
    """Return the segments (M, 2, 3) in which crossed triangles (N, 3, 3) meet the plane."""
    above = height > 0.0
    crossed = above.any(axis=1) & ~above.all(axis=1)
    triangles, height, above = triangles[crossed], height[crossed], above[crossed]
    # One vertex lies alone on its side; the segment joins the two edges that leave it.
    lone_above = above.sum(axis=1) == 1
    apex = np.where(lone_above, above.argmax(axis=1), (~above).argmax(axis=1))
    rows = np.arange(len(triangles))
    ends = []
    for step in (1, 2):
        other = (apex + step) % 3
        share = height[rows, apex] / (height[rows, apex] - height[rows, other])
        start, stop = triangles[rows, apex], triangles[rows, other]
        ends.append(start + share[:, None] * (stop - start))
    return np.stack(ends, axis=1)


def _farthest_pair(ends: FloatArray) -> FloatArray:
    """Return the two points farthest apart, (2, 3); nothing of nothing."""
    if not len(ends):
        return ends
    apart = np.linalg.norm(ends[:, None] - ends, axis=2)
    return ends[list(np.unravel_index(int(apart.argmax()), apart.shape))]
