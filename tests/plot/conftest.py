"""The tiny mesh's lead field, and a store made from it, computed once; figures without a screen."""

from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import pytest

from fieldcorr.batch import precompute
from fieldcorr.leadfield import LeadField, compute_lead_field
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.model import Model, resolve_mesh
from fieldcorr.store import Store

mpl.use("Agg")


@pytest.fixture(scope="session")
def tiny_mesh(bundled_model: Model) -> Mesh:
    """Return the tiny mesh of the bundled model."""
    return read_mesh(resolve_mesh(bundled_model, "tiny"))


@pytest.fixture(scope="session")
def lead_field(bundled_model: Model, tiny_mesh: Mesh) -> LeadField:
    """Return the lead field of the bundled model on the tiny mesh."""
    return compute_lead_field(bundled_model, tiny_mesh)


@pytest.fixture(scope="session")
def store(bundled_model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Return a store of the 240 configurations with one anode and one cathode, tiny mesh."""
    folder: Path = tmp_path_factory.mktemp("plot")
    model = bundled_model.replace({"configurations.preset": "up-to-two"})
    with precompute(
        model, folder / "store.h5", mesh="tiny", estimate=False, cache=folder / "cache"
    ) as opened:
        yield opened
