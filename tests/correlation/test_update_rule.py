"""The update rule: its laws, its definition, and the agreement of all sources."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.rule import UpdatePolicy, kappa_tau_reference
from fieldcorr.correlation.sources import (
    CorrelationSource,
    EmbeddingSource,
    NeighbourSource,
    RowSource,
    Tally,
)
from fieldcorr.errors import CorrelationError
from tests.correlation.strategies import duels, embeddings, seeds, symmetric_matrices

PAPER = UpdatePolicy.paper()
policies = st.builds(
    UpdatePolicy,
    floor=st.sampled_from([1e-6, 0.01, 0.3]),
    clip=st.booleans(),
    require_positive=st.booleans(),
    pin_duelled=st.booleans(),
) | st.just(PAPER)


def exact_rows(z: NDArray[np.float64]) -> NDArray[np.float32]:
    """All rows of r as the embedding source sees them."""
    source = EmbeddingSource(z)
    return np.stack([source.row(i) for i in range(len(z))])


def sparse_source(r: NDArray[np.float32], threshold: float = 0.0) -> NeighbourSource:
    """Neighbourhoods of everything above the threshold."""
    kept = r > threshold
    np.fill_diagonal(kept, val=False)
    indptr = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return NeighbourSource.from_csr(indptr, np.nonzero(kept)[1].astype(np.int32), r[kept])


@given(st.data(), symmetric_matrices() | embeddings().map(exact_rows))
def test_laws_of_the_default_policy(data: st.DataObject, r: NDArray[np.float64]) -> None:
    winner, loser = data.draw(duels(len(r)))
    source = RowSource(r)
    kappa, tau = source.kappa_tau(winner, loser)
    assert (kappa >= 0).all()
    assert (kappa <= tau).all()
    assert (tau <= 1).all()
    assert (kappa[winner], tau[winner]) == (1.0, 1.0)
    assert (kappa[loser], tau[loser]) == (0.0, 1.0)
    mirrored, same = source.kappa_tau(loser, winner)
    assert np.array_equal(tau, same)
    np.testing.assert_allclose(kappa + mirrored, tau, rtol=4e-16)


@given(st.data(), symmetric_matrices(), policies)
def test_rows_follow_the_definition(
    data: st.DataObject, r: NDArray[np.float64], policy: UpdatePolicy
) -> None:
    winner, loser = data.draw(duels(len(r)))
    kappa, tau = RowSource(r).kappa_tau(winner, loser, policy=policy)
    wanted = kappa_tau_reference(np.minimum(r, 1.0), winner, loser, policy=policy)
    np.testing.assert_array_equal(tau, wanted[1])
    np.testing.assert_allclose(kappa, wanted[0], rtol=1e-14, atol=1e-15)


@given(st.data(), embeddings(), policies)
def test_all_sources_agree_to_the_last_bit(
    data: st.DataObject, z: NDArray[np.float64], policy: UpdatePolicy
) -> None:
    winner, loser = data.draw(duels(len(z)))
    r = exact_rows(z)
    # What a sparse store leaves out reads as 0, which the raw paper rule tells from r < 0.
    assume(policy.floor > 0 or r[winner, loser] >= 0)
    sources: list[CorrelationSource] = [EmbeddingSource(z), RowSource(r), sparse_source(r)]
    wanted, *others = [s.kappa_tau(winner, loser, policy=policy) for s in sources]
    for kappa, tau in others:
        np.testing.assert_array_equal(kappa, wanted[0])
        np.testing.assert_array_equal(tau, wanted[1])


@given(st.data(), embeddings(), seeds)
def test_relabelling_changes_labels_only(
    data: st.DataObject, z: NDArray[np.float64], seed: int
) -> None:
    winner, loser = data.draw(duels(len(z)))
    order = np.random.default_rng(seed).permutation(len(z))
    place = np.argsort(order)
    kappa, tau = EmbeddingSource(z).kappa_tau(winner, loser)
    moved = EmbeddingSource(z[order]).kappa_tau(int(place[winner]), int(place[loser]))
    np.testing.assert_array_equal(moved[0], kappa[order])
    np.testing.assert_array_equal(moved[1], tau[order])


@pytest.mark.parametrize("count", [511, 512, 513, 1025, 1300])
def test_blocks_meet_without_gaps(count: int) -> None:
    rng = np.random.default_rng(count)
    z = rng.standard_normal((count, 5))
    z /= np.linalg.norm(z, axis=1)[:, None]
    r = exact_rows(z)
    wanted = kappa_tau_reference(r, count - 1, 0)
    for source in (EmbeddingSource(z), RowSource(r), sparse_source(r)):
        kappa, tau = source.kappa_tau(count - 1, 0)
        np.testing.assert_array_equal(tau, wanted[1])
        np.testing.assert_allclose(kappa, wanted[0], rtol=1e-14, atol=1e-15)


def test_sparse_blocks_that_end_exactly_full() -> None:
    # 510 arms near the winner and the two duelled arms fill one block of 512.
    r = np.eye(600, dtype=np.float32)
    r[0, 2:512] = r[2:512, 0] = 0.5
    wanted = kappa_tau_reference(r, 0, 1)
    np.testing.assert_allclose(sparse_source(r).kappa_tau(0, 1), wanted, rtol=1e-14)


@given(st.data(), embeddings(), policies, st.booleans())
def test_streaming_adds_what_kappa_tau_returns(
    data: st.DataObject, z: NDArray[np.float64], policy: UpdatePolicy, tie: bool
) -> None:
    winner, loser = data.draw(duels(len(z)))
    r = exact_rows(z)
    assume(policy.floor > 0 or r[winner, loser] >= 0)
    for source in (EmbeddingSource(z), RowSource(r), sparse_source(r)):
        kappa, tau = source.kappa_tau(winner, loser, policy=policy)
        tally = Tally(np.full(len(z), 2.0), np.full(len(z), 5.0), np.array([1.0, 3.0]))
        source.add(tally, winner, loser, policy=policy, tie=tie)
        gain = 0.5 * tau if tie else kappa
        np.testing.assert_allclose(tally.all_wins, 3.0 + gain, 1e-14)
        np.testing.assert_allclose(tally.all_plays, 8.0 + tau, 1e-14)
        if not isinstance(source, NeighbourSource):
            assert tally.background.tolist() == [1.0, 3.0]


@given(st.data(), embeddings(), policies, st.booleans())
def test_the_embedding_adds_to_the_last_bit_what_rows_add(
    data: st.DataObject, z: NDArray[np.float64], policy: UpdatePolicy, tie: bool
) -> None:
    winner, loser = data.draw(duels(len(z)))
    tallies = Tally.zeros(len(z)), Tally.zeros(len(z))
    for source, tally in zip((EmbeddingSource(z), RowSource(exact_rows(z))), tallies, strict=True):
        source.add(tally, winner, loser, policy=policy, tie=tie)
    np.testing.assert_array_equal(tallies[0].wins, tallies[1].wins)
    np.testing.assert_array_equal(tallies[0].plays, tallies[1].plays)


def test_sparse_update_touches_only_the_two_neighbourhoods() -> None:
    r = np.eye(50, dtype=np.float32)
    r[3, 7] = r[7, 3] = r[4, 8] = r[8, 4] = 0.5
    tally = Tally.zeros(50)
    sparse_source(r).add(tally, 3, 4)
    assert np.flatnonzero(tally.plays).tolist() == [3, 4, 7, 8]
    np.testing.assert_allclose(tally.background, [0.01 / 1.01, 0.02 / 1.01], rtol=1e-15)


def test_an_arm_near_the_winner_and_unrelated_to_the_loser_learns_most() -> None:
    r = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.0], [0.9, 0.0, 1.0]])
    kappa, tau = RowSource(r).kappa_tau(0, 1)
    assert tau[2] == pytest.approx((float(np.float32(0.9)) + 0.01) / 1.01, rel=1e-15)
    assert kappa[2] / tau[2] > 0.97
    assert RowSource(r).kappa_tau(0, 1, policy=PAPER)[1][2] == 0.0


def test_duplicates_of_both_share_equally() -> None:
    kappa, tau = RowSource(np.ones((3, 3))).kappa_tau(0, 1)
    assert (kappa[2], tau[2]) == (0.5, 1.0)


def test_mirror_pair_is_finite() -> None:
    r = np.array([[1.0, -1.0, 0.3], [-1.0, 1.0, -0.3], [0.3, -0.3, 1.0]])
    for policy in (UpdatePolicy(), PAPER):
        assert np.isfinite(RowSource(r).kappa_tau(0, 1, policy=policy)).all()


def test_the_printed_rule_is_expressible() -> None:
    # Eqs. 5 and 6 for an arm between two unrelated arms: tau above 1, and above that of the pair.
    r = np.array([[1.0, 0.0, 0.7], [0.0, 1.0, 0.7], [0.7, 0.7, 1.0]])
    kappa, tau = RowSource(r).kappa_tau(0, 1, policy=PAPER)
    assert tau[2] == pytest.approx(1.4, rel=1e-7)
    assert kappa[2] == tau[2] / 2
    # r_ij = 0 is not positive: as printed, the duelled arms themselves are left out.
    assert tau[:2].tolist() == [0.0, 0.0]
    assert RowSource(r).kappa_tau(0, 1)[1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_rows_that_are_not_finite_are_refused(value: float) -> None:
    r = np.eye(3)
    r[1, 2] = value
    with pytest.raises(CorrelationError, match="row 1"):
        RowSource(r).kappa_tau(0, 1)


def test_rows_may_come_from_a_function() -> None:
    r = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.1], [0.2, 0.1, 1.0]])
    source = RowSource(lambda i: r[i], 3)
    np.testing.assert_array_equal(source.kappa_tau(2, 0), RowSource(r).kappa_tau(2, 0))
    assert source.row(1).tolist() == r[1].astype(np.float32).tolist()


@pytest.mark.parametrize(
    "options", [{"floor": 0.0}, {"floor": 1.0}, {"floor": -0.5}, {"floor": -2}]
)
def test_policies_without_meaning_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(CorrelationError, match=f"floor = {options['floor']}"):
        UpdatePolicy(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("floor", [None, np.nan, "0.1", [0.1], True])
def test_a_floor_that_is_no_number_is_refused(floor: Any) -> None:
    with pytest.raises(CorrelationError, match="is not a number"):
        UpdatePolicy(floor=floor)


def test_a_floor_may_be_an_array_without_dimensions() -> None:
    assert UpdatePolicy(floor=np.array(0.25)) == UpdatePolicy(floor=0.25)  # type: ignore[arg-type]


def test_threads_may_share_a_source() -> None:
    z = np.random.default_rng(0).standard_normal((2000, 6))
    z /= np.linalg.norm(z, axis=1)[:, None]
    r = exact_rows(z[:600])
    for source in (EmbeddingSource(z), RowSource(r), sparse_source(r)):

        def played(seed: int, source: CorrelationSource = source) -> bytes:
            rng, tally = np.random.default_rng(seed), Tally.zeros(len(source))
            for _ in range(150):
                winner, loser = rng.choice(len(source), 2, replace=False).tolist()
                source.add(tally, winner, loser)
            return tally.all_wins.tobytes()

        alone = [played(seed) for seed in range(4)]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(played, range(4))) == alone


@pytest.mark.parametrize(("winner", "loser"), [(0, 0), (-1, 0), (0, 3), (3, 0)])
def test_impossible_duels_are_refused(winner: int, loser: int) -> None:
    r = np.eye(3)
    for source in (RowSource(r), EmbeddingSource(r), sparse_source(r.astype(np.float32))):
        with pytest.raises(CorrelationError, match="arm"):
            source.kappa_tau(winner, loser)


def test_tallies_of_the_wrong_kind_are_refused() -> None:
    source, good = RowSource(np.eye(3)), np.zeros(3)
    wrong: list[NDArray[Any]] = [np.zeros(4), np.zeros(3, np.float32), np.zeros(6)[::2]]
    for bad in wrong:
        with pytest.raises(CorrelationError, match="wins"):
            source.add(Tally(bad, good, np.zeros(2)), 0, 1)
        with pytest.raises(CorrelationError, match="plays"):
            source.add(Tally(good, bad, np.zeros(2)), 0, 1)
    with pytest.raises(CorrelationError, match="background"):
        source.add(Tally(good, good.copy(), np.zeros(3)), 0, 1)


@pytest.mark.parametrize(
    ("indices", "values"),
    [
        ([2, 1], [0.1, 0.1]),
        ([1, 1], [0.1, 0.1]),
        ([5], [0.1]),
        ([-1], [0.1]),
        ([0], [0.1]),
        ([1, 2], [0.1]),
        ([1, 2, 3, 4], [0.1] * 4),
        ([1, 2], [0.1, np.nan]),
    ],
)
def test_damaged_neighbourhoods_never_reach_a_kernel(
    indices: list[int], values: list[float]
) -> None:
    source = NeighbourSource(lambda i: (np.array(indices), np.array(values)), 4)
    with pytest.raises(CorrelationError, match="neighbourhood 0"):
        source.kappa_tau(0, 1)


def test_shapes_of_sources_are_checked() -> None:
    with pytest.raises(CorrelationError, match="square"):
        RowSource(np.zeros((2, 3)))
    with pytest.raises(CorrelationError, match="size"):
        RowSource(lambda i: np.zeros(3))
    with pytest.raises(CorrelationError, match="row 0"):
        RowSource(lambda i: np.zeros(4), 3).row(0)
    with pytest.raises(CorrelationError, match="embedding"):
        EmbeddingSource(np.zeros(3))
    with pytest.raises(CorrelationError, match="embedding"):
        EmbeddingSource(np.full((2, 2), np.nan))
