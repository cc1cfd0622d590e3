"""Pictures of how sure r is: neighbours with their spread, inputs that matter, trust on a map."""

from typing import TYPE_CHECKING

import numpy as np

from fieldcorr.correlation.order import spread_rows
from fieldcorr.plot.correlation_view import principal_axes
from fieldcorr.plot.style import (
    FAINT,
    INK,
    SEQUENTIAL,
    SERIES,
    SMALL,
    WIDTH,
    Axes,
    Figure,
    axes_or_new,
    figure_of,
    finish,
)
from fieldcorr.sweep.analysis import NEAREST, trusted_neighbours, variance_shares

if TYPE_CHECKING:
    from fieldcorr.store import Store
    from fieldcorr.store.sweeps import SweepStore


def spread(
    store: "Store", configuration: int | str, *, count: int = 20, ax: Axes | None = None
) -> Figure:
    """Draw r of a configuration with the ``count`` nearest to it, and how far r may be off.

    ``store`` is one with a sweep. Thick bars are the middle half of its samples, thin ones nine
    tenths; a cross is the discretisation error of the model itself, where the store has one.
    """
    row = store.index_of(configuration)
    others, r = store.nearest(row, count)
    low, first, third, high = store.ensemble.quantiles(row, [0.05, 0.25, 0.75, 0.95])[:, others]
    ax = axes_or_new(ax, (WIDTH, 0.9 + 0.22 * len(others)))
    places = np.arange(len(others))
    ax.hlines(places, low, high, color=FAINT, linewidth=1.2, label="nine tenths of the samples")
    ax.hlines(places, first, third, color=SERIES[0], linewidth=4.0, label="middle half")
    ax.plot(r, places, "o", color=INK, markersize=3.5, label="mean")
    if "companion" in store.families:
        error = store.r_error(row)[others]
        ax.errorbar(r, places, xerr=error, fmt="none", ecolor=SERIES[1], capsize=3, label="mesh")
    ax.set_yticks(places, [store.texts[k] for k in others], fontsize=SMALL)
    ax.set_ylim(len(others) - 0.5, -0.5)
    ax.legend(frameon=False, fontsize=SMALL, loc="upper left")
    return finish(ax, f"how sure r with {store.texts[row]} is", "correlation r of the fields", "")


def inputs(sweep: "SweepStore", *, most: int = 12, ax: Axes | None = None) -> Figure:
    """Draw which share of the variance of r each input of a sweep explains alone."""
    shares = variance_shares(sweep)
    rest = shares.pop("rest")
    shown = [*list(shares.items())[:most], ("curvature, interaction, chance", rest)]
    ax = axes_or_new(ax, (WIDTH, 0.9 + 0.25 * len(shown)))
    colours = [SERIES[0]] * (len(shown) - 1) + [FAINT]
    ax.barh(range(len(shown)), [100.0 * share for _, share in shown], color=colours)
    ax.set_yticks(range(len(shown)), [key for key, _ in shown], fontsize=SMALL)
    ax.set_ylim(len(shown) - 0.5, -0.5)
    title = f"which input moves r ({len(sweep)} samples)"
    return finish(ax, title, "share of the variance of r, %", "")


def trust(store: "Store", *, sure: float = 0.9, most: int = 200, ax: Axes | None = None) -> Figure:
    """Draw on the map of a store how many of the ten nearest of a configuration can be trusted.

    A neighbour is trusted if it is among the ten nearest in at least the share ``sure`` of the
    samples; of up to ``most`` evenly spread configurations.
    """
    rows = spread_rows(len(store), most)
    trusted = trusted_neighbours(store.ensemble, rows.tolist(), sure=sure)
    flat, share = principal_axes(store.embedding, (0, 1))
    ax = axes_or_new(ax, (5.6, 4.6))
    ax.scatter(flat[:, 0], flat[:, 1], s=3, color=FAINT, alpha=0.3, linewidths=0)
    points = ax.scatter(
        flat[rows, 0], flat[rows, 1], c=trusted, s=22, cmap=SEQUENTIAL, vmin=0, vmax=NEAREST,
        edgecolors=INK, linewidths=0.3,
    )  # fmt: skip
    label = f"of the {NEAREST} nearest, sure to {100 * sure:g} %"
    figure_of(ax).colorbar(points, ax=ax, label=label)
    first, second = (f"axis {k + 1} ({100 * part:.0f} %)" for k, part in enumerate(share))
    title = f"trustworthy neighbours, {trusted.mean():.1f} of {NEAREST} on average"
    return finish(ax, title, first, second)
