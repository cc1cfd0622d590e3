"""Simulated experiments: many trials of several algorithms in one world.

Trials run in kernels that play what the engines would (:mod:`fieldcorr.duel._kernels`).
Regret is eps = P(b1 beats b) - 1/2 of the paper, averaged over the two arms of a duel, where b1 is
the arm with the largest utility and answers compare values with Gaussian noise. It is at most 1/2.
"""

import csv
import io
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import available_threads
from fieldcorr.correlation.numbers import real_number, whole_number
from fieldcorr.correlation.rule import log_table
from fieldcorr.duel import _kernels
from fieldcorr.duel.baselines import common_radius
from fieldcorr.duel.export import write_file
from fieldcorr.duel.options import DuelOptions
from fieldcorr.duel.worlds import World, utilities
from fieldcorr.errors import DuelError

_DEFAULT = DuelOptions()

CHUNK = 50
"""Trials that one thread plays at once: 1 MB of utilities at K = 2500."""


@dataclass(frozen=True)
class Player:
    """One algorithm with its options."""

    name: str  # for tables and plots
    algorithm: str  # one of ALGORITHMS
    options: DuelOptions = _DEFAULT  # for CorrDuel
    alpha: float = 0.51  # exploration of RUCB and of UCB1


ALGORITHMS = ("CorrDuel", "BeatTheMean", "RUCB", "SparringUCB1")

BASELINES = (
    Player("Beat-the-Mean", "BeatTheMean"),
    Player("RUCB", "RUCB"),
    Player("Sparring-UCB1", "SparringUCB1", alpha=2.0),
)

PRINTED = Player("CorrDuel as printed", "CorrDuel", DuelOptions.paper())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one player did in N trials of T duels."""

    player: Player
    eps: NDArray[np.float32]  # (N, T), stepwise regret
    returned: NDArray[np.float64]  # (N,), regret of the arm that would be returned
    left: NDArray[np.float64]  # (N,), arms left at the end
    kept: NDArray[np.float64]  # (N,), whether the best arm is among them
    seconds: float  # of the trials, added up over threads

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean regret over trials, (T,)."""
        return np.asarray(self.eps.mean(axis=0, dtype=np.float64))

    @property
    def deviation(self) -> NDArray[np.float64]:
        """One standard deviation over trials, (T,), the dashed lines of the paper's figure."""
        return np.asarray(self.eps.std(axis=0, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class Experiment:
    """The outcomes of all players, and the settings that repeat them."""

    outcomes: tuple[Outcome, ...]
    settings: Mapping[str, Any]

    def table(self) -> tuple[list[str], list[list[object]]]:
        """Return headings and rows: mean regret at some steps, and what was returned."""
        horizon = self.outcomes[0].eps.shape[1]
        steps = [t for t in (1, 10, 25, 50, 100, 200, 400, 800) if t < horizon] + [horizon]
        heading = ["algorithm", *(f"t = {t}" for t in steps), "sd", "returned", "left", "best kept"]
        rows: list[list[object]] = []
        for outcome in self.outcomes:
            mean = outcome.mean
            rows.append(
                [
                    outcome.player.name,
                    *(f"{mean[t - 1]:.3f}" for t in steps),
                    f"{outcome.deviation[-1]:.3f}",
                    f"{outcome.returned.mean():.3f}",
                    f"{outcome.left.mean():.0f}",
                    f"{100 * outcome.kept.mean():.0f} %",
                ]
            )
        return heading, rows

    def write_csv(self, path: Path, *, force: bool = False) -> None:
        """Write mean and deviation per player and step; settings as comment lines above.

        ``force`` replaces an existing file.
        """
        file = io.StringIO()
        for key, value in self.settings.items():
            file.write(f"# {key}: {value}\n")
        writer = csv.writer(file)
        writer.writerow(["algorithm", "t", "mean", "deviation"])
        for outcome in self.outcomes:
            pairs = zip(outcome.mean, outcome.deviation, strict=True)
            for t, (mean, deviation) in enumerate(pairs, start=1):
                writer.writerow([outcome.player.name, t, f"{mean:.6f}", f"{deviation:.6f}"])
        write_file(path, file.getvalue(), force=force)


def simulate(
    world: World,
    players: Sequence[Player],
    *,
    trials: int,
    horizon: int,
    noise: float = 0.5,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Experiment:
    """Play ``trials`` trials of ``horizon`` duels with every player, all on the same utilities.

    ``noise`` is the standard deviation of each of the two values that a duel compares. ``seed``
    fixes utilities, pairs and answers; the result does not depend on ``threads``. ``progress`` is
    called with a stage and the part done.
    """
    trials = whole_number(trials, "trials", DuelError, least=1)
    horizon = whole_number(horizon, "horizon", DuelError, least=1)
    seed, noise = whole_number(seed, "seed", DuelError), real_number(noise, "noise", DuelError)
    if not noise > 0.0:
        raise DuelError(f"noise: {noise} is not positive")
    chosen = games(players, world.correlations(), horizon)
    eps = np.zeros((len(players), trials, horizon), dtype=np.float32)
    result = np.zeros((len(players), trials, 3))

    def play(first: int) -> list[float]:
        part = slice(first, min(first + CHUNK, trials))
        drawn = utilities(world, seed, first, part.stop - first)
        keys = [_kernels.trial_seed(seed, trial) for trial in range(first, part.stop)]
        clock = [time.perf_counter()]
        for game, e, s in zip(chosen, eps, result, strict=True):
            for utility, key, row, end in zip(drawn, keys, e[part], s[part], strict=True):
                game(utility, key, noise, row, end)
            clock.append(time.perf_counter())
        return np.diff(clock).tolist()

    seconds = np.zeros(len(players))
    with ThreadPoolExecutor(threads or available_threads()) as pool:
        chunks = range(0, trials, CHUNK)
        for done, spent in enumerate(pool.map(play, chunks), start=1):
            seconds += spent
            if progress is not None:
                progress("trials", done / len(chunks))
    outcomes = tuple(
        Outcome(player, e, s[:, 0], s[:, 1], s[:, 2], float(t))
        for player, e, s, t in zip(players, eps, result, seconds, strict=True)
    )
    return Experiment(outcomes, _settings(world, players, trials, horizon, noise, seed))


Game = Callable[[NDArray[np.float64], int, float, NDArray[np.float32], NDArray[np.float64]], None]
"""Plays one trial: (utility, seed, noise, eps to fill, result to fill)."""


def games(players: Sequence[Player], r: NDArray[np.float32], horizon: int) -> list[Game]:
    """Return for each player the kernel that plays its trials, options filled in; r is (K, K)."""
    logs: dict[tuple[float, bool], NDArray[np.float64]] = {}
    found: list[Game] = []
    for player in players:
        options, policy = player.options, player.options.policy
        if player.algorithm == "CorrDuel":
            key = policy.floor, policy.require_positive
            if key not in logs:
                logs[key] = log_table(r, policy)
            found.append(partial(_kernels.corrduel_trial, options.choices, r, logs[key]))
        elif player.algorithm == "BeatTheMean":
            choices = common_radius(9.0 * math.log(2.0 * horizon * len(r)))
            found.append(partial(_kernels.beat_the_mean_trial, choices))
        elif player.algorithm == "RUCB":
            found.append(partial(_kernels.rucb_trial, float(player.alpha)))
        elif player.algorithm == "SparringUCB1":
            found.append(partial(_kernels.sparring_trial, float(player.alpha)))
        else:
            known = ", ".join(ALGORITHMS)
            raise DuelError(f"algorithm {player.algorithm!r} is not one of {known}")
    return found


def _settings(
    world: World, players: Sequence[Player], trials: int, horizon: int, noise: float, seed: int
) -> dict[str, Any]:
    from fieldcorr import __version__

    settings: dict[str, Any] = {"fieldcorr": __version__, "world": world.name, "trials": trials}
    settings |= {"horizon": horizon, "noise": noise, "seed": seed}
    for player in players:
        options = player.options.record() if player.algorithm == "CorrDuel" else {}
        settings[player.name] = ", ".join(f"{key} = {value}" for key, value in options.items())
    return settings
