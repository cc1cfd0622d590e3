"""How far posterior moments of BayesDuel are from exact ones, in small problems: print a table.

Problems have 8 arms, 4 features and 30 answers with ties by a rater who is known. Exact moments are
those of importance sampling, which a test compares with long Markov chains.
"""

import argparse

import numpy as np

from study_parts.duel_results import table
from tests.duel.problems import Float64s, Problem

LAPSES = (0.0, 0.05, 0.15, 0.4)
PROBLEMS = 72
SAMPLES, LEAST = 200_000, 10_000
"""Samples of each posterior, and how many of them must count, for 1 % of a deviation."""


def compared(seed: int, lapse: float) -> tuple[Float64s, Float64s, float]:
    """Return deviations over exact ones less 1, of the normal form and as stated, (8,) each.

    And the largest error of a mean, over the largest mean.
    """
    problem = Problem.made(seed, lapse)
    centre, spread, counting = problem.weighed(SAMPLES)
    if counting < LEAST:
        raise SystemExit(f"problem {seed}, lapse rate {lapse}: only {counting:.0f} samples count")
    root = problem.propagated(np.zeros(4), np.zeros((30, 2))).root
    mean, stated = problem.stated()
    plain = np.sqrt(((problem.x @ root) ** 2).sum(axis=1))
    error = float(np.abs(mean - centre).max() / np.abs(centre).max())
    return plain / spread - 1.0, stated / spread - 1.0, error


def row(lapse: float) -> list[str]:
    """Return one line of the table."""
    found = [compared(seed, lapse) for seed in range(PROBLEMS)]
    plain, own = (np.concatenate(errors) for errors in list(zip(*found, strict=True))[:2])
    means = np.array([error for _, _, error in found])
    figures = [f"{100 * np.mean(np.abs(e) < 0.05):.0f} %" for e in (plain, own)]
    worst = [f"{100 * e[np.argmax(np.abs(e))]:+.1f} %" for e in (plain, own)]
    alike = sum(np.abs(e).max() < 0.05 and m < 0.05 for _, e, m in found)
    return [f"{lapse:g}", figures[0], worst[0], f"{100 * own.mean():+.1f} %", figures[1], worst[1],
            f"{100 * means.max():.1f} %", f"{alike} of {PROBLEMS}"]  # fmt: skip


def main() -> None:
    """Print one line per lapse rate."""
    argparse.ArgumentParser(prog="scripts/study moments", description=__doc__).parse_args()
    heading = ["lapse rate", "deviations by (36), within 5 %", "worst", "as stated, on average",
               "within 5 %", "worst", "worst mean, of the largest",
               "problems with all within 5 %"]  # fmt: skip
    print(table(heading, [row(lapse) for lapse in LAPSES]))


if __name__ == "__main__":
    main()
