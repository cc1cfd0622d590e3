"""Simulated experiments: many trials of several algorithms in one world.

The paper's algorithms with a plain rater run in kernels that play what the engines would
(:mod:`fieldcorr.duel._kernels`); everything else by ask and tell (:mod:`fieldcorr.duel.trials`).
Regret is eps = P(b1 beats b) - 1/2 of the paper, averaged over the two arms of a duel, where b1 is
the arm with the largest utility and answers compare values with Gaussian noise. It is at most 1/2.
"""

import csv
import importlib
import io
import math
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import available_threads
from fieldcorr.cluster import Crew
from fieldcorr.correlation.numbers import whole_number
from fieldcorr.correlation.rule import log_table
from fieldcorr.correlation.sources import CorrelationSource
from fieldcorr.duel import _kernels
from fieldcorr.duel.baselines import common_radius
from fieldcorr.duel.export import write_file
from fieldcorr.duel.options import DuelOptions
from fieldcorr.duel.peers import ENGINES
from fieldcorr.duel.trials import LAST, Rater, Row, Trial, play
from fieldcorr.duel.worlds import WholeSpace, World, utilities
from fieldcorr.errors import DuelError

_DEFAULT = DuelOptions()

CHUNK = 50
"""Trials that one thread plays at once: 1 MB of utilities at K = 2500."""

CHECKPOINTS = (50, 100, 200, 400, 800)
"""Duels after which the recommended arm is noted, and at the end."""


@dataclass(frozen=True)
class Player:
    """One algorithm with its options."""

    name: str  # for tables and plots
    algorithm: Any  # one of ENGINES, "module:factory", a factory, or an object with ask and tell
    options: DuelOptions = _DEFAULT  # for CorrDuel
    alpha: float = 0.51  # exploration of RUCB and of UCB1
    settings: Mapping[str, object] = field(default_factory=dict)  # keywords of any other engine

    def engine(self, source: CorrelationSource, *, horizon: int, seed: int) -> Any:
        """Return an engine before its first duel; an object is copied."""
        made = self.algorithm
        if isinstance(made, str):
            made = _named_engine(made)
        if hasattr(made, "ask") and not isinstance(made, type):
            return deepcopy(made)
        return made(source, horizon=horizon, seed=seed, **self._keywords())

    def _keywords(self) -> dict[str, object]:
        if self.algorithm == "CorrDuel":
            return {"options": self.options, **self.settings}
        if self.algorithm in ("RUCB", "SparringUCB1"):
            return {"alpha": self.alpha, **self.settings}
        return dict(self.settings)


def _named_engine(name: str) -> Any:
    """Return an engine of this package, or what ``module:factory`` names."""
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in ENGINES:
            raise DuelError(
                f"algorithm {name!r} is not one of {', '.join(ENGINES)}, or module:factory"
            )
        return ENGINES[name]
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DuelError(f"engine {name!r}: {error}") from error


COMPILED = ("CorrDuel", "BeatTheMean", "RUCB", "SparringUCB1")
"""Algorithms with a kernel that plays whole trials."""

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
    checkpoints: tuple[int, ...]  # numbers of duels, C of them; the last is T
    regret: NDArray[np.float64]  # (N, C), of the arm that would be returned after so many
    left: NDArray[np.float64]  # (N,), arms left at the end
    kept: NDArray[np.float64]  # (N,), whether the best arm is among them
    seconds: float  # of the trials, added up over threads

    @property
    def returned(self) -> NDArray[np.float64]:
        """Regret of the arm that would be returned at the end, (N,)."""
        return np.asarray(self.regret[:, -1])

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
    settings: Mapping[str, object]

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
                    f"{outcome.returned.mean():.3f} \u00b1 {standard_error(outcome.returned):.3f}",
                    *_set_figures(outcome),
                ]
            )
        return heading, rows

    def rows(self) -> list[Row]:
        """Return one row per player, trial and checkpoint; eps is the mean of the last 10 pairs."""
        rows: list[Row] = []
        for outcome in self.outcomes:
            for trial, (eps, regret) in enumerate(zip(outcome.eps, outcome.regret, strict=True)):
                for t, value in zip(outcome.checkpoints, regret, strict=True):
                    last = float(eps[max(0, t - LAST) : t].mean(dtype=np.float64))
                    row = {"algorithm": outcome.player.name, "trial": trial, "t": t, "eps": last}
                    rows.append(row | {"regret": float(value)})
        return rows

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


def _set_figures(outcome: Outcome) -> tuple[str, str]:
    """Return how many arms are left and how often the best is one of them, if the engine tells."""
    if np.isnan(outcome.left).any():
        return "", ""
    return f"{outcome.left.mean():.0f}", f"{100 * outcome.kept.mean():.0f} %"


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of a mean over trials; NaN for one trial."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def simulate(
    world: World,
    players: Sequence[Player],
    *,
    trials: int,
    horizon: int,
    noise: float = 0.5,
    rater: Rater | None = None,
    seed: int = 0,
    threads: int | None = None,
    processes: int = 1,
    crew: Crew | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Experiment:
    """Play ``trials`` trials of ``horizon`` duels with every player, all on the same utilities.

    ``noise`` is the standard deviation of each of the two values that a duel compares; a ``rater``
    has more to say, and ``noise`` is then not used. ``seed`` fixes utilities, pairs and answers;
    the result depends neither on ``threads``, of the compiled trials, nor on ``processes``, of the
    others, nor on a ``crew`` that plays all of them. ``progress`` is called with a stage and the
    part done.
    """
    trials = whole_number(trials, "trials", DuelError, least=1)
    horizon = whole_number(horizon, "horizon", DuelError, least=1)
    seed, person = whole_number(seed, "seed", DuelError), rater or Rater(noise=noise)
    steps = (*(t for t in CHECKPOINTS if t < horizon), horizon)
    fast = person.plain and not isinstance(world, WholeSpace)
    compiled = [p for p in players if fast and p.algorithm in COMPILED]
    others = [p for p in players if p not in compiled]
    report = progress or (lambda stage, done: None)
    found: dict[int, Outcome] = {}
    if compiled:
        kernels = Compiled(world, tuple(compiled), steps, person.noise, seed)
        outcomes = kernels.play(trials, threads, crew, partial(report, "trials"))
        found |= {id(player): outcome for player, outcome in zip(compiled, outcomes, strict=True)}
    for player in others:
        sessions, played = Sessions(world, player, person, steps, seed), []
        for trial in sessions.play(range(trials), processes=processes, crew=crew):
            played.append(trial)
            report(player.name, len(played) / trials)
        found[id(player)] = _outcome(player, steps, played)
    outcomes = [found[id(player)] for player in players]
    return Experiment(tuple(outcomes), _settings(world, players, trials, horizon, person, seed))


@dataclass(frozen=True, eq=False)
class Compiled:
    """Whole trials in kernels; what is returned at a checkpoint is that of a shorter trial."""

    world: World
    players: tuple[Player, ...]
    steps: tuple[int, ...]
    noise: float
    seed: int

    def play(
        self,
        trials: int,
        threads: int | None,
        crew: Crew | None,
        report: Callable[[float], None],
    ) -> list[Outcome]:
        """Play trials in chunks, in threads of this process or by a crew."""
        edges = range(0, trials, CHUNK)
        bounds = [(first, min(first + CHUNK, trials)) for first in edges]
        parts: dict[int, _Part] = {}
        if crew is not None:
            parts.update(_shared(crew, self, "chunk", bounds, report))
        else:
            with ThreadPoolExecutor(threads or available_threads()) as pool:
                for number, part in enumerate(pool.map(self.chunk, *zip(*bounds, strict=True))):
                    parts[number] = part
                    report(len(parts) / len(bounds))
        eps, ends, seconds = zip(*(parts[number] for number in range(len(bounds))), strict=True)
        return [
            Outcome(player, e, self.steps, s[:, :, 0], s[:, -1, 1], s[:, -1, 2], float(t))
            for player, e, s, t in zip(
                self.players,
                np.concatenate(eps, axis=1),
                np.concatenate(ends, axis=1),
                np.sum(seconds, axis=0),
                strict=True,
            )
        ]

    def chunk(self, first: int, stop: int) -> "_Part":
        """Play some trials with every player: stepwise regret, what was returned, seconds."""
        shape = len(self.players), stop - first
        eps = np.zeros((*shape, self.steps[-1]), dtype=np.float32)
        result = np.zeros((*shape, len(self.steps), 3))
        drawn = utilities(self.world, self.seed, first, stop - first)
        keys = [_kernels.trial_seed(self.seed, trial) for trial in range(first, stop)]
        clock = [time.perf_counter()]
        for game, e, s in zip(self._games, eps, result, strict=True):
            for utility, key, row, ends in zip(drawn, keys, e, s, strict=True):
                for t, end in zip(self.steps, ends, strict=True):
                    game(utility, key, self.noise, row[:t], end)
            clock.append(time.perf_counter())
        return eps, result, np.diff(clock)

    @cached_property
    def _games(self) -> "list[Game]":
        return games(self.players, self.world.correlations(), self.steps[-1])


_Part = tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]
"""Stepwise regret (players, trials, T), ends (players, trials, C, 3), seconds (players,)."""


def _shared(
    crew: Crew,
    campaign: "Compiled | Sessions",
    method: str,
    arguments: Sequence[tuple[object, ...]],
    report: Callable[[float], None] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Let a crew call a method of a campaign, without what this process has made of it."""
    blob = pickle.dumps(replace(campaign))
    tasks = [(blob, method, *own) for own in arguments]
    return crew.results(_call, tasks, report=report)


def _call(blob: bytes, method: str, *arguments: object) -> Any:
    """Play a part of a campaign: a worker's task."""
    return getattr(_campaign(blob), method)(*arguments)


@lru_cache(4)
def _campaign(blob: bytes) -> Any:
    """Return a campaign, with what it makes of itself once per process."""
    return pickle.loads(blob)


# -- trials by ask and tell -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Sessions:
    """Trials of one player by ask and tell; trials may be played in any order and process."""

    world: World
    player: Player
    rater: Rater
    steps: tuple[int, ...]
    seed: int
    observe: Callable[[Any, NDArray[np.float64]], Mapping[str, object]] | None = None

    def play(
        self, trials: Sequence[int], *, processes: int = 1, crew: Crew | None = None
    ) -> Iterator[Trial]:
        """Yield trials in order, played in this process, in several, or by a crew."""
        if crew is not None:
            yield from _in_order(_shared(crew, self, "trial", [(trial,) for trial in trials]))
            return
        if processes == 1 or len(trials) == 1:
            yield from map(self.trial, trials)
            return
        # A new interpreter each: forking a process that has threads is not safe.
        with ProcessPoolExecutor(
            min(processes, len(trials)),
            get_context("spawn"),
            initializer=_begin,
            initargs=(replace(self),),  # without what this process has made
        ) as pool:
            yield from pool.map(_go_on, trials)

    def trial(self, trial: int) -> Trial:
        """Play one trial."""
        (utility,) = utilities(self.world, self.seed, trial, 1)
        other = None
        if self.rater.drift:
            other = self.world.utility(np.random.default_rng([self.seed, trial, 1]))
        key = int(_kernels.trial_seed(self.seed, trial))
        engine = self.player.engine(self._source, horizon=self.steps[-1], seed=key)
        return play(
            engine,
            utility,
            self.rater,
            seed=key,
            checkpoints=self.steps,
            other=other,
            observe=self.observe,
        )

    @cached_property
    def _source(self) -> CorrelationSource:
        """One source for all trials: what an engine derives from it is kept."""
        return self.world.source()


def _in_order(found: Iterable[tuple[int, Trial]]) -> Iterator[Trial]:
    """Yield numbered trials in order; those that come early wait."""
    early: dict[int, Trial] = {}
    upcoming = 0
    for number, trial in found:
        early[number] = trial
        while upcoming in early:
            yield early.pop(upcoming)
            upcoming += 1


_sessions: Sessions | None = None


def _begin(sessions: Sessions) -> None:
    """Remember, in a new process, what is played in it."""
    global _sessions  # a process of a pool has no other place
    _sessions = sessions


def _go_on(trial: int) -> Trial:
    assert _sessions is not None
    return _sessions.trial(trial)


def _outcome(player: Player, steps: tuple[int, ...], played: list[Trial]) -> Outcome:
    columns = {
        name: np.array([[row[name] for row in trial.rows] for trial in played])
        for name in ("regret", "left", "kept")
    }
    return Outcome(
        player,
        np.stack([trial.eps for trial in played]),
        steps,
        columns["regret"],
        columns["left"][:, -1],
        columns["kept"][:, -1],
        sum(trial.seconds for trial in played),
    )


# -- compiled trials ------------------------------------------------------------------------------

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
            raise DuelError(f"algorithm {player.algorithm!r} has no compiled trials")
    return found


def _settings(
    world: World, players: Sequence[Player], trials: int, horizon: int, rater: Rater, seed: int
) -> dict[str, object]:
    from fieldcorr import __version__

    settings: dict[str, object] = {"fieldcorr": __version__, "world": world.name, "trials": trials}
    settings |= {"horizon": horizon, "noise": rater.noise, "seed": seed}
    if not rater.plain:
        settings["rater"] = ", ".join(f"{key} = {value}" for key, value in asdict(rater).items())
    for player in players:
        options = player.options.record() if player.algorithm == "CorrDuel" else player.settings
        settings[player.name] = ", ".join(f"{key} = {value}" for key, value in options.items())
    return settings
