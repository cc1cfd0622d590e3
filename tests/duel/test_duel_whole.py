"""CorrDuel where arms are too many to list: a dense tally by definition gives the same session."""

import re
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr import _parallel
from fieldcorr.correlation import _tree_kernels as tree
from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel import (
    RUCB,
    BayesDuel,
    BeatTheMean,
    CorrDuel,
    Session,
    SparringUCB1,
    read_session,
)
from fieldcorr.duel import _kernels as duel_kernels
from fieldcorr.duel import _whole_kernels as kernels
from fieldcorr.duel import whole as whole_module
from fieldcorr.errors import DuelError
from fieldcorr.store import open_store
from tests.duel.conftest import CONTACTS
from tests.store.synthetic import make_store, values, whole_values


class Dense:
    """CorrDuel with every option, in plain NumPy: float32 tallies of all arms and a mask."""

    def __init__(self, source: WholeSource, options: dict[str, Any]) -> None:
        self.source, self.options = source, options
        self.active = np.ones(len(source), dtype=np.bool_)
        self.tally = source.tally()
        self.duels: list[tuple[int, int]] = []

    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        n, w = self.tally.plays, self.tally.wins
        log_term = np.float32(np.log(1.0 / self.options["delta"]))
        with np.errstate(all="ignore"):
            estimate = np.where(n > 0, w / n, np.float32(0.5))
            radius = np.where(n > 0, np.sqrt(log_term / n), np.float32(1.0))
            if self.options["radius"] == "global":
                least = n[self.active].min()
                radius[:] = np.sqrt(log_term / least) if least > 0 else 1.0
        return estimate, radius

    def tell(self, winner: int, loser: int) -> None:
        self.duels.append((winner, loser))
        self.source.add(self.tally, winner, loser)
        estimate, radius = self.bounds()
        floor = (estimate - radius)[self.active].max()
        gone = self.active & (estimate + radius <= floor)
        if self.options["eliminate"] == "one" and gone.any():
            key = estimate if self.options["radius"] == "global" else estimate + radius
            gone = np.arange(len(gone)) == np.argmin(np.where(gone, key, np.inf))
        self.active &= ~gone
        if self.options["history"] == "delete":
            kept = [duel for duel in self.duels if not gone[list(duel)].any()]
            if len(kept) < len(self.duels):
                self.duels, self.tally = kept, self.source.tally()
                for duel in kept:
                    self.source.add(self.tally, *duel)

    def ranked(self) -> list[int]:
        arms = np.flatnonzero(self.active)
        estimate, _ = self.bounds()
        order = np.lexsort((arms, -self.tally.plays[arms], -estimate[arms]))
        return [int(arm) for arm in arms[order]]


def winner_first(pair: tuple[int, int], rng: np.random.Generator) -> tuple[int, int]:
    """Answer by number, wrong one time in five."""
    low, high = sorted(pair)
    return (low, high) if rng.random() < 0.2 else (high, low)


@settings(max_examples=12)
@given(
    st.sampled_from([0.9, 0.97]),
    st.sampled_from(["all", "one"]),
    st.sampled_from(["keep", "delete"]),
    st.sampled_from(["arm", "global"]),
    st.integers(0, 99),
)
def test_survivor_lists_give_the_bits_of_a_dense_tally(
    source: WholeSource, delta: float, eliminate: str, history: str, radius: str, seed: int
) -> None:
    options: dict[str, Any] = {
        "delta": delta,
        "eliminate": eliminate,
        "history": history,
        "radius": radius,
    }
    engine = CorrDuel(source, horizon=40, seed=seed, patience=0, **options)
    dense, rng = Dense(source, options), np.random.default_rng(seed)
    for _ in range(25):
        if engine.done:
            break
        told = winner_first(engine.ask(), rng)
        engine.tell(*told)
        dense.tell(*told)
        np.testing.assert_array_equal(engine.active, np.flatnonzero(dense.active))
        tally: Any = engine._learnt.tally
        kept = dense.active if tally.members.listed.size else np.ones_like(dense.active)
        np.testing.assert_array_equal(tally.wins, dense.tally.wins[kept])
        np.testing.assert_array_equal(tally.plays, dense.tally.plays[kept])
        ranked = dense.ranked()
        assert engine.best == ranked[0]
        assert engine.survivors[:7].arm.tolist() == ranked[:7]
        assert [row.arm for row in engine.survivors] == ranked
        assert engine.survivors[-1].arm == ranked[-1]
        assert len(engine.survivors) == len(ranked)
        assert engine.survivors.find(ranked[-1]) == engine.survivors[-1]
        gone = np.flatnonzero(~dense.active)
        assert not gone.size or engine.survivors.find(int(gone[-1])) is None
        assert engine.warning is None or "elimination" in engine.warning


def test_it_plays_as_on_listed_arms(tmp_path: Path) -> None:
    paths = make_store(tmp_path / "a.h5", values()), make_store(tmp_path / "b.h5", whole_values())
    with open_store(paths[0]) as listed, open_store(paths[1]) as whole:
        engines = [CorrDuel(store, horizon=30, seed=3) for store in (listed, whole)]
        rng = np.random.default_rng(0)
        while not engines[0].done:
            told = winner_first(engines[0].ask(), rng)
            assert engines[1].ask() == engines[0].ask()
            for engine in engines:
                engine.tell(*told)
            assert engines[0].progress == engines[1].progress
        assert engines[0].best == engines[1].best
        assert engines[0]._outlook() == engines[1]._outlook()


def played(source: WholeSource, count: int, **options: Any) -> CorrDuel:
    engine, rng = CorrDuel(source, horizon=60, seed=5, **options), np.random.default_rng(1)
    for _ in range(count):
        engine.tell(*winner_first(engine.ask(), rng))
    return engine


def assert_same(one: CorrDuel, other: CorrDuel) -> None:
    assert one.ask() == other.ask()
    np.testing.assert_array_equal(one.active, other.active)
    np.testing.assert_array_equal(one._learnt.tally.wins, other._learnt.tally.wins)
    assert one.survivors[:5].arm.tolist() == other.survivors[:5].arm.tolist()


def test_survivors_are_the_same_with_a_list_and_without(
    source: WholeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    engines = []
    for share in (0.0, 1.0):
        monkeypatch.setattr(whole_module, "WORTH_A_LIST", share)
        engines.append(played(source, 25))
    dense, listed = engines
    tallies: list[Any] = [engine._learnt.tally for engine in engines]
    assert [bool(tally.members.listed.size) for tally in tallies] == [False, True]
    assert 0 < len(dense.active) < len(source)
    np.testing.assert_array_equal(dense.active, listed.active)
    np.testing.assert_array_equal(tallies[0].wins[dense.active], tallies[1].wins)
    np.testing.assert_array_equal(tallies[0].plays[dense.active], tallies[1].plays)
    assert dense.survivors[:7].arm.tolist() == listed.survivors[:7].arm.tolist()
    assert dense.ask() == listed.ask()


def test_undo_equals_never_having_answered(source: WholeSource) -> None:
    engine = played(source, 20)
    engine.tell(*engine.ask())
    engine.undo()
    assert_same(engine, played(source, 20))


def test_exclusions_are_as_on_listed_arms(source: WholeSource) -> None:
    engine = played(source, 12)
    arm = engine.best
    before = engine.active
    engine.exclude([arm], neighbours_above=0.9)
    near = np.flatnonzero(source.row(arm) > 0.9)
    assert set(near) <= set(engine.excluded)
    assert not set(engine.active) & set(near)
    assert arm not in [row.arm for row in engine.survivors]
    engine.include([arm], neighbours_above=0.9)
    np.testing.assert_array_equal(engine.active, before)


@pytest.mark.parametrize("kind", [BayesDuel, CorrDuel])
def test_a_contact_is_excluded_as_all_its_configurations(source: WholeSource, kind: Any) -> None:
    engine, other = (kind(source, horizon=60, seed=5) for _ in range(2))
    for duel in ((40, 600), (3000, 2), (17, 5000)):
        engine.tell(*duel)
        other.tell(*duel)
    cathodes = np.flatnonzero(source.whole.space.polarity(range(len(source)))[:, 5] == -1)
    engine.exclude_contact(5, -1)
    other.exclude(cathodes)
    np.testing.assert_array_equal(engine.excluded, cathodes)
    assert engine.ask() == other.ask()
    assert engine.best == other.best
    engine.include_contact(5, -1)
    other.undo()
    assert engine.ask() == other.ask()


@pytest.mark.parametrize("contact", [(CONTACTS, 0), (-1, 0), (0, 2)])
def test_a_contact_that_is_not_there_is_refused(
    source: WholeSource, contact: tuple[int, int]
) -> None:
    with pytest.raises(DuelError, match=f"contact {contact[0]} with sign {contact[1]} is none"):
        CorrDuel(source, horizon=9).exclude_contact(*contact)


def test_listed_arms_are_excluded_by_number() -> None:
    with pytest.raises(DuelError, match="arms that are not listed alone"):
        CorrDuel(np.eye(3), horizon=9).exclude_contact(0)


def test_a_whitelist_is_kept(source: WholeSource) -> None:
    engine = played(source, 15, whitelist=range(100, 200))
    assert set(engine.active) <= set(range(100, 200))
    assert engine.best in range(100, 200)


def test_threads_change_nothing(source: WholeSource) -> None:
    engines = []
    for count in (1, 2):
        with _parallel.threads(count):
            engines.append(played(source, 20))
    assert_same(engines[0], engines[1])


def test_a_journal_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "s.journal"
    with open_store(make_store(tmp_path / "s.h5", whole_values())) as store:
        with Session.new(path, store, horizon=30, seed=2) as session:
            for _ in range(10):
                session.engine.tell(*session.engine.ask())
            asked = session.engine.ask()
        with Session.open(path, store) as session:
            assert session.engine.ask() == asked
            session.engine.undo()
        engine, content = read_session(path, store)
        assert engine.duels == 9
        assert content.header["store"]["via"] == "rules"


@pytest.mark.parametrize("kind", [RUCB, BeatTheMean, SparringUCB1])
def test_engines_that_need_every_arm_say_so(source: WholeSource, kind: Any) -> None:
    with pytest.raises(DuelError, match="cannot play on 6,050 of them"):
        kind(source, horizon=9)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 70))
def test_ranks_in_a_mask(flags: list[bool], repeats: int) -> None:
    mask = np.array(flags * (1 + 4 * repeats))
    arms = np.flatnonzero(mask)
    for place in {0, len(arms) // 2, len(arms) - 1} if len(arms) else ():
        assert duel_kernels.nth(mask, place) == arms[place]
        assert duel_kernels.rank(mask, int(arms[place])) == place
    assert duel_kernels.nth(mask, len(arms)) == -1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "packed"),
    [
        (tree.add_duel, r"fdiv <\d+ x float>"),
        (tree.add_duel, r"fmul <\d+ x double>"),
        (kernels.fill_bounds, r"sqrt.v\d+f32"),
    ],
)
def test_loops_over_all_arms_run_in_vectors(source: WholeSource, kernel: Any, packed: str) -> None:
    """The rule, r and the bounds have packed operations; without, they take six times as long."""
    assert played(source, 3).best >= 0
    (signature,) = kernel.signatures[:1]
    # What comes from the cache on the disk cannot be looked at.
    fresh = numba.jit(**kernel.targetoptions)(kernel.py_func)
    fresh.compile(signature)
    assert re.search(packed, fresh.inspect_llvm(signature))
