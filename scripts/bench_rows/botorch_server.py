"""Ask and answer with BoTorch's PairwiseGP and EUBO on request; runs in an environment with torch.

The number of arms comes on the command line, then one line per question; it says "ready" after 100
random answers, then the seconds from each answer to the next question.
"""

import sys
import time

import numpy as np
import torch  # type: ignore[import-not-found]
from botorch.acquisition.preference import (  # type: ignore[import-not-found]
    AnalyticExpectedUtilityOfBestOption,
)
from botorch.fit import fit_gpytorch_mll  # type: ignore[import-not-found]
from botorch.models.pairwise_gp import (  # type: ignore[import-not-found]
    PairwiseGP,
    PairwiseLaplaceMarginalLogLikelihood,
)
from numpy.typing import NDArray

ANSWERS = 100
CHUNK = 600


class Preferences:
    """A session over the rows of ``points`` (K, R): the best mean against the best partner."""

    def __init__(self, points: NDArray[np.float64]) -> None:
        self.points = torch.from_numpy(points)
        self.shown: list[int] = []  # a row of the model each, in the order of their first question
        self.pairs: list[tuple[int, int]] = []
        self.best = 0

    def tell(self, winner: int, loser: int) -> None:
        """Add an answer."""
        self.shown += [arm for arm in (winner, loser) if arm not in self.shown]
        self.pairs.append((self.shown.index(winner), self.shown.index(loser)))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def ask(self) -> tuple[int, int]:
        """Fit the model to all answers; return two arms."""
        model = PairwiseGP(self.points[self.shown], torch.tensor(self.pairs))
        with torch.enable_grad():
            fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
        mean = torch.cat([model.posterior(part).mean[:, 0] for part in self.points.split(CHUNK)])
        self.best = int(mean.argmax())
        gain = AnalyticExpectedUtilityOfBestOption(
            model, previous_winner=self.points[self.best][None]
        )
        score = torch.cat([gain(part[:, None]) for part in self.points.split(CHUNK)])
        score[self.best] = -torch.inf
        return self.best, int(score.argmax())


def main(arms: int) -> None:
    """Answer until the input ends, by the first axis with noise."""
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    points = rng.standard_normal((arms, 15))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    session = Preferences(points)

    def answer(i: int, j: int) -> None:
        left, right = points[[i, j], 0] + 0.2 * rng.standard_normal(2)
        session.tell(*((i, j) if left > right else (j, i)))

    for _ in range(ANSWERS):
        i, j = rng.choice(arms, 2, replace=False)
        answer(int(i), int(j))
    pair = session.ask()
    print("ready", flush=True)
    for _ in sys.stdin:
        start = time.perf_counter()
        answer(*pair)
        pair = session.ask()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
