"""Pictures of r: ordered heat map, distribution, sizes of neighbourhoods, map of the embedding.

Each takes a store or a square matrix of r (the map: a store or unit rows). Large sets are
represented by evenly spread rows, and the title says so.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import ConfigurationError, CorrelationError
from fieldcorr.notebook.units import count as counted
from fieldcorr.plot.style import (
    DIVERGING,
    FAINT,
    INK,
    SERIES,
    SMALL,
    WIDTH,
    Axes,
    Figure,
    FloatArray,
    axes_or_new,
    figure_of,
    finish,
    halo,
    series,
)

if TYPE_CHECKING:
    from fieldcorr.store import Store

LEVELS = (0.0, 0.3, 0.5, 0.9)
"""Values of r above which neighbours are counted."""
MOST_NAMES = 6
"""More marked points than this are ringed without a name."""


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
        "hierarchical": the leaves of average linkage on 1 - r, turned so that neighbours are close.
        "spectral": by the Fiedler vector of the graph with weights (1 + r) / 2. "stored": as it is.
    """
    total = _size(source)
    chosen = np.asarray(_spread(total, most) if rows is None else rows, dtype=np.int64)
    r = _rows_of(source, chosen)[:, chosen].astype(np.float64)
    turned = ordered(r, order)
    ax = axes_or_new(ax, (5.2, 4.4))
    image = ax.imshow(
        r[np.ix_(turned, turned)], cmap=DIVERGING, vmin=-1.0, vmax=1.0, interpolation="nearest"
    )
    figure_of(ax).colorbar(image, ax=ax, label="correlation r of the fields")
    ax.set_title(f"r of {_part(len(chosen), total)}", fontsize=SMALL + 2)
    ax.set_xlabel(f"configurations, {order} order")
    ax.set_ylabel(f"configurations, {order} order")
    return figure_of(ax)


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
    rows = _spread(_size(source), most)
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
    rows = _spread(_size(source), most)
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
    marked: Sequence[int] | NDArray[np.integer[Any]] = (),
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
    z = np.asarray(source.embedding if _is_store(source) else source, dtype=np.float64)
    flat, share = principal_axes(z, axes)
    ax = axes_or_new(ax, (5.6, 4.6))
    if reference is None:
        ax.scatter(flat[:, 0], flat[:, 1], s=8, color=SERIES[0], alpha=0.5, linewidths=0)
    else:
        row = _row(source, reference)
        points = ax.scatter(
            flat[:, 0], flat[:, 1], c=z @ z[row], s=8, cmap=DIVERGING, vmin=-1.0, vmax=1.0,
            linewidths=0.2, edgecolors=FAINT,
        )  # fmt: skip
        name = _name(source, row)
        figure_of(ax).colorbar(points, ax=ax, label=f"correlation r with {name}")
        _ring(ax, flat[row], name)
    for row in marked:
        _ring(ax, flat[row], _name(source, row) if len(marked) <= MOST_NAMES else "")
    circle = np.linspace(0.0, 2.0 * np.pi, 200)
    ax.plot(np.cos(circle), np.sin(circle), color=FAINT, linewidth=0.7)
    ax.set_aspect("equal")
    ax.set_xlabel(f"principal axis {axes[0] + 1} ({100 * share[0]:.0f} % of the variance)")
    ax.set_ylabel(f"principal axis {axes[1] + 1} ({100 * share[1]:.0f} % of the variance)")
    ax.set_title(f"{counted(len(z))} configurations by their fields", fontsize=SMALL + 2)
    return figure_of(ax)


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
    x, y = point
    ax.scatter(x, y, s=70, facecolors="none", edgecolors=INK, linewidths=1.3, zorder=4)
    ax.annotate(
        name, (x, y), xytext=(7, 5), textcoords="offset points", fontsize=SMALL,
        path_effects=halo(), zorder=5,
    )  # fmt: skip


# -- orders in which r shows its blocks ------------------------------------------------------------


def ordered(r: FloatArray, order: str) -> NDArray[np.int64]:
    """Return the permutation (m,) of the rows of r (m, m), as :func:`heat_map` names them."""
    if order not in _ORDERS:
        raise ConfigurationError(f"order {order!r} is not one of {', '.join(_ORDERS)}")
    return np.arange(len(r)) if len(r) < 3 else _ORDERS[order](np.clip(r, -1.0, 1.0))


def _hierarchical(r: FloatArray) -> NDArray[np.int64]:
    from scipy.cluster.hierarchy import leaves_list, linkage

    upper = np.triu_indices(len(r), 1)
    tree = linkage(1.0 - r[upper], method="average", optimal_ordering=True)
    return np.asarray(leaves_list(tree), dtype=np.int64)


def _spectral(r: FloatArray) -> NDArray[np.int64]:
    weight = 0.5 * (1.0 + r)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    _, vectors = np.linalg.eigh(laplacian)
    fiedler = vectors[:, 1]
    # The sign of an eigenvector is free; the first row comes in the first half.
    fiedler = fiedler if fiedler[0] <= 0.0 else -fiedler
    return np.argsort(fiedler, kind="stable")


_ORDERS: dict[str, Callable[[FloatArray], NDArray[np.int64]]] = {
    "hierarchical": _hierarchical,
    "spectral": _spectral,
    "stored": lambda r: np.arange(len(r)),
}


# -- where r comes from ---------------------------------------------------------------------------


def _is_store(source: "Store | ArrayLike") -> TypeGuard["Store"]:
    return hasattr(source, "row")


def _size(source: "Store | ArrayLike") -> int:
    if _is_store(source):
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


def _spread(total: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` of ``total`` rows, evenly spread."""
    return np.unique(np.linspace(0, total - 1, min(total, most)).astype(np.int64))


def _rows_of(source: "Store | ArrayLike", rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of r, (m, K)."""
    if _is_store(source):
        return np.stack([source.row(int(row)) for row in rows])
    return np.asarray(source)[rows]


def _row(source: "Store | ArrayLike", configuration: int | str) -> int:
    if not isinstance(configuration, str):
        return int(configuration)
    if _is_store(source):
        return int(source.index_of(configuration))
    raise CorrelationError(f"configuration {configuration!r}: only a store knows texts")


def _name(source: "Store | ArrayLike", row: int) -> str:
    return str(source.texts[row]) if _is_store(source) else str(row)


def _part(shown: int, total: int) -> str:
    if shown == total:
        return f"{counted(total)} configurations"
    return f"{counted(shown)} of {counted(total)} configurations"
