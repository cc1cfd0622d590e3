"""Worlds to try algorithms in: correlated arms, and random utilities over them.

Trial q draws from a generator seeded by (seed, q), so any trial can be repeated alone, and results
depend neither on threads nor on how trials are grouped.
"""

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.sources import (
    Correlations,
    CorrelationSource,
    Via,
    as_source,
    source_from_embedding,
    source_from_matrix,
)
from fieldcorr.correlation.tiles import correlation_rows
from fieldcorr.errors import DuelError

if TYPE_CHECKING:
    from fieldcorr.store import Store

Kind = Literal[
    "linear",
    "magnitude",
    "smooth",
    "matern",
    "bumps",
    "target",
    "recruitment",
    "roots",
    "sample",
]
KINDS: tuple[str, ...] = get_args(Kind)
SCALED = ("smooth", "matern", "bumps")
"""Kinds with a length scale."""
PLACED = ("target", "recruitment", "roots")
"""Kinds that depend on the field at places of the body."""
_FEATURES = 256


class World(Protocol):
    """Correlated arms with random utilities."""

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K)."""

    def source(self) -> CorrelationSource:
        """Return what engines are given."""

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

    def __reduce__(self) -> tuple[object, ...]:
        """Send another process what it needs to make the rest again."""
        return Grid, (self.side, self.length, self.amplitude)

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""
        return f"{self.side} x {self.side} grid, length scale {self.length:g}"

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K): the product of the two directions."""
        line = self._line()
        return np.kron(line, line).astype(np.float32)

    def source(self) -> CorrelationSource:
        """Return what engines are given, the same every time: features are made once."""
        return self._source

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility: A N A' with A A' the covariance along one direction, N white noise."""
        noise = rng.standard_normal((self.side, self.side))
        # einsum, not BLAS: the same bits for any number of threads.
        half = np.einsum("ai,ij->aj", self._root, noise)
        return np.asarray(self.amplitude * np.einsum("aj,bj->ab", half, self._root).ravel())

    @cached_property
    def _source(self) -> CorrelationSource:
        return source_from_matrix(self.correlations())

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

    Utilities are standardised over the arms: mean 0, standard deviation ``amplitude``.

    ============= =============================================================================
    linear        theta . z with normal theta: linear in the field
    magnitude     abs(theta . z): the same for a configuration and its polarity mirror
    smooth        a Gaussian process exp(-d^2 / (2 length^2)), d = abs(z - z')
    matern        a Gaussian process (1 + s) exp(-s), s = sqrt(3) d / length: rough
    bumps         six bumps exp(-d^2 / (2 (length / 2)^2)) at random configurations
    target        normal weights times the potential at three places of the cord
    recruitment   four wanted and three unwanted places of the cord, each recruited by a sigmoid
                  of its potential (cathodic) with a threshold of its own
    roots         the same with dorsal roots: the drive is the largest activating function (second
                  difference of the potential along the root)
    sample        linear, but in the field of a random sample of the store's sweep: engines know
                  the mean over all samples
    ============= =============================================================================

    Target, recruitment and roots need ``drive`` (K, P), what each configuration does to P places:
    see :meth:`of_store`. ``correlation`` is what engines are given, if it is not the embedding, and
    ``via`` how it is read if it is a store.
    """

    embedding: NDArray[np.float64] = field(repr=False)  # (K, R), of a store
    kind: Kind = "linear"
    length: float = 1.0  # length scale; opposite points have distance 2
    amplitude: float = 1.0  # standard deviation of the utility
    drive: NDArray[np.float64] | None = field(default=None, repr=False)
    correlation: "Correlations | None" = field(default=None, repr=False)
    origin: "Store | None" = field(default=None, repr=False)  # what the arrays were read from
    via: Via = "auto"

    def __reduce__(self) -> tuple[object, ...]:
        """Send another process the path of a store, not its arrays."""
        if self.origin is None:
            return ElectrodeSpace, tuple(getattr(self, f.name) for f in fields(self))
        own = None if self.correlation is self.origin else self.correlation
        return _of_store, (self.origin, self.kind, own, self.length, self.amplitude, self.via)

    def __post_init__(self) -> None:
        """Refuse a kind of utility that does not exist, or that cannot be drawn."""
        if self.kind not in KINDS:
            raise DuelError(f"utility {self.kind!r} is not one of {', '.join(KINDS)}")
        if not self.length > 0.0 or not self.amplitude > 0.0:
            raise DuelError(f"length {self.length} and amplitude {self.amplitude} must be positive")
        if self.kind in PLACED and self.drive is None:
            raise DuelError(f"utility {self.kind!r} needs the fields of a store")
        if self.kind == "sample" and self.origin is None:
            raise DuelError(f"utility {self.kind!r} needs a store of a sweep")

    @classmethod
    def of_store(
        cls,
        store: "Store",
        kind: Kind = "linear",
        *,
        correlation: "Correlations | None" = None,
        **others: Any,
    ) -> "ElectrodeSpace":
        """Return the world of a store; another store's correlations may be given to engines."""
        drive = None
        if kind in PLACED:
            drive = root_drive(store) if kind == "roots" else cord_drive(store)
        if kind == "sample":
            store.ensemble  # noqa: B018 - says that there is no sweep in this store
        own = correlation if correlation is not None else store
        return cls(store.embedding, kind, drive=drive, correlation=own, origin=store, **others)

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""
        scale = f", length scale {self.length:g}" if self.kind in SCALED else ""
        return f"{len(self.embedding)} configurations, {self.kind} utility{scale}"

    def source(self) -> CorrelationSource:
        """Return what engines are given."""
        if self.correlation is None:
            return source_from_embedding(self.embedding)
        return as_source(self.correlation, via=self.via)

    def correlations(self) -> NDArray[np.float32]:
        """Return r of all arms, (K, K)."""
        if self.correlation is None:
            return correlation_rows(self.embedding, 0, len(self.embedding))
        source = self.source()
        return np.stack([source.row(arm) for arm in range(len(source))])

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility over all arms, (K,), standardised."""
        value = self.draw(rng)
        return np.asarray(self.amplitude * (value - value.mean()) / value.std())

    def draw(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility as the table says, before it is standardised."""
        z = self.embedding
        if self.kind == "sample" and self.origin is not None:
            samples = self.origin.ensemble
            z = samples.embeddings[rng.choice(len(samples), p=samples.weight)]
        if self.kind in ("linear", "magnitude", "sample"):
            value = np.einsum("kr,r->k", z, rng.standard_normal(z.shape[1]))
            return np.asarray(np.abs(value) if self.kind == "magnitude" else value)
        if self.kind in ("smooth", "matern"):
            return _process(z, self.length, rough=self.kind == "matern", rng=rng)
        if self.kind == "bumps":
            centres = z[rng.integers(len(z), size=6)]
            near = np.exp((np.einsum("kr,mr->km", z, centres) - 1.0) / (0.5 * self.length) ** 2)
            return np.asarray(np.einsum("km,m->k", near, rng.uniform(0.5, 1.0, 6)))
        drive = np.asarray(self.drive)
        if self.kind == "target":
            places = rng.choice(drive.shape[1], 3, replace=False)
            return np.asarray(np.einsum("kp,p->k", drive[:, places], rng.standard_normal(3)))
        return _recruited(drive[:, rng.choice(drive.shape[1], 7, replace=False)], rng)


@dataclass(frozen=True)
class WholeSpace:
    """All configurations of a store that lists none; utilities are linear or their magnitude."""

    store: "Store"
    kind: Kind = "linear"
    amplitude: float = 1.0  # standard deviation of the utility

    def __post_init__(self) -> None:
        """Refuse utilities that need numbers of every configuration at once."""
        if self.kind not in ("linear", "magnitude"):
            raise DuelError(
                f"utility {self.kind!r} needs an embedding of all {len(self.store):,} "
                "configurations: linear and magnitude do not"
            )
        if not self.amplitude > 0.0:
            raise DuelError(f"amplitude {self.amplitude} must be positive")

    @property
    def name(self) -> str:
        """What it is, for tables and plots."""
        return f"all {len(self.store):,} configurations, {self.kind} utility"

    def source(self) -> CorrelationSource:
        """Return what engines are given."""
        return self.store.source

    def correlations(self) -> NDArray[np.float32]:
        """Refuse r of all arms with all."""
        raise DuelError(f"r of {len(self.store):,} x {len(self.store):,} arms is not made at once")

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a utility over all arms, (K,), standardised: 8 bytes for each."""
        whole = self.store.source.whole
        theta = np.asarray(rng.standard_normal(whole.root.shape[1]))
        value = whole.along(theta).astype(np.float64)
        value = np.abs(value) if self.kind == "magnitude" else value
        value -= value.mean()
        value *= self.amplitude / value.std()
        return value


def _of_store(
    store: "Store",
    kind: Kind,
    correlation: "Correlations | None",
    length: float,
    amplitude: float,
    via: Via,
) -> ElectrodeSpace:
    shape = {"length": length, "amplitude": amplitude, "via": via}
    return ElectrodeSpace.of_store(store, kind, correlation=correlation, **shape)


def _process(
    z: NDArray[np.float64], length: float, *, rough: bool, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw a Gaussian process over the rows of z by random Fourier features.

    The frequencies of a squared exponential are normal, those of Matern-3/2 are Student's t with
    three degrees of freedom.
    """
    waves = rng.standard_normal((_FEATURES, z.shape[1])) / length
    if rough:
        waves *= np.sqrt(3.0 / rng.chisquare(3.0, (_FEATURES, 1)))
    phase = rng.uniform(0.0, 2.0 * np.pi, _FEATURES)
    weight = rng.standard_normal(_FEATURES) * np.sqrt(2.0 / _FEATURES)
    angles = np.einsum("kr,mr->km", z, waves) + phase
    return np.asarray(np.einsum("km,m->k", np.cos(angles), weight))


def _recruited(drive: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the mean recruitment of the first four places less that of the last three, (K,).

    A threshold is a drive that 50 to 95 % of the configurations do not reach; the sigmoid is as
    wide as 0.3 standard deviations of the drive.
    """
    level = [np.quantile(drive[:, p], rng.uniform(0.5, 0.95)) for p in range(drive.shape[1])]
    recruited = 1.0 / (1.0 + np.exp(-(drive - level) / (0.3 * drive.std(axis=0))))
    return np.asarray(recruited[:, :4].mean(axis=1) - recruited[:, 4:].mean(axis=1))


def cord_drive(store: "Store") -> NDArray[np.float64]:
    """Return -V at <= 64 places of the compared region, (K, 64): what a cathode makes positive."""
    weight = store.array("/leadfield/weight")
    rng = np.random.default_rng(0)
    places = rng.choice(weight.size, min(64, weight.size), replace=False, p=weight / weight.sum())
    lead = store.array("/leadfield/potential")[:, np.sort(places)]
    return -np.asarray(np.einsum("ke,ep->kp", store.current, lead))


def root_drive(store: "Store") -> NDArray[np.float64]:
    """Return the largest activating function along each of 16 straight dorsal roots, (K, 16).

    A root leaves the dorsolateral edge of the region and runs laterally and 20 mm caudally; eight
    per side, over the length of the array. Second differences are taken over steps of 1 mm.
    """
    points = store.array("/leadfield/points")
    low, high = points.min(axis=0), points.max(axis=0)
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    rostral = store.contact_positions[:, 2]
    along = np.linspace(0.0, 1.0, 21)[:, None]
    paths = []
    for z in np.linspace(rostral.min() + 0.010, rostral.max() + 0.010, 8):
        for side in (-1.0, 1.0):
            entry = centre[0] + side * 0.8 * half[0], centre[1] + 0.6 * half[1], z
            leave = centre[0] + side * 1.5 * half[0], centre[1], z - 0.020
            paths.append((1.0 - along) * entry + along * leave)
    lead = store.fields.lead_fields(np.concatenate(paths)).reshape(-1, len(paths), len(along))
    if not np.isfinite(lead).all():
        raise DuelError(f"{store.path}: the dorsal roots leave the tissue of this store")
    bend = np.diff(lead, n=2, axis=2)
    return np.asarray(np.einsum("ke,eps->kps", store.current, bend).max(axis=2))


def utilities(world: World, seed: int, first: int, count: int) -> NDArray[np.float64]:
    """Return the utilities of trials ``first`` to ``first + count - 1``, (count, K)."""
    trials = range(first, first + count)
    return np.stack([world.utility(np.random.default_rng([seed, trial])) for trial in trials])
