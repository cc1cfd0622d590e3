"""One small sweep over conductivities and region, on the tiny mesh, for all tests."""

from pathlib import Path

import pytest

from fieldcorr.store.sweeps import SweepStore
from fieldcorr.sweep import Sweep, load_sweep, run_sweep

SMALL = """
format = 1
samples = 5
seed = 3
tolerance = 1e-8
mesh = "tiny"
model = "model.toml"

[sizes]
rim_mm = 0.7
growth = 0.8
cord_mm = 3.0
end_mm = 3.0
far_mm = 60.0
stretch = 3.0
end_stretch = 12.0

[vary."tissues.fat.conductivity_S_per_m"]
distribution = "loguniform"
low = 0.025
high = 0.25

[vary."region.half"]
distribution = "values"
values = ["all", "dorsal"]
"""


def write_sweep_file(folder: Path, text: str = SMALL) -> Path:
    """Write a sweep file beside the bundled model with two active contacts and linear elements."""
    from fieldcorr.model import load_model

    changes = {"configurations.preset": "up-to-two", "solver.order": 1}
    (folder / "model.toml").write_text(load_model().replace(changes).text)
    path = folder / "sweep.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="session")
def small(folder: Path) -> Sweep:
    return load_sweep(write_sweep_file(folder))


@pytest.fixture(scope="session")
def swept(small: Sweep, folder: Path) -> SweepStore:
    """Return the finished small sweep."""
    return run_sweep(small, folder / "sweep.h5", cache=folder / "cache")
