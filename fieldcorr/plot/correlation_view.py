"""Pictures of r: ordered heat map, distribution, sizes of neighbourhoods, map of the embedding.

Each takes a store or a square matrix of r (the map: a store or unit rows). Large sets are
represented by evenly spread rows, and the title says so.
"""

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.order import ordered, similarity_tree, spread_rows
from fieldcorr.errors import CorrelationError
from fieldcorr.notebook.units import count as counted
from fieldcorr.plot.style import (
    DIVERGING,
    FAINT,
    INK,
    PLATE,
    SERIES,
    SMALL,
    WIDTH,
    Axes,
    Figure,
    FloatArray,
    Text,
    axes_or_new,
    figure_of,
    finish,
    series,
)

if TYPE_CHECKING:
    from fieldcorr.store import Store

LEVELS = (0.0, 0.3, 0.5, 0.9)
"""Values of r above which neighbours are counted."""
MOST_NAMES = 6
"""More marked points than this are ringed without a name."""
MOST_GROUPS = 8
"""Groups that a heat map is divided into."""


def heat_map(
    source: "Store | ArrayLike",
    *,
    rows: Sequence[int] | None = None,
    order: str = "hierarchical",
    most: int = 400,
    ax: Axes | None = None,
) -> Figure:
    """Draw r, of a store or a (K, K) array, as a heat map in an order that shows its blocks.

    Parameters
    ----------
    rows
        Configurations to show; None for up to ``most`` evenly spread ones.
    order
        "hierarchical": the leaves of average linkage on 1 - r, turned so that neighbours are close;
        groups are named by the member that is most like the others, with their size.
        "spectral": by the Fiedler vector of the graph with weights (1 + r) / 2. "stored": as it is.
    """
    chosen, r = chosen_block(source, rows, most)
    turned = ordered(r, order)
    ax = axes_or_new(ax, (6.4, 4.6))
    image = ax.imshow(
        r[np.ix_(turned, turned)], cmap=DIVERGING, vmin=-1.0, vmax=1.0, interpolation="nearest"
    )
    bar = figure_of(ax).colorbar(image, ax=ax, fraction=0.046, pad=0.03)
    bar.set_label("correlation r of the fields")
    ax.set_title(f"r of {_part(len(chosen), _size(source))}", fontsize=SMALL + 2)
    ax.set_xlabel(f"configurations, {order} order")
    if order == "hierarchical" and len(chosen) > MOST_GROUPS:
        _name_groups(ax, r, turned, [name_of(source, int(row)) for row in chosen])
    else:
        ax.set_ylabel(f"configurations, {order} order")
    return figure_of(ax)


def chosen_block(
    source: "Store | ArrayLike", rows: Sequence[int] | None, most: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return rows (m,), up to ``most`` evenly spread ones by default, and r among them (m, m)."""
    chosen = np.asarray(spread_rows(_size(source), most) if rows is None else rows, dtype=np.int64)
    return chosen, _rows_of(source, chosen)[:, chosen].astype(np.float64)


def _name_groups(ax: Axes, r: FloatArray, turned: NDArray[np.int64], names: list[str]) -> None:
    """Mark the groups of a heat map and write their names."""
    found = named_groups(r, turned, names)
    for _, stop, _ in found[:-1]:
        ax.axhline(stop - 0.5, color="white", linewidth=0.8)
        ax.axvline(stop - 0.5, color="white", linewidth=0.8)
    middles = [(start + stop - 1) / 2 for start, stop, _ in found]
    ax.set_yticks(middles, [fill(name, 16) for _, _, name in found], fontsize=SMALL)
    ax.set_xticks([])
    caption = "groups, named by their most typical member (number of members)"
    ax.set_xlabel(caption, fontsize=SMALL, wrap=True)


def named_groups(
    r: FloatArray, turned: NDArray[np.int64], names: list[str]
) -> list[tuple[int, int, str]]:
    """Return where the groups of r in an order begin and end, each with its name.

    That is the member most like the others, with the group's size; "" where there is no room.
    """
    group = groups(r)[turned]
    ends = [*(np.flatnonzero(np.diff(group)) + 1).tolist(), len(group)]
    found = []
    for start, stop in zip([0, *ends[:-1]], ends, strict=True):
        members = turned[start:stop]
        middle = members[r[np.ix_(members, members)].sum(axis=1).argmax()]
        has_room = stop - start >= 0.035 * len(group)
        found.append((start, stop, f"{names[middle]} ({stop - start})" if has_room else ""))
    return found


def groups(r: FloatArray) -> NDArray[np.int64]:
    """Return the number of the group (m,) that each row of r (m, m) belongs to, at most eight.

    From the top of the tree, the largest group is split at its highest branch again and again.
    """
    from scipy.cluster.hierarchy import to_tree

    parts = [to_tree(similarity_tree(r))]
    while len(parts) < min(MOST_GROUPS, len(r)):
        largest = max(parts, key=lambda node: node.get_count())
        parts.remove(largest)
        parts += [largest.get_left(), largest.get_right()]
    group = np.zeros(len(r), dtype=np.int64)
    for k, node in enumerate(parts):
        group[node.pre_order()] = k
    return group


def correlations(
    source: "Store | ArrayLike",
    *,
    bins: int = 100,
    most: int = 400,
    ax: Axes | None = None,
) -> Figure:
    """Draw the distribution of r, of a store or a (K, K) array, over pairs of configurations.

    There are ``bins`` between -1 and 1. At most ``most`` configurations are looked at, each with
    all others.
    """
    rows = spread_rows(_size(source), most)
    r = _rows_of(source, rows)
    values = r[np.arange(r.shape[1]) != rows[:, None]]  # no configuration with itself
    ax = axes_or_new(ax, (WIDTH * 0.75, 3.2))
    edges = np.linspace(-1.0, 1.0, bins + 1)
    share, _ = np.histogram(values, edges)
    ax.stairs(100.0 * share / values.size, edges, fill=True, color=SERIES[0], alpha=0.8)
    ax.axvline(0.0, color=INK, linewidth=0.7)
    for level in (0.5, 0.9):
        ax.axvline(level, color=FAINT, linewidth=0.8, linestyle="--")
        part = 100.0 * np.count_nonzero(values > level) / values.size
        ax.annotate(
            f"{part:.2g} % above {level:g}", (level, 1.0), xycoords=("data", "axes fraction"),
            xytext=(-3, -3), textcoords="offset points", rotation=90, ha="right", va="top",
            fontsize=SMALL,
        )  # fmt: skip
    ax.set_xlim(-1.0, 1.0)
    title = f"r over the pairs of {_part(len(rows), r.shape[1])}"
    return finish(ax, title, "correlation r of two fields", f"pairs (% per {2.0 / bins:.2g})")


def neighbourhoods(
    source: "Store | ArrayLike",
    *,
    levels: Sequence[float] = LEVELS,
    most: int = 1000,
    ax: Axes | None = None,
) -> Figure:
    """Draw how many neighbours configurations of a store or a (K, K) array of r have.

    Neighbours are those with r above one of the ``levels``; the configuration itself does not
    count. At most ``most`` configurations are looked at.
    """
    rows = spread_rows(_size(source), most)
    sizes = neighbourhood_sizes(_rows_of(source, rows), levels)
    ax = axes_or_new(ax, (WIDTH * 0.75, 3.2))
    share = 100.0 * np.arange(1, len(rows) + 1) / len(rows)
    for k, level in enumerate(levels):
        label = f"r > {level:g}: median {int(np.median(sizes[:, k]))}"
        ax.step(np.sort(sizes[:, k]), share, where="post", label=label, **series(k))
    ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xlim(left=0.0)
    ax.set_ylim(0.0, 102.0)
    ax.legend(frameon=False, fontsize=SMALL)
    title = f"neighbourhoods of {_part(len(rows), _size(source))}"
    return finish(ax, title, "number of neighbours", "configurations, cumulative (%)")


def neighbourhood_sizes(r: NDArray[Any], levels: Sequence[float]) -> NDArray[np.int64]:
    """Return (m, levels): how many others lie above each level, from rows of r (m, K)."""
    # The diagonal is 1 and above every level: it is no neighbour.
    return np.stack([np.count_nonzero(r > level, axis=1) - 1 for level in levels], axis=1)


def embedding(
    source: "Store | ArrayLike",
    *,
    reference: int | str | None = None,
    marked: Sequence[int] | NDArray[np.integer] = (),
    axes: tuple[int, int] = (0, 1),
    ax: Axes | None = None,
) -> Figure:
    """Draw the configurations as points: the two directions in which their fields differ most.

    Parameters
    ----------
    source
        A store, or unit rows (K, R) with r = Z Z'.
    reference
        A configuration; points are coloured by their r with it.
    marked
        Configurations to ring; up to six are named as well.
    axes
        Which principal axes to show.

    Notes
    -----
    Every configuration is a point on a unit sphere of up to 15 dimensions, and r is the cosine
    of the angle between two points. The picture is the projection onto principal axes, so points
    near the rim are shown nearly as they are, others lie mostly in other directions.
    """
    z = np.asarray(source.embedding if is_store(source) else source, dtype=np.float64)
    flat, share = principal_axes(z, axes)
    ax = axes_or_new(ax, (WIDTH, 4.4))
    if reference is None:
        ax.scatter(flat[:, 0], flat[:, 1], s=8, color=SERIES[0], alpha=0.5, linewidths=0)
    else:
        row = row_of(source, reference)
        points = ax.scatter(
            flat[:, 0], flat[:, 1], c=z @ z[row], s=8, cmap=DIVERGING, vmin=-1.0, vmax=1.0,
            linewidths=0.2, edgecolors=FAINT,
        )  # fmt: skip
        name = name_of(source, row)
        bar = figure_of(ax).colorbar(points, ax=ax, fraction=0.04, pad=0.03)
        bar.set_label(f"correlation r with {name}")
        _ring(ax, flat[row], name)
    for row in marked:
        _ring(ax, flat[row], name_of(source, row) if len(marked) <= MOST_NAMES else "")
    circle = np.linspace(0.0, 2.0 * np.pi, 200)
    ax.plot(np.cos(circle), np.sin(circle), color=FAINT, linewidth=0.7)
    ax.set_aspect("equal")
    room = 1.4 if ax.texts else 1.12  # names stand outside
    ax.set(xlim=(-room, room), ylim=(-1.15, 1.15))
    labels = [
        f"principal axis {axis + 1} ({100 * part:.0f} % of the variance)\n"
        + axis_meaning(source, coordinate)
        for axis, part, coordinate in zip(axes, share, flat.T, strict=True)
    ]
    ax.set_xlabel(labels[0].rstrip())
    ax.set_ylabel(labels[1].rstrip())
    ax.set_title(f"{counted(len(z))} configurations by their fields", fontsize=SMALL + 2)
    _spread_labels(ax)
    return figure_of(ax)


_MEANINGS = (
    ("rostral", "cathodes rostral", "cathodes caudal"),
    ("left", "cathodes left", "cathodes right"),
    ("ends", "cathodes at the ends", "anodes at the ends"),
)
"""Moments of the contact currents, and what a small and a large value mean in words."""


def axis_meaning(source: "Store | ArrayLike", coordinate: FloatArray) -> str:
    """Say what a coordinate (K,) of a store's configurations tells apart; "" if that is not plain.

    It is compared with moments of the contact currents: along the cord, across it, and along it
    squared. One that explains half of its variance is named.
    """
    if not is_store(source):
        return ""
    current, place = np.asarray(source.current), np.asarray(source.contact_positions)
    place = place - place.mean(axis=0)
    moments = {
        "rostral": current @ place[:, 2],
        "left": current @ place[:, 0],
        "ends": current @ place[:, 2] ** 2,
    }
    for name, small, large in _MEANINGS:
        moment = moments[name]
        if moment.std() == 0.0 or coordinate.std() == 0.0:
            continue
        r = float(np.corrcoef(moment, coordinate)[0, 1])
        if r * r > 0.5:
            low, high = (small, large) if r > 0.0 else (large, small)
            return f"{low} \u2190   \u2192 {high}"
    return ""


def principal_axes(z: FloatArray, axes: tuple[int, int]) -> tuple[FloatArray, FloatArray]:
    """Return the coordinates (K, 2) of unit rows along principal axes, and the shares (2,).

    The mean is not removed: a set that holds every polarity mirror has none.
    """
    values, vectors = np.linalg.eigh(z.T @ z / len(z))
    values, vectors = values[::-1], vectors[:, ::-1]
    if max(axes) >= len(values):
        raise CorrelationError(f"axes {axes}: the embedding has rank {len(values)} only")
    # The sign of an axis is free; its largest component is made positive.
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(values))])
    pair = list(axes)
    return z @ vectors[:, pair], values[pair] / values.sum()


def _ring(ax: Axes, point: FloatArray, name: str) -> None:
    """Ring a point and name it: beside the point, or outside where the rim is near and crowded."""
    x, y = point
    ax.scatter(x, y, s=70, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=4)
    if not name:
        return
    radius = float(np.hypot(x, y))
    is_inside = radius < 0.7
    at = (x + 0.06, y) if is_inside else (1.08 * x / radius, 1.08 * y / radius)
    line = {"arrowstyle": "-", "color": INK, "linewidth": 0.7, "shrinkA": 0, "shrinkB": 4}
    ax.annotate(
        name, (x, y), at, fontsize=SMALL, ha="left" if is_inside or x > 0.0 else "right",
        va="center", zorder=5, bbox=PLATE, arrowprops=None if is_inside else line,
    )  # fmt: skip


def _spread_labels(ax: Axes) -> None:
    """Move names that would cover each other apart, one below the other."""
    figure_of(ax).draw_without_rendering()
    per_unit = float(ax.transData.transform((0.0, 1.0))[1] - ax.transData.transform((0.0, 0.0))[1])
    extent_of = Text.get_window_extent  # of the letters, without the line to the point
    labels = sorted(ax.texts, key=lambda text: -extent_of(text).y0)
    taken: list[Any] = []
    for label in labels:
        for box in taken:
            extent = extent_of(label)
            if extent.overlaps(box):
                x, y = label.get_position()
                label.set_position((x, y - (extent.y1 - box.y0 + 3.0) / per_unit))
        taken.append(extent_of(label))


# -- where r comes from ---------------------------------------------------------------------------


def is_store(source: "Store | ArrayLike") -> TypeGuard["Store"]:
    """Tell a store from an array."""
    return hasattr(source, "row")


def _size(source: "Store | ArrayLike") -> int:
    if is_store(source):
        if source.is_whole:
            raise CorrelationError(
                f"{source.path}: {counted(len(source))} configurations are too many for a picture "
                "of r: draw the neighbours of one, or a store of fewer"
            )
        return len(source)
    r = np.asarray(source)
    if r.ndim != 2 or r.shape[0] != r.shape[1]:
        raise CorrelationError(f"r has shape {r.shape}: a store or a square matrix is needed")
    return len(r)


def _rows_of(source: "Store | ArrayLike", rows: NDArray[np.int64]) -> NDArray[np.generic]:
    """Return rows of r, (m, K)."""
    if is_store(source):
        return np.stack([source.row(int(row)) for row in rows])
    return np.asarray(source)[rows]


def row_of(source: "Store | ArrayLike", configuration: int | str) -> int:
    """Return the row of a configuration that is given as one, or as a text of a store."""
    if not isinstance(configuration, str):
        return int(configuration)
    if is_store(source):
        return int(source.index_of(configuration))
    raise CorrelationError(f"configuration {configuration!r}: only a store knows texts")


def name_of(source: "Store | ArrayLike", row: int) -> str:
    """Return the text of a store's row, or the number of an array's."""
    return str(source.texts[row]) if is_store(source) else str(row)


def _part(shown: int, total: int) -> str:
    if shown == total:
        return f"{counted(total)} configurations"
    return f"{counted(shown)} of {counted(total)} configurations"
