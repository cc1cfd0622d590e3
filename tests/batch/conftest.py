"""One batch on the tiny mesh for all tests that only look at it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fieldcorr.batch import precompute
from fieldcorr.batch.cache import Cache
from fieldcorr.batch.fields import lead_field
from fieldcorr.leadfield import LeadField
from fieldcorr.mesh import read_mesh
from fieldcorr.model import Model, resolve_mesh
from fieldcorr.store import Store


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the cache of solved fields that all tests share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def small_model(bundled_model: Model) -> Model:
    """Return the bundled model with 240 configurations."""
    return bundled_model.replace({"configurations.preset": "up-to-two"})


@pytest.fixture(scope="session")
def store(
    small_model: Model, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """Return the store of the small model on the tiny mesh."""
    path = tmp_path_factory.mktemp("batch") / "tiny.h5"
    with precompute(small_model, path, mesh="tiny", cache=cache) as made:
        yield made


@pytest.fixture(scope="session")
def solved(small_model: Model, cache: Path, store: Store) -> LeadField:
    """Return the lead field that the store was made from."""
    assert store
    mesh = read_mesh(resolve_mesh(small_model, "tiny"))
    return lead_field(small_model, mesh, name="tiny", cache=Cache(cache))
