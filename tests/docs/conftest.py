"""Stores of the bundled model on its tiny mesh, for the examples of the documentation."""

from pathlib import Path

import pytest

import fieldcorr as fc

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def field_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for lead fields, so that examples with the same physics share them."""
    return tmp_path_factory.mktemp("field-cache")


def make_store(path: Path, preset: str, cache: Path) -> Path:
    """Compute a store on the tiny mesh."""
    model = fc.load_model("lumbosacral-565").replace({"configurations.preset": preset})
    fc.precompute(model, path, mesh="tiny", estimate=False, cache=cache).close()
    return path


@pytest.fixture(scope="session")
def run_store(tmp_path_factory: pytest.TempPathFactory, field_cache: Path) -> Path:
    """Return a store with the configurations of scripts/run."""
    return make_store(tmp_path_factory.mktemp("docs") / "run.h5", "up-to-three", field_cache)


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory, field_cache: Path) -> Path:
    """Return a store with the bipolar configurations alone."""
    return make_store(tmp_path_factory.mktemp("docs") / "small.h5", "up-to-two", field_cache)
