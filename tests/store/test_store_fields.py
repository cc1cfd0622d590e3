"""Fields of a store whose mesh or samples are broken, though every digest holds."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fieldcorr.errors import FieldcorrError, StoreError
from fieldcorr.store import open_store
from tests.store.synthetic import make_store, values

INSIDE = [[0.3, 0.4, 0.5]]


def changed(path: Path, name: str, index: Any, value: Any) -> Path:
    """Make a store in which part of one array is replaced."""
    content = values(count=9)
    content[name] = content[name].copy()
    content[name][index] = value
    return make_store(path, content)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_a_vertex_that_is_nowhere(value: float, tmp_path: Path) -> None:
    path = changed(tmp_path / "s.h5", "/mesh/points", (5, 1), value)
    with open_store(path) as store, pytest.raises(StoreError, match=r"s\.h5: /mesh/points"):
        store.potential(0, INSIDE)


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_weights_without_a_mean(value: float, tmp_path: Path) -> None:
    path = changed(tmp_path / "s.h5", "/leadfield/weight", slice(None), value)
    with open_store(path) as store, pytest.raises(StoreError, match="weight has no mean"):
        store.potential(0, INSIDE)


def test_flat_cells_hold_no_point(tmp_path: Path) -> None:
    path = changed(tmp_path / "s.h5", "/mesh/points", (slice(None), 2), 0.5)
    with open_store(path) as store:
        vertices = store.array("/mesh/points")
        middle = vertices[store.array("/mesh/cells")].mean(axis=1)
        assert np.isnan(store.potential(0, [*INSIDE, *vertices, *middle])).all()


def test_points_anywhere_and_of_any_shape(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "s.h5", values(count=9))) as store:
        far = store.potential(0, [[1e300, -1e300, 1e300], [np.nan, 0.5, 0.5], *INSIDE])
        np.testing.assert_array_equal(np.isnan(far), [True, True, False])
        wrong: list[Any] = [[[0.5] * 6], [0.5, 0.5], 0.5, "here", [[0.5] * 3, [0.5]]]
        for points in wrong:
            with pytest.raises(FieldcorrError, match="points:"):
                store.potential(0, points)


def test_the_potential_of_a_grounded_body_is_absolute(tmp_path: Path) -> None:
    content = values(count=9)
    content["/leadfield/admittance"] = content["/leadfield/admittance"] + 0.5 * np.eye(5)
    with open_store(make_store(tmp_path / "s.h5", content)) as store:
        assert store.fields.volume.zero == "grounded outer boundary"
        nodal = store.current[3] @ content["/leadfield/nodal"].astype(np.float64)
        np.testing.assert_allclose(store.fields.field_of(3).values, nodal, atol=1e-12)
