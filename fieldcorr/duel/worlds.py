"""Worlds to try algorithms in: correlated arms, and random utilities over them.

Trial q draws from a generator seeded by (seed, q), so any trial can be repeated alone, and results
depend neither on threads nor on how trials are grouped.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.tiles import correlation_rows
from fieldcorr.errors import DuelError

Kind = Literal["linear", "smooth", "magnitude"]
_FEATURES = 128


class World(Protocol):
    """Correlated arms with random utilities."""

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K)."""

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility over all arms, (K,)."""


@dataclass(frozen=True)
class Grid:
    """The paper's experiment: a Gaussian process on a square grid over [0, 1] x [0, 1].

    Covariance amplitude^2 exp(-|x - y|^2 / (2 length^2)), which is also r, without the amplitude.
    """

    side: int = 50  # points per direction, as in the paper: K = 2500
    length: float = 0.2  # length scale; the paper does not state it
    amplitude: float = 1.0  # standard deviation of the utility

    def __post_init__(self) -> None:
        """Refuse what is no grid."""
        if self.side < 2 or not self.length > 0.0 or not self.amplitude > 0.0:
            raise DuelError(
                f"grid: side {self.side}, length {self.length} and amplitude {self.amplitude} "
                "must be at least 2 and positive"
            )

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""
        return f"{self.side} x {self.side} grid, length scale {self.length:g}"

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K): the product of the two directions."""
        line = self._line()
        return np.kron(line, line).astype(np.float32)

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility: A N A' with A A' the covariance along one direction, N white noise."""
        noise = rng.standard_normal((self.side, self.side))
        # einsum, not BLAS: the same bits for any number of threads.
        half = np.einsum("ai,ij->aj", self._root, noise)
        return np.asarray(self.amplitude * np.einsum("aj,bj->ab", half, self._root).ravel())

    @cached_property
    def _root(self) -> NDArray[np.float64]:
        values, vectors = np.linalg.eigh(self._line())
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    def _line(self) -> NDArray[np.float64]:
        x = np.linspace(0.0, 1.0, self.side)
        return np.asarray(np.exp(-((x[:, None] - x) ** 2) / (2.0 * self.length**2)))


@dataclass(frozen=True)
class ElectrodeSpace:
    """Configurations of an electrode array, each a point z on the unit sphere with r = Z Z'.

    The utility is "linear": u(z) = amplitude theta . z with normal theta, linear in the field;
    "smooth": a Gaussian process exp(-|z - z'|^2 / (2 length^2)) by random Fourier features; or
    "magnitude": |theta . z|, the same for a configuration and its polarity mirror, standardised.
    """

    embedding: NDArray[np.float64] = field(repr=False)  # (K, R), of a store
    kind: Kind = "linear"
    length: float = 1.0  # length scale of "smooth"; opposite points have distance 2
    amplitude: float = 1.0  # standard deviation of the utility

    def __post_init__(self) -> None:
        """Refuse a kind of utility that does not exist."""
        if self.kind not in ("linear", "smooth", "magnitude"):
            raise DuelError(f"utility {self.kind!r} is not one of linear, smooth, magnitude")

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""
        scale = f", length scale {self.length:g}" if self.kind == "smooth" else ""
        return f"{len(self.embedding)} configurations, {self.kind} utility{scale}"

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K)."""
        return correlation_rows(self.embedding, 0, len(self.embedding))

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility over all arms, (K,)."""
        z = self.embedding
        if self.kind == "smooth":
            waves = rng.standard_normal((_FEATURES, z.shape[1])) / self.length
            phase = rng.uniform(0.0, 2.0 * np.pi, _FEATURES)
            weight = rng.standard_normal(_FEATURES) * np.sqrt(2.0 / _FEATURES)
            angles = np.einsum("kr,mr->km", z, waves) + phase
            return np.asarray(self.amplitude * np.einsum("km,m->k", np.cos(angles), weight))
        value = np.einsum("kr,r->k", z, rng.standard_normal(z.shape[1]))
        if self.kind == "magnitude":
            value = np.abs(value)
            value = (value - value.mean()) / value.std()
        return np.asarray(self.amplitude * value)


def utilities(world: World, seed: int, first: int, count: int) -> NDArray[np.float64]:
    """Return the utilities of trials ``first`` to ``first + count - 1``, (count, K)."""
    trials = range(first, first + count)
    return np.stack([world.utility(np.random.default_rng([seed, trial])) for trial in trials])
