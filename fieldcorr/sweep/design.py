"""Points of the unit cube that samples are made from, a function of the sweep file alone."""

from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from fieldcorr.errors import ModelError
from fieldcorr.sweep.file import Sweep

Floats = NDArray[np.float64]

MOST_GRID = 100_000


def points(sweep: Sweep) -> Floats:
    """Return the points (M, D) of a sweep's samples in the unit cube."""
    size, file = len(sweep.vary), sweep.file
    rng = np.random.default_rng(file.seed)
    if file.method == "latin-hypercube":
        return np.asarray(qmc.LatinHypercube(size, seed=rng).random(file.samples))
    if file.method == "sobol":
        if file.samples & (file.samples - 1):
            raise ModelError(
                f"{sweep.path}: samples = {file.samples}: sobol points come in powers of two"
            )
        return np.asarray(qmc.Sobol(size, seed=rng).random(file.samples))
    counts = [law.count for law in sweep.vary.values()]
    if np.prod(counts, dtype=float) > MOST_GRID:
        raise ModelError(f"{sweep.path}: a grid of {' x '.join(map(str, counts))} is too large")
    axes = [(np.arange(count) + 0.5) / count for count in counts]
    return np.array(list(product(*axes)))


def replacement(sweep: Sweep, number: int, attempt: int) -> Floats:
    """Return the point (D,) that is tried in place of sample ``number`` when it cannot be built.

    A random one, from the sweep's seed: the stratification is lost for this sample, not the
    distributions.
    """
    rng = np.random.default_rng([sweep.file.seed, number, attempt])
    return rng.random(len(sweep.vary))
