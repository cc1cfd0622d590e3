"""What the restriction to 3 600 configurations costs: sessions on them and on all 42 915 650.

A patient wants one configuration and likes the others by their r with it: utility r / sd, sd the
deviation of r over all configurations, so that answers are as noisy as in the other studies. What
is wanted is drawn from the 3 600 ("inside") or from the rest ("outside"). Regret counts from the
best of all configurations in either space. Finished sessions are lines of
``results/whole/sessions.jsonl``: the study can be stopped and goes on where it stopped.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr import load_model
from fieldcorr.correlation.sources import CorrelationSource, as_source
from fieldcorr.duel import Engine
from fieldcorr.duel import _kernels as kernels
from fieldcorr.duel.simulate import Player
from fieldcorr.duel.trials import Rater
from fieldcorr.plot.style import SMALL, WIDTH, finish, new_figure, series
from fieldcorr.store import Store
from study_parts.duel_results import table
from study_parts.whole_agreement import RESULTS, stores

SEED = 2027
STEPS = (50, 100, 200, 400)
SPACES = ("3 600", "all")
ENGINES = ("BayesDuel", "CorrDuel")
PLACES = ("inside", "outside")
SESSIONS = RESULTS / "sessions.jsonl"
PICTURE = Path(__file__).resolve().parent.parent.parent / "docs" / "images" / "whole.png"

Key = tuple[str, str, str, int]
"""Space, engine, where the wanted configuration is, number of the session."""


class Patients:
    """The two spaces, and what patients want."""

    def __init__(self) -> None:
        model = load_model("lumbosacral-565")
        self.listed, self.whole = stores("voltage", model)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Rows of the 3 600 among all."""
        return self.whole.space.rows(self.listed.polarity[:])

    @cached_property
    def sources(self) -> dict[str, CorrelationSource]:
        """What engines are given: one of each, so that features and tables are made once."""
        return {space: as_source(self.store(space)) for space in SPACES}

    def wanted(self, place: str, session: int) -> int:
        """Return the row, among all, of what a patient wants."""
        rng = np.random.default_rng([SEED, session, PLACES.index(place)])
        if place == "inside":
            return int(rng.choice(self.rows))
        every = rng.integers(len(self.whole), size=100)
        return int(every[~np.isin(every, self.rows)][0])

    def store(self, space: str) -> Store:
        """Return the store to play on."""
        return self.whole if space == "all" else self.listed

    def utility(self, space: str, wanted: int, arms: Any) -> NDArray[np.float64]:
        """Return r of arms of a space with what is wanted."""
        whole = self.whole.source.whole
        polarity = self.store(space).polarity[np.asarray(arms)]
        z = whole.unit_rows(np.concatenate((polarity, whole.space.polarity([wanted]))))
        return np.asarray(np.einsum("kf,f->k", z[:-1], z[-1]))

    def best_listed(self, wanted: int) -> float:
        """Return the largest r of the 3 600 with what is wanted."""
        return float(self.utility("3 600", wanted, np.arange(len(self.listed))).max())


def play(patients: Patients, key: Key) -> dict[str, Any]:
    """Play one session and return its figures."""
    space, name, place, session = key
    began, wanted = time.process_time(), patients.wanted(place, session)
    scale = float(patients.whole.row(wanted).std(dtype=np.float64))
    rater, seed = Rater(), int(kernels.trial_seed(SEED, session))
    source = patients.sources[space]
    engine: Engine = Player(name, name).engine(source, horizon=STEPS[-1], seed=seed)
    regret, found = {}, {}
    for step in range(STEPS[-1]):
        if not engine.done:
            i, j = engine.ask()
            left, right = patients.utility(space, wanted, [i, j]) / scale
            engine.answer(rater.answer(left, right, seed, step))
        if step + 1 in STEPS:
            r = float(patients.utility(space, wanted, [engine.best])[0])
            found[step + 1] = r
            regret[step + 1] = 0.5 * math.erf((1.0 - r) / scale / (2.0 * rater.noise))
    return {
        "key": key,
        "r": found,
        "regret": regret,
        "best listed": patients.best_listed(wanted),
        "seconds": time.process_time() - began,
    }


def campaign(engines: list[str], listed: int, whole: int) -> Iterator[Key]:
    """Yield sessions in rounds; those on the 3 600 are cheap and come first."""
    for space, sessions in zip(SPACES, (listed, whole), strict=True):
        for session in range(sessions):
            for engine, place in product(engines, PLACES):
                yield space, engine, place, session


def finished() -> list[dict[str, Any]]:
    """Return the sessions that have been played."""
    if not SESSIONS.exists():
        return []
    return [json.loads(line) for line in SESSIONS.read_text().splitlines()]


def of_cell(space: str, engine: str, place: str) -> list[dict[str, Any]]:
    """Return the finished sessions of one line of the table."""
    return [row for row in finished() if row["key"][:3] == [space, engine, place]]


def moments(values: list[float]) -> tuple[float, float]:
    """Return mean and standard error."""
    return float(np.mean(values)), float(np.std(values) / max(1, len(values) - 1) ** 0.5)


def summary() -> str:
    """Return regret and r with what is wanted, by number of answers."""
    lines = []
    for place, engine, space in product(PLACES, ENGINES, SPACES):
        rows = of_cell(space, engine, place)
        if rows:
            figures = [
                "{:.3f} ± {:.3f}".format(*moments([row["regret"][str(t)] for row in rows]))
                for t in STEPS
            ]
            last = f"{np.mean([row['r'][str(STEPS[-1])] for row in rows]):.2f}"
            lines.append([place, engine, space, str(len(rows)), *figures, last])
    heading = ["wanted", "engine", "space", "sessions", *(f"T = {t}" for t in STEPS)]
    return table([*heading, f"r at {STEPS[-1]}"], lines)


def differences() -> str:
    """Return how much larger regret is on all than on 3 600, for the same patients."""
    lines = []
    for place, engine in product(PLACES, ENGINES):
        listed, whole = ({row["key"][3]: row for row in of_cell(s, engine, place)} for s in SPACES)
        both = sorted(listed.keys() & whole.keys())
        if both:
            figures = [
                "{:+.3f} ± {:.3f}".format(
                    *moments(
                        [whole[n]["regret"][str(t)] - listed[n]["regret"][str(t)] for n in both]
                    )
                )
                for t in STEPS
            ]
            lines.append([place, engine, str(len(both)), *figures])
    return table(["wanted", "engine", "patients", *(f"T = {t}" for t in STEPS)], lines)


def draw() -> None:
    """Draw regret against answers, one panel for each place of what is wanted."""
    figure = new_figure((WIDTH * 1.2, 3.2))
    panels = figure.subplots(1, 2, sharey=True)
    for panel, place in zip(panels, PLACES, strict=True):
        for k, (engine, space) in enumerate(product(ENGINES, SPACES)):
            rows = of_cell(space, engine, place)
            if rows:
                points = [moments([row["regret"][str(t)] for row in rows]) for t in STEPS]
                mean, error = zip(*points, strict=True)
                label = f"{engine}, {space}, {len(rows)} sessions"
                panel.errorbar(STEPS, mean, error, label=label, capsize=2, **series(k))
        panel.set_xscale("log")
        panel.set_xticks(STEPS, [str(t) for t in STEPS])
        panel.minorticks_off()
        panel.set_ylim(0.0, 0.25)
        panel.legend(frameon=False, fontsize=SMALL)
        finish(panel, f"wanted {place} the 3 600", "answers", "regret")
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Play what is missing, then print the table and draw."""
    parser = argparse.ArgumentParser(prog="scripts/study whole", description=__doc__)
    parser.add_argument("--engines", nargs="*", choices=ENGINES, default=ENGINES)
    parser.add_argument("--listed", type=int, default=20, help="sessions per line on 3 600")
    parser.add_argument("--whole", type=int, default=10, help="sessions per line on all")
    parser.add_argument("--minutes", type=float, default=1e9, help="begin none after these")
    options = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    patients, end = Patients(), time.monotonic() + 60.0 * options.minutes
    known = {tuple(row["key"]) for row in finished()}
    for key in campaign(options.engines, options.listed, options.whole):
        if key not in known and time.monotonic() < end:
            found = play(patients, key)
            with SESSIONS.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(f"{key}: {found['regret']}, {found['seconds']:.0f} s", flush=True)
    print(f"{summary()}\n\n{differences()}")
    draw()


if __name__ == "__main__":
    main()
