"""One small finished store for all tests that only read."""

from pathlib import Path

import pytest

from tests.store.synthetic import make_store


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a finished store of 180 configurations; not to be changed."""
    return make_store(tmp_path_factory.mktemp("store") / "small.h5")
