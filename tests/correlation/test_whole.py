"""r of whole spaces: the definition, brute force, and the same bits whatever part is asked for."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fieldcorr import _parallel
from fieldcorr.configurations import space as spaces
from fieldcorr.configurations.space import ProductSpace
from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.correlation.rule import UpdatePolicy, kappa_tau_reference
from fieldcorr.correlation.sources import Tally, source_from_embedding
from fieldcorr.correlation.whole import Circuit, WholeSource, WholeTally, table_bytes
from fieldcorr.errors import CorrelationError, DriveError
from tests.correlation.circuits import Case, cases, circuit, definition, everything

HALF_STEP = 2.0**-24
"""What rounding r to float32 changes at most; 1 / n in float32 changes as much."""


@pytest.fixture(autouse=True, params=[6561, 27])
def block_leaves(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also cut spaces of a few contacts into many blocks."""
    monkeypatch.setattr(spaces, "BLOCK_LEAVES", request.param)


def source(case: Case) -> WholeSource:
    return WholeSource(case.whole, fingerprint=lambda: "whole")


same_fixture = settings(
    max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@same_fixture
@given(cases())
def test_a_space_lists_what_the_rules_leave_in_order(case: Case) -> None:
    space, rows = case.space, np.arange(len(case.polarity))
    assert len(space) == len(rows)
    assert space.filled_blocks == len(space.heads.kind)
    np.testing.assert_array_equal(space.polarity(rows), case.polarity)
    np.testing.assert_array_equal(space.rows(case.polarity), rows)


@same_fixture
@given(cases())
def test_a_space_does_not_find_what_is_not_in_it(case: Case) -> None:
    size = case.polarity.shape[1]
    digits = np.arange(3**size)[:, None] // 3 ** np.arange(size) % 3
    every = np.where(digits == 2, -1, digits).astype(np.int8)
    found = case.space.rows(every)
    known = {tuple(row) for row in case.polarity.tolist()}
    assert [row >= 0 for row in found] == [tuple(row) in known for row in every.tolist()]


@same_fixture
@given(cases(), st.sampled_from([-1, 0, 1]))
def test_a_space_knows_who_uses_a_contact(case: Case, sign: int) -> None:
    for contact, column in enumerate(case.polarity.T):
        want = column == sign if sign else column != 0
        np.testing.assert_array_equal(case.space.uses(contact, sign), want)


@same_fixture
@given(cases())
def test_rows_are_the_definition(case: Case) -> None:
    r, want = source(case), definition(case)
    for arm in range(0, len(r), max(1, len(r) // 7)):
        row = r.row(arm)
        assert row.dtype == np.float32
        assert row[arm] == 1.0
        assert np.abs(row).max() <= 1.0
        np.testing.assert_allclose(row, want[arm], rtol=0.0, atol=3 * HALF_STEP)


@same_fixture
@given(cases(), st.integers(0, 10**6))
def test_mirrored_polarities_give_minus_r_up_to_rounding(case: Case, arm: int) -> None:
    mirror = case.space.rows(-case.polarity)
    assume((mirror >= 0).all())
    row = source(case).row(arm % len(mirror))
    np.testing.assert_allclose(row[mirror], -row, rtol=0.0, atol=3 * HALF_STEP)


@same_fixture
@given(cases(), st.integers(0, 10**6), st.integers(1, 400))
def test_nearest_is_brute_force(case: Case, arm: int, count: int) -> None:
    r = source(case)
    arm %= len(r)
    order = np.argsort(-r.row(arm), kind="stable")
    want = order[order != arm][:count]
    rows, values = r.nearest(arm, count)
    np.testing.assert_array_equal(rows, want)
    np.testing.assert_array_equal(values, r.row(arm)[want])


@same_fixture
@given(cases(most=6), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans(), st.booleans())
def test_an_update_is_the_rule(case: Case, i: int, j: int, tie: bool, printed: bool) -> None:
    r = source(case)
    i, j = i % len(r), j % len(r)
    assume(i != j)
    policy = UpdatePolicy.paper() if printed else UpdatePolicy()
    matrix = np.stack([r.row(arm) for arm in range(len(r))])
    tally = r.tally()
    r.add(tally, i, j, policy=policy, tie=tie)
    kappa, tau = kappa_tau_reference(matrix, i, j, policy=policy)
    np.testing.assert_allclose(tally.plays, tau, rtol=2e-6, atol=2e-6)
    # The logarithm of an r that is 1 to rounding is rounding.
    sure = (matrix[i] < 0.999) | (matrix[j] < 0.999)
    np.testing.assert_allclose(
        tally.wins[sure], (tau / 2 if tie else kappa)[sure], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("mode", ["voltage", "current"])
def test_a_few_members_see_the_same_bits(mode: str) -> None:
    r = source(everything(6, circuit(6, 3, mode)))
    rng, space, full = np.random.default_rng(0), r.whole.space, r.whole.all
    kept = rng.random(len(r)) < 0.3
    counts = [kept[a:b].sum() for a, b in zip(space.offsets, space.offsets[1:], strict=False)]
    leaves = [
        space.lists[space.heads.kind[p]][kept[space.offsets[p] : space.offsets[p + 1]]]
        for p in range(len(counts))
    ]
    members = full._replace(
        offsets=np.concatenate([[0], np.cumsum(counts)]), listed=np.concatenate(leaves)
    )
    none = np.zeros(kept.sum(), dtype=np.float32)
    few = WholeTally(none, none.copy(), np.zeros(2), members)
    every = r.tally()
    arms = np.flatnonzero(kept)
    for winner, loser in ((arms[0], arms[-1]), (arms[5], 17), (40, arms[9])):
        r.add(few, int(winner), int(loser))
        r.add(every, int(winner), int(loser))
    np.testing.assert_array_equal(few.wins, every.wins[kept])
    np.testing.assert_array_equal(few.plays, every.plays[kept])


@pytest.mark.parametrize("mode", ["voltage", "current"])
def test_threads_do_not_change_a_bit(mode: str) -> None:
    made = everything(7, circuit(7, 5, mode))
    rows, tallies = [], []
    for count in (1, 2):
        with _parallel.threads(count):
            r = source(made)
            rows.append(r.row(100))
            tallies.append(r.tally())
            r.add(tallies[-1], 3, 700)
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(tallies[0].wins, tallies[1].wins)


@pytest.mark.parametrize("mode", ["voltage", "current"])
@pytest.mark.parametrize("grounded", [False, True])
def test_the_whole_space_agrees_with_the_embedding(mode: str, grounded: bool) -> None:
    case = everything(7, circuit(7, 9, mode, grounded=grounded))
    small = source_from_embedding(
        embedding_from_gram(case.circuit.currents(case.polarity), case.circuit.gram)
    )
    r = source(case)
    for arm in (0, 777, len(r) - 1):
        np.testing.assert_allclose(r.row(arm), small.row(arm), rtol=0.0, atol=3 * HALF_STEP)


def test_the_tables_take_the_bytes_that_are_stated() -> None:
    for mode in ("voltage", "current"):
        made = everything(6, circuit(6, 1, mode))
        tables = made.whole.tables
        large = tables.inverse_norm, tables.to_anode, tables.among
        assert table_bytes(made.space, mode) == sum(table.nbytes for table in large)


def test_a_field_that_rounding_would_reach_is_refused() -> None:
    made = circuit(4, 2)
    fields = np.linalg.cholesky(made.gram).T
    fields[:, 1] = fields[:, 0] * (1.0 + 1e-9)
    with pytest.raises(CorrelationError, match="makes a field whose deviation"):
        _ = everything(4, Circuit(fields.T @ fields, made.admittance, "current")).whole.tables


def test_contacts_that_float_freely_are_refused() -> None:
    y = np.zeros((4, 4))
    y[:2, :2] = [[1.0, -1.0], [-1.0, 1.0]]
    with pytest.raises(DriveError, match="not determined"):
        _ = everything(4, Circuit(np.eye(4), y)).whole


def test_a_tally_of_other_arms_is_refused() -> None:
    r = source(everything(5, circuit(5, 1)))
    other = source(everything(6, circuit(6, 1)))
    with pytest.raises(CorrelationError, match="does not belong"):
        r.add(other.tally(), 0, 1)
    with pytest.raises(CorrelationError, match="does not belong"):
        r.add(Tally.zeros(len(r)), 0, 1)


def test_a_space_of_excluded_contacts_is_counted() -> None:
    allowed = np.ones((16, 3), dtype=np.bool_)
    space = ProductSpace(allowed, (1, 16, 1, 16, 0, 16))
    assert len(space) == 3**16 - 2 * 2**16 + 1
