"""Contact currents: closed forms, a direct solve of the network, exact laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.drive import contact_currents
from fieldcorr.errors import ConfigurationError, DriveError

seeds = st.integers(0, 2**32 - 1)


def network(rng: np.random.Generator, contacts: int, ground: float = 0.0) -> NDArray[np.float64]:
    """Admittance matrix of resistors between all contacts, and from each to a ground."""
    conductance = np.triu(rng.uniform(0.01, 1.0, (contacts, contacts)), 1)
    conductance += conductance.T
    return np.diag(conductance.sum(axis=1) + ground * rng.uniform(0.1, 1, contacts)) - conductance


def random_polarity(rng: np.random.Generator, count: int, contacts: int) -> NDArray[np.int8]:
    rows = rng.integers(-1, 2, (count, contacts)).astype(np.int8)
    rows[:, 0], rows[:, 1] = 1, -1
    shuffled: NDArray[np.int8] = rng.permuted(rows, axis=1)
    return shuffled


def direct_currents(row: NDArray[np.int8], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve the whole network: contacts, two nodes tied to them, and the battery's current.

    Unknowns: all contact potentials and currents, the potential of the cathode node. Equations:
    I = Y V; V at the node, or I = 0 where off; the currents sum to zero.
    """
    size = len(row)
    unknowns = 2 * size + 1
    matrix, right = np.zeros((unknowns, unknowns)), np.zeros(unknowns)
    matrix[:size, :size], matrix[:size, size : 2 * size] = y, -np.eye(size)
    for e, sign in enumerate(row):
        if sign == 0:
            matrix[size + e, size + e] = 1.0
        else:
            matrix[size + e, e], matrix[size + e, -1] = 1.0, -1.0
            right[size + e] = 1.0 if sign > 0 else 0.0
    matrix[-1, size : 2 * size] = 1.0
    solution = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return np.asarray(solution[size : 2 * size], dtype=np.float64)


@given(seeds, st.integers(2, 17), st.sampled_from([0.0, 0.5]))
def test_currents_solve_the_network(seed: int, contacts: int, ground: float) -> None:
    rng = np.random.default_rng(seed)
    y = network(rng, contacts, ground)
    rows = random_polarity(rng, 8, contacts)
    currents = contact_currents(rows, y)
    wanted = np.array([direct_currents(row, y) for row in rows])
    np.testing.assert_allclose(currents, wanted, rtol=0, atol=1e-10 * np.abs(y).max())


@given(
    seeds, st.integers(2, 17), st.sampled_from(["voltage", "current"]), st.sampled_from([0, 0.5])
)
def test_exact_laws(seed: int, contacts: int, mode: str, ground: float) -> None:
    rng = np.random.default_rng(seed)
    y = network(rng, contacts, ground)
    rows = random_polarity(rng, 8, contacts)
    currents = contact_currents(rows, y, mode=mode)
    assert np.array_equal(contact_currents(-rows, y, mode=mode), -currents)
    assert (currents[rows == 0] == 0.0).all()
    size = np.abs(currents).sum(axis=1)
    assert (np.abs(currents.sum(axis=1)) <= 1e-15 * size).all()
    assert (currents[rows > 0] > 0).all()
    assert (currents[rows < 0] < 0).all()
    assert contact_currents(rows[3:5], y, mode=mode).tobytes() == currents[3:5].tobytes()


def test_two_contacts_are_one_resistor() -> None:
    y = np.array([[0.25, -0.25], [-0.25, 0.25]])
    assert contact_currents([[1, -1]], y).tolist() == [[0.25, -0.25]]


def test_a_floating_contact_is_a_conductor_in_between() -> None:
    # 0 - 1 - 2 in a chain of 1 S each, the middle one off: 1/2 S between the ends.
    y = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    np.testing.assert_allclose(contact_currents([[1, 0, -1]], y), [[0.5, 0, -0.5]], rtol=1e-15)
    # Both ends tied together as anodes: two paths of 1 S into the middle.
    np.testing.assert_allclose(contact_currents([[1, -1, 1]], y), [[1, -2, 1]], rtol=1e-15)


@given(seeds)
def test_reciprocity(seed: int) -> None:
    """Source at 0 and meter at 1, or the other way round: the same current, whatever floats."""
    y = network(np.random.default_rng(seed), 6)
    first, second = contact_currents([[1, -1, -1, 0, 0, 0], [-1, 1, -1, 0, 0, 0]], y)
    assert first[1] == pytest.approx(second[0], rel=1e-12)


def test_current_mode_splits_equally_or_as_told() -> None:
    rows, y = [[1, 1, -1, 0]], np.eye(4)
    assert contact_currents(rows, y, mode="current").tolist() == [[0.5, 0.5, -1.0, 0.0]]
    shared = contact_currents(rows, y, mode="current", fractions=[3.0, 1.0, 0.2, 5.0])
    np.testing.assert_allclose(shared, [[0.75, 0.25, -1.0, 0.0]], rtol=1e-15)


def test_solver_tolerance_in_the_admittance_is_no_ground() -> None:
    rng = np.random.default_rng(4)
    y = network(rng, 6)
    rough = y * (1 + 1e-9 * rng.standard_normal(y.shape))
    rows = random_polarity(rng, 20, 6)
    found = contact_currents(rows, rough)
    np.testing.assert_allclose(found, contact_currents(rows, y), rtol=0, atol=1e-7)
    assert np.abs(found.sum(axis=1)).max() < 1e-15
    centre = np.eye(6) - 1 / 6
    balanced = centre @ (rough + rough.T) @ centre / 2
    np.testing.assert_allclose(found, contact_currents(rows, balanced), rtol=1e-12)


@pytest.mark.parametrize(
    ("row", "said"),
    [([1, 1, 0], r"'a\+ b\+' \(row 1\) has no cathode"), ([0, 0, -1], "no anode")],
)
def test_a_configuration_without_return_is_named(row: list[int], said: str) -> None:
    with pytest.raises(DriveError, match=said):
        contact_currents([[1, -1, 0], row], np.eye(3), names=("a", "b", "c"))


def test_an_off_contact_without_connection_is_named() -> None:
    y = np.array([[1.0, -1, 0], [-1, 1, 0], [0, 0, 0]])
    with pytest.raises(DriveError, match=r"'0\+ 1-'"):
        contact_currents([[1, -1, 0]], y)


def test_wrong_input_is_named() -> None:
    rows, y = [[1, -1]], np.array([[1.0, -1], [-1, 1]])
    with pytest.raises(DriveError, match="'volts'"):
        contact_currents(rows, y, mode="volts")
    with pytest.raises(DriveError, match="fractions"):
        contact_currents(rows, y, fractions=[1.0, 1.0])
    with pytest.raises(DriveError, match="2 positive"):
        contact_currents(rows, y, mode="current", fractions=[1.0, 0.0])
    with pytest.raises(DriveError, match="shape"):
        contact_currents(rows, np.eye(3))
    with pytest.raises(DriveError, match="symmetric"):
        contact_currents(rows, [[1.0, 0.0], [-1.0, 1.0]])
    with pytest.raises(DriveError, match="finite"):
        contact_currents(rows, [[1.0, np.nan], [-1.0, 1.0]])
    with pytest.raises(DriveError, match="admittance: must be numbers, not 'foo'"):
        contact_currents(rows, "foo")
    for bad in ([1.0, None], "foo", [[1.0], [1.0, 2.0]]):
        with pytest.raises(DriveError, match=r"fractions: must be numbers|2 positive"):
            contact_currents(rows, y, mode="current", fractions=bad)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="shape"):
        contact_currents([1, -1], y)
