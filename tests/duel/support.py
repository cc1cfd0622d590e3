"""Small correlated worlds, simulated people, and snapshots of an engine's whole state."""

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel import RUCB, BayesDuel, BeatTheMean, CorrDuel, Engine, SparringUCB1
from fieldcorr.errors import DuelError

ENGINES: dict[str, Callable[..., Engine]] = {
    "CorrDuel": CorrDuel,
    "CorrDuel.paper": CorrDuel.paper,
    "BayesDuel": BayesDuel,
    "BeatTheMean": BeatTheMean,
    "RUCB": RUCB,
    "RUCB corr": lambda *args, **options: RUCB(*args, update="corr", **options),
    "SparringUCB1": SparringUCB1,
}


def embedding(arms: int, rank: int = 4, seed: int = 0) -> NDArray[np.float64]:
    """Return random unit rows (arms, rank)."""
    z = np.random.default_rng(seed).standard_normal((arms, rank))
    return np.asarray(z / np.linalg.norm(z, axis=1, keepdims=True))


def line(arms: int, length: float = 0.2) -> NDArray[np.float64]:
    """Return the squared-exponential correlation of equidistant points in [0, 1]."""
    x = np.linspace(0.0, 1.0, arms)
    return np.asarray(np.exp(-((x[:, None] - x) ** 2) / (2.0 * length**2)))


def correlations(arms: int, seed: int = 0, rank: int = 4) -> NDArray[np.float64]:
    """Return a random positive semidefinite correlation matrix."""
    z = embedding(arms, rank, seed)
    r = z @ z.T
    np.fill_diagonal(r, 1.0)
    return np.asarray((r + r.T) / 2.0)


def answer_by(utility: NDArray[np.float64], engine: Engine, rng: np.random.Generator) -> None:
    """Answer the pending duel as a person with noisy values would (sigma = 0.5)."""
    i, j = engine.ask()
    chance = 0.5 * math.erfc(utility[j] - utility[i])
    engine.answer("left" if rng.random() < chance else "right")


def state(engine: Engine) -> dict[str, Any]:
    """Return everything that later behaviour depends on, arrays as bytes."""
    ranked = engine.survivors
    tally = getattr(engine._learnt, "tally", None)
    return {
        "tally": tally and [a.tobytes() for a in (tally.wins, tally.plays, tally.background)],
        "active": engine.active.tobytes(),
        "excluded": engine.excluded.tobytes(),
        "progress": engine.progress,
        "done": engine.done,
        "pending": None if engine.done else engine.ask(),
        "ranked": [a.tobytes() for a in (ranked.arm, ranked.estimate, ranked.count, ranked.radius)],
        "events": engine.events,
    }


def perform(engine: Engine, step: tuple[str, int, int, int]) -> bool:
    """Do one random thing with an engine; return whether it was possible."""
    kind, a, b, c = step
    arms = len(engine.source)
    a, b, c = a % arms, b % arms, c % arms
    actions: dict[str, Callable[[], object]] = {
        "left": lambda: engine.answer("left"),
        "right": lambda: engine.answer("right"),
        "same": lambda: engine.answer("same"),
        "skip": lambda: engine.skip(),
        "tell": lambda: engine.tell(a, b),
        "tie": lambda: engine.tie(a, b),
        "ranking": lambda: engine.tell_ranking([a, (b, c)]),
        "void": lambda: engine.void(a + 1),
        "force": lambda: engine.force(a, b),
        "exclude": lambda: engine.exclude([a]),
        "exclude near": lambda: engine.exclude([a], neighbours_above=0.8),
        "include": lambda: engine.include([a], neighbours_above=0.5),
        "extend": lambda: engine.extend(a + 20),
        "note": lambda: engine.note({"note": f"{a}"}),
        "undo": lambda: engine.undo(),
    }
    try:
        actions[kind]()
    except DuelError:
        return False
    return True


def interrupted_at(step: int, act: Callable[[], object]) -> bool:
    """Press Ctrl-C at the given line of the package; tell whether it got there."""
    lines = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal lines
        if "fieldcorr" not in frame.f_code.co_filename or "tests" in frame.f_code.co_filename:
            return None
        lines += event == "line"
        if lines == step:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


STEPS = (
    "left",
    "right",
    "same",
    "skip",
    "tell",
    "tie",
    "ranking",
    "void",
    "force",
    "exclude",
    "exclude near",
    "include",
    "extend",
    "note",
    "undo",
)
