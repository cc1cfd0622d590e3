"""What the lesson of one session is worth to the next: the regret of a second patient.

Utilities are linear in the field; that of the second patient has the given correlation with that of
the first, who has answered 100 times. Regret is P(best beats recommended) - 1/2.
"""

import argparse
import math

import numpy as np
from numpy.typing import NDArray

import fieldcorr as fc
from fieldcorr.duel import as_source
from study_parts.duel import make_stores, store_path
from study_parts.duel_results import table

NOISE = 0.5
FIRST, STEPS = 100, (10, 25, 50)
WEIGHTS = (0.0, 0.1, 0.3, 1.0)


def play(
    engine: fc.BayesDuel, utility: NDArray[np.float64], rng: np.random.Generator, duels: int
) -> None:
    """Answer as a person with this utility would, up to a number of duels."""
    while engine.duels < duels:
        i, j = engine.ask()
        left, right = utility[[i, j]] + NOISE * rng.standard_normal(2)
        engine.answer("left" if left > right else "right")


def regret(engine: fc.BayesDuel, utility: NDArray[np.float64]) -> float:
    """Return how much more than half of their duels the best arm wins over the recommended."""
    return 0.5 * math.erf((utility.max() - utility[engine.best]) / (2.0 * NOISE))


def main() -> None:
    """Print a table: correlation of the patients, weight of the lesson, regret at some steps."""
    parser = argparse.ArgumentParser(prog="scripts/study warm", description=__doc__)
    parser.add_argument("--sessions", type=int, default=40, help="pairs of patients")
    sessions = parser.parse_args().sessions
    make_stores()
    with fc.open_store(store_path("potential")) as store:
        source = as_source(store)
        found: dict[tuple[float, float], list[list[float]]] = {}
        for number in range(sessions):
            rng = np.random.default_rng([2026, number])
            own, other = rng.standard_normal((2, store.rank))
            teacher = fc.BayesDuel(source, horizon=FIRST, seed=number)
            play(teacher, standard(store.embedding @ own), rng, FIRST)
            for alike in (0.9, 0.5, 0.0):
                mixed = alike * own + math.sqrt(1.0 - alike**2) * other
                utility = standard(store.embedding @ mixed)
                for weight in WEIGHTS:
                    pupil = fc.BayesDuel(
                        source, horizon=STEPS[-1], seed=number, prior=teacher.lesson,
                        prior_weight=weight,
                    )  # fmt: skip
                    answers, row = np.random.default_rng([number, 1]), []
                    for step in (0, *STEPS):
                        play(pupil, utility, answers, step)
                        row.append(regret(pupil, utility))
                    found.setdefault((alike, weight), []).append(row)
    lines = [
        [f"{number:g}" for number in key] + [f"{value:.3f}" for value in np.mean(rows, axis=0)]
        for key, rows in found.items()
    ]
    print(table(["alike", "weight", *(f"t = {step}" for step in (0, *STEPS))], lines))


def standard(utility: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a utility with mean 0 and deviation 1."""
    return np.asarray((utility - utility.mean()) / utility.std())


if __name__ == "__main__":
    main()
