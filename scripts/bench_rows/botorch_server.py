"""A session of BoTorch's PairwiseGP and EUBO, served to another environment in lines of JSON.

After "ready" comes a line with the points of the arms, which is answered by their number, then one
per answer, winner and loser, which is answered by the next pair and the arm with the best mean.
"""

import json
import sys

import torch  # type: ignore[import-not-found]
from botorch.acquisition.preference import SIGMA_JITTER  # type: ignore[import-not-found]
from botorch.exceptions.errors import ModelFittingError  # type: ignore[import-not-found]
from botorch.fit import fit_gpytorch_mll  # type: ignore[import-not-found]
from botorch.models.pairwise_gp import (  # type: ignore[import-not-found]
    PairwiseGP,
    PairwiseLaplaceMarginalLogLikelihood,
)
from botorch.posteriors.gpytorch import GPyTorchPosterior  # type: ignore[import-not-found]
from gpytorch.constraints import GreaterThan, Interval  # type: ignore[import-not-found]
from gpytorch.kernels import RBFKernel, ScaleKernel  # type: ignore[import-not-found]
from gpytorch.priors import GammaPrior, SmoothedBoxPrior  # type: ignore[import-not-found]

CHUNK = 150
ROUNDS = 4


class Preferences:
    """A session over ``points`` (K, R), within the unit cube."""

    def __init__(self, points: list[list[float]]) -> None:
        self.points = torch.tensor(points, dtype=torch.float64)
        self.shown: list[int] = []  # a row of the model each, in the order of their first question
        self.pairs: list[tuple[int, int]] = []

    def tell(self, winner: int, loser: int) -> None:
        """Add an answer."""
        self.shown += [arm for arm in (winner, loser) if arm not in self.shown]
        self.pairs.append((self.shown.index(winner), self.shown.index(loser)))

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def ask(self) -> tuple[int, int, int]:
        """Return the pair of the largest EUBO, and the arm with the best mean.

        From the best mean on, one arm of the pair is kept in turns and the other one chosen among
        all, until neither changes.
        """
        model = self._fitted()
        parts = self.points.split(CHUNK)
        best = int(torch.cat([model.posterior(part).mean[:, 0] for part in parts]).argmax())
        first, second = -1, best
        for _ in range(ROUNDS):
            kept = self.points[second][None]
            gain = torch.cat([_gain(model.posterior(torch.cat([kept, part]))) for part in parts])
            gain[second] = -torch.inf
            partner = int(gain.argmax())
            if partner == first:
                break
            first, second = second, partner
        return first, second, best

    def _fitted(self) -> PairwiseGP:
        """Return the model with its hyperparameters fitted to all answers."""
        model = self._model()
        try:
            with torch.enable_grad():
                fit_gpytorch_mll(PairwiseLaplaceMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # now and then, after the first answers
            return self._model()
        return model

    def _model(self) -> PairwiseGP:
        """Return a model with the kernel and the priors of BoTorch, but one length scale for all.

        With one for each column, BoTorch's default, it did worse or no better.
        """
        kernel = RBFKernel(
            lengthscale_prior=GammaPrior(2.4, 2.7),
            lengthscale_constraint=GreaterThan(1e-4, transform=None, initial_value=1.4 / 2.7),
        )
        scaled = ScaleKernel(
            kernel,
            outputscale_prior=SmoothedBoxPrior(1e-2, 1e2),
            outputscale_constraint=Interval(5e-3, 2e2, initial_value=1.0),
        )
        return PairwiseGP(self.points[self.shown], torch.tensor(self.pairs), covar_module=scaled)


def _gain(posterior: GPyTorchPosterior) -> torch.Tensor:
    """Return what EUBO is above the mean of the first arm, when each of the others joins it.

    AnalyticExpectedUtilityOfBestOption is the same, but takes ten times as long: it copies the
    matrices of the model for every pair.
    """
    mean, covariance = posterior.mean[:, 0], posterior.covariance_matrix
    variance = covariance.diagonal()[1:] + covariance[0, 0] - 2.0 * covariance[0, 1:]
    sigma = variance.clamp(min=SIGMA_JITTER).sqrt()
    z, normal = (mean[1:] - mean[0]) / sigma, torch.distributions.Normal(0.0, 1.0)
    return sigma * (normal.log_prob(z).exp() + z * normal.cdf(z))


def main() -> None:
    """Serve until the input ends."""
    torch.set_num_threads(1)
    print("ready", flush=True)
    session = Preferences(json.loads(sys.stdin.readline()))
    print(len(session.points), flush=True)
    for line in sys.stdin:
        session.tell(*json.loads(line))
        print(json.dumps(session.ask()), flush=True)


if __name__ == "__main__":
    main()
