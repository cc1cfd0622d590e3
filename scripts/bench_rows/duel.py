"""Rows of the duels: updates, replay, questions, whole trials, duelpy, BoTorch, the experiment.

duelpy 1.0.0 does not load with NumPy 2, and BoTorch brings torch: each runs in an environment of
its own, ``.venv-duelpy`` and ``.venv-botorch``, which is made on first use.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_rows import Measured, Row, Task

if TYPE_CHECKING:
    from fieldcorr.correlation.sources import CorrelationSource

ROOT = Path(__file__).resolve().parents[2]
RANK = 15
UPDATES = 100
QUESTIONS = 20
TRIALS = 10_000


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [
        *_update_rows(),
        *_replay_rows(),
        *_question_rows(),
        *_duelpy_rows(),
        *_experiment_rows(),
    ]


def _update_rows() -> list[Row]:
    """Time 100 kappa/tau updates on one thread; the aim is 0.1 ms each at K = 10^4."""
    result = []
    for arms in (3600, 10_000):
        for source in ("embedding", "matrix", "neighbours"):
            own = Task("fieldcorr", "duel:updates", {"arms": arms, "source": source}, repeat=20)
            aim = 1.0 if source == "embedding" else None
            subject = f"{UPDATES} kappa/tau updates, K = {arms}, {source}, 1 thread"
            result.append(Row(subject, own, aim=aim, budget=1e-4 * UPDATES))
    return result


def _replay_rows() -> list[Row]:
    """Time the replay of a session, which is also what an undo costs."""
    own = Task("fieldcorr", "duel:replay", {"arms": 3600, "duels": 400}, repeat=10)
    return [Row("replay of 400 duels, K = 3600, 1 thread", own, aim=1.0, budget=0.03)]


def _question_rows() -> list[Row]:
    """Time BayesDuel from an answer to the next question; the aim is 20 and 50 ms.

    BoTorch works in a process of its own, as duelpy below.
    """
    result = []
    for arms, budget in ((3600, 0.02), (10_000, 0.05)):
        own = Task("fieldcorr", "duel:questions", {"arms": arms}, repeat=5)
        subject = f"{QUESTIONS} answers and next questions of BayesDuel, K = {arms}, 1 thread"
        result.append(Row(subject, own, aim=1.0, budget=QUESTIONS * budget))
    peer = Task("BoTorch PairwiseGP + EUBO", "duel:botorch_question", threads=2, repeat=3)
    own = Task("fieldcorr", "duel:questions", {"arms": 3600}, repeat=5)
    subject = f"{QUESTIONS} answers and next questions of BayesDuel, K = 3600; one of the peer"
    result.append(Row(subject, own, (peer,), 100.0, scale=QUESTIONS, long=True))
    return result


def _duelpy_rows() -> list[Row]:
    """Compare one trial of 100 duels on 2500 arms with duelpy's Beat-the-Mean.

    duelpy works in a process of its own, whose processor time the frame does not see: two threads
    make the frame use the wall clock.
    """
    task = {"arms": 2500, "duels": 100}
    peer = Task("duelpy Beat-the-Mean", "duel:duelpy_trial", task, threads=2, repeat=2)
    result = []
    for name in ("BeatTheMean", "CorrDuel"):
        for way in ("ask_and_tell", "compiled_trial"):
            arguments = {"algorithm": name, "side": 50, "duels": 100}
            own = Task("fieldcorr", f"duel:{way}", arguments, repeat=10)
            subject = f"{name}, K = 2500, T = 100, {way.replace('_', ' ')}"
            result.append(Row(subject, own, (peer,), 100.0))
    return result


def _experiment_rows() -> list[Row]:
    """Time the paper's experiment from start to end, tables and utilities included."""
    own = Task("fieldcorr", "duel:experiment", {"trials": TRIALS}, threads=2, repeat=1)
    subject = f"{TRIALS:,} trials of four algorithms, K = 2500, T = 100, 2 threads"
    return [Row(subject, own, aim=1.0, budget=120.0, long=True)]


def updates(arms: int, source: str) -> Measured:
    """Prepare updates of random pairs, added to one tally."""
    from fieldcorr.correlation.sources import (
        CorrelationSource,
        EmbeddingSource,
        NeighbourSource,
        RowSource,
        Tally,
    )

    points = _embedding(arms)
    chosen: CorrelationSource = EmbeddingSource(points)
    pairs = np.random.default_rng(1).permutation(arms)[: 2 * UPDATES].reshape(-1, 2).tolist()
    known = {arm: chosen.row(arm) for pair in pairs for arm in pair}
    if source == "matrix":
        chosen = RowSource(known.__getitem__, arms)
    elif source == "neighbours":
        near = {arm: np.flatnonzero((row > 0) & (row < 1)) for arm, row in known.items()}
        lists = {arm: (near[arm], row[near[arm]]) for arm, row in known.items()}
        chosen = NeighbourSource(lists.__getitem__, arms)
    tally = Tally.zeros(arms)
    chosen.add(tally, *pairs[0])

    def measured() -> dict[str, float]:
        tally.clear()
        for winner, loser in pairs:
            chosen.add(tally, winner, loser)
        return {"plays": float(tally.all_plays.mean())}

    return measured


def replay(arms: int, duels: int) -> Measured:
    """Prepare the events of a session and replay them into a new engine."""
    from fieldcorr.duel import CorrDuel, source_from_embedding

    source = source_from_embedding(_embedding(arms))
    live = CorrDuel(source, horizon=duels, seed=1)
    rng = np.random.default_rng(2)
    while not live.done:
        live.answer("left" if rng.random() < 0.5 else "right")

    def measured() -> dict[str, float]:
        again = CorrDuel(source, horizon=duels, seed=1)
        again.replay(live.events)
        return {"left": float(len(again.active)), "same": float(again.best == live.best)}

    return measured


def questions(arms: int) -> Measured:
    """Prepare a session of 100 answers; all groups of features, as on a store."""
    from types import SimpleNamespace

    from fieldcorr.correlation.sources import EmbeddingSource
    from fieldcorr.duel import BayesDuel

    points = _embedding(arms)
    rng = np.random.default_rng(3)
    strength = rng.uniform(0.5, 2.0, (arms, 1))
    lead = {"/leadfield/weight": np.ones(64), "/leadfield/potential": rng.normal(size=(RANK, 64))}
    store = SimpleNamespace(
        embedding=points, current=points * strength, array=lead.__getitem__, hash="benchmark"
    )
    source = EmbeddingSource(points, store=store)  # type: ignore[arg-type]
    engine = BayesDuel(source, horizon=10_000, seed=1)
    return _answered(engine, points, QUESTIONS)


def _answered(engine: Any, points: NDArray[np.float64], questions: int) -> Measured:
    """Answer an engine 100 times, by the first column with noise; measure some more questions."""
    rng = np.random.default_rng(2)

    def answer(count: int) -> None:
        for _ in range(count):
            i, j = engine.ask()
            left, right = points[[i, j], 0] + 0.2 * rng.standard_normal(2)
            engine.tell(*((i, j) if left > right else (j, i)))

    answer(100)

    def measured() -> dict[str, float]:
        answer(questions)
        return {"questions": float(questions)}

    return measured


def ask_and_tell(algorithm: str, side: int, duels: int) -> Measured:
    """Prepare one trial with an engine, as a program that has the answers would run it."""
    from fieldcorr.duel import BeatTheMean, CorrDuel, as_source
    from fieldcorr.duel.worlds import Grid, utilities

    world = Grid(side=side)
    source = as_source(world.correlations())
    utility = utilities(world, 1, 0, 1)[0]

    def measured() -> dict[str, float]:
        kind = BeatTheMean if algorithm == "BeatTheMean" else CorrDuel
        engine = kind(source, horizon=duels, seed=1)
        noise = np.random.default_rng(2).normal(0.0, 0.5, (duels, 2))
        for left, right in noise:
            i, j = engine.ask()
            engine.answer("left" if utility[i] + left > utility[j] + right else "right")
        return {"left": float(len(engine.active))}

    measured()
    return measured


def compiled_trial(algorithm: str, side: int, duels: int) -> Measured:
    """Prepare one simulated trial, correlations and utility given."""
    from fieldcorr.duel.simulate import BASELINES, Player, games
    from fieldcorr.duel.worlds import Grid, utilities

    world = Grid(side=side)
    player = BASELINES[0] if algorithm == "BeatTheMean" else Player(algorithm, algorithm)
    (game,) = games([player], world.correlations(), duels)
    (utility,) = utilities(world, 1, 0, 1)
    eps, result = np.zeros(duels, dtype=np.float32), np.zeros(3)
    game(utility, 1, 0.5, eps, result)

    def measured() -> dict[str, float]:
        game(utility, 1, 0.5, eps, result)
        return {"eps": float(eps[-1])}

    return measured


def experiment(trials: int) -> Measured:
    """Prepare the paper's experiment: compile on a small one."""
    from fieldcorr.cli.simulate import PAPER, players
    from fieldcorr.duel.simulate import simulate
    from fieldcorr.duel.worlds import Grid

    four = players(PAPER["options"])[:4]
    simulate(Grid(side=4), four, trials=2, horizon=5)

    def measured() -> dict[str, float]:
        found = simulate(Grid(), four, trials=trials, horizon=100, seed=0)
        return {o.player.name: float(o.mean[-1]) for o in found.outcomes}

    return measured


def duelpy_trial(arms: int, duels: int) -> Measured:
    """Prepare a process of duelpy's environment that plays a trial whenever it is asked to."""
    base = next((found for v in ("3.9", "3.10") if (found := _working(f"python{v}"))), None)
    if base is None:
        raise RuntimeError("duelpy needs numpy < 1.24 and so Python 3.9 or 3.10 on the PATH")
    python = _environment("duelpy", base, "duelpy==1.0.0", "numpy<1.24")
    say = _peer(python, "duelpy_server.py", arms, duels)
    return lambda: {"seconds inside": float(say("go"))}


def botorch_question() -> Measured:
    """Prepare a session of BoTorch with 100 answers, and a question each time."""
    from fieldcorr.correlation.sources import EmbeddingSource

    points = _embedding(3600)
    engine = BoTorch(EmbeddingSource(points), horizon=10_000, seed=1)
    return _answered(engine, points, 1)


class BoTorch:
    """BoTorch's PairwiseGP and EUBO on a group of features, in a process of its environment.

    One factor brings the features into the unit cube, so that distances are still those of r.
    """

    def __init__(
        self, source: "CorrelationSource", *, horizon: int, seed: int, group: str = "field"
    ) -> None:
        from fieldcorr.correlation.features import features_of

        features = features_of(source)
        points = features.values[:, features.groups[group]]
        first = np.random.default_rng(seed).choice(len(points), 2, replace=False)
        self._pair, self.best = (int(first[0]), int(first[1])), int(first[0])
        # The pages of PyTorch have builds without CUDA; a plain one is gigabytes.
        plain = "--extra-index-url=https://download.pytorch.org/whl/cpu"
        python = _environment("botorch", sys.executable, plain, "torch==2.13.0", "botorch==0.18.1")
        self._say = _peer(python, "botorch_server.py")
        self._say(json.dumps(((points - points.min()) / np.ptp(points)).tolist()))

    def ask(self) -> tuple[int, int]:
        """Return two arms."""
        return self._pair

    def tell(self, winner: int, loser: int) -> None:
        """Add an answer; the next pair and the best arm come back."""
        i, j, self.best = json.loads(self._say(json.dumps([winner, loser])))
        self._pair = i, j


def _peer(python: Path, script: str, *arguments: int) -> Callable[[str], str]:
    """Start a script of this folder that says "ready", then a line after every line."""
    command = [str(python), "-W", "ignore", str(Path(__file__).with_name(script))]
    peer = subprocess.Popen(
        [*command, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    to_peer, from_peer = peer.stdin, peer.stdout
    # Python keeps processes that run; without its streams, one ends when ``say`` is forgotten.
    peer.stdin = peer.stdout = None
    if to_peer is None or from_peer is None or from_peer.readline() != "ready\n":
        raise RuntimeError(f"{script} cannot be run")

    def say(line: str) -> str:
        print(line, file=to_peer, flush=True)
        return from_peer.readline()

    return say


def _embedding(arms: int) -> NDArray[np.float64]:
    points = np.random.default_rng(0).standard_normal((arms, RANK))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))


def _environment(name: str, base: str, *packages: str) -> Path:
    """Return the interpreter of a peer's own environment; make it on first use."""
    folder = ROOT / f".venv-{name}"
    if not (folder / "installed").exists():
        print(f"making {folder} with {base} ...", file=sys.stderr, flush=True)
        subprocess.run([base, "-m", "venv", "--clear", str(folder)], check=True)
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", *packages]
        subprocess.run(install, check=True)
        (folder / "installed").touch()
    return folder / "bin" / "python"


def _working(name: str) -> str | None:
    """Return a Python by name if it starts (a pyenv shim may not) or lies in pyenv's versions."""
    folder = Path.home() / ".pyenv" / "versions"
    candidates = [shutil.which(name), *map(str, sorted(folder.glob(f"*/bin/{name}")))]
    for python in filter(None, candidates):
        if subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0:
            return python
    return None
