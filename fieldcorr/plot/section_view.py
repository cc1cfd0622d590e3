"""Sections through the cord: potential, differences of potentials, |E| with field lines.

Figures have the borders of tissues as the mesh has them, the contacts with their signs, and values
in SI units. The zero of the potential is its mean over the compared region, as fields are compared,
or the ground where the outer boundary is grounded; the colour bar says which. Isopotentials below
zero are dashed, so signs can be told without colour.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.plot.array_view import Configuration
from fieldcorr.plot.section_grid import MARGIN_M, STEP_M, Section, sample_all, sample_section
from fieldcorr.plot.section_parts import MM, dress, mark_planes, panel_size, three_panels
from fieldcorr.plot.style import (
    DIVERGING,
    INK,
    SEQUENTIAL,
    SMALL,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    axes_or_new,
    figure_of,
    root_figure,
    scaled,
    symmetric_limit,
)
from fieldcorr.plot.volume import Drive, shown

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

SHARE = 98.5
"""Percentile of the values shown at which the colours end; the bar has a tip where they go on."""


# -- potential ------------------------------------------------------------------------------------


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
        Place of the plane along its normal, m; None for the middle of the cord, or, for an axial
        plane, the contact with the largest current.
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
    cut = sample_section(what, plane, at=at, step=step, margin=margin)
    ax = axes_or_new(ax, panel_size(cut))
    scale = _PotentialScale.of([cut], limit)
    mapped = _draw_potential(ax, cut, scale)
    figure_of(ax).colorbar(mapped, ax=ax, label=scale.label, extend=scale.extend, shrink=0.8)
    ax.set_title(f"potential, {what.title}\n{ax.get_title()}", fontsize=SMALL + 1)
    return figure_of(ax)


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
    cuts = sample_all(what, places=places, step=step, margin=margin)
    scale = _PotentialScale.of(cuts, limit)
    figure, panels = three_panels(figure, cuts)
    mapped = [_draw_potential(ax, cut, scale) for ax, cut in zip(panels, cuts, strict=True)]
    mark_planes(panels, cuts)
    figure.colorbar(mapped[0], ax=panels, label=scale.label, extend=scale.extend, shrink=0.8)
    kind = "difference of potentials" if minus is not None else "potential"
    figure.suptitle(f"{kind}, {what.title}", fontsize=SMALL + 3)
    return root_figure(figure)


@dataclass(frozen=True)
class _PotentialScale:
    """Colours of potentials: symmetric about zero, in a unit with prefix; and isopotentials."""

    factor: float
    limit: float
    levels: FloatArray
    label: str
    extend: str

    @classmethod
    def of(cls, cuts: list[Section], limit: float | None) -> "_PotentialScale":
        values = np.concatenate([cut.potential.ravel() for cut in cuts])
        end = symmetric_limit(values, share=SHARE) if limit is None else limit
        factor, unit = scaled(end, "V")
        largest = max(float(np.nanmax(np.abs(values))), end)
        steps = isolevels(end / 16.0 / factor, largest / factor)
        levels = np.concatenate([-steps[::-1], [0.0], steps])
        extend = "both" if largest > end else "neither"
        label = f"potential ({unit})\n0 = {cuts[0].what.volume.zero}"
        return cls(factor, end / factor, levels, label, extend)


def isolevels(smallest: float, largest: float) -> FloatArray:
    """Return the values 1, 2 and 5 times powers of ten from ``smallest`` to ``largest``."""
    low, high = (int(np.floor(np.log10(value))) for value in (smallest, largest))
    steps = np.array([m * 10.0**k for k in range(low, high + 1) for m in (1.0, 2.0, 5.0)])
    return steps[(steps >= smallest) & (steps <= largest)]


def _draw_potential(ax: Axes, cut: Section, scale: _PotentialScale) -> Any:
    values = np.ma.masked_invalid(cut.potential / scale.factor)
    grid = (MM * cut.across, MM * cut.up)
    mapped = ax.pcolormesh(
        *grid,
        values,
        cmap=DIVERGING,
        vmin=-scale.limit,
        vmax=scale.limit,
        shading="nearest",
        rasterized=True,
    )
    # One colour for all: matplotlib then dashes the lines below zero.
    ax.contour(*grid, values, levels=scale.levels, colors=INK, linewidths=0.4, alpha=0.6)
    dress(ax, cut)
    return mapped


# -- electric field -------------------------------------------------------------------------------


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
    cut = sample_section(what, plane, at=at, step=step, margin=margin)
    ax = axes_or_new(ax, panel_size(cut))
    scale = _MagnitudeScale.of([cut])
    mapped = _draw_magnitude(ax, cut, scale, lines)
    _magnitude_bar(figure_of(ax).colorbar(mapped, ax=ax, extend="both", shrink=0.8), scale)
    ax.set_title(f"electric field, {what.title}\n{ax.get_title()}", fontsize=SMALL + 1)
    return figure_of(ax)


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
    cuts = sample_all(what, places=places, step=step, margin=margin)
    scale = _MagnitudeScale.of(cuts)
    figure, panels = three_panels(figure, cuts)
    mapped = [_draw_magnitude(ax, cut, scale, lines) for ax, cut in zip(panels, cuts, strict=True)]
    mark_planes(panels, cuts)
    _magnitude_bar(figure.colorbar(mapped[0], ax=panels, extend="both", shrink=0.8), scale)
    figure.suptitle(f"electric field, {what.title}", fontsize=SMALL + 3)
    return root_figure(figure)


@dataclass(frozen=True)
class _MagnitudeScale:
    """Colours of |E|: logarithmic, between the ends that most points lie in."""

    factor: float
    low: float
    high: float
    label: str

    @classmethod
    def of(cls, cuts: list[Section]) -> "_MagnitudeScale":
        values = np.concatenate([cut.magnitude.ravel() for cut in cuts])
        values = values[np.isfinite(values) & (values > 0.0)]
        low, high = np.percentile(values, [5.0, 99.0])
        factor, unit = scaled(float(high), "V/m")
        return cls(factor, float(low) / factor, float(high) / factor, f"|E| ({unit})")


def _draw_magnitude(ax: Axes, cut: Section, scale: _MagnitudeScale, lines: float) -> Any:
    from matplotlib.colors import LogNorm

    grid = (MM * cut.across, MM * cut.up)
    mapped = ax.pcolormesh(
        *grid,
        np.ma.masked_invalid(cut.magnitude / scale.factor),
        cmap=SEQUENTIAL,
        norm=LogNorm(scale.low, scale.high),
        shading="nearest",
        rasterized=True,
    )
    if lines > 0.0:
        _draw_field_lines(ax, cut, lines)
    dress(ax, cut)
    return mapped


def _draw_field_lines(ax: Axes, cut: Section, density: float) -> None:
    """Draw lines of the field's part in the plane."""
    # Tracing costs time per grid step crossed: a grid three times as coarse looks the same.
    part = slice(None, None, 3)
    along = np.ma.masked_invalid(cut.field[part, part][..., [cut.plane.across, cut.plane.up]])
    style: dict[str, Any] = {"color": INK, "linewidth": 0.5, "arrowsize": 0.6}
    across, up = MM * cut.across[part], MM * cut.up[part]
    ax.streamplot(across, up, along[..., 0], along[..., 1], density=density, **style)


def _magnitude_bar(bar: Any, scale: _MagnitudeScale) -> None:
    """Label a logarithmic bar with plain numbers, 1, 2 and 5 of each decade."""
    ticks = isolevels(scale.low, scale.high)
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.ax.minorticks_off()
    bar.set_label(scale.label)
