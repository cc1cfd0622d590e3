"""What the campaign of simulated sessions has found so far, as tables and pictures."""

import csv
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel.simulate import BASELINES
from fieldcorr.plot.style import SMALL, WIDTH, finish, new_figure, series

RESULTS = Path(__file__).resolve().parent.parent.parent / "results" / "duel"
STEPS = (50, 100, 200, 400)
HALF = STEPS[:2]
WORLDS = ("linear", "target", "recruitment", "roots", "matern", "magnitude", "smooth", "bumps")
CORE = ("linear", "target", "recruitment", "matern", "magnitude")
ENGINES = ("BayesDuel", "CorrDuel", "LinearThompson", "KernelSelfSparring")
PEER = ("BayesDuel", "CorrDuel", "BoTorch-field", "BoTorch-current")
MEASURES = ("potential", "field", "activating")
STOP = (0.9, 0.1)
CALLED = 40
FRESH, CLOSE = 500, 600
"""Sessions from here on were played by nobody before the rules of all engines were settled.

The second ones are of the world where CorrDuel and BayesDuel are closest to each other.
"""

Group = tuple[str, str, str, str]
"""World, engine, rater, measure."""


def rows_of(part: str) -> dict[Group, list[dict[str, Any]]]:
    """Return the finished rows of a part, by what they are about."""
    found: dict[Group, list[dict[str, Any]]] = {}
    for path in sorted((RESULTS / part).rglob("*.csv")):
        with path.open(newline="") as file:
            group = path.relative_to(RESULTS / part).parts[:4]
            found.setdefault(group, []).extend(csv.DictReader(file))  # type: ignore[arg-type]
    return found


def figure(rows: list[dict[str, Any]], column: str, t: int) -> tuple[float, float, int]:
    """Return mean, standard error and number of sessions of a column after t answers."""
    return _mean(np.array([float(row[column]) for row in rows if int(row["t"]) == t]))


def _mean(values: NDArray[np.float64]) -> tuple[float, float, int]:
    if not values.size:
        return np.nan, np.nan, 0
    return float(values.mean()), float(values.std() / np.sqrt(max(values.size - 1, 1))), values.size


def text(value: tuple[float, float, int]) -> str:
    """Return a mean with its standard error, without the leading zeros."""
    mean, error, count = value
    return f"{mean:.3f} ± {error:.3f}".replace("0.", ".") if count else ""


def table(heading: list[str], lines: list[list[str]]) -> str:
    """Return a Markdown table."""
    rows = [heading, ["---"] * len(heading), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def regret_table(part: str, column: str, steps: tuple[int, ...]) -> str:
    """Return regret at some steps, one line per world, engine, and rater or measure."""
    lines = []
    case = {"robust": 2, "measure": 3}.get(part)
    for group, rows in sorted(rows_of(part).items(), key=_order):
        beside = [] if case is None else [group[case].replace("-", " ")]
        figures = [text(figure(rows, column, t)) for t in steps]
        count = str(len({row["trial"] for row in rows}))
        lines.append([group[0], *beside, group[1], count, *figures])
    heading = ["world", *([] if case is None else ["case"]), "engine", "sessions"]
    return table([*heading, *(f"T = {t}" for t in steps)], lines)


def peer_table(column: str) -> str:
    """Return regret on the sessions that all played; the better BoTorch's less BayesDuel's."""
    found, lines = rows_of("peer"), []
    for world, t in product(WORLDS, HALF):
        groups = [found.get((world, engine, "plain", "potential"), []) for engine in PEER]
        by_trial = [
            {int(row["trial"]): float(row[column]) for row in rows if int(row["t"]) == t}
            for rows in groups
        ]
        trials = sorted(set.intersection(*map(set, by_trial)))
        values = np.array([[regret[trial] for trial in trials] for regret in by_trial])
        if not trials:
            continue
        better = min(values[2:], key=np.mean) - values[0]
        figures = [text(_mean(row)) for row in (*values, better)]
        lines.append([world, str(t), str(len(trials)), *figures])
    names = [engine.replace("-", ", ") for engine in PEER]
    return table(["world", "T", "sessions", *names, "BoTorch − BayesDuel"], lines)


def _order(item: tuple[Group, Any]) -> tuple[int, str, str, int]:
    world, engine, rater, measure = item[0]
    places = [*WORLDS, "grid"], [*ENGINES, *(player.algorithm for player in BASELINES)]
    return places[0].index(world), rater, measure, places[1].index(engine)


def calibration_table() -> str:
    """Return coverage of 90 % intervals, expected and true regret, and of the stopping rule."""
    lines, stopped = [], rows_of("stop")
    for group, rows in sorted(rows_of("regret").items(), key=_order):
        if group[1] != "BayesDuel":
            continue
        line = [group[0]]
        for t in (100, 400):
            line += [f"{100 * figure(rows, 'covered', t)[0]:.0f} %",
                     f"{100 * figure(rows, 'covered set', t)[0]:.0f} %"]  # fmt: skip
        both = (figure(rows, column, 100)[0] for column in ("expected regret", "regret"))
        line.append(" / ".join(f"{value:.3f}" for value in both))
        ends = stopped.get(group, [])
        met = [row for row in ends if int(row["t"]) < STEPS[-1]]
        held = [float(row["regret"]) <= STOP[1] for row in met]
        line.append(f"{len(met)} of {len(ends)}")
        line.append(f"{100 * np.mean(held):.0f} %" if met else "")
        line.append(f"{np.median([int(row['t']) for row in met]):.0f}" if met else "")
        line.append(_foretold(met))
        lines.append(line)
    heading = ["world", "all arms, T = 100", "set", "all arms, T = 400", "set"]
    heading += ["regret at 100, expected / true", "stopped", "rule held", "answers, median"]
    return table([*heading, f"to go at {HALF[0]}, foretold / true"], lines)


def _foretold(ends: list[dict[str, Any]]) -> str:
    """Return the medians of how many answers were said to be left, and were, after the first 50."""
    later = [row for row in ends if int(row["t"]) > HALF[0]]
    if not later:
        return ""
    said = np.median([float(row["to go"]) for row in later])
    true = np.median([int(row["t"]) - HALF[0] for row in later])
    return f"{said:.0f} / {true:.0f}"


def called_table() -> str:
    """Return how often a rater was called out."""
    lines = []
    for group, rows in sorted(rows_of("raters").items(), key=_order):
        called = np.array([int(row["called"]) for row in rows])
        by = [f"{100 * np.mean((called > 0) & (called <= t)):.0f} %" for t in (CALLED, STEPS[1])]
        honest = group[2] == "plain"
        rater = f"honest, {group[0]}" if honest else group[2]
        repeated = f"{np.mean([int(row['repeated']) for row in rows]):.1f}"
        lines.append([rater, group[1], str(len(rows)), by[0], by[1] if honest else "", repeated])
    return table(["rater", "engine", "sessions", f"called out by answer {CALLED}",
                  f"by answer {STEPS[1]}", "repeated pairs"], lines)  # fmt: skip


TABLES: dict[str, Callable[[], str]] = {
    "regret": lambda: regret_table("regret", "regret", STEPS),
    "eps": lambda: regret_table("regret", "eps", STEPS),
    "fresh": lambda: regret_table("fresh", "regret", STEPS),
    "close": lambda: regret_table("close", "regret", HALF),
    "close-eps": lambda: regret_table("close", "eps", HALF),
    "calibration": calibration_table,
    "robust": lambda: regret_table("robust", "regret", HALF),
    "raters": called_table,
    "measure": lambda: regret_table("measure", "regret", HALF),
    "peer": lambda: peer_table("regret"),
    "peer-eps": lambda: peer_table("eps"),
    "grid": lambda: regret_table("grid", "regret", HALF),
    "grid-eps": lambda: regret_table("grid", "eps", HALF),
}
"""What ``--show`` prints."""


# -- pictures -------------------------------------------------------------------------------------

PICTURES = Path(__file__).resolve().parent.parent.parent / "docs" / "images"


def draw() -> None:
    """Draw regret in every world, and what the measure of r changes, for the documentation."""
    for column, name in (("regret", "worlds-regret.png"), ("eps", "worlds-played.png")):
        _draw_worlds(column).savefig(PICTURES / name, dpi=110)
    _draw_measures().savefig(PICTURES / "measures.png", dpi=110)


def _draw_worlds(column: str) -> Any:
    """Return one panel per world: mean over sessions with its standard error, by engine."""
    found = rows_of("regret")
    figure_ = new_figure((WIDTH * 1.35, 5.0))
    panels = figure_.subplots(2, 4, sharex=True, sharey=True).ravel()
    for panel, world in zip(panels, WORLDS, strict=True):
        for k, engine in enumerate(ENGINES):
            rows = found.get((world, engine, "plain", "potential"), [])
            points = [(t, *figure(rows, column, t)) for t in STEPS]
            points = [point for point in points if point[3]]
            if points:
                t, mean, error, _ = zip(*points, strict=True)
                panel.errorbar(t, mean, error, label=engine, capsize=2, **series(k))
        panel.set_xscale("log")
        panel.set_xticks(STEPS, [str(t) for t in STEPS])
        panel.minorticks_off()
        panel.set_ylim(0.0, 0.5)
        finish(panel, world, "", "")
    what = "recommended arm" if column == "regret" else "arms played"
    figure_.supylabel(f"regret of the {what}", fontsize=SMALL + 1)
    figure_.supxlabel("answers", fontsize=SMALL + 1)
    handles, labels = panels[0].get_legend_handles_labels()
    figure_.legend(
        handles,
        labels,
        frameon=False,
        fontsize=SMALL,
        loc="outside upper center",
        ncols=len(ENGINES),
    )
    return figure_


def _draw_measures() -> Any:
    """Return regret after 100 answers by the measure of r, one group of marks per world."""
    found = rows_of("measure")
    ax = new_figure((WIDTH, 3.2)).add_subplot()
    worlds = [world for world in WORLDS if any(group[0] == world for group in found)]
    for k, measure in enumerate(MEASURES):
        for engine, mark in (("BayesDuel", "o"), ("CorrDuel", "s")):
            values = [
                figure(found.get((world, engine, "plain", measure), []), "regret", HALF[-1])
                for world in worlds
            ]
            if not any(count for _, _, count in values):
                continue
            style = {"color": series(k)["color"], "linestyle": "none", "capsize": 2}
            ax.errorbar(
                np.arange(len(worlds)) + 0.15 * (k - 1) + (0.05 if engine == "CorrDuel" else 0.0),
                [mean for mean, _, _ in values],
                [error for _, error, _ in values],
                marker=mark,
                label=f"{engine}, {measure}",
                **style,
            )
    ax.set_xticks(range(len(worlds)), worlds)
    ax.set_ylim(0.0, 0.5)
    ax.legend(frameon=False, fontsize=SMALL, loc="center left", bbox_to_anchor=(1.0, 0.5))
    title = f"regret of the recommended arm after {HALF[-1]} answers, by what r compares"
    return finish(ax, title, "world", "regret")
