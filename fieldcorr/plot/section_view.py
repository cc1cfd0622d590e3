"""Sections through the cord: potential, differences of potentials, |E| with field lines.

Figures have the borders of tissues as the mesh has them, the contacts with their signs, and values
in SI units. The zero of the potential is its mean over the compared region, as fields are compared,
or the ground where the outer boundary is grounded; the colour bar says which. Isopotentials below
zero are dashed, so signs can be told without colour.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.elements.section import PLANES
from fieldcorr.plot.array_view import Configuration
from fieldcorr.plot.section_grid import MARGIN_M, STEP_M, Section, sample_section
from fieldcorr.plot.section_parts import MM, dress, mark_planes
from fieldcorr.plot.style import (
    DIVERGING,
    INK,
    SEQUENTIAL,
    SMALL,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    figure_of,
    new_figure,
    root_figure,
    scaled,
    symmetric_limit,
)
from fieldcorr.plot.volume import Drive, Shown, shown

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

SHARE = 98.5
"""Percentile of the values shown at which the colours end; the bar has a tip where they go on."""


def section(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    plane: str = "axial",
    at: float | None = None,
    minus: Configuration | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
    limit: float | None = None,
    step: float = STEP_M,
    margin: float = MARGIN_M,
    ax: Axes | None = None,
) -> Figure:
    """Draw the potential in one section.

    Parameters
    ----------
    source
        A lead field, or a store that is not slim.
    configuration
        Text such as "0- 5+", polarity (E,), or row of a store.
    plane
        "axial", "sagittal" or "coronal".
    at
        Place of the plane along its normal, m; None for the one that cuts the contacts with most
        of the current, or, for a coronal plane, the middle of the compared region.
    minus
        A second configuration: the difference of the potentials is drawn.
    drive
        "voltage" or "current"; None for the store's own, or "voltage" with a lead field.
    amplitude
        V between the electrodes, or A in total.
    limit
        Where the colours end, V, on both sides of zero; None for most of the values shown.
    step, margin
        Grid step, and what is shown around cord and contacts, m.
    ax
        Axes to draw in; None makes a figure.
    """
    what = shown(source, configuration, minus=minus, drive=drive, amplitude=amplitude)
    cut = sample_section(what, plane, at, step=step, margin=margin)
    return _draw_one(ax, cut, _Potential([cut], limit))


def sections(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    minus: Configuration | None = None,
    places: Mapping[str, float] | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
    limit: float | None = None,
    step: float = STEP_M,
    margin: float = MARGIN_M,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw the potential in an axial, a sagittal and a coronal section with common colours.

    Parameters
    ----------
    source, configuration, minus, drive, amplitude, limit, step, margin
        As for :func:`section`.
    places
        Where planes lie, m, by name, as far as they differ from the default.
    figure
        Figure to fill; None makes one.
    """
    what = shown(source, configuration, minus=minus, drive=drive, amplitude=amplitude)
    cuts = _three_cuts(what, places or {}, step, margin)
    name = "difference of potentials" if minus is not None else "potential"
    return _draw_three(figure, cuts, _Potential(cuts, limit), name)


def field_section(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    plane: str = "sagittal",
    at: float | None = None,
    minus: Configuration | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
    lines: float = 1.0,
    step: float = STEP_M,
    margin: float = MARGIN_M,
    ax: Axes | None = None,
) -> Figure:
    """Draw |E| in one section, with lines of the field's part in the plane.

    Parameters
    ----------
    source, configuration, plane, at, minus, drive, amplitude, step, margin, ax
        As for :func:`section`.
    lines
        Density of the field lines; 0 for none. They run from anodes to cathodes.
    """
    what = shown(source, configuration, minus=minus, drive=drive, amplitude=amplitude)
    cut = sample_section(what, plane, at, step=step, margin=margin)
    return _draw_one(ax, cut, _Magnitude([cut], lines))


def field_sections(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    minus: Configuration | None = None,
    places: Mapping[str, float] | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
    lines: float = 1.0,
    step: float = STEP_M,
    margin: float = MARGIN_M,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw |E| and field lines in an axial, a sagittal and a coronal section.

    Parameters are those of :func:`sections` and :func:`field_section`.
    """
    what = shown(source, configuration, minus=minus, drive=drive, amplitude=amplitude)
    cuts = _three_cuts(what, places or {}, step, margin)
    return _draw_three(figure, cuts, _Magnitude(cuts, lines), "electric field")


# -- panels ---------------------------------------------------------------------------------------


def _three_cuts(
    what: Shown, places: Mapping[str, float], step: float, margin: float
) -> list[Section]:
    """Sample all planes; ``places`` (m, by name) override where they lie."""
    at = dict.fromkeys(PLANES) | dict(places)
    return [sample_section(what, name, at[name], step=step, margin=margin) for name in at]


def _draw_one(ax: Axes | None, cut: Section, picture: "_Potential | _Magnitude") -> Figure:
    if ax is None:
        width, height = float(np.ptp(cut.across)), float(np.ptp(cut.up))
        unit = min(4.2 / width, 4.6 / height)  # inches per m
        ax = new_figure((max(3.6, width * unit + 1.8), height * unit + 1.1)).add_subplot()
    mapped = picture.draw(ax, cut)
    dress(ax, cut)
    picture.add_bar(figure_of(ax), mapped, ax)
    lines = (f"{picture.name}, {cut.what.title}", cut.what.note, ax.get_title())
    ax.set_title("\n".join(line for line in lines if line), fontsize=SMALL + 1)
    return figure_of(ax)


def _draw_three(
    figure: Figure | SubFigure | None,
    cuts: list[Section],
    picture: "_Potential | _Magnitude",
    name: str,
) -> Figure:
    """Draw one panel per section, as wide as the sections are, with common colours."""
    if figure is None:
        figure = new_figure((9.0, 4.6))
    widths = [float(np.ptp(cut.across)) for cut in cuts]
    panels = list(figure.subplots(1, len(cuts), width_ratios=widths))
    mapped = []
    for ax, cut in zip(panels, cuts, strict=True):
        mapped.append(picture.draw(ax, cut))
        dress(ax, cut)
    mark_planes(panels, cuts)
    picture.add_bar(figure, mapped[0], panels)
    note = cuts[0].what.note and f"\n({cuts[0].what.note})"
    figure.suptitle(f"{name}, {cuts[0].what.title}{note}", fontsize=SMALL + 3)
    return root_figure(figure)


# -- pictures -------------------------------------------------------------------------------------


class _Potential:
    """The potential in colours symmetric about zero, in a unit with prefix, and isopotentials."""

    name = "potential"

    def __init__(self, cuts: list[Section], limit: float | None) -> None:
        values = np.concatenate([cut.potential.ravel() for cut in cuts])
        end = symmetric_limit(values, share=SHARE) if limit is None else limit
        self.factor, unit = scaled(end, "V")
        self.limit = end / self.factor
        largest = max(float(np.nanmax(np.abs(values))), end)
        steps = isolevels(end / 16.0 / self.factor, largest / self.factor)
        self.levels = np.concatenate([-steps[::-1], [0.0], steps])
        self.extend = "both" if largest > end else "neither"
        self.label = f"potential ({unit})\n0 = {cuts[0].what.volume.zero}"

    def draw(self, ax: Axes, cut: Section) -> Any:
        values = cut.potential / self.factor
        mapped = _colour(ax, cut, values, cmap=DIVERGING, vmin=-self.limit, vmax=self.limit)
        # One colour for all: matplotlib then dashes the lines below zero.
        grid = (MM * cut.across, MM * cut.up, np.ma.masked_invalid(values))
        ax.contour(*grid, levels=self.levels, colors=INK, linewidths=0.4, alpha=0.6)
        return mapped

    def add_bar(self, figure: Figure | SubFigure, mapped: Any, axes: Any) -> None:
        figure.colorbar(mapped, ax=axes, label=self.label, extend=self.extend, shrink=0.8)


class _Magnitude:
    """|E| in logarithmic colours, between the ends that most points lie in, and field lines."""

    name = "electric field"

    def __init__(self, cuts: list[Section], lines: float) -> None:
        values = np.concatenate([cut.magnitude.ravel() for cut in cuts])
        values = values[np.isfinite(values) & (values > 0.0)]
        low, high = np.percentile(values, [5.0, 99.0])
        self.factor, unit = scaled(float(high), "V/m")
        self.low, self.high = float(low) / self.factor, float(high) / self.factor
        self.label, self.lines = f"|E| ({unit})", lines

    def draw(self, ax: Axes, cut: Section) -> Any:
        from matplotlib.colors import LogNorm

        norm = LogNorm(self.low, self.high)
        mapped = _colour(ax, cut, cut.magnitude / self.factor, cmap=SEQUENTIAL, norm=norm)
        if self.lines > 0.0:
            _draw_field_lines(ax, cut, self.lines)
        return mapped

    def add_bar(self, figure: Figure | SubFigure, mapped: Any, axes: Any) -> None:
        bar = figure.colorbar(mapped, ax=axes, extend="both", shrink=0.8)
        ticks = isolevels(self.low, self.high)  # plain numbers, 1, 2 and 5 of each decade
        bar.set_ticks(list(ticks), labels=[f"{tick:g}" for tick in ticks])
        bar.ax.minorticks_off()
        bar.set_label(self.label)


def isolevels(smallest: float, largest: float) -> FloatArray:
    """Return the values 1, 2 and 5 times powers of ten from ``smallest`` to ``largest``."""
    low, high = (int(np.floor(np.log10(value))) for value in (smallest, largest))
    steps = np.array([m * 10.0**k for k in range(low, high + 1) for m in (1.0, 2.0, 5.0)])
    return steps[(steps >= smallest) & (steps <= largest)]


def _colour(ax: Axes, cut: Section, values: FloatArray, **style: Any) -> Any:
    grid = (MM * cut.across, MM * cut.up, np.ma.masked_invalid(values))
    return ax.pcolormesh(*grid, shading="nearest", rasterized=True, **style)


def _draw_field_lines(ax: Axes, cut: Section, density: float) -> None:
    """Draw lines of the field's part in the plane."""
    # Tracing costs time per grid step crossed: a grid three times as coarse looks the same.
    part = slice(None, None, 3)
    along = np.ma.masked_invalid(cut.field[part, part][..., [cut.plane.across, cut.plane.up]])
    style: dict[str, Any] = {"color": INK, "linewidth": 0.5, "arrowsize": 0.6}
    across, up = MM * cut.across[part], MM * cut.up[part]
    ax.streamplot(across, up, along[..., 0], along[..., 1], density=density, **style)
