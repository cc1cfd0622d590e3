"""Sweep files: what they may say, and one line for every mistake."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fieldcorr.errors import ModelError
from fieldcorr.sweep import load_sweep
from fieldcorr.sweep.design import points
from fieldcorr.sweep.distributions import Distribution
from tests.sweep.conftest import SMALL, write_sweep_file

LAWS = {
    "uniform": ({"low": -1.0, "high": 3.0}, stats.uniform(-1.0, 4.0)),
    "loguniform": ({"low": 0.02, "high": 0.6}, stats.loguniform(0.02, 0.6)),
    "normal": ({"mean": 2.0, "sd": 0.5}, stats.norm(2.0, 0.5)),
}


@pytest.mark.parametrize("name", LAWS)
@given(u=st.floats(0.0, 0.999))
def test_a_value_is_the_quantile(name: str, u: float) -> None:
    keys, law = LAWS[name]
    made = Distribution.model_validate({"distribution": name, **keys})
    np.testing.assert_allclose(made.at(u), law.ppf(u), rtol=1e-9, atol=1e-12)


def test_a_cut_normal_stays_inside() -> None:
    law = Distribution(distribution="normal", mean=0.0, sd=1.0, low=-0.5, high=2.0)
    values = np.array([law.at(u) for u in np.linspace(0.0, 0.999, 50)])
    assert values.min() >= -0.5
    assert values.max() <= 2.0
    assert (np.diff(values) > 0).all()


def test_values_are_equally_likely() -> None:
    law = Distribution(distribution="values", values=["a", "b", "c"])
    assert [law.at(u) for u in (0.0, 0.34, 0.67, 0.999)] == ["a", "b", "c", "c"]


def changed(tmp_path: Path, old: str, new: str) -> Path:
    assert old in SMALL
    return write_sweep_file(tmp_path, SMALL.replace(old, new))


MISTAKES = {
    "low = 0.025": ("low = 0.5", r"low = 0.5 is not below high = 0.25"),
    "high = 0.25": ("", r"high is missing, which loguniform needs"),
    'distribution = "loguniform"': ('distribution = "lognormal"', "distribution"),
    '[vary."tissues.fat.c': ('[vary."tissues.fatt.c', r'no such tissue; did you mean "fat"\?'),
    '"tissues.fat.conductivity_S_per_m"': ('"tissues.fat.conductivty"', "unknown key"),
    '"region.half"': ('"configurations.preset"', "all samples share configurations"),
    'values = ["all", "dorsal"]': ('values = ["ventral"]', 'must be .*"ventral"|ventral'),
    "samples = 5": ("samples = 1", "samples = 1"),
    "[sizes]": ("[size]", "size"),
    "rim_mm = 0.7": ("rim_mm = nan", "rim_mm"),
    'distribution = "values"': ('distribution = "normal"\nmean = 1\nsd = -1', "sd"),
    "seed = 3": ('method = "sobol"', "powers of two"),
}


@pytest.mark.parametrize("old", MISTAKES)
def test_a_mistake_is_one_line(old: str, tmp_path: Path) -> None:
    new, reason = MISTAKES[old]
    with pytest.raises(ModelError, match=reason) as caught:
        points(load_sweep(changed(tmp_path, old, new)))
    assert "\n" not in str(caught.value)
    assert "sweep.toml" in str(caught.value)


MAGNITUDES = {
    "varied": '[vary."measure.kind"]\ndistribution = "values"\nvalues = ["field", "magnitude"]',
    "set": '[set]\n"measure.kind" = "magnitude"',
}


@pytest.mark.parametrize("how", MAGNITUDES)
def test_a_measure_without_gram_matrix_is_refused(how: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"\|E\| is not linear in the currents") as caught:
        load_sweep(write_sweep_file(tmp_path, SMALL + MAGNITUDES[how]))
    assert "\n" not in str(caught.value)


def test_a_file_extends_the_default_one(tmp_path: Path) -> None:
    path = write_sweep_file(tmp_path, SMALL.replace("seed = 3", 'extends = "default"'))
    sweep = load_sweep(path, samples=8)
    assert set(load_sweep().keys) < set(sweep.keys)
    assert sweep.vary["tissues.fat.conductivity_S_per_m"].source == ""
    assert sweep.file.samples == 8
    assert sweep.keys[-1] == "region.half", "what no field depends on comes last"


def test_every_default_distribution_names_its_source() -> None:
    assert all(law.source for law in load_sweep().vary.values())


def test_a_latin_hypercube_has_one_point_in_every_slice(tmp_path: Path) -> None:
    sweep = load_sweep(write_sweep_file(tmp_path), samples=16)
    first = points(sweep)
    assert (np.sort((first * 16).astype(int), axis=0) == np.arange(16)[:, None]).all()
    assert (points(sweep) == first).all()
    assert (points(load_sweep(sweep.path, samples=16, seed=4)) != first).any()


def test_a_grid_has_the_middle_of_every_level(tmp_path: Path) -> None:
    path = changed(tmp_path, "seed = 3", 'method = "grid"')
    grid = points(load_sweep(path))
    assert grid.shape == (6, 2)
    assert sorted(set(grid[:, 0])) == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    assert np.ptp(grid[:2, 0]) == 0.0, "what no field depends on changes fastest"
