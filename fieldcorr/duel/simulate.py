"""Simulated experiments: many trials of several algorithms in one world.

What flows in: a world, players (an algorithm with its options), numbers of trials and duels, noise,
a seed. What flows out: a frozen :class:`Experiment` with the stepwise regret of every player.

Regret is eps = P(b1 beats b) - 1/2 of the paper, averaged over the two arms of a duel, where b1 is
the arm with the largest utility and answers compare values with Gaussian noise. It is at most 1/2.
"""

import csv
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import threads as use_threads
from fieldcorr.duel import _kernels
from fieldcorr.duel.options import DuelOptions
from fieldcorr.duel.worlds import World, utilities
from fieldcorr.errors import DuelError, ExportError

_DEFAULT = DuelOptions()

CHUNK = 200
"""Trials played at once: 4 MB of utilities at K = 2500."""


@dataclass(frozen=True)
class Player:
    """One algorithm with its options.

    Attributes
    ----------
    name : str
        For tables and plots.
    algorithm : str
        "CorrDuel", "BeatTheMean", "RUCB" or "SparringUCB1".
    options : DuelOptions
        For CorrDuel.
    alpha : float
        Exploration of RUCB and of UCB1.
    """

    name: str
    algorithm: str
    options: DuelOptions = _DEFAULT
    alpha: float = 0.51


CODES = {
    "CorrDuel": _kernels.CORRDUEL,
    "BeatTheMean": _kernels.BEAT_THE_MEAN,
    "RUCB": _kernels.RUCB,
    "SparringUCB1": _kernels.SPARRING,
}

BASELINES = (
    Player("Beat-the-Mean", "BeatTheMean"),
    Player("RUCB", "RUCB"),
    Player("Sparring-UCB1", "SparringUCB1", alpha=2.0),
)

PRINTED = Player("CorrDuel as printed", "CorrDuel", DuelOptions.paper())


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one player did; arrays over trials and steps.

    Attributes
    ----------
    eps : (N, T) float32
        Stepwise regret.
    returned : (N,)
        Regret of the arm that would be returned.
    left : (N,)
        Arms left at the end.
    kept : (N,)
        Whether the best arm is among them.
    seconds : float
        Time of the trials.
    """

    player: Player
    eps: NDArray[np.float32]
    returned: NDArray[np.float64]
    left: NDArray[np.float64]
    kept: NDArray[np.float64]
    seconds: float

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

    def write_csv(self, path: Path) -> None:
        """Write mean and deviation per player and step; settings as comment lines above."""
        with _writable(path) as file:
            for key, value in self.settings.items():
                file.write(f"# {key}: {value}\n")
            writer = csv.writer(file)
            writer.writerow(["algorithm", "t", "mean", "deviation"])
            for outcome in self.outcomes:
                pairs = zip(outcome.mean, outcome.deviation, strict=True)
                for t, (mean, deviation) in enumerate(pairs, start=1):
                    writer.writerow([outcome.player.name, t, f"{mean:.6f}", f"{deviation:.6f}"])


def _writable(path: Path) -> TextIO:
    try:
        return path.open("w", newline="", encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror}") from error


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
    """Play ``trials`` trials of ``horizon`` duels with every player.

    Parameters
    ----------
    world
        Arms and utilities; all players meet the same utilities.
    players
        Who plays.
    noise
        Standard deviation of each of the two values that a duel compares.
    seed
        Fixes utilities, pairs and answers; the result does not depend on ``threads``.
    progress
        Called with a stage and the part done.
    """
    _check(players, trials=trials, horizon=horizon, noise=noise, seed=seed)
    r = world.correlations()
    eps = [np.zeros((trials, horizon), dtype=np.float32) for _ in players]
    result = [np.zeros((trials, 3)) for _ in players]
    seconds = [0.0] * len(players)
    tables: dict[tuple[float, bool], tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
    with use_threads(threads):
        for first in range(0, trials, CHUNK):
            part = slice(first, min(first + CHUNK, trials))
            drawn = utilities(world, seed, first, part.stop - first)
            for index, player in enumerate(players):
                start = time.perf_counter()
                similar, logs = _tables(player, r, tables)
                _kernels.run_trials(
                    CODES[player.algorithm],
                    drawn,
                    first,
                    seed,
                    noise,
                    similar,
                    logs,
                    _numbers(player, len(r), horizon),
                    player.alpha,
                    eps[index][part],
                    result[index][part],
                )
                seconds[index] += time.perf_counter() - start
            if progress is not None:
                progress("trials", part.stop / trials)
    outcomes = tuple(
        Outcome(player, e, s[:, 0], s[:, 1], s[:, 2], t)
        for player, e, s, t in zip(players, eps, result, seconds, strict=True)
    )
    return Experiment(outcomes, _settings(world, players, trials, horizon, noise, seed))


def _tables(
    player: Player,
    r: NDArray[np.float32],
    known: dict[tuple[float, bool], tuple[NDArray[np.float32], NDArray[np.float32]]],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return r~ under the player's policy and its logarithm; 0 where it is not positive."""
    if player.algorithm != "CorrDuel":
        return r[:1], r[:1]
    key = (player.options.floor, player.options.require_positive)
    if key not in known:
        similar = np.clip(r, np.float32(player.options.floor), np.float32(1.0))
        positive = similar > 0.0
        logs = np.log(similar, where=positive, out=np.zeros_like(similar))
        known[key] = similar, logs
    return known[key]


def _numbers(player: Player, arms: int, horizon: int) -> tuple[float, bool, bool, bool, bool, bool]:
    """Return the options as the kernels take them."""
    options = player.options
    log_term = options.log_term
    if player.algorithm == "BeatTheMean":
        log_term = 9.0 * math.log(2.0 * horizon * arms)
    return (
        log_term,
        options.radius == "arm",
        options.eliminate == "all",
        options.history == "keep",
        options.clip,
        options.pin_duelled,
    )


def _check(
    players: Sequence[Player], *, trials: int, horizon: int, noise: float, seed: int
) -> None:
    for name, value in (("trials", trials), ("horizon", horizon)):
        if value < 1:
            raise DuelError(f"{name}: {value} is not at least 1")
    if not noise > 0.0:
        raise DuelError(f"noise: {noise} is not positive")
    if seed < 0:
        raise DuelError(f"seed: {seed} is negative")
    for player in players:
        if player.algorithm not in CODES:
            raise DuelError(f"algorithm {player.algorithm!r} is not one of {', '.join(CODES)}")
        if player.options.chain:
            raise DuelError(f"{player.name}: chained duels are not simulated")


def _settings(
    world: World, players: Sequence[Player], trials: int, horizon: int, noise: float, seed: int
) -> dict[str, Any]:
    from fieldcorr import __version__

    settings: dict[str, Any] = {
        "fieldcorr": __version__,
        "world": world.name,
        "trials": trials,
        "horizon": horizon,
        "noise": noise,
        "seed": seed,
    }
    for player in players:
        options = player.options.record() if player.algorithm == "CorrDuel" else {}
        settings[player.name] = ", ".join(f"{key} = {value}" for key, value in options.items())
    return settings
