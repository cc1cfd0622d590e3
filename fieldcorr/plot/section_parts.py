"""What all sections show beside the field: borders of tissues, contacts, names, sides.

Borders and contacts are exact cuts of the mesh by the plane, not contours of a pixel image.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements.section import AXES, outline_cut, tissue_outlines
from fieldcorr.notebook.svg import CONTACT_MARKS
from fieldcorr.plot.section_grid import Section
from fieldcorr.plot.style import (
    ANODE,
    CATHODE,
    FAINT,
    INK,
    OFF,
    SMALL,
    Axes,
    FloatArray,
    halo,
)

MM = 1e3
TISSUE_NAMES = {"csf": "CSF"}
"""Names of tissues as they are written in pictures, where they differ."""


def dress(ax: Axes, cut: Section) -> None:
    """Add borders, contacts, tissue names, labels and side marks."""
    plane = cut.plane
    _draw_borders(ax, cut)
    labels = _draw_contacts(ax, cut)
    _name_tissues(ax, cut, labels)
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

    segments = tissue_outlines(cut.what.volume.space.mesh, axis=cut.plane.normal, at=cut.at)
    lines = [smoothed(line) for line in joined(MM * cut.plane.flat(segments))]
    borders = LineCollection(lines, colors=INK, linewidths=0.7, label="borders", zorder=2.5)
    ax.add_collection(borders, autolim=False)


def _draw_contacts(ax: Axes, cut: Section) -> list[FloatArray]:
    """Draw contacts that the plane cuts as thick lines, in coronal views the others as outlines.

    Active ones have a plate with name and sign beside them; where the plates are is returned, mm.
    """
    layout, plane = cut.what.layout, cut.plane
    plates = []
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
            plates.append(outline.mean(axis=0))
            _add_plate(ax, cut, e, sign)
    return plates


def _add_plate(ax: Axes, cut: Section, e: int, sign: int) -> None:
    """Write name and sign of a contact beside it: dorsal of a cut one, else at the near side."""
    mark, plane = CONTACT_MARKS[sign], cut.plane
    middle = MM * plane.flat(cut.what.layout.centres[e])
    side = -1 if cut.what.layout.centres[e, 0] >= np.mean(cut.across) else 1  # left is left
    ax.annotate(
        cut.what.layout.names[e] + mark.sign,
        (middle[0], middle[1]),
        xytext={"axial": (0, 8), "sagittal": (10, 0), "coronal": (13 * side, 0)}[plane.name],
        textcoords="offset points",
        fontsize=SMALL - 1,
        fontweight="bold",
        color=mark.ink,
        bbox={"boxstyle": "round,pad=0.2", "facecolor": mark.fill, "edgecolor": mark.edge},
        zorder=6,
        ha="center",
        va="center_baseline",
    )


def _name_tissues(ax: Axes, cut: Section, plates: list[FloatArray]) -> None:
    """Write each tissue's name where it is farthest from borders, the sides and the contacts.

    Along the cord tissues are narrow bands, and names run along them.
    """
    from scipy.ndimage import distance_transform_edt

    tags, step = cut.tissue, float(cut.across[1] - cut.across[0])
    is_free = np.ones(tags.shape, dtype=bool)
    is_free[-round(0.09 * len(cut.up)) :] = False  # the letters of the sides
    for x, y in plates:
        near = np.abs(MM * cut.up - y) < 5.0, np.abs(MM * cut.across - x) < 6.0
        is_free[np.ix_(*near)] = False
    along = cut.plane.name != "axial"
    for tag, name in enumerate(cut.what.volume.space.mesh.tissues):
        inside = np.pad((tags == tag) & is_free, 1)
        room: NDArray[np.float64] = distance_transform_edt(inside)[1:-1, 1:-1]
        if along:  # the lowest place of those with nearly as much room as any
            room = np.where(room >= 0.9 * room.max(), room, 0.0)
            row = int(np.flatnonzero(room.max(axis=1) > 0.0)[0]) if room.any() else 0
            row = min(row + round(3e-3 / step), len(room) - 1)
            column = int(room[row].argmax())
        else:
            row, column = map(int, np.unravel_index(int(room.argmax()), room.shape))
        if room[row, column] * step > (0.8e-3 if along else 0.6e-3):
            ax.text(
                MM * cut.across[column], MM * cut.up[row], TISSUE_NAMES.get(name, name),
                fontsize=SMALL - 2, color=INK, rotation=90 if along else 0, ha="center",
                va="bottom" if along else "center", path_effects=halo(), zorder=4,
            )  # fmt: skip


def mark_planes(panels: list[Axes], cuts: list[Section]) -> None:
    """Mark in each section where the others lie."""
    style: dict[str, Any] = {"color": INK, "linewidth": 0.6, "linestyle": ":"}
    for ax, cut in zip(panels, cuts, strict=True):
        for other in cuts:
            if other.plane.normal == cut.plane.across:
                ax.axvline(MM * other.at, **style)
            elif other.plane.normal == cut.plane.up:
                ax.axhline(MM * other.at, **style)


# -- lines ----------------------------------------------------------------------------------------


def joined(segments: FloatArray) -> list[FloatArray]:
    """Return the polylines (n, 2) that segments (M, 2, 2) make; a closed one ends where it began.

    A polyline ends where more than two segments meet.
    """
    ends = np.round(segments.reshape(-1, 2), 6)  # mm: neighbours agree up to rounding
    _, node = np.unique(ends, axis=0, return_inverse=True)
    pairs = node.reshape(-1, 2)
    at_node: dict[int, list[int]] = {}
    for s, pair in enumerate(pairs.tolist()):
        for end in pair:
            at_node.setdefault(end, []).append(s)
    points = {int(k): segments.reshape(-1, 2)[i] for i, k in enumerate(node.ravel())}
    unused = dict.fromkeys(range(len(pairs)))
    lines = []
    # Open lines are begun at their ends, what then remains are rings.
    starts = [s for places in at_node.values() if len(places) != 2 for s in places]
    for first in [*starts, *range(len(pairs))]:
        if first in unused:
            lines.append(np.array([points[k] for k in _walk(first, pairs, at_node, unused)]))
    return lines


def _walk(
    first: int, pairs: NDArray[np.generic], at_node: dict[int, list[int]], unused: dict[int, None]
) -> list[int]:
    """Follow segments from one to the next, taking them from ``unused``; return the nodes."""
    del unused[first]
    a, b = map(int, pairs[first])
    path = [a, b] if len(at_node[a]) != 2 or len(at_node[b]) == 2 else [b, a]
    while len(at_node[path[-1]]) == 2:
        following = next((s for s in at_node[path[-1]] if s in unused), None)
        if following is None:
            break
        del unused[following]
        a, b = map(int, pairs[following])
        path.append(b if a == path[-1] else a)
    return path


CORNER_DEGREE = 60.0
"""A sharper turn is a corner of the anatomy, not of the mesh."""


def smoothed(line: FloatArray) -> FloatArray:
    """Return a polyline without the corners that the mesh's cells make, evenly sampled.

    Between true corners a Gaussian g along the line is applied as 2g - g g, which keeps circles of
    the size of the anatomy as large as they are.
    """
    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    line = line[np.concatenate([[True], steps > 1e-6])]
    if len(line) < 4:
        return line
    is_ring = bool(np.allclose(line[0], line[-1], atol=1e-6))
    if not is_ring:
        return _smooth_parts(line, _corners(line))
    corners = _corners(np.concatenate([line[-2:-1], line]))
    if not len(corners):
        return _smooth(line, is_ring=True)
    turned = np.concatenate([line[corners[0] - 1 : -1], line[: corners[0]]])
    return _smooth_parts(turned, _corners(turned))


def _corners(line: FloatArray) -> NDArray[np.int64]:
    """Return the inner points at which a polyline turns sharply."""
    ahead = np.diff(line, axis=0)
    ahead = ahead / np.linalg.norm(ahead, axis=1, keepdims=True)
    turn = np.einsum("ij,ij->i", ahead[1:], ahead[:-1])
    return 1 + np.flatnonzero(turn < np.cos(np.deg2rad(CORNER_DEGREE)))


def _smooth_parts(line: FloatArray, corners: NDArray[np.int64]) -> FloatArray:
    cuts = [0, *map(int, corners), len(line) - 1]
    parts = [_smooth(line[a : b + 1], is_ring=False) for a, b in pairwise(cuts) if b > a]
    return np.concatenate(parts)


def _smooth(line: FloatArray, *, is_ring: bool) -> FloatArray:
    from scipy.ndimage import gaussian_filter1d

    steps = np.linalg.norm(np.diff(line, axis=0), axis=1)
    length = np.concatenate([[0.0], np.cumsum(steps)])
    if len(line) < 4:
        return line
    even = np.linspace(0.0, length[-1], max(16, int(length[-1] / 0.1)))
    flat = np.stack([np.interp(even, length, line[:, d]) for d in range(2)], axis=1)
    flat = flat[:-1] if is_ring else flat
    # The kernel must span a few cells; of a straight line it may span many.
    sigma = 1.2 * float(np.percentile(steps, 90)) / float(even[1])
    mode = "wrap" if is_ring else "nearest"
    ends = flat[[0, -1]].copy()
    line_part = np.linspace(ends[0], ends[1], len(flat)) if not is_ring else 0.0
    flat = flat - line_part  # both ends stay where they are
    once = gaussian_filter1d(flat, sigma, axis=0, mode=mode)
    twice = gaussian_filter1d(once, sigma, axis=0, mode=mode)
    out: FloatArray = 2.0 * once - twice + line_part
    if is_ring:
        return np.concatenate([out, out[:1]])
    out[[0, -1]] = ends
    return out
