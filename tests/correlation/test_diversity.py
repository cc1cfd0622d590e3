"""What r tells apart: effective dimension, and left from right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ortho_group

from fieldcorr.configurations.text import configuration_ids
from fieldcorr.correlation.diversity import (
    diversity,
    mirror_correlations,
    mirrored_contacts,
    participation_ratio,
)

# Four contacts, two on each side, and three bipoles; the first lies on the left alone.
POSITIONS = np.array([[1.0, 0, 1], [1, 0, -1], [-1, 0, 1], [-1, 0, -1]]) * 1e-3
POLARITY = np.array([[1, -1, 0, 0], [0, 0, 1, -1], [1, 0, -1, 0]], dtype=np.int8)
EMBEDDING = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])


@given(dimension=st.integers(2, 9), seed=st.integers(0, 99))
def test_equal_directions_are_counted(dimension: int, seed: int) -> None:
    rows = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    turned = rows @ ortho_group.rvs(dimension, random_state=seed)
    assert participation_ratio(turned) == pytest.approx(dimension)


def test_one_direction_is_one() -> None:
    assert participation_ratio(np.tile([[0.6, 0.8]], (7, 1))) == pytest.approx(1.0)


def test_the_left_is_compared_with_its_mirror() -> None:
    order = np.argsort(configuration_ids(POLARITY))
    arrays = EMBEDDING[order], POLARITY[order], POSITIONS
    np.testing.assert_allclose(mirror_correlations(*arrays), [0.6])
    found = diversity(*arrays)
    assert found.mirrors == 1
    assert found.mirror_median == pytest.approx(0.6)


def test_an_array_without_mirror_has_none() -> None:
    positions = np.array([[1.0, 0, 1], [-1, 0, -1], [0.2, 0, 0]])
    assert mirrored_contacts(positions) is None
    np.testing.assert_array_equal(mirrored_contacts(POSITIONS), [2, 3, 0, 1])
