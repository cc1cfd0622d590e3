"""The parts of the study and of the benchmark that are easy to get wrong."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldcorr.mesh import check_mesh, read_mesh
from fieldcorr.model import load_model, resolve_mesh

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "scripts"
RNG = np.random.default_rng(23)


@pytest.fixture(autouse=True)
def _scripts_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield
    for name in [n for n in sys.modules if n.startswith(("study_parts", "bench_rows"))]:
        del sys.modules[name]


def random_result() -> Any:
    variants = importlib.import_module("study_parts.variants")
    root = RNG.normal(size=(16, 16))
    projector = np.eye(16) - 1 / 16
    fields = RNG.normal(size=(16, 40))
    return variants.Result(projector @ root @ root.T @ projector, fields @ fields.T, 1, 1, 0.0)


def test_study_compares_all_pairs_of_3600_configurations() -> None:
    compare = importlib.import_module("study_parts.compare")
    polarity = compare.up_to_three(16)
    assert polarity.shape == (3600, 16)
    assert len(np.unique(polarity, axis=0)) == 3600
    first, second = random_result(), random_result()
    few = polarity[RNG.permutation(3600)[:600]]
    for mode in ("voltage", "current"):
        rows = [compare.embedding(result, few, mode) for result in (first, second)]
        off = np.abs(rows[0] @ rows[0].T - rows[1] @ rows[1].T)[np.triu_indices(600, 1)]
        found = compare.spread(first, second, few, mode)
        assert found.maximum == pytest.approx(off.max())
        assert found.p99 == pytest.approx(np.percentile(off, 99))
        assert found.median == pytest.approx(np.median(off))
        assert compare.spread(first, first, few, mode).maximum == 0.0


def test_study_changes_one_thing_at_a_time() -> None:
    variants = importlib.import_module("study_parts.variants")
    model = load_model("lumbosacral-565")
    names = [variant.name for variant in variants.VARIANTS]
    assert len(set(names)) == len(names)
    rims = variants.variant_model(variants.VARIANTS[names.index("rims")], model)
    assert rims.mesh.sizes.rim_mm == pytest.approx(0.5 * model.mesh.sizes.rim_mm)
    assert rims.mesh.sizes.cord_mm == model.mesh.sizes.cord_mm
    grounded = variants.variant_model(variants.VARIANTS[names.index("boundary")], model)
    assert grounded.boundary.outer == "grounded"
    assert grounded.mesh == model.mesh


def test_study_compares_peers_on_the_sessions_that_all_have_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = importlib.import_module("study_parts.duel_results")
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    for engine, regrets in zip(
        results.PEER, ([0.1, 0.3, 0.5], [0.4, 0.4], [0.3, 0.4], [0.4, 0.4, 0.0]), strict=True
    ):
        path = tmp_path / "peer" / "linear" / engine / "plain" / "potential" / "00000.csv"
        path.parent.mkdir(parents=True)
        rows = [f"{trial},50,{regret}" for trial, regret in enumerate(regrets)]
        path.write_text("\n".join(["trial,t,regret", *rows]))
    line = results.peer_table("regret").splitlines()[-1]
    assert [cell.strip() for cell in line.split("|")[1:-1]] == [
        *("linear", "50", "2", ".200 ± .100", ".400 ± .000", ".350 ± .050", ".400 ± .000"),
        ".150 ± .050",
    ]


@pytest.mark.gmsh
def test_larger_domain_keeps_the_inner_mesh() -> None:
    domain = importlib.import_module("study_parts.domain")
    model = load_model("lumbosacral-565")
    mesh = read_mesh(resolve_mesh(model, "tiny"))
    large = domain.extend_domain(mesh, 300.0, 800.0, 80.0)
    np.testing.assert_array_equal(large.points[: mesh.n_points], mesh.points)
    np.testing.assert_array_equal(large.cells[: mesh.n_cells], mesh.cells)
    assert large.volumes().sum() == pytest.approx(np.pi * 0.3**2 * 0.8, rel=0.02)
    assert large.volumes().min() > 0.0
    check_mesh(large, contacts=model.electrode_names)
    for name in model.electrode_names:
        tag = mesh.facet_names.index(name)
        assert (large.facet_tags == tag).sum() == (mesh.facet_tags == tag).sum()


def test_bench_measures_a_command_and_reports_failure() -> None:
    bench = importlib.import_module("bench_rows")
    frame = importlib.import_module("bench_rows.frame")
    quick = bench.Task("own", "command:pass", repeat=1)
    slow = bench.Task("peer", "command:import time; time.sleep(0.4)", repeat=1)
    row = bench.Row("sleeping", quick, (slow, replace(slow, prepare="command:1/0")), aim=2.0)
    measured = frame.measure(row, rounds=1)
    lines = frame.table_lines(row, measured)
    ratio = float(lines[0].split("|")[5])
    assert float(measured[1]["best"]) > 0.4
    assert ratio == pytest.approx(measured[1]["best"] / measured[0]["best"], rel=0.01)
    assert "failed" in lines[1]
    assert lines[1].split("|")[5].strip() == "-"


def test_bench_worker_measures_memory_of_the_first_run(tmp_path: Path) -> None:
    bench = importlib.import_module("bench_rows")
    frame = importlib.import_module("bench_rows.frame")
    folder = tmp_path / "bench_rows"
    folder.mkdir()
    for name in ("__init__.py", "worker.py"):
        (folder / name).write_text((SCRIPTS / "bench_rows" / name).read_text())
    (folder / "probe.py").write_text(
        "import os\n"
        "def take(megabytes):\n"
        "    def run():\n"
        "        return {'bytes': float(len(bytes(b'x') * (megabytes << 20))),\n"
        "                'threads': float(os.environ['NUMBA_NUM_THREADS'])}\n"
        "    return run\n"
    )
    task = bench.Task(
        "probe", "probe:take", {"megabytes": 200}, 1, 2, {"PYTHONPATH": str(tmp_path)}
    )
    figures = frame.run_task(task)
    assert figures["figures"] == {"bytes": 200.0 * 2**20, "threads": 1.0}
    assert 190.0 < figures["extra_mb"] < 230.0
    assert figures["best"] <= figures["median"]


def test_bench_finds_the_row_modules() -> None:
    frame = importlib.import_module("bench_rows.frame")
    names = frame.row_modules([])
    assert "fe" in names
    assert not {"frame", "worker", "fe_peers", "fe_problem"} & set(names)
    rows = importlib.import_module("bench_rows.fe").rows()
    peers = {task.name for row in rows for task in row.peers}
    assert {"scikit-fem", "NGSolve", "pypardiso", "pyamg SA + CG"} <= peers
