"""The anatomy of a model before anything is meshed or solved, and how the array fits into it.

Everything follows from the model file in closed form, so a paddle that does not fit, which no mesh
can be built for, is drawn as well.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.layout import rectangles
from fieldcorr.model.geometry import Ellipse, Geometry
from fieldcorr.model.placement import Clearance, Placement, lay, to_bone, to_dura
from fieldcorr.plot.array_view import FittedText, has_long_names_in_a_column
from fieldcorr.plot.style import (
    CATHODE,
    INK,
    METAL,
    PADDLE,
    PLATE,
    SMALL,
    TISSUES,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    halo,
    new_figure,
    root_figure,
)

if TYPE_CHECKING:
    from fieldcorr.errors import MisfitError
    from fieldcorr.model import Device, Model

BAD = "#c1121f"
"""Where something does not fit."""
FILLS = (
    ("torso", "muscle"),
    ("vertebra", "bone"),
    ("canal", "fat"),
    ("dura", "dura"),
    ("sac", "csf"),
    ("cord", "white"),
    ("grey-left", "grey"),
    ("grey-right", "grey"),
)
"""Compartments from the outermost inwards, and the tissue that shows inside each."""
_SIGNS = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
AROUND_MM = 3.5
"""What is shown around the canal, and along the cord around the paddle."""


@dataclass(frozen=True)
class _Fit:
    """A paddle laid on the dura, with its distances."""

    device: "Device"
    placement: Placement
    dura: Clearance
    bone: Clearance


def anatomy(
    source: "Model | MisfitError",
    *,
    keys: bool = False,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw cross-section, sagittal view and array of a model, with the distances that matter.

    Nothing is meshed or solved. Lengths are true in all three drawings.

    Parameters
    ----------
    source
        A model, or the error that says that its parts do not fit: then these are drawn, and where
        they collide is marked.
    keys
        Write the keys of the model file beside the lengths that they set.
    """
    geometry = source.geometry
    fit = _fit_of(source)
    if figure is None:
        figure = new_figure((11.0 if keys else 10.0, 5.6) if fit else (6.0, 5.6))
    if fit is None:
        _draw_axial(figure.subplots(), geometry, None, keys=keys)
    else:
        ratios = (2.7 if keys else 2.1, 1.0, 0.75)
        axial, sagittal, array = figure.subplots(1, 3, width_ratios=ratios)
        _draw_axial(axial, geometry, fit, keys=keys)
        _draw_sagittal(sagittal, geometry, fit)
        _draw_coronal(array, geometry, fit)
    figure.suptitle(_title(source, fit), fontsize=SMALL + 3)
    return root_figure(figure)


def _fit_of(source: "Model | MisfitError") -> _Fit | None:
    if source.array is None or source.device is None:
        return None
    placement = lay(source.geometry, source.array, source.device)
    dura, bone = (way(placement, source.geometry) for way in (to_dura, to_bone))
    return _Fit(source.device, placement, dura, bone)


def _title(source: "Model | MisfitError", fit: _Fit | None) -> str:
    if fit is None:
        return "compartments that do not lie inside each other"
    name = getattr(source, "name", "a paddle that does not fit")
    return f"{name}, {fit.device.name}: {_kept(fit.dura, 'dura')}, {_kept(fit.bone, 'bone')}"


def _kept(least: Clearance, what: str) -> str:
    if least.distance_mm < 0.0:
        return f"{-least.distance_mm:.2f} mm into {what}"
    return f"{least.distance_mm:.2g} mm from {what}"


# -- drawings -------------------------------------------------------------------------------------


def _draw_axial(ax: Axes, geometry: Geometry, fit: _Fit | None, *, keys: bool) -> None:
    """Draw the cross-section, seen from caudal: the patient's left is on the left."""
    ellipses = geometry.ellipses()
    ax.set_facecolor(TISSUES["muscle"])
    for name, tissue in FILLS[1:]:
        _fill(ax, ellipses[name].outline(), TISSUES[tissue])
    canal = ellipses["canal"]
    margin = AROUND_MM + (2.5 if keys else 0.0)
    across, depth = canal.half_width + margin, canal.half_depth + margin
    if fit is not None:
        _draw_paddle(ax, fit, axes=(0, 1))
        side = 1.0 if fit.bone.end[0] >= 0.0 else -1.0
        above = canal.dorsal + canal.half_depth
        gap = "array.gap_to_dura_mm {:g}" if keys else "{:g} mm to dura"
        _measure(ax, fit.bone, _kept(fit.bone, "bone"), (0.62 * side * across, above + 1.9))
        _measure(
            ax, fit.dura, gap.format(round(fit.dura.distance_mm, 2)),
            (-0.62 * side * across, above + 1.9),
        )  # fmt: skip
    for line in _lengths(geometry, ellipses) if keys else _plain_lengths(geometry, ellipses):
        line.draw(ax, keys=keys)
    _name_compartments(ax, ellipses, keys=keys)
    _dress(ax, "cross-section, seen from caudal", ("L", "R"))
    # Keys of small lengths stand to the left.
    ax.set_xlim(canal.left + across + (5.0 if keys else 0.0), canal.left - across)
    ax.set_ylim(canal.dorsal - depth, canal.dorsal + depth)
    ax.set_xlabel("left (mm)", fontsize=SMALL)
    ax.set_ylabel("dorsal (mm)", fontsize=SMALL)


def _draw_sagittal(ax: Axes, geometry: Geometry, fit: _Fit) -> None:
    """Draw the view from the patient's left, in the plane of the paddle's middle."""
    left = float(fit.placement.centre_mm[0])
    centre = float(fit.placement.centre_mm[2])
    half = fit.device.paddle.length_mm / 2 + AROUND_MM
    ellipses = geometry.ellipses()
    ax.set_facecolor(TISSUES["muscle"])
    for name, tissue in FILLS[1:]:
        band = _dorsal_extent(ellipses[name], left)
        if band is not None:
            ax.axvspan(*band, facecolor=TISSUES[tissue], edgecolor=INK, linewidth=0.6)
    _draw_paddle(ax, fit, axes=(1, 2))
    _name_bands(ax, ellipses, left, centre - 0.5 * half)
    _dress(ax, f"from the left, {_beside(left)}", ("V", "D"))
    canal = ellipses["canal"]
    ax.set_xlim(canal.dorsal - canal.half_depth - 2, canal.dorsal + canal.half_depth + AROUND_MM)
    ax.set_ylim(centre - half, centre + half)
    ax.set_xlabel("dorsal (mm)", fontsize=SMALL)
    ax.set_ylabel("rostral (mm)", fontsize=SMALL)


def _beside(left: float) -> str:
    """Say where a sagittal plane lies."""
    if left == 0.0:
        return "in the middle"
    return f"{abs(left):g} mm to the {'left' if left > 0.0 else 'right'}"


def _draw_coronal(ax: Axes, geometry: Geometry, fit: _Fit) -> None:
    """Draw the array over the cord, seen from dorsal, with the names of the contacts."""
    ellipses = geometry.ellipses()
    centre = float(fit.placement.centre_mm[2])
    half = fit.device.paddle.length_mm / 2 + AROUND_MM
    for name, tissue in FILLS[2:6]:
        ellipse = ellipses[name]
        reach = (ellipse.left - ellipse.half_width, ellipse.left + ellipse.half_width)
        ax.axvspan(*reach, facecolor=TISSUES[tissue], edgecolor=INK, linewidth=0.6)
    _draw_paddle(ax, fit, axes=(0, 2))
    half_size = 0.5 * np.array([fit.device.contact.width_mm, fit.device.contact.length_mm])
    corners = _contacts(fit)
    names = [contact.name for contact in fit.device.contacts]
    beside = has_long_names_in_a_column(names, corners[..., [0, 2]])
    edge = float(fit.placement.corners_mm[:, 0].min())
    for name, middle in zip(names, corners.mean(axis=1), strict=True):
        if beside:
            ax.text(edge - 0.5, middle[2], name, fontsize=SMALL - 2, va="center", zorder=6)
        else:
            box = np.array(middle[[0, 2]]) + half_size * _SIGNS
            ax.add_artist(FittedText(box, name, color="white", zorder=6))
    _dress(ax, "array, from dorsal", ("L", "R"))
    wide = ellipses["canal"].half_width
    ax.set_xlim(wide, -wide)
    ax.set_ylim(centre - half, centre + half)
    ax.set_xlabel("left (mm)", fontsize=SMALL)


def _draw_paddle(ax: Axes, fit: _Fit, *, axes: tuple[int, int]) -> None:
    """Draw the outline of the paddle and its contacts, seen along the third axis."""
    from scipy.spatial import ConvexHull

    corners = fit.placement.corners_mm[:, list(axes)]
    outline = corners[ConvexHull(corners).vertices]
    edge = BAD if fit.bone.distance_mm < 0.0 else INK
    width = 1.6 if fit.bone.distance_mm < 0.0 else 0.9
    style: dict[str, Any] = {
        "facecolor": PADDLE,
        "edgecolor": edge,
        "linewidth": width,
        "alpha": 0.9,
    }
    _fill(ax, outline, zorder=4, **style)
    for contact in _contacts(fit):
        flat = contact[:, list(axes)]
        if axes == (0, 2):
            _fill(ax, flat, METAL, zorder=5)
        else:
            ax.plot(*flat.T, color=METAL, linewidth=2.2, solid_capstyle="butt", zorder=5)


def _contacts(fit: _Fit) -> FloatArray:
    """Return the corners (E, 4, 3) of the contacts, mm."""
    size = (1e-3 * fit.device.contact.length_mm, 1e-3 * fit.device.contact.width_mm)
    own = fit.device.positions_m[:, None] + rectangles(size)
    return 1e3 * fit.placement.to_model_m(own)


def _dorsal_extent(ellipse: Ellipse, left: float) -> tuple[float, float] | None:
    """Return where a sagittal plane enters and leaves an ellipse, mm; None beside it."""
    rest = 1.0 - ((left - ellipse.left) / ellipse.half_width) ** 2
    if rest <= 0.0:
        return None
    half = ellipse.half_depth * float(np.sqrt(rest))
    return ellipse.dorsal - half, ellipse.dorsal + half


# -- lengths --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Length:
    """A length between two points (left, dorsal) mm, with the key that sets it."""

    start: tuple[float, float]
    end: tuple[float, float]
    key: str
    text_at: tuple[float, float]
    leader: bool = False
    """Whether the text stands aside, at the end of a thin line."""

    def draw(self, ax: Axes, *, keys: bool) -> None:
        size = float(np.hypot(self.end[0] - self.start[0], self.end[1] - self.start[1]))
        arrow = {"arrowstyle": "<->", "color": CATHODE, "linewidth": 0.9, "shrinkA": 0,
                 "shrinkB": 0, "mutation_scale": 7}  # fmt: skip
        ax.annotate("", self.end, self.start, arrowprops=arrow, zorder=7)
        label = f"{self.key} {size:.4g}" if keys else f"{size:.3g} mm {self.key}"
        if self.leader:
            line = np.transpose([self.end, self.text_at])
            ax.plot(*line, color=CATHODE, linewidth=0.5, zorder=7)
        is_upward = keys and not self.leader and size > 5.0 and self.start[0] == self.end[0]
        ax.text(*self.text_at, label, fontsize=SMALL - 1, color=CATHODE, zorder=8, bbox=PLATE,
                rotation=90 if is_upward else 0, **_CENTRED)  # fmt: skip


def _plain_lengths(geometry: Geometry, ellipses: dict[str, Ellipse]) -> Iterator[_Length]:
    """Yield the one length that decides most about a field: CSF between dura and cord."""
    cord, sac = ellipses["cord"], ellipses["sac"]
    low, high = cord.dorsal + cord.half_depth, sac.dorsal + sac.half_depth
    yield _Length((cord.left, low), (cord.left, high), "CSF", (cord.left - 2.8, (low + high) / 2))


def _lengths(geometry: Geometry, ellipses: dict[str, Ellipse]) -> Iterator[_Length]:
    """Yield what the keys of the model file set."""
    cord, sac, canal = ellipses["cord"], ellipses["sac"], ellipses["canal"]
    top, inner = cord.dorsal + cord.half_depth, sac.dorsal + sac.half_depth
    middle = (cord.left, (top + inner) / 2 - 0.2)
    yield _Length((cord.left, top), (cord.left, inner), "cord.dorsal_csf_mm", middle)
    low = canal.dorsal - canal.half_depth
    yield from _across(canal, "canal.width_mm", low - 3.2)
    yield from _across(sac, "sac.width_mm", low - 1.6)
    yield from _across(cord, "cord.width_mm", sac.dorsal - sac.half_depth - 1.4)
    yield from _upward(canal, "canal.depth_mm", -(canal.half_width + 3.6))
    yield from _upward(sac, "sac.depth_mm", -(canal.half_width + 1.8))
    yield from _upward(cord, "cord.depth_mm", -(cord.half_width + 0.9))
    yield from _small_lengths(geometry, ellipses, canal.left + canal.half_width + 5.6)


def _small_lengths(
    geometry: Geometry, ellipses: dict[str, Ellipse], at: float
) -> Iterator[_Length]:
    """Yield lengths that leave no room for a text; it stands aside, ``at`` mm to the left."""
    cord, grey, sac = ellipses["cord"], ellipses["grey-left"], ellipses["sac"]
    x, y, wide, deep = grey.left, grey.dorsal, grey.half_width, grey.half_depth
    rim, thick = sac.left + sac.half_width, geometry.sac.dura_thickness_mm
    below = y - deep - 0.5
    ends = {
        "sac.dura_thickness_mm": ((rim, sac.dorsal), (rim + thick, sac.dorsal)),
        "grey.column_width_mm": ((x - wide, y), (x + wide, y)),
        "grey.column_depth_mm": ((x, y + deep), (x, y - deep)),
        "grey.column_offset_mm": ((cord.left, below), (x, below)),
    }
    for k, (key, (start, end)) in enumerate(ends.items()):
        yield _Length(start, end, key, (at, sac.dorsal + 1.5 - 1.5 * k), leader=True)


def _across(ellipse: Ellipse, key: str, at: float) -> Iterator[_Length]:
    ends = ((ellipse.left - ellipse.half_width, at), (ellipse.left + ellipse.half_width, at))
    yield _Length(*ends, key, (ellipse.left, at))


def _upward(ellipse: Ellipse, key: str, at: float) -> Iterator[_Length]:
    low, high = ellipse.dorsal - ellipse.half_depth, ellipse.dorsal + ellipse.half_depth
    yield _Length((at, low), (at, high), key, (at, ellipse.dorsal))


def _measure(ax: Axes, least: Clearance, text: str, at: tuple[float, float]) -> None:
    """Mark a least distance, and write it at the other end of a thin line."""
    colour = BAD if least.distance_mm < 0.0 else CATHODE
    ax.plot(*np.stack([least.start, least.end]).T, color=colour, linewidth=2.0, zorder=7)
    ax.annotate(
        text, (least.end[0], least.end[1]), at, fontsize=SMALL - 1, color=colour, zorder=8,
        bbox=PLATE, **_CENTRED,
        arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 2},
    )  # fmt: skip


# -- what all drawings share ----------------------------------------------------------------------

_CENTRED: dict[str, Any] = {"ha": "center", "va": "center"}


def _name_compartments(ax: Axes, ellipses: dict[str, Ellipse], *, keys: bool) -> None:
    cord, sac, canal = ellipses["cord"], ellipses["sac"], ellipses["canal"]
    ventral = (cord.dorsal - cord.half_depth + sac.dorsal - sac.half_depth) / 2
    places = {
        "white matter": (cord.left, cord.dorsal - 0.78 * cord.half_depth),
        "CSF": (0.55 * sac.half_width, sac.dorsal + 0.62 * sac.half_depth),
        "epidural fat": (0.0, (canal.dorsal - canal.half_depth - sac.half_depth) / 2),
        "bone": (-0.8 * canal.half_width, canal.dorsal - canal.half_depth),
    }
    if keys:
        del places["white matter"], places["epidural fat"]
        places |= {"CSF": (0.76 * sac.half_width, 0.0), "fat": (0.73 * canal.half_width, -4.3)}
    else:
        places["grey"] = (ellipses["grey-left"].left, ellipses["grey-left"].dorsal)
        places["dura"] = (-0.76 * sac.half_width, ventral - 0.4)
    for name, place in places.items():
        ax.text(*place, name, fontsize=SMALL - 1, color=INK, zorder=6, path_effects=halo(),
                **_CENTRED)  # fmt: skip


def _name_bands(ax: Axes, ellipses: dict[str, Ellipse], left: float, at: float) -> None:
    """Write the names of what a sagittal plane cuts ventrally, where bands are wide enough."""
    bands = [(tissue, _dorsal_extent(ellipses[name], left)) for name, tissue in FILLS[2:]]
    found = [(tissue, band) for tissue, band in bands if band is not None]
    for (tissue, band), (_, inner) in zip(found, [*found[1:], ("", None)], strict=True):
        end = band[1] if inner is None else inner[0]
        if end - band[0] > 1.2:
            label = "CSF" if tissue == "csf" else tissue
            ax.text((band[0] + end) / 2, at, label, rotation=90, fontsize=SMALL - 1, color=INK,
                    zorder=6, **_CENTRED)  # fmt: skip


def _fill(ax: Axes, outline: FloatArray, colour: str | None = None, **style: Any) -> None:
    from matplotlib.patches import Polygon

    look = {"facecolor": colour, "edgecolor": INK, "linewidth": 0.6} | style
    ax.add_patch(Polygon(outline, closed=True, **look))


def _dress(ax: Axes, title: str, sides: tuple[str, str]) -> None:
    ax.set_aspect("equal")
    ax.set_title(title, fontsize=SMALL + 1)
    ax.tick_params(labelsize=SMALL - 1)
    for x, mark, side in zip((0.03, 0.97), sides, ("left", "right"), strict=True):
        ax.text(x, 0.985, mark, transform=ax.transAxes, ha=side, va="top", fontweight="bold",
                path_effects=halo(), zorder=9)  # fmt: skip
