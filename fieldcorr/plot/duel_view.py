"""Pictures of duels: regret of simulated experiments, and how a session narrowed.

The history of a session is replayed event by event, which is all that a session is.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import DuelError
from fieldcorr.plot.style import (
    FAINT,
    INK,
    MARKS,
    SERIES,
    SMALL,
    WIDTH,
    Axes,
    Figure,
    FloatArray,
    SubFigure,
    axes_or_new,
    finish,
    new_figure,
    series,
)

if TYPE_CHECKING:
    from fieldcorr.duel import Engine
    from fieldcorr.duel.simulate import Experiment

CHANCE = 0.5
"""Largest possible stepwise regret: both arms lose against the best one for certain."""


# -- regret ---------------------------------------------------------------------------------------


def regret(
    experiment: "Experiment | str | Path",
    *,
    band: float = 1.0,
    ax: Axes | None = None,
) -> Figure:
    """Draw the mean stepwise regret of every player over the duels.

    Parameters
    ----------
    experiment
        An experiment, or the CSV file that it wrote.
    band
        Half width of the shaded bands in standard deviations over trials; 0 for none.
    """
    curves = list(_curves(experiment))
    ax = axes_or_new(ax, (WIDTH, 3.6))
    for k, (name, mean, deviation) in enumerate(curves):
        t = np.arange(1, len(mean) + 1)
        half = band * deviation if band > 0.0 else None
        _draw_band(ax, k, f"{name}: {mean[-1]:.3f}", t, mean, half, top=CHANCE)
        # Curves that lie on each other are told apart by marks at places of their own.
        step = max(1, len(mean) // 8)
        places = (step * k // len(curves), step)
        ax.lines[-1].set(marker=MARKS[k % len(MARKS)], markersize=5, markevery=places)
    ax.axhline(CHANCE, color=FAINT, linewidth=0.8, linestyle=":")
    ax.set_xlim(1, max(len(mean) for _, mean, _ in curves))
    ax.set_ylim(0.0, 0.56)
    ax.legend(frameon=False, fontsize=SMALL, title="at the end", title_fontsize=SMALL)
    shade = f"; shaded: \u00b1{band:g} standard deviation over trials" if band > 0.0 else ""
    return finish(ax, f"stepwise regret{shade}", "duel t", "regret of the arms played, \u03b5")


def _draw_band(
    ax: Axes,
    k: int,
    label: str,
    t: NDArray[np.int64],
    middle: FloatArray,
    half: FloatArray | None,
    *,
    top: float,
) -> None:
    """Draw the k-th line with a band of a half width around it, cut off at 0 and ``top``."""
    (line,) = ax.plot(t, middle, label=label, **series(k))
    if half is not None:
        low, high = np.clip([middle - half, middle + half], 0.0, top)
        ax.fill_between(t, low, high, color=line.get_color(), alpha=0.12, linewidth=0)


def _curves(
    experiment: "Experiment | str | Path",
) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield (name, mean (T,), deviation (T,)) of every player."""
    if isinstance(experiment, str | Path):
        for name, rows in _read_curves(Path(experiment)).items():
            values = np.array(rows)
            yield name, values[:, 0], values[:, 1]
    else:
        for outcome in experiment.outcomes:
            yield outcome.player.name, outcome.mean, outcome.deviation


def _read_curves(path: Path) -> dict[str, list[tuple[float, float]]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            lines = csv.DictReader(line for line in file if not line.startswith("#"))
            table: dict[str, list[tuple[float, float]]] = {}
            for line in lines:
                pair = (float(line["mean"]), float(line["deviation"]))
                table.setdefault(line["algorithm"], []).append(pair)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise DuelError(f"{path}: cannot be read as regret curves: {error!r}") from error
    if not table:
        raise DuelError(f"{path}: holds no regret curve")
    return table


# -- a session ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Course:
    """How a session went, after 0, 1, ... n - 1 events that compare arms."""

    duels: NDArray[np.int64]
    """Comparisons so far, (n,)."""
    left: NDArray[np.int64]
    """Arms still in the set, (n,)."""
    arms: NDArray[np.int64]
    """The arms followed, (m,)."""
    estimate: FloatArray
    """Their share of wins, (n, m); NaN once an arm has been eliminated."""
    radius: FloatArray
    """The radius of that share, (n, m)."""


def course(engine: "Engine", *, arms: Sequence[int] | None = None, follow: int = 4) -> Course:
    """Replay a session, which is not changed, and take down how it narrowed.

    ``arms`` are followed; None for the ``follow`` best of those left.
    """
    chosen = np.asarray(engine.survivors[:follow].arm if arms is None else arms, dtype=np.int64)
    again = engine.fresh()
    duels, left, rows = [], [], []
    for event in (None, *engine.events):
        if event is not None:
            again.record(event)
            if not event.compares and event.kind not in ("exclude", "include", "void"):
                continue
        duels.append(again.duels)
        left.append(again.progress.left)
        rows.append(_followed(again, chosen))
    table = np.array(rows)
    return Course(np.array(duels), np.array(left), chosen, table[:, 0], table[:, 1])


def narrowing(
    engine: "Engine",
    *,
    arms: Sequence[int] | None = None,
    follow: int = 4,
    figure: Figure | SubFigure | None = None,
) -> Figure:
    """Draw how many configurations were left after each duel, and how the leading ones did.

    Parameters
    ----------
    engine
        The engine of a session: ``session.engine``, or what ``read_session`` returns.
    arms
        Arms to follow; None for the ``follow`` best of those left.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    went = course(engine, arms=arms, follow=follow)
    if figure is None:
        figure = new_figure((WIDTH, 4.6))
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.0, 1.3))
    upper.step(went.duels, went.left, where="post", color=SERIES[0])
    upper.set_yscale("log")
    upper.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    upper.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    upper.yaxis.set_minor_formatter(NullFormatter())
    upper.set_ylim(max(0.7, 0.7 * went.left.min()), 1.4 * went.left.max())
    upper.annotate(
        str(went.left[-1]), (went.duels[-1], went.left[-1]), xytext=(4, 0), va="center",
        textcoords="offset points", fontsize=SMALL,
    )  # fmt: skip
    for k, arm in enumerate(went.arms):
        label, radius = engine.source.label(int(arm)), went.radius[:, k]
        _draw_band(lower, k, label, went.duels, went.estimate[:, k], radius, top=1.0)
    lower.axhline(0.5, color=FAINT, linewidth=0.8, linestyle=":")
    lower.set_ylim(0.0, 1.0)
    if len(went.arms):
        lower.legend(frameon=False, fontsize=SMALL, loc="lower right", ncols=2, labelcolor=INK)
    title = f"{went.left[0]} configurations, {went.left[-1]} left"
    finish(upper, title, "", "configurations left")
    return finish(lower, "", "duels", "share of wins, estimated")


def _followed(engine: "Engine", arms: NDArray[np.int64]) -> FloatArray:
    """Return (2, m): estimate and radius of the followed arms, NaN where eliminated."""
    ranked = engine.survivors
    out = np.full((2, len(arms)), np.nan)
    for k, arm in enumerate(arms):
        row = ranked.find(int(arm))
        if row is not None and row.count > 0.0:
            out[:, k] = row.estimate, row.radius
    return out
