"""How engines do in worlds that they were not made for: a campaign of simulated sessions.

Blocks of sessions are written to ``results/duel`` as they finish, so the campaign can be stopped at
any time and goes on where it stopped; tables and plots are made of what is there. Worlds are those
of a store of the bundled model; session q of every world has the seed (SEED, q), chosen before any
result was seen.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr import load_model, open_store, precompute
from fieldcorr.correlation.sources import CorrelationSource, as_source
from fieldcorr.duel import BayesDuel, Engine, _kernels
from fieldcorr.duel.raters import LEAST
from fieldcorr.duel.simulate import BASELINES, Player, Sessions
from fieldcorr.duel.trials import Rater
from fieldcorr.duel.worlds import ElectrodeSpace, Grid, World, utilities

RESULTS = Path(__file__).resolve().parent.parent.parent / "results" / "duel"
SEED = 2026
BLOCK = 5
STEPS = (50, 100, 200, 400)
HALF = STEPS[:2]
WORLDS = ("linear", "target", "recruitment", "roots", "matern", "magnitude", "smooth", "bumps")
CORE = ("linear", "target", "recruitment", "matern", "magnitude")
ENGINES = ("BayesDuel", "CorrDuel", "LinearThompson", "KernelSelfSparring")
MEASURES = ("potential", "field", "activating")
RATERS = {
    "plain": Rater(),
    "10 % flipped": Rater(lapse=0.2),
    "ties": Rater(ties=0.3),
    "amplitude x 0.5": Rater(noise=1.0),
    "amplitude x 2": Rater(noise=0.25),
    "drift": Rater(drift=0.2),
    "coin": Rater(habit="coin"),
    "left": Rater(habit="left"),
}
STOP = (0.9, 0.1)
CALLED = 40


@dataclass(frozen=True)
class Block:
    """Some sessions of one engine in one world with one rater."""

    part: str
    world: str
    engine: str
    rater: str
    first: int
    measure: str = "potential"

    @property
    def path(self) -> Path:
        """Where its rows are, once it is finished."""
        names = (self.part, self.world, self.engine, self.rater, self.measure)
        return RESULTS.joinpath(*(n.replace(" ", "-") for n in names)) / f"{self.first:05d}.csv"


def campaign(sessions: int) -> Iterator[Block]:
    """Yield every block, the most wanted first: all worlds advance together."""
    for first in range(0, sessions, BLOCK):
        for world in WORLDS:
            for engine in ENGINES:
                yield Block("regret", world, engine, "plain", first)
        if first < sessions // 2:
            for world in CORE:
                for engine in ("BayesDuel", "CorrDuel"):
                    yield Block("raters", world, engine, "plain", first)
                    if world == "linear":
                        yield Block("raters", world, engine, "coin", first)
                        yield Block("raters", world, engine, "left", first)
                yield Block("stop", world, "BayesDuel", "plain", first)
        if first < sessions // 4:
            for rater in list(RATERS)[1:6]:
                for world in CORE:
                    for engine in ("BayesDuel", "CorrDuel"):
                        yield Block("robust", world, engine, rater, first)
            for measure in MEASURES:
                for world in ("linear", "target", "recruitment", "roots"):
                    for engine in ("BayesDuel", "CorrDuel"):
                        yield Block("measure", world, engine, "plain", first, measure)
        for fold in range(5):
            for engine in ("BayesDuel", "CorrDuel", *(player.algorithm for player in BASELINES)):
                yield Block("grid", "grid", engine, "plain", 5 * first + BLOCK * fold)


# -- one block ------------------------------------------------------------------------------------


def play_block(block: Block) -> Block:
    """Play the sessions of a block and write their rows, whole or not at all."""
    trials = range(block.first, block.first + BLOCK)
    steps = STEPS if block.part == "regret" else HALF
    world, rater = _world(block.world, block.measure), RATERS[block.rater]
    player = next((p for p in BASELINES if p.algorithm == block.engine), None)
    player = player or Player(block.engine, block.engine)
    if block.part in ("raters", "stop"):
        rows = [_watched(block, world, rater, trial) for trial in trials]
    else:
        observe = coverage if block.engine == "BayesDuel" and block.part == "regret" else None
        played = Sessions(world, player, rater, steps, SEED, observe)
        rows = [
            {"trial": trial, **row, "seconds": done.seconds}
            for trial, done in zip(trials, played.play(trials), strict=True)
            for row in done.rows
        ]
    block.path.parent.mkdir(parents=True, exist_ok=True)
    draft = block.path.with_suffix(f".{os.getpid()}")
    with draft.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    draft.replace(block.path)
    return block


def coverage(engine: BayesDuel, utility: NDArray[np.float64]) -> dict[str, float]:
    """Return how often 90 % intervals hold the utility, of all arms and of those in the set."""
    mean, sd = engine.posterior()
    inside = np.abs(utility - utility.mean() - mean) <= 1.645 * sd
    return {
        "covered": float(inside.mean()),
        "covered set": float(inside[engine.survivors.arm].mean()),
        "expected regret": engine.remaining_regret,
    }


def _watched(block: Block, world: World, rater: Rater, trial: int) -> dict[str, Any]:
    """Play until the rater is called out, or until the stopping rule is met."""
    (utility,), key = utilities(world, SEED, trial, 1), int(_kernels.trial_seed(SEED, trial))
    stopping = block.part == "stop"
    settings = {"stop": STOP} if stopping else {"repeats": 0.05}
    player = Player(block.engine, block.engine, settings=settings)
    horizon = STEPS[-1] if stopping else STEPS[1]
    engine: Engine = player.engine(world.source(), horizon=horizon, seed=key)
    called, verdict = 0, ""
    while not engine.done and not (called and rater.habit != "honest"):
        i, j = engine.ask()
        engine.answer(rater.answer(utility[i], utility[j], key, engine.answers))
        if not stopping and not called and engine.answers >= LEAST:
            verdict = engine.rater.verdict or ""
            called = engine.answers if verdict else 0
        if rater.habit != "honest" and engine.answers >= CALLED:
            break
    regret = _kernels.regret(utility, int(np.argmax(utility)), engine.best, rater.noise)
    row = {"trial": trial, "t": engine.answers, "regret": float(regret)}
    return row | {"called": called, "verdict": verdict, "repeated": engine.rater.repeated}


@cache
def _world(name: str, measure: str) -> World:
    if name == "grid":
        return Grid()
    # Utilities are always those of the potential: only what engines are given changes.
    own = open_store(store_path("potential"))
    return ElectrodeSpace.of_store(own, name, correlation=_source(measure))  # type: ignore[arg-type]


@cache
def _source(measure: str) -> CorrelationSource:
    """Return what engines are given: one for all worlds, so that features are made once."""
    return as_source(open_store(store_path(measure)))


def store_path(measure: str) -> Path:
    """Return the store of the bundled model with this measure."""
    return RESULTS / f"{measure}.h5"


# -- tables ---------------------------------------------------------------------------------------


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
    values = np.array([float(row[column]) for row in rows if int(row["t"]) == t])
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
        count = len({row["trial"] for row in rows})
        beside = [] if case is None else [group[case].replace("-", " ")]
        figures = [text(figure(rows, column, t)) for t in steps]
        lines.append([group[0], *beside, group[1], str(count), *figures])
    heading = ["world", *([] if case is None else ["case"]), "engine", "sessions"]
    return table([*heading, *(f"T = {t}" for t in steps)], lines)


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
        lines.append(line)
    heading = ["world", "all arms, T = 100", "set", "all arms, T = 400", "set"]
    heading += ["regret at 100, expected / true", "stopped", "rule held", "answers, median"]
    return table(heading, lines)


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


def report() -> None:
    """Write every table to ``results/duel.md``."""
    parts = {
        "Regret of the recommended arm": regret_table("regret", "regret", STEPS),
        "Regret of the arms played, last ten pairs": regret_table("regret", "eps", STEPS),
        "Calibration of BayesDuel": calibration_table(),
        "Raters who err: regret of the recommended arm": regret_table("robust", "regret", HALF),
        "Raters called out": called_table(),
        "Which r: regret of the recommended arm": regret_table("measure", "regret", HALF),
        "The paper's grid: regret of the recommended arm": regret_table("grid", "regret", HALF),
        "The paper's grid: regret of the arms played": regret_table("grid", "eps", HALF),
    }
    written = "\n\n".join(f"## {title}\n\n{content}" for title, content in parts.items())
    (RESULTS.parent / "duel.md").write_text(written + "\n")
    print(written)


def main() -> None:
    """Make the stores, play what is missing, write the tables."""
    parser = argparse.ArgumentParser(prog="scripts/study duel", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200, help="per world and engine")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no block after these")
    parser.add_argument("--only", nargs="*", default=[], help="names of engines or parts")
    parser.add_argument("--report", action="store_true", help="only write the tables")
    options = parser.parse_args()
    if not options.report:
        make_stores()
        chosen = [
            block
            for block in campaign(options.sessions)
            if not options.only or {block.engine, block.part} & set(options.only)
        ]
        play_all(chosen, options.processes, 60.0 * options.minutes)
    report()


def make_stores() -> None:
    """Precompute the bundled model with every measure."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for measure in MEASURES:
        if not store_path(measure).exists():
            model = load_model("lumbosacral-565").replace({"measure.kind": measure})
            precompute(model, store_path(measure)).close()


def play_all(blocks: list[Block], processes: int, seconds: float) -> None:
    """Play the blocks that have no results yet."""
    missing = [block for block in blocks if not block.path.exists()]
    end, begun = time.monotonic() + seconds, time.monotonic()
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running: set[Future[Block]] = set()
        for done, block in enumerate(missing):
            if time.monotonic() > end:
                break
            running.add(pool.submit(play_block, block))
            if len(running) >= 2 * processes:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    path = future.result().path.relative_to(RESULTS)
                    spent = time.monotonic() - begun
                    print(f"[{spent:6.0f} s] {done} of {len(missing)}: {path}", file=sys.stderr)
        for future in running:
            future.result()


if __name__ == "__main__":
    main()
