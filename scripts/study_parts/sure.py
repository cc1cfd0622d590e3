"""How sure is r? Error bars against finer meshes, impedances, single inputs, sessions, time.

``coverage`` and ``impedances`` build three meshes of each of four geometries and compare with the
finest (minutes, 6 GB; solved ones are kept). ``inputs`` changes one input of the bundled model at a
time, ``sweep`` all of the default ones at once. ``sessions SURE.h5 MY.h5`` plays sessions in which
the truth is a random sample of the sweep behind SURE.h5, and engines know that store, or MY.h5, of
the model as it is. ``time`` compares a sample that reuses mesh and pattern with a cold solve.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.cache import Cache, key_of
from fieldcorr.batch.fields import physics
from fieldcorr.batch.meshes import built_mesh
from fieldcorr.batch.plan import contacts_of
from fieldcorr.cli.sweep import WORDS
from fieldcorr.configurations.rules import enumerate_configurations
from fieldcorr.correlation.ensemble import Ensemble
from fieldcorr.correlation.error_bars import ErrorBars
from fieldcorr.correlation.sources import CorrelationSource, source_from_matrix
from fieldcorr.correlation.whole import Circuit
from fieldcorr.drive import bipole_impedances
from fieldcorr.duel.simulate import Outcome, Player, simulate
from fieldcorr.duel.worlds import ElectrodeSpace
from fieldcorr.leadfield import compute_lead_field, skeleton_of
from fieldcorr.mesh import MeshSizes, load_mesh
from fieldcorr.model import Model, load_model
from fieldcorr.plot.style import SMALL, WIDTH, finish, new_figure, series
from fieldcorr.store import Store, open_store
from fieldcorr.store.sweeps import open_sweep
from fieldcorr.sweep import load_sweep, run_sweep
from fieldcorr.sweep.analysis import chosen_rows, shares_kept, summarise, variance_shares
from fieldcorr.sweep.solve import circuit_of, sample_mesh
from study_parts.duel_results import table
from study_parts.variants import CACHE

Floats = NDArray[np.float64]

FINE = MeshSizes(rim_mm=0.025, cord_mm=0.5, end_mm=1.0)
"""Twice the resolution of the standard mesh."""

GEOMETRIES: Mapping[str, Mapping[str, Any]] = {
    "bundled": {},
    "nearer, turned, better conducting": {
        "geometry.cord.dorsal_csf_mm": 2.0,
        "geometry.cord.offset_left_mm": 0.8,
        "geometry.canal.depth_mm": 21.5,
        "array.offset_left_mm": -1.0,
        "array.gap_to_dura_mm": 0.6,
        "array.yaw_degree": 2.0,
        "tissues.fat.conductivity_S_per_m": 0.1,
        "tissues.dura.conductivity_S_per_m": 0.1,
    },
    "farther, thinner, worse conducting": {
        "geometry.cord.dorsal_csf_mm": 4.2,
        "geometry.cord.width_mm": 8.0,
        "geometry.sac.dura_thickness_mm": 0.45,
        "array.offset_left_mm": 0.3,
        "array.yaw_degree": -1.0,
        "tissues.fat.conductivity_S_per_m": 0.025,
        "tissues.csf.conductivity_S_per_m": 1.4,
        "tissues.bone.conductivity_S_per_m": 0.01,
    },
    "another array, contact impedance": {
        "array.device": "paddle-8.toml",
        "contacts.model": "impedance",
        "contacts.impedance_ohm_m2": 1e-3,
    },
}
CHOSEN_ON = tuple(GEOMETRIES)[:2]
"""The two numbers of the error bar were chosen on these; the others are a check."""

ARRAY = """format = 1
name = "paddle-8"
description = "Flat paddle, two columns of four contacts"
source = "made for this study"
paddle = { length_mm = 44.0, width_mm = 8.0, thickness_mm = 2.0 }
contact = { length_mm = 3.0, width_mm = 2.0 }
""" + "".join(
    f'[[contacts]]\nname = "{4 * column + row}"\nleft_mm = {left}\nrostral_mm = {13.5 - 9 * row}\n'
    for column, left in enumerate((2.0, -2.0))
    for row in range(4)
)

CONTACT_M2 = 6e-6
CHANGES: Mapping[str, Mapping[str, Any]] = {
    "fat 0.04 to 0.25 S/m": {"tissues.fat.conductivity_S_per_m": 0.25},
    "dura 0.03 to 0.6 S/m": {"tissues.dura.conductivity_S_per_m": 0.6},
    "array 1 mm to the left": {"array.offset_left_mm": 1.0},
    "dorsal fluid 3 to 2 mm": {"geometry.cord.dorsal_csf_mm": 2.0},
    "gap 0.3 to 1 mm": {"array.gap_to_dura_mm": 1.0},
    "yaw 3 degrees": {"array.yaw_degree": 3.0},
    "contact impedance 1 kohm": {
        "contacts.model": "impedance",
        "contacts.impedance_ohm_m2": 1e3 * CONTACT_M2,
    },
    "window 30 to 20 mm": {"region.window_half_length_mm": 20.0},
    "window 30 to 40 mm": {"region.window_half_length_mm": 40.0},
    "region: the fluid": {"region.tissues": ["csf"], "region.half": "dorsal"},
    "measure: the field": {"measure.kind": "field"},
}
"""One thing at a time, in the bundled model."""

STEPS = (50, 100, 200, 400)  # answers after which regret is looked at
STEP = 4  # every fourth configuration stands for all
CONDUCTIVITIES = {
    "tissues.fat.conductivity_S_per_m": 0.1,
    "tissues.dura.conductivity_S_per_m": 0.1,
}


def models(only: str) -> Iterator[tuple[str, Model]]:
    """Yield the geometries whose names begin so."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "paddle-8.toml").write_text(ARRAY)
    bundled = load_model()
    for name, changes in GEOMETRIES.items():
        if name.startswith(only):
            device = changes.get("array.device")
            own = {"array.device": str(CACHE / device)} if device else {}
            yield name, bundled.replace({**changes, **own})


def coverage(only: str) -> None:
    """Print the share of pairs within their error bar."""
    lines = []
    for name, model in models(only):
        coarse, standard, fine = (_solved(model, sizes) for sizes in _sizes(model))
        polarity = enumerate_configurations(model.rules, contacts_of(model))
        for mode in ("voltage", "current"):
            circuits = [Circuit(*matrices, mode) for matrices in (coarse, standard, fine)]
            covered, looseness = _covered(Ensemble(polarity, circuits, np.full(3, 1 / 3)))
            used = "yes" if name in CHOSEN_ON else "no"
            lines.append([name, mode, used, f"{100 * covered:.1f} %", f"{looseness:.1f}"])
    heading = ["geometry", "drive", "bar chosen on it", "pairs within the bar"]
    print(table([*heading, "bar over error, median"], lines))


def _sizes(model: Model) -> list[MeshSizes]:
    own = MeshSizes.of(model.mesh.sizes)
    return [MeshSizes(rim_mm=0.1, cord_mm=2.0, end_mm=3.0), own, FINE]


def _solved(model: Model, sizes: MeshSizes) -> tuple[Floats, Floats]:
    """Return Gram matrix and admittance of a model on a mesh of such sizes; kept once solved."""
    kept, mesh = Cache(CACHE), built_mesh(model, sizes, Cache(CACHE))
    key = key_of({"study": "sure", **physics(model, mesh, model.solver.order)})
    found = kept.load(key)
    if found is None:
        lead = compute_lead_field(model, mesh)
        found = {"gram": lead.gram, "admittance": lead.admittance}
        kept.save(key, found)
    gram, admittance = (np.asarray(found[name], np.float64) for name in ("gram", "admittance"))
    return gram, admittance


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


def ratio(repeats: int = 3) -> None:
    """Print the time of a conductivity sample over that of a cold solve of the companion mesh."""
    model = load_model()
    changed = model.replace(CONDUCTIVITIES)
    mesh, _ = load_mesh(model, "companion")
    compute_lead_field(model, mesh, threads=1)  # compiles
    skeleton = skeleton_of(model, mesh)
    tolerance, cold, warm = load_sweep().file.tolerance, [], []
    sample = compute_lead_field(changed, mesh, threads=1, tolerance=tolerance, skeleton=skeleton)
    for _ in range(repeats):
        start = time.process_time()
        compute_lead_field(changed, load_mesh(model, "companion")[0], threads=1)
        cold.append(time.process_time() - start)
        start = time.process_time()
        compute_lead_field(changed, mesh, threads=1, tolerance=tolerance, skeleton=skeleton)
        warm.append(time.process_time() - start)
    exact = compute_lead_field(changed, mesh, threads=1)
    polarity = enumerate_configurations(model.rules, contacts_of(model))[::STEP]
    both = [Circuit(lead.gram, lead.admittance) for lead in (sample, exact)]
    one, other = Ensemble(polarity, both, np.full(2, 0.5)).embeddings
    moved = np.abs(one @ one.T - other @ other.T).max()
    print(f"cold {min(cold):.2f} s, sample {min(warm):.2f} s of CPU: {min(warm) / min(cold):.2f}")
    print(f"r moves by {moved:.1e} at most with the samples' tolerance")
    start, sweep = time.process_time(), load_sweep()
    other_shape = model.replace({"geometry.cord.dorsal_csf_mm": 2.7})
    with TemporaryDirectory() as folder:
        own = built_mesh(other_shape, sweep.sizes, Cache(Path(folder)))
    built = time.process_time()
    circuit_of(sweep, other_shape, own)
    done = time.process_time()
    print(f"another shape: {built - start:.1f} s to build, {done - built:.1f} s to solve")


def impedances(only: str) -> None:
    """Print bipole impedances against those of fine meshes, extrapolated."""
    lines = []
    for name, model in models(only):
        coarse, standard, fine = (_solved(model, sizes)[1] for sizes in _sizes(model))
        pairs = np.triu_indices(len(standard), 1)
        true = bipole_impedances(2.0 * fine - standard)[pairs]
        ways = {"as solved": standard, "`store.impedances`": 2.0 * standard - coarse}
        for what, admittance in ways.items():
            error = 100.0 * (bipole_impedances(admittance)[pairs] / true - 1.0)
            mean, worst = f"{error.mean():+.2f} %", f"{np.abs(error).max():.2f} %"
            lines.append([name, what, mean.replace("-", "\N{MINUS SIGN}"), worst])
    print(table(["geometry", "bipoles", "mean error", "worst"], lines))


def inputs() -> None:
    """Print how far r moves when one input of the bundled model changes, for both drives."""
    sweep, cache = load_sweep(), Cache(CACHE)
    CACHE.mkdir(parents=True, exist_ok=True)
    scaled = {
        f"{name} x {factor:g}": {key: factor * value}
        for name, key, value in _conductivities(sweep.model)
        for factor in (0.5, 1.5)
    }
    polarity = enumerate_configurations(sweep.model.rules, contacts_of(sweep.model))
    own = circuit_of(sweep, sweep.model, sample_mesh(sweep, sweep.model, cache))
    lines = []
    for name, changes in {**CHANGES, **scaled}.items():
        model = sweep.model.replace(changes)
        found = circuit_of(sweep, model, sample_mesh(sweep, model, cache))
        line = [name]
        for mode in ("voltage", "current"):
            both = [Circuit(c.gram, c.admittance, mode) for c in (own, found)]
            line += _moved(Ensemble(polarity, both, np.full(2, 0.5)))
        lines.append(line)
    each = ("rms", "largest", "kept")
    print(table(["changed", *(f"{m}: {w}" for m in ("voltage", "current") for w in each)], lines))


def _conductivities(model: Model) -> Iterator[tuple[str, str, float]]:
    """Yield name, key and value of every conductivity of a model's tissues."""
    for tissue, values in model.tissues.items():
        for way in ("", "along_", "across_"):
            key = f"conductivity_{way}S_per_m"
            if value := getattr(values, key):
                yield f"{tissue} {way.strip('_')}".strip(), f"tissues.{tissue}.{key}", value


def _moved(two: Ensemble) -> list[str]:
    """Return how far r of the second is from the first, and the share of neighbours kept."""
    moved, kept = [], []
    for row in chosen_rows(len(two.polarity)):
        own, other = two.rows(int(row))
        moved.append(np.delete(np.abs(other - own), row))
        kept.append(shares_kept(other[None], own[None], int(row)))
    far = np.concatenate(moved)
    rms = float(np.sqrt(np.mean(far**2)))
    return [f"{rms:.3f}", f"{far.max():.2f}", f"{100 * np.mean(kept):.0f} %"]


def sweep_table(path: Path) -> None:
    """Print what the default sweep says; it is made where there is none at ``path``."""
    path.parent.mkdir(exist_ok=True)
    sweep = open_sweep(path) if path.exists() else run_sweep("default", path)
    tried, lost = sweep.origin["points_tried"], sweep.origin["points_given_up"]
    ohm = [bipole_impedances(y)[0, 1:].mean() / 1e3 for y in sweep.admittance]
    lines = [
        ["points that could not be built and were replaced", f"{lost} of {tried}"],
        ["bipoles of contact 0, mean", f"{min(ohm):.1f} to {max(ohm):.1f} k\N{OHM SIGN}"],
    ]
    for key, value in vars(summarise(sweep)).items():
        lines.append([WORDS[key], f"{100 * value:.0f} %" if "kept" in key else f"{value:.3f}"])
    shares = variance_shares(sweep).items()
    lines += [[f"`{key}`", f"{100 * share:.1f} % of the variance"] for key, share in shares]
    print(table(["what", "value"], lines))


def sessions(
    sure: Path, nominal: Path, *, trials: int, engines: Sequence[str], plot: Path | None
) -> None:
    """Print the regret of engines by what they know, while the truth is a sample of the sweep."""
    played: dict[tuple[str, str], Outcome] = {}
    with open_store(sure) as mean, open_store(nominal) as own:
        if not np.array_equal(mean.polarity, own.polarity):
            raise SystemExit(f"{sure} and {nominal} have other configurations")
        known: dict[str, dict[str, Any]] = {
            "the model as it is": {"correlation": own},
            "the mean": {},
            "the mean less its spread": {"via": "damped"},
            "the mean, all r smaller alike": {"correlation": _less(mean)},
        }
        for engine in engines:
            # Other engines than CorrDuel take r by its embedding: it cannot be damped.
            for knows, options in list(known.items())[: None if engine == "CorrDuel" else 2]:
                world = ElectrodeSpace.of_store(mean, "sample", **options)
                player = Player(engine, engine)
                done = simulate(world, [player], trials=trials, horizon=max(STEPS), seed=1)
                (played[engine, knows],) = done.outcomes
        count = len(mean)
    lines = [[*who, *_regrets(done)] for who, done in played.items()]
    print(table(["engine", "knows", *(f"T = {step}" for step in STEPS)], lines))
    if plot is not None:
        _draw(played, count, trials).savefig(plot, dpi=110)


def _less(store: Store) -> CorrelationSource:
    """Return r less one number for all pairs, the root mean square of its spread: a control.

    It damps as much as the spread does, without knowing which pairs are less sure.
    """
    z = store.embedding
    rows = chosen_rows(len(z))
    amount = np.sqrt(np.mean([store.ensemble.spread(int(row)) ** 2 for row in rows]))
    r = z @ z.T
    r = np.sign(r) * np.maximum(np.abs(r) - amount, 0.0)
    np.fill_diagonal(r, 1.0)
    return source_from_matrix(r.astype(np.float32))


def _regrets(done: Outcome) -> list[str]:
    """Return the regret of the arm returned after each of STEPS answers, with standard error."""
    out = []
    for step in STEPS:
        returned = done.regret[:, done.checkpoints.index(step)]
        out.append(f"{returned.mean():.3f} \N{PLUS-MINUS SIGN} {_error(returned):.3f}")
    return out


def _error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _draw(played: Mapping[tuple[str, str], Outcome], count: int, trials: int) -> Any:
    """Return a panel per engine: regret of the arm returned, with standard errors."""
    engines = list(dict.fromkeys(engine for engine, _ in played))
    knowledge = list(dict.fromkeys(knows for _, knows in played))
    figure = new_figure((WIDTH, 3.6))
    panels = np.atleast_1d(figure.subplots(1, len(engines), sharey=True))
    for (engine, knows), done in played.items():
        regret = done.regret[:, [done.checkpoints.index(step) for step in STEPS]]
        errors = [_error(column) for column in regret.T]
        ax, look = panels[engines.index(engine)], series(knowledge.index(knows))
        ax.errorbar(STEPS, regret.mean(axis=0), errors, label=knows, capsize=2, **look)
    for engine, ax in zip(engines, panels, strict=True):
        ax.set_xscale("log")
        ax.set_xticks(STEPS, [str(step) for step in STEPS])
        ax.minorticks_off()
        ax.set_ylim(bottom=0.0)
        finish(ax, f"{engine}, {count} configurations", f"answers; {trials} sessions", "")
    panels[0].set_ylabel("regret of the arm returned")
    panels[0].legend(frameon=False, fontsize=SMALL, title="it knows", title_fontsize=SMALL)
    return figure


def main() -> None:
    """Run one part of the study."""
    parser = argparse.ArgumentParser(prog="scripts/study sure", description=__doc__)
    parts = ["coverage", "impedances", "inputs", "sweep", "sessions", "time"]
    parser.add_argument("part", choices=parts)
    parser.add_argument("files", nargs="*", type=Path, help="stores, or the sweep")
    parser.add_argument("--only", default="", help="geometries whose names begin so")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--engine", nargs="*", default=["CorrDuel", "BayesDuel"])
    parser.add_argument("--plot", type=Path, help="picture of the sessions")
    options = parser.parse_args()
    if options.part == "coverage":
        coverage(options.only)
    elif options.part == "impedances":
        impedances(options.only)
    elif options.part == "inputs":
        inputs()
    elif options.part == "sweep":
        sweep_table(*options.files or [CACHE.parent / "sweep.h5"])
    elif options.part == "time":
        ratio()
    elif len(options.files) != 2:
        parser.error("sessions needs the store of a sweep, and that of the model as it is")
    else:
        sure, nominal = options.files
        how = {"trials": options.trials, "engines": options.engine, "plot": options.plot}
        sessions(sure, nominal, **how)


if __name__ == "__main__":
    main()
