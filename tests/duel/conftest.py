"""A small store for sessions, with contacts where a paddle has them."""

from pathlib import Path

import numpy as np
import pytest

from tests.store.synthetic import make_store, values


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a store with 5 contacts and 180 configurations."""
    content = values(slim=True)
    content["/contacts/position"] = 1e-3 * np.array(
        [[2.5, 0, 4], [2.5, 0, -4], [0, 0, 0], [-2.5, 0, 4], [-2.5, 0, -4]]
    )
    return make_store(tmp_path_factory.mktemp("store") / "small.h5", content)
