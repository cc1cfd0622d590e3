"""The engine as ask and tell: the listing, undo, replay, exclusions, chains, batches, rankings."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.correlation.rule import UpdatePolicy, kappa_tau_reference
from fieldcorr.duel import CorrDuel, DuelOptions, Engine, Event
from fieldcorr.duel import engine as engine_module
from fieldcorr.duel.events import event_from_record, event_record
from fieldcorr.errors import DuelError
from tests.duel.support import (
    ENGINES,
    STEPS,
    answer_by,
    correlations,
    interrupted_at,
    line,
    perform,
    state,
)

ARMS = 9
step = st.tuples(st.sampled_from(STEPS), *[st.integers(0, 1000)] * 3)
steps = st.lists(step, min_size=1, max_size=25)
engines = pytest.mark.parametrize("name", ENGINES)


def new(name: str, *, seed: int = 5, horizon: int = 30) -> Engine:
    return ENGINES[name](correlations(ARMS), horizon=horizon, seed=seed)


class Listing:
    """Algorithms 2-4 as plainly as possible, for one option set; duels are told, not drawn."""

    def __init__(self, r: NDArray[np.float64], options: DuelOptions) -> None:
        self.r, self.options = r, options
        self.active = list(range(len(r)))
        self.duels: list[tuple[int, int]] = []
        self.told = 0

    def tallies(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        w, n = np.zeros(len(self.r)), np.zeros(len(self.r))
        for winner, loser in self.duels:
            kappa, tau = kappa_tau_reference(self.r, winner, loser, policy=self.options.policy)
            w += kappa
            n += tau
        return w, n

    def bounds(self) -> tuple[dict[int, float], dict[int, float]]:
        w, n = self.tallies()
        least = min(n[b] for b in self.active)
        log_term = np.log(1.0 / self.options.delta)

        def radius(count: float) -> float:
            return float(np.sqrt(log_term / count)) if count > 0 else 1.0

        estimate = {b: w[b] / n[b] if n[b] > 0 else 0.5 for b in self.active}
        per_arm = self.options.radius == "arm"
        return estimate, {b: radius(n[b] if per_arm else least) for b in self.active}

    def tell(self, winner: int, loser: int) -> None:
        self.duels.append((winner, loser))
        self.told += 1
        if self.told < (self.options.patience or 0):
            return
        p, c = self.bounds()
        best = max(p[b] - c[b] for b in self.active)
        gone = [b for b in self.active if p[b] + c[b] <= best]
        if self.options.eliminate == "one" and gone:
            gone = [
                min(gone, key=lambda b: p[b] if self.options.radius == "global" else p[b] + c[b])
            ]
        if self.options.history == "delete":
            self.duels = [d for d in self.duels if not set(d) & set(gone)]
        self.active = [b for b in self.active if b not in gone]


OPTION_SETS = {
    "default": DuelOptions(),
    "paper": DuelOptions.paper(),
    "global": DuelOptions(radius="global", delta=0.95),
    "all, deleted": DuelOptions(history="delete"),
    "one, kept": DuelOptions(eliminate="one"),
    "raw tau": DuelOptions(policy=UpdatePolicy(clip=False)),
}


@pytest.mark.parametrize("name", OPTION_SETS)
@pytest.mark.parametrize("r", [line(40), correlations(40)], ids=["line", "mixed signs"])
def test_every_option_set_follows_the_listing(name: str, r: NDArray[np.float64]) -> None:
    options = OPTION_SETS[name]
    engine = CorrDuel(r, horizon=60, seed=3, options=options)
    listing = Listing(r, options)
    rng = np.random.default_rng(1)
    utility = np.sin(np.linspace(0.0, 3.0, 40)) * 2.0
    while not engine.done:
        answer_by(utility, engine, rng)
        winner, loser, _ = engine.history[-1].comparisons()[0]
        listing.tell(winner, loser)
        assert engine.active.tolist() == listing.active
    _, n = listing.tallies()
    count = np.zeros(40)
    count[engine.survivors.arm] = engine.survivors.count
    np.testing.assert_allclose(count[listing.active], n[listing.active], rtol=1e-12, atol=1e-13)
    if name != "paper":
        assert len(engine.active) < 40


@pytest.mark.parametrize("delta", [0.5, 0.9])
def test_the_printed_listing_removes_at_most_one_arm_per_duel(delta: float) -> None:
    engine = CorrDuel.paper(line(40), horizon=50, delta=delta)
    rng = np.random.default_rng(2)
    before = 40
    while not engine.done:
        answer_by(np.linspace(-3, 3, 40), engine, rng)
        assert before - len(engine.active) in (0, 1)
        before = len(engine.active)
    assert engine.options == DuelOptions.paper(delta=delta)


@engines
@given(taken=steps, more=steps)
@settings(max_examples=25)
def test_undo_is_as_if_never_answered(name: str, taken: list, more: list) -> None:  # type: ignore[type-arg]
    engine = new(name)
    for step in taken:
        perform(engine, step)
    before = state(engine)
    done = sum(perform(engine, s) for s in more if s[0] not in ("undo", "note"))
    for _ in range(done):
        engine.undo()
    assert state(engine) == before


@engines
@given(taken=st.lists(step | st.just(("left", 0, 0, 0)) | st.just(("undo", 0, 0, 0)), max_size=40))
@settings(max_examples=25)
def test_what_is_remembered_is_what_was(name: str, taken: list) -> None:  # type: ignore[type-arg]
    """Taking back begins at a copy of an earlier state; the result is that of the events alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine_module, "_REMEMBERED_EVERY", 3)
        engine = new(name)
        for said in taken:
            perform(engine, said)
        again = new(name)
        again.replay(engine.events)
        assert state(engine) == state(again)


def test_what_was_taken_back_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A note stays when the answer before it goes; the state between the two is none of now."""
    monkeypatch.setattr(engine_module, "_REMEMBERED_EVERY", 3)
    engine, again = new("CorrDuel"), new("CorrDuel")
    for said in ("left", "left", "left", "note", "undo"):
        perform(engine, (said, 0, 0, 0))
    again.replay(engine.events)
    assert [event.kind for event in engine.events] == ["duel", "duel", "note"]
    assert state(engine) == state(again)


def test_taking_back_does_not_begin_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = CorrDuel(line(40), horizon=1000, delta=1e-9)
    for _ in range(400):
        engine.answer("left")
    learn, learnt = CorrDuel._learn, []

    def counted(engine: CorrDuel, event: Event) -> None:
        learnt.append(event)
        learn(engine, event)

    monkeypatch.setattr(CorrDuel, "_learn", counted)
    for taken in range(1, 150):
        engine.undo()
        assert len(learnt) < 64, taken
        learnt.clear()
    assert engine.duels == 251


@engines
@given(taken=steps)
@settings(max_examples=25)
def test_replayed_state_is_live_state(name: str, taken: list) -> None:  # type: ignore[type-arg]
    said: list[Event] = []
    live = new(name)
    live.keep_events(said.append)
    for step in taken:
        perform(live, step)
    again = new(name)
    again.replay([event_from_record(event_record(event)) for event in said])
    assert state(again) == state(live)


@engines
def test_the_seed_fixes_the_pairs(name: str) -> None:
    def pairs(seed: int) -> list[tuple[int, int]]:
        engine = new(name, seed=seed)
        asked: list[tuple[int, int]] = []
        while not engine.done and len(asked) < 12:
            asked.append(engine.ask())
            assert engine.ask() == asked[-1]
            engine.answer("left" if len(asked) % 3 else "same")
        return asked

    assert pairs(1) == pairs(1)
    assert pairs(1) != pairs(2)
    assert all(i != j for i, j in pairs(1))


@engines
def test_excluded_arms_are_never_asked_and_come_back_unharmed(name: str) -> None:
    engine = new(name)
    for _ in range(4):
        engine.answer("left")
    before = state(engine)
    engine.exclude([2, 5])
    for _ in range(6):
        if not engine.done:
            assert not {2, 5} & set(engine.ask())
            engine.skip()
    for _ in range(engine.progress.skipped):
        engine.undo()
    engine.include([2, 5])
    after = state(engine)
    assert {k: v for k, v in after.items() if k != "events"} == {
        k: v for k, v in before.items() if k != "events"
    }


def test_an_excluded_arm_does_not_keep_others_out() -> None:
    r = line(20, 0.1)
    engine = CorrDuel(r, horizon=200, seed=1)
    rng = np.random.default_rng(0)
    while not engine.done:
        answer_by(np.linspace(-3, 3, 20), engine, rng)
    winners = engine.active.tolist()
    engine.exclude(winners)
    assert len(engine.active) > 0
    assert not set(winners) & set(engine.active.tolist())
    assert set(engine.excluded.tolist()) == set(winners)


def test_exclusion_with_neighbours_takes_all_above_the_threshold() -> None:
    r = correlations(ARMS)
    engine = CorrDuel(r, horizon=10)
    engine.exclude([4], neighbours_above=0.3)
    near = np.flatnonzero(r[4].astype(np.float32) > 0.3)
    assert engine.excluded.tolist() == near.tolist()
    engine.include([4], neighbours_above=0.3)
    assert engine.excluded.size == 0


def test_a_void_answer_counts_like_a_skip() -> None:
    voided, skipped = new("CorrDuel"), new("CorrDuel")
    pairs = [(0, 3), (5, 1), (2, 8), (4, 7)]
    for number, (i, j) in enumerate(pairs, start=1):
        voided.tell(i, j)
        skipped.tell(i, j) if number != 2 else skipped.record(
            event_from_record({"event": "duel", "left": i, "right": j, "answer": "skip"})
        )
    voided.void(2)
    assert voided.progress.voided == 1
    assert voided.duels == skipped.duels == 3
    assert state(voided)["tally"] == state(skipped)["tally"]
    assert state(voided)["active"] == state(skipped)["active"]


@engines
def test_a_forced_pair_is_asked_until_answered(name: str) -> None:
    engine = new(name)
    engine.force(7, 1)
    assert engine.ask() == (7, 1)
    engine.tell(0, 2)
    assert engine.ask() == (7, 1)
    engine.tell(1, 7)
    assert engine.history[-1].answer == "right"
    assert engine.history[-1].asked
    engine.exclude([3])
    with pytest.raises(DuelError, match="excluded"):
        engine.force(3, 4)


@engines
def test_a_forced_pair_is_not_asked_once_it_is_excluded(name: str) -> None:
    engine = new(name)
    engine.force(7, 1)
    engine.exclude([1])
    assert 1 not in engine.ask()
    engine.include([1])
    assert engine.ask() == (7, 1)


def test_a_chain_brings_one_new_arm_per_duel() -> None:
    engine = CorrDuel(correlations(40), horizon=30, seed=2, chain=True)
    left, previous = engine.ask()
    for _ in range(20):
        engine.answer("same")
        left, right = engine.ask()
        assert left == previous
        previous = right
    engine.skip()
    assert engine.ask()[0] == left


def test_a_batch_begins_with_the_pending_pair_and_repeats_no_arm() -> None:
    engine = CorrDuel(correlations(40), horizon=30, seed=2)
    pairs = engine.ask_batch(20)
    assert pairs[0] == engine.ask()
    assert len({arm for pair in pairs for arm in pair}) == 40
    for i, j in pairs:
        engine.tell(i, j)
    assert engine.duels == 20
    with pytest.raises(DuelError, match="needs 42 arms"):
        CorrDuel(correlations(40), horizon=30).ask_batch(21)


def test_a_ranking_is_all_its_pairs_in_any_order() -> None:
    r = correlations(ARMS)
    ranked = CorrDuel(r, horizon=30, delta=0.01)
    ranked.tell_ranking([3, [1, 6], 0])
    told = CorrDuel(r, horizon=30, delta=0.01)
    for pair in [(3, 1), (3, 6), (3, 0), (1, 0), (6, 0)]:
        told.tell(*pair)
    told.tie(1, 6)
    assert ranked.duels == told.duels == 6
    np.testing.assert_allclose(ranked.survivors.estimate, told.survivors.estimate, rtol=1e-13)
    assert ranked.undo().kind == "ranking"
    assert ranked.duels == 0


def test_only_the_whitelist_is_asked() -> None:
    engine = CorrDuel(correlations(ARMS), horizon=30, whitelist=[1, 4, 6])
    for _ in range(10):
        assert set(engine.ask()) <= {1, 4, 6}
        engine.skip()
    assert engine.progress.allowed == 3
    with pytest.raises(DuelError, match="not in the whitelist"):
        engine.force(1, 2)


@given(seed=st.integers(0, 1000), data=st.data())
@settings(max_examples=20)
def test_relabelling_arms_relabels_the_result(seed: int, data: st.DataObject) -> None:
    r = correlations(ARMS, seed)
    order = np.array(data.draw(st.permutations(range(ARMS))))
    duels = data.draw(
        st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda d: d[0] != d[1]))
    )
    plain, moved = CorrDuel(r, horizon=99), CorrDuel(r[np.ix_(order, order)], horizon=99)
    place = np.argsort(order)
    for winner, loser in duels:
        plain.tell(winner, loser)
        moved.tell(int(place[winner]), int(place[loser]))
    assert sorted(order[moved.active]) == plain.active.tolist()


def test_the_result_is_ranked_with_count_and_radius() -> None:
    engine = CorrDuel(line(50), horizon=80, seed=4)
    rng = np.random.default_rng(3)
    while not engine.done:
        answer_by(np.linspace(-3, 3, 50), engine, rng)
    ranked = engine.survivors
    assert engine.best == ranked[0].arm == next(iter(ranked)).arm
    assert engine.best > 40
    assert [row.arm for row in ranked[:3]] == ranked.arm[:3].tolist()
    assert ranked[-1].arm == ranked.arm[-1]
    assert (np.diff(ranked.estimate) <= 0).all()
    np.testing.assert_allclose(ranked.radius, np.sqrt(-np.log(0.9) / ranked.count), rtol=1e-12)
    with pytest.raises(DuelError, match="nothing to ask"):
        engine.ask()


def test_a_session_can_go_on_after_its_horizon() -> None:
    engine = new("CorrDuel", horizon=2)
    engine.tell(0, 1)
    engine.tell(2, 3)
    assert engine.done
    with pytest.raises(DuelError, match="horizon of 2 duels"):
        engine.ask()
    engine.extend(5)
    assert not engine.done
    engine.ask()


def test_it_says_when_no_elimination_is_possible() -> None:
    hopeless = CorrDuel(line(30), horizon=10, delta=0.01)
    assert "no elimination is possible in the 10 duels" in (hopeless.warning or "")
    assert CorrDuel(line(30), horizon=40, delta=0.01).warning is None
    assert CorrDuel(line(30), horizon=10).warning is None
    slow = CorrDuel(correlations(200, rank=60), horizon=40, delta=0.01)
    for _ in range(20):
        slow.answer("left")
    assert "in sight" in (slow.warning or "")


def test_the_warning_is_never_wrong() -> None:
    for delta in (0.02, 0.1, 0.3):
        for horizon in (3, 5, 8, 12, 17):
            engine = CorrDuel(line(12, 0.05), horizon=horizon, delta=delta)
            impossible = "possible" in (engine.warning or "")
            while not engine.done:
                engine.tell(11, 0)
            assert not (impossible and len(engine.active) < 12)
            assert impossible == (horizon < 4 * np.log(1 / delta))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda e: e.tell(0, 0), "named twice"),
        (lambda e: e.tell(0, 9), "outside 0..8"),
        (lambda e: e.tell(0, -1), "outside 0..8"),
        (lambda e: e.tell(0, 1.5), "not a whole number"),
        (lambda e: e.answer("maybe"), "not one of left, right, same, skip"),
        (lambda e: e.void(1), "no answer 1"),
        (lambda e: e.undo(), "nothing to undo"),
        (lambda e: e.tell_ranking([3]), "at least two"),
        (lambda e: e.extend(0), "horizon: 0"),
        (lambda e: e.exclude([1], neighbours_above=1.5), "not a correlation"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(wrong, says: str) -> None:  # type: ignore[no-untyped-def]
    engine = new("CorrDuel")
    before = state(engine)
    with pytest.raises(DuelError, match=says):
        wrong(engine)
    assert state(engine) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"delta": 1.0}, "delta: 1.0"),
        ({"delta": "0.9"}, "not a number"),
        ({"eliminate": "some"}, "not one of all, one"),
        ({"floor": -0.5}, "floor = -0.5"),
        ({"chain": "yes"}, "not true or false"),
        ({"dleta": 0.9}, "'dleta' does not exist"),
        ({"seed": -1}, "seed: -1"),
        ({"seed": 2**63}, "not below 2"),
        ({"horizon": 0}, "horizon: 0"),
        ({"whitelist": [99]}, "arm 99"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(DuelError, match=says):
        CorrDuel(correlations(ARMS), **({"horizon": 5} | options))


@engines
def test_an_interrupted_answer_is_taken_whole_or_not_at_all(name: str) -> None:
    step, taken = 0, set()
    while True:
        step += 1
        engine = new(name)
        for _ in range(3):
            engine.answer("left")
        if not interrupted_at(step, lambda engine=engine: engine.tell(2, 7)):  # type: ignore[misc]
            break
        again = new(name)
        again.replay(engine.events)
        assert state(engine) == state(again)
        taken.add(len(engine.events))
    assert taken == {3, 4}
    assert step > 20


@pytest.mark.parametrize("number", [np.array(3), np.int8(3), np.uint64(3)])
def test_whole_numbers_of_numpy_are_numbers(number: Any) -> None:
    engine = CorrDuel(
        correlations(ARMS), horizon=number, seed=number, delta=np.array(0.5), floor=np.float32(0.25)
    )
    engine.tell(number, 0)
    engine.tell_ranking([number, np.array(1)])
    zero_d: Any = np.array(0.5), np.array(1)
    engine.exclude([number], neighbours_above=zero_d[0])
    engine.extend(number)
    engine.void(zero_d[1])
    assert engine.options == DuelOptions(delta=0.5, policy=UpdatePolicy(floor=0.25))
    assert len(engine.ask_batch(zero_d[1])) == 1


@pytest.mark.parametrize(
    "value", [None, np.nan, [1, 2], np.array([1, 2]), np.array(1.5), "1", True]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda e, v: e.tell(v, 0),
        lambda e, v: e.tie(0, v),
        lambda e, v: e.void(v),
        lambda e, v: e.extend(v),
        lambda e, v: e.force(v, 1),
        lambda e, v: e.ask_batch(v),
        lambda e, v: e.exclude([v]),
        lambda e, v: CorrDuel(correlations(ARMS), horizon=v),
        lambda e, v: CorrDuel(correlations(ARMS), horizon=5, seed=v),
        lambda e, v: CorrDuel(correlations(ARMS), horizon=5, whitelist=[v]),
    ],
)
def test_what_is_no_whole_number_is_one_error(use: Any, value: Any) -> None:
    with pytest.raises(DuelError, match="is not a whole number"):
        use(new("CorrDuel"), value)


@pytest.mark.parametrize("value", [None, np.nan, [0.5], "0.5", True])
@pytest.mark.parametrize("name", ["delta", "floor"])
def test_what_is_no_number_is_one_error(name: str, value: Any) -> None:
    with pytest.raises(DuelError, match=f"option {name}: .* is not a number"):
        CorrDuel(correlations(ARMS), horizon=5, **{name: value})
