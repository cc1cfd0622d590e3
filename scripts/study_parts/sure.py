"""How sure is r? Error bars against finer meshes, impedances, time per sample, simulated sessions.

``scripts/study sure coverage`` builds three meshes of two geometries and compares error bars with
the finest (minutes, 6 GB); ``time`` compares a sample that reuses mesh and pattern with a cold
solve; ``sessions SWEEP.h5`` plays sessions in which the truth is a random sample of the sweep.
"""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.cache import Cache
from fieldcorr.batch.meshes import built_mesh
from fieldcorr.batch.plan import contacts_of
from fieldcorr.configurations.rules import enumerate_configurations
from fieldcorr.correlation.ensemble import Ensemble
from fieldcorr.correlation.error_bars import ErrorBars
from fieldcorr.correlation.sources import CorrelationSource, source_from_matrix
from fieldcorr.correlation.whole import Circuit
from fieldcorr.drive import bipole_impedances
from fieldcorr.duel.simulate import Player, simulate
from fieldcorr.leadfield import compute_lead_field, skeleton_of
from fieldcorr.mesh import MeshSizes, check_mesh_of_model, load_mesh
from fieldcorr.model import Model, load_model
from fieldcorr.store.sweeps import SweepStore, open_sweep
from study_parts.variants import CACHE

FINE = MeshSizes(rim_mm=0.025, cord_mm=0.5, end_mm=1.0)
"""Twice the resolution of the standard mesh."""

OTHER: Mapping[str, float] = {
    "geometry.cord.dorsal_csf_mm": 2.0,
    "geometry.cord.offset_left_mm": 0.8,
    "geometry.canal.depth_mm": 21.5,
    "array.offset_left_mm": -1.0,
    "array.gap_to_dura_mm": 0.6,
    "array.yaw_degree": 2.0,
    "tissues.fat.conductivity_S_per_m": 0.1,
    "tissues.dura.conductivity_S_per_m": 0.1,
}
"""A second geometry: nearer, off the midline, turned, better conducting."""

STEPS = (100, 400)  # answers after which regret is looked at
STEP = 4  # every fourth configuration stands for all
CONDUCTIVITIES = {
    "tissues.fat.conductivity_S_per_m": 0.1,
    "tissues.dura.conductivity_S_per_m": 0.1,
}


def coverage() -> None:
    """Print the share of pairs within their error bar, and bipole impedances against fine ones."""
    bundled = load_model()
    for name, model in {"bundled": bundled, "other": bundled.replace(OTHER)}.items():
        coarse, standard, fine = (_solved(model, sizes) for sizes in _sizes(model))
        polarity = enumerate_configurations(model.rules, contacts_of(model))
        for mode in ("voltage", "current"):
            circuits = [Circuit(*matrices, mode) for matrices in (coarse, standard, fine)]
            covered, looseness = _covered(Ensemble(polarity, circuits, np.full(3, 1 / 3)))
            print(f"{name}, {mode}: {covered:.3f} covered, {looseness:.2f} times |error| in median")
        _print_impedances(name, coarse[1], standard[1], fine[1])


def _sizes(model: Model) -> list[MeshSizes]:
    own = MeshSizes.of(model.mesh.sizes)
    return [MeshSizes(rim_mm=0.1, cord_mm=2.0, end_mm=3.0), own, FINE]


def _solved(model: Model, sizes: MeshSizes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    CACHE.mkdir(parents=True, exist_ok=True)
    lead = compute_lead_field(model, built_mesh(model, sizes, Cache(CACHE)))
    return lead.gram, lead.admittance


def _covered(three: Ensemble) -> tuple[float, float]:
    """Return the share of pairs within the bar, and the median of bar over error."""
    coarse, standard, fine = three.embeddings
    bars = ErrorBars(standard, coarse)
    within, ratio = [], []
    for i in range(0, len(standard), STEP):
        error = np.delete(np.abs(standard @ standard[i] - fine @ fine[i]), i)
        bar = np.delete(bars.row(i), i)
        within.append(error <= bar)
        ratio.append(bar / np.maximum(error, 1e-12))
    return float(np.mean(within)), float(np.median(ratio))


def _print_impedances(
    name: str,
    coarse: NDArray[np.float64],
    standard: NDArray[np.float64],
    fine: NDArray[np.float64],
) -> None:
    pairs = np.triu_indices(len(standard), 1)
    true = bipole_impedances(2.0 * fine - standard)[pairs]
    for what, admittance in {"as solved": standard, "2 Y - Y'": 2.0 * standard - coarse}.items():
        error = 100.0 * (bipole_impedances(admittance)[pairs] / true - 1.0)
        worst = np.abs(error).max()
        print(
            f"{name}, bipole impedances {what}: {error.mean():+.2f} % on average, worst {worst:.2f}"
        )


def ratio(repeats: int = 3) -> None:
    """Print the time of a conductivity sample over that of a cold solve of the companion mesh."""
    model = load_model()
    changed = model.replace(CONDUCTIVITIES)
    mesh, _ = load_mesh(model, "companion")
    compute_lead_field(model, mesh, threads=1)  # compiles
    skeleton = skeleton_of(model, mesh)
    cold, warm = [], []
    for _ in range(repeats):
        start = time.process_time()
        compute_lead_field(changed, load_mesh(model, "companion")[0], threads=1)
        cold.append(time.process_time() - start)
        start = time.process_time()
        sample = compute_lead_field(changed, mesh, threads=1, tolerance=1e-5, skeleton=skeleton)
        warm.append(time.process_time() - start)
    exact = compute_lead_field(changed, mesh, threads=1)
    polarity = enumerate_configurations(model.rules, contacts_of(model))[::STEP]
    both = [Circuit(lead.gram, lead.admittance) for lead in (sample, exact)]
    one, other = Ensemble(polarity, both, np.full(2, 0.5)).embeddings
    moved = np.abs(one @ one.T - other @ other.T).max()
    print(f"cold {min(cold):.2f} s, sample {min(warm):.2f} s of CPU: {min(warm) / min(cold):.2f}")
    print(f"r moves by {moved:.1e} at most with the samples' tolerance")
    check_mesh_of_model(model, mesh)


@dataclass(frozen=True)
class SweepWorld:
    """Utilities linear in the field of a random sample; engines know another r.

    ``knows`` is "nominal", "mean" or "mean less spread" of the sweep; configurations have at most
    ``active`` active contacts.
    """

    sweep: SweepStore
    knows: str
    active: int = 3

    @property
    def name(self) -> str:
        """What it is, for tables."""
        return f"truth is a sample, r is the {self.knows}"

    @cached_property
    def _samples(self) -> Ensemble:
        every = self.sweep.ensemble()
        return Ensemble(self._polarity, every.circuits, every.weight)

    @property
    def _polarity(self) -> NDArray[np.int8]:
        every = self.sweep.polarity
        return every[np.count_nonzero(every, axis=1) <= self.active]

    def correlations(self) -> NDArray[np.float32]:
        """Return r that engines know, (K, K)."""
        if self.knows == "nominal":
            own = self.sweep.nominal()
            rows = Ensemble(self._polarity, own.circuits, own.weight).embeddings[0]
            return np.asarray(rows @ rows.T, dtype=np.float32)
        count = len(self._polarity)
        mean, square = np.zeros((count, count)), np.zeros((count, count))
        for weight, rows in zip(self._samples.weight, self._samples.embeddings, strict=True):
            r = rows @ rows.T
            mean += weight * r
            square += weight * r * r
        if self.knows == "mean":
            return mean.astype(np.float32)
        spread = np.sqrt(np.maximum(square - mean**2, 0.0))
        damped = np.sign(mean) * np.maximum(np.abs(mean) - spread, 0.0)
        np.fill_diagonal(damped, 1.0)
        return damped.astype(np.float32)

    @cached_property
    def _source(self) -> CorrelationSource:
        return source_from_matrix(self.correlations())

    def source(self) -> CorrelationSource:
        """Return what engines are given."""
        return self._source

    def utility(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw a sample and a utility that is linear in its field, standardised."""
        rows = self._samples.embeddings[rng.integers(len(self.sweep))]
        value = np.einsum("kr,r->k", rows, rng.standard_normal(rows.shape[1]))
        return np.asarray((value - value.mean()) / value.std())


def sessions(path: Path, *, trials: int, active: int) -> None:
    """Print the regret of CorrDuel after 100 and 400 answers, by what it knows."""
    sweep = open_sweep(path)
    player = Player("CorrDuel", "CorrDuel")
    print("| CorrDuel knows | T | regret of the arm returned | of those played so far |")
    print("|---|---|---|---|")
    for knows in ("nominal", "mean", "mean less spread"):
        world: Any = SweepWorld(sweep, knows, active)
        (done,) = simulate(world, [player], trials=trials, horizon=max(STEPS), seed=1).outcomes
        for step in STEPS:
            returned = done.regret[:, done.checkpoints.index(step)]
            error = returned.std() / np.sqrt(trials)
            played = done.mean[:step].mean()
            figures = f"{returned.mean():.3f} +- {error:.3f} | {played:.3f}"
            print(f"| {knows} | {step} | {figures} |", flush=True)


def main() -> None:
    """Run one part of the study."""
    parser = argparse.ArgumentParser(prog="scripts/study sure", description=__doc__)
    parser.add_argument("part", choices=["coverage", "time", "sessions"])
    parser.add_argument("sweep", nargs="?", type=Path, help="sweep store, for sessions")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--active", type=int, default=3, help="most active contacts, for sessions")
    options = parser.parse_args()
    if options.part == "coverage":
        coverage()
    elif options.part == "time":
        ratio()
    elif options.sweep is None:
        parser.error("sessions needs a sweep store")
    else:
        sessions(options.sweep, trials=options.trials, active=options.active)


if __name__ == "__main__":
    main()
