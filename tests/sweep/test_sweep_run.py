"""A sweep from file to store: brute force, interruption, workers, points that cannot be built."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from fieldcorr import cluster
from fieldcorr.drive import contact_currents
from fieldcorr.errors import ModelError, StoreError
from fieldcorr.leadfield import compute_lead_field
from fieldcorr.mesh import load_mesh
from fieldcorr.store.sweeps import SweepStore, open_sweep
from fieldcorr.sweep import Sweep, load_sweep, run, run_sweep, solve
from fieldcorr.sweep.analysis import summarise, variance_shares
from tests.sweep.conftest import SMALL, write_sweep_file


def correlation(model: Any, polarity: Any) -> Any:
    """Compute r of a model on the tiny mesh, from the model file on, by definition."""
    field = compute_lead_field(model, load_mesh(model, "tiny")[0])
    current = contact_currents(polarity, field.admittance)
    covariance = current @ field.gram @ current.T
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


def test_mean_and_spread_are_those_of_models_solved_one_by_one(
    swept: SweepStore, small: Sweep
) -> None:
    r = [correlation(small.model.replace(dict(v)), swept.polarity) for v in swept.values]
    samples = swept.ensemble()
    for row in (0, 100, 239):
        np.testing.assert_allclose(samples.mean(row), np.mean(r, axis=0)[row], atol=1e-9)
        np.testing.assert_allclose(samples.spread(row), np.std(r, axis=0)[row], atol=1e-9)
    nominal = swept.nominal().rows(7)[0]
    np.testing.assert_allclose(nominal, correlation(small.model, swept.polarity)[7], atol=1e-9)


def test_what_was_varied_is_recorded(swept: SweepStore, small: Sweep) -> None:
    assert swept.keys == small.keys
    assert {v["region.half"] for v in swept.values} == {"all", "dorsal"}
    for point, values in zip(swept.points, swept.values, strict=True):
        assert small.changes(point) == dict(values)
    assert swept.origin["points_given_up"] == 0


def test_an_interrupted_sweep_goes_on_and_ends_in_the_same_content(
    small: Sweep, swept: SweepStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[int] = []
    task = run.task

    def interrupted(sweep: Sweep, number: int, *rest: Any) -> Any:
        solved.append(number)
        if len(solved) == 3:
            raise KeyboardInterrupt
        return task(sweep, number, *rest)

    monkeypatch.setattr(run, "task", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(small, tmp_path / "again.h5", cache=folder / "cache")
    assert not (tmp_path / "again.h5").exists()
    made = run_sweep(small, tmp_path / "again.h5", cache=folder / "cache", threads=1)
    assert solved == [-1, 0, 1, 1, 2, 3, 4]
    assert made.hash == swept.hash
    assert not (tmp_path / "again.h5.partial").exists()


CHOICES = """
format = 1
method = "grid"
mesh = "tiny"
model = "model.toml"

[vary."region.window_half_length_mm"]
distribution = "uniform"
low = 20.0
high = 40.0
levels = 2

[vary."measure.kind"]
distribution = "values"
values = ["potential", "field", "activating"]
"""


def test_window_and_measure_can_be_swept_and_are_solved_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved: list[str] = []

    def counted(model: Any, *rest: Any, **options: Any) -> Any:
        solved.append(model.measure.kind)
        return compute_lead_field(model, *rest, **options)

    monkeypatch.setattr(solve, "compute_lead_field", counted)
    monkeypatch.setattr(solve, "_last", {})
    sweep = load_sweep(write_sweep_file(tmp_path, CHOICES))
    made = run_sweep(sweep, tmp_path / "choices.h5", cache=folder / "cache")
    assert len(solved) == 1
    values = {
        (v["region.window_half_length_mm"], v["measure.kind"]): k for k, v in enumerate(made.values)
    }
    assert len(values) == len(made) == 6
    model = sweep.model.replace({"region.window_half_length_mm": 35.0})
    field = compute_lead_field(model, load_mesh(model, "tiny")[0])
    for kind in ("potential", "field", "activating"):
        found = made.gram[values[35.0, kind]]
        np.testing.assert_allclose(found, field.gram_of(kind), atol=1e-4 * found.max())
    assert next(iter(variance_shares(made))) == "measure.kind"


class Disturbed:
    """A crew one of whose workers is killed when the first sample is done."""

    def __init__(self, crew: cluster.Crew) -> None:
        self.crew = crew
        ((_, self.victim),) = crew.results(os.getpid, [()])

    def results(self, task: Any, arguments: Any, **options: Any) -> Iterator[Any]:
        for done, result in enumerate(self.crew.results(task, arguments, **options)):
            yield result
            if done == 0:
                os.kill(self.victim, signal.SIGKILL)


@pytest.mark.slow
def test_workers_and_a_lost_one_give_the_same_content(
    small: Sweep, swept: SweepStore, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    two = run_sweep(small, tmp_path / "two.h5", cache=folder / "cache", dask="local", threads=2)
    assert two.hash == swept.hash
    from contextlib import contextmanager

    @contextmanager
    def disturbed(*args: Any, **options: Any) -> Iterator[Disturbed]:
        with cluster.workers(*args, **options) as crew:
            yield Disturbed(crew)

    monkeypatch.setattr(run, "workers", disturbed)
    lost = run_sweep(small, tmp_path / "lost.h5", cache=folder / "cache", dask="local", threads=2)
    assert lost.hash == swept.hash


SHAPES = SMALL.replace("samples = 5", "samples = 3").replace(
    '[vary."region.half"]\ndistribution = "values"\nvalues = ["all", "dorsal"]',
    '[vary."geometry.cord.dorsal_csf_mm"]\ndistribution = "uniform"\nlow = 2.0\nhigh = 8.0',
)


@pytest.mark.gmsh
def test_points_that_cannot_be_built_are_replaced_and_said(tmp_path: Path) -> None:
    sweep = load_sweep(write_sweep_file(tmp_path, SHAPES))
    made = run_sweep(sweep, tmp_path / "shapes.h5", cache=tmp_path / "cache")
    failures = [text for record in made.records for text in record["failures"]]
    assert len(made) == 3
    assert 0 < len(failures) == made.origin["points_given_up"]
    assert all("does not lie inside" in text for text in failures)
    assert len({record["mesh"] for record in made.records}) == 3
    again = run_sweep(sweep, tmp_path / "again.h5", cache=tmp_path / "cache")
    assert again.hash == made.hash, "a mesh from the cache is the mesh that was built"


def test_a_sweep_of_models_that_cannot_be_ends_in_one_line(tmp_path: Path) -> None:
    text = SHAPES.replace("low = 2.0\nhigh = 8.0", "low = 7.0\nhigh = 8.0")
    sweep = load_sweep(write_sweep_file(tmp_path, text))
    with pytest.raises(ModelError, match="none of 50 points for sample 0 can be built; the last: "):
        run_sweep(sweep, tmp_path / "no.h5", cache=tmp_path / "cache")


def test_too_many_configurations_are_refused(small: Sweep, tmp_path: Path) -> None:
    many = small.model.replace({"configurations.preset": "all"})
    sweep = Sweep(small.file, many, small.path, small.text)
    with pytest.raises(ModelError, match="of which a sweep takes at most"):
        run_sweep(sweep, tmp_path / "no.h5")


@pytest.mark.parametrize("name", ["/samples/gram", "/samples/record", "/configurations/polarity"])
def test_a_changed_file_is_refused(name: str, swept: SweepStore, tmp_path: Path) -> None:
    path = tmp_path / "changed.h5"
    path.write_bytes(swept.path.read_bytes())
    with h5py.File(path, "r+") as file:
        first = (0,) * file[name].ndim
        value = file[name][first]
        file[name][first] = value[:-1] + b" " if isinstance(value, bytes) else value + 1
    with pytest.raises(StoreError, match=f"{name} does not match its recorded sha256"):
        open_sweep(path)


def test_what_is_no_sweep_is_refused(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w"):
        pass
    with pytest.raises(StoreError, match="not a sweep store"):
        open_sweep(tmp_path / "other.h5")


# -- what it says ---------------------------------------------------------------------------------


def test_the_summary_counts_what_the_rows_say(swept: SweepStore) -> None:
    said = summarise(swept)
    assert 0.0 < said.spread_rms < said.spread_p99 <= said.spread_max
    assert said.from_nominal_max >= said.mean_from_nominal_max
    assert 0.0 < said.kept_least <= said.kept_mean < 1.0


def test_the_input_that_moves_r_has_the_larger_share(swept: SweepStore) -> None:
    """A region of half the cord moves r by 0.1, fat by some hundredths."""
    shares = variance_shares(swept)
    assert next(iter(shares)) == "region.half"
    assert shares["region.half"] > 0.5
    assert sum(shares.values()) == pytest.approx(1.0, abs=0.1)
