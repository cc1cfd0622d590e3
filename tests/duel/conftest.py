"""A small store for sessions, with contacts where a paddle has them; arms that are not listed."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.correlation.whole import WholeSource
from tests.correlation.circuits import circuit, everything
from tests.store.synthetic import make_store, values

CONTACTS = 8


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the path of a store with 5 contacts and 180 configurations."""
    content = values(slim=True)
    content["/contacts/position"] = 1e-3 * np.array(
        [[2.5, 0, 4], [2.5, 0, -4], [0, 0, 0], [-2.5, 0, 4], [-2.5, 0, -4]]
    )
    return make_store(tmp_path_factory.mktemp("store") / "small.h5", content)


@pytest.fixture(scope="module", params=["voltage", "current"])
def source(request: pytest.FixtureRequest) -> Iterator[WholeSource]:
    """Return 6050 arms, in many blocks and three chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("fieldcorr.configurations.space.BLOCK_LEAVES", 27)
        made = everything(CONTACTS, circuit(CONTACTS, 11, request.param))
        yield WholeSource(made.whole, fingerprint=lambda: "whole")
