"""How engines do in worlds that they were not made for: a campaign of simulated sessions.

Blocks of sessions are written to ``results/duel`` as they finish, so the campaign can be stopped at
any time and goes on where it stopped; tables and plots are made of what is there. Worlds are those
of a store of the bundled model; session q of every world has the seed (SEED, q), chosen before any
result was seen.
"""

import argparse
import csv
import math
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from bench_rows.duel import BoTorch
from numpy.typing import NDArray

from fieldcorr import load_model, open_store, precompute
from fieldcorr.correlation.sources import CorrelationSource, as_source
from fieldcorr.duel import BayesDuel, Engine, _kernels
from fieldcorr.duel.raters import LEAST
from fieldcorr.duel.simulate import BASELINES, Player, Sessions
from fieldcorr.duel.trials import Rater
from fieldcorr.duel.worlds import ElectrodeSpace, Grid, World, utilities
from study_parts.duel_results import (
    CALLED,
    CLOSE,
    CORE,
    ENGINES,
    FRESH,
    HALF,
    MEASURES,
    PEER,
    RESULTS,
    STEPS,
    STOP,
    TABLES,
    WORLDS,
    draw,
)

SEED = 2026
BLOCK = 5
PHYSICAL = ("linear", "target", "recruitment", "roots")
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
ERRING = tuple(RATERS)[1:6]
PLAYERS = {player.algorithm: player for player in BASELINES} | {
    name: Player(name, BoTorch, settings={"group": name.partition("-")[2]}) for name in PEER[2:]
}
"""Those that are not made of their name alone."""


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
    """Yield every block: the main table, then the rest, each in rounds for all worlds."""
    both = "BayesDuel", "CorrDuel"
    firsts = range(0, sessions, BLOCK)
    others = [world for world in WORLDS if world != "roots"]
    for worlds in (others, ["roots"]):
        for first, world, engine in product(firsts, worlds, ENGINES):
            yield Block("regret", world, engine, "plain", first)
    for turn, first in enumerate(firsts):
        if turn % 2 == 0:
            yield from _about_raters(first // 2, both)
            for world in WORLDS:
                yield Block("stop", world, "BayesDuel", "plain", first // 2)
        if turn % 4 == 0:
            for rater, world, engine in product(ERRING, CORE, both):
                yield Block("robust", world, engine, rater, first // 4)
            for measure, world, engine in product(MEASURES, PHYSICAL, both):
                yield Block("measure", world, engine, "plain", first // 4, measure)
        for fold in range(5):
            for engine in both:
                yield Block("grid", "grid", engine, "plain", 5 * first + BLOCK * fold)
                yield Block("close", "bumps", engine, "plain", CLOSE + 5 * first + BLOCK * fold)
        if turn % 2 == 0:
            for world, engine in product(WORLDS, both):
                yield Block("fresh", world, engine, "plain", FRESH + first // 2)
        if turn % 10 == 0:
            for world, engine in product(WORLDS, PEER):
                yield Block("peer", world, engine, "plain", first // 10)


def _about_raters(first: int, engines: tuple[str, ...]) -> Iterator[Block]:
    for engine in engines:
        for rater in ("coin", "left"):
            yield Block("raters", "linear", engine, rater, first)
        for world in CORE:
            yield Block("raters", world, engine, "plain", first)


# -- one block ------------------------------------------------------------------------------------


def play_block(block: Block) -> Block:
    """Play the sessions of a block and write their rows, whole or not at all."""
    trials = range(block.first, block.first + BLOCK)
    steps = STEPS if block.part in ("regret", "fresh") else HALF
    world, rater = _world(block.world, block.measure), RATERS[block.rater]
    player = PLAYERS.get(block.engine) or Player(block.engine, block.engine)
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
    """Return how often 90 % intervals hold the utility, of all arms and of those in the set.

    Duels tell a utility in units of their noise, so both are compared in these.
    """
    mean, sd = engine.posterior()
    truth = (utility - utility.mean()) / (math.sqrt(2.0) * Rater().noise)
    learnt = engine.raters[""]["noise"]
    inside = np.abs(truth - mean / learnt) <= 1.645 * sd / learnt
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
    called, verdict, to_go = 0, "", math.nan
    while not engine.done and not (called and rater.habit != "honest"):
        i, j = engine.ask()
        engine.answer(rater.answer(utility[i], utility[j], key, engine.answers))
        if not stopping and not called and engine.answers >= LEAST:
            verdict = engine.rater.verdict or ""
            called = engine.answers if verdict else 0
        if stopping and engine.answers == HALF[0]:
            to_go = engine.outlook["answers_to_go"]
        if rater.habit != "honest" and engine.answers >= CALLED:
            break
    regret = _kernels.regret(utility, int(np.argmax(utility)), engine.best, rater.noise)
    row = {"trial": trial, "t": engine.answers, "regret": float(regret), "to go": to_go}
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


def main() -> None:
    """Make the stores, play what is missing, draw if that was everything; or print one table."""
    parser = argparse.ArgumentParser(prog="scripts/study duel", description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200, help="per world and engine")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin no block after these")
    parser.add_argument("--share", type=int, nargs=2, default=(0, 1), metavar=("K", "N"),
                        help="play every N-th block from the K-th on, beside others")  # fmt: skip
    parser.add_argument("--only", nargs="*", default=[], help="names of engines and of parts")
    parser.add_argument("--show", choices=TABLES, help="only print a table of what is finished")
    parser.add_argument("--draw", action="store_true", help="only draw what is finished")
    options = parser.parse_args()
    if options.show:
        print(TABLES[options.show]())
        return
    if not options.draw:
        make_stores()
        engines = {name for name in options.only if name in {*ENGINES, *PEER}}
        parts = {*options.only} - engines
        chosen = [
            block
            for block in campaign(options.sessions)
            if (not engines or block.engine in engines) and (not parts or block.part in parts)
        ]
        first, every = options.share
        play_all(chosen[first::every], options.processes, 60.0 * options.minutes)
    if options.draw or not options.only:  # pictures are of all parts
        draw()


def make_stores() -> None:
    """Precompute the bundled model with every measure."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for measure in MEASURES:
        if not store_path(measure).exists():
            model = load_model("lumbosacral-565").replace({"measure.kind": measure})
            precompute(model, store_path(measure)).close()


def play_all(blocks: list[Block], processes: int, seconds: float) -> None:
    """Play the blocks that have no results yet; one process is this one."""
    missing = [block for block in blocks if not block.path.exists()]
    end, begun = time.monotonic() + seconds, time.monotonic()

    def report(done: int, block: Block) -> None:
        spent, path = time.monotonic() - begun, block.path.relative_to(RESULTS)
        print(f"[{spent:6.0f} s] {done} of {len(missing)}: {path}", file=sys.stderr)

    if processes == 1:
        for done, block in enumerate(missing, start=1):
            if time.monotonic() > end:
                return
            report(done, play_block(block))
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        running: set[Future[Block]] = set()
        for done, block in enumerate(missing):
            if time.monotonic() > end:
                break
            running.add(pool.submit(play_block, block))
            if len(running) >= 2 * processes:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    report(done, future.result())
        for future in running:
            future.result()


if __name__ == "__main__":
    main()
