"""Play trials of duelpy's Beat-the-Mean on request; runs under the old Python that duelpy needs.

Numbers of arms and duels come on the command line, then one line per trial; it says "ready", then
the seconds of each trial.
"""

import sys
import time

import numpy as np
from duelpy.algorithms import BeatTheMeanBandit  # type: ignore[import-not-found]
from duelpy.feedback import MatrixFeedback  # type: ignore[import-not-found]
from scipy.special import ndtr


def main(arms: int, duels: int) -> None:
    """Play until the input ends; preferences are those of a random utility with noise 0.5."""
    utility = np.random.default_rng(1).standard_normal(arms)
    matrix = ndtr((utility[:, None] - utility) / (0.5 * np.sqrt(2.0)))
    feedback = MatrixFeedback(matrix, random_state=np.random.RandomState(1))
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        random = np.random.RandomState(2)
        BeatTheMeanBandit(feedback, time_horizon=duels, random_state=random).run()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
