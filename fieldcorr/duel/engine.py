"""What every duel engine does: ask for a pair, take an answer, keep the list of events.

The state is a function of the list of events and nothing else: taking an event back, leaving out an
exclusion or resuming a journal is a replay, so undo gives the same bits as never having answered.
An algorithm adds what it knows before the first duel, how it learns and what it proposes.
"""

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self, TypedDict

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.numbers import real_number, whole_number
from fieldcorr.correlation.sources import Correlations, CorrelationSource, Tally, Via, as_source
from fieldcorr.correlation.whole import WholeSource, WholeTally
from fieldcorr.duel import _kernels
from fieldcorr.duel.events import (
    ANSWERS,
    Answer,
    Event,
    Meta,
    arm_number,
    duel_event,
    ranking_event,
    set_event,
)
from fieldcorr.duel.raters import MOST, RaterFigures, Shown, rater_figures
from fieldcorr.duel.survivors import Survivors
from fieldcorr.duel.whole import WholeArms, WholeSurvivors
from fieldcorr.errors import DuelError

_RETROACTIVE = ("void", "exclude", "include", "extend")
# Events that hold from the start, whenever they were said.
_REPEAT = 5  # counter of the random number that decides whether a pair is repeated, of a step

_REMEMBERED_EVERY = 64  # events; taking one back replays fewer than that
_MOST_REMEMBERED = 4
_MOST_REMEMBERED_ARMS = 1 << 25  # of all copies together: two of 16 million, none of 43 million


@dataclass(frozen=True)
class Standing:
    """How far a session has come: comparisons that count of those planned, and arms left.

    ``allowed`` arms may be in the set at all; ``excluded`` ones are out for safety.
    """

    duels: int
    horizon: int
    skipped: int
    voided: int
    left: int
    allowed: int
    excluded: int


@dataclass(frozen=True, eq=False)
class Terms:
    """What holds for the whole session; ``allowed`` and ``excluded`` are masks over the arms."""

    horizon: int
    voided: frozenset[int]
    allowed: NDArray[np.bool_]
    excluded: NDArray[np.bool_]


@dataclass(eq=False)
class Course:
    """Where an engine is after some events: the arms left, what was learnt, what is asked next."""

    terms: Terms
    active: NDArray[np.bool_]
    learnt: object
    events: int = 0
    duels: int = 0
    step: int = 0
    answers: int = 0
    shown: list[Shown] = field(default_factory=list)
    figures: RaterFigures | None = None
    forced: tuple[int, int] | None = None
    previous: int | None = None
    pending: tuple[int, int] | None = None

    def copy(self) -> "Course":
        """Return a course that can go on without changing this one."""
        return replace(
            self,
            active=self.active.copy(),
            learnt=deepcopy(self.learnt),
            shown=[*self.shown],
        )


@dataclass(eq=False)
class Tallied:
    """Wins and plays of all arms, and the duels that may have to be deleted from them again.

    A duel is (arm, opponent, x): in CorrDuel x tells a tie, in Beat-the-Mean the wins of the arm.
    """

    tally: Tally
    duels: list[tuple[int, int, float]] = field(default_factory=list)


class Shared(TypedDict, total=False):
    """Keywords of every engine that need not be given, see :class:`Engine`."""

    seed: int
    whitelist: Iterable[int] | None
    via: Via
    repeats: float


class Engine(ABC):
    """Base of the duel engines. One thread at a time may use an engine; a source may be shared.

    Parameters
    ----------
    correlation
        Anything that :func:`fieldcorr.duel.as_source` takes.
    horizon
        Planned number of duels T.
    seed
        Chooses the pairs; the same seed and the same answers give the same session.
    whitelist
        The only arms that may be proposed; None for all.
    via
        How to read a store, see :func:`fieldcorr.duel.as_source`.
    repeats
        Share of questions that repeat an earlier pair, sides swapped. If it is not 0, and while the
        answers could as well be chance, every other question compares the best with the worst of
        the arms shown so far: see :mod:`fieldcorr.duel.raters`.
    """

    takes_whole: ClassVar[bool] = False
    """Whether arms may be too many to list."""

    kept_as: ClassVar[str] = "left"
    """What the arms of :attr:`survivors` are called."""

    estimates: ClassVar[str] = "wins"
    """What an estimate is of."""

    def __init__(
        self,
        correlation: Correlations,
        *,
        horizon: int,
        seed: int = 0,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
        repeats: float = 0.0,
    ) -> None:
        self.source: CorrelationSource = as_source(correlation, via=via)
        if isinstance(self.source, WholeSource) and not self.takes_whole:
            raise DuelError(
                f"{type(self).__name__} keeps numbers of its own for every configuration: it "
                f"cannot play on {len(self.source):,} of them; CorrDuel and BayesDuel can"
            )
        self.seed = whole_number(seed, "seed", DuelError)
        if self.seed >= 2**63:
            raise DuelError(f"seed: {seed} is not below 2^63")
        self._planned = whole_number(horizon, "horizon", DuelError, least=1)
        self.repeats = real_number(repeats, "repeats", DuelError)
        if not 0.0 <= self.repeats < 1.0:
            raise DuelError(f"repeats: {repeats!r} is not in [0, 1)")
        self._whitelist = None if whitelist is None else self._checked_arms(whitelist)
        self._log: list[Event] = []
        self._keep: Callable[[Event], object] | None = None
        self._in_doubt = False
        self._remembered: deque[Course] = deque()
        self._relearn()

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import duel_card

        return duel_card(self)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self) -> tuple[int, int]:
        """Return the pair to compare next; the same one until it is answered or skipped."""
        now = self._now
        if now.pending is None:
            now.pending = self._next_pair()
        return now.pending

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask (Algorithm 3, line 1)."""
        now = self._now
        return now.forced is None and (now.duels >= now.terms.horizon or self._left < 2)

    # -- telling --------------------------------------------------------------------------------

    def tell(self, winner: int, loser: int, *, meta: Meta | None = None) -> None:
        """Record that ``winner`` was better than ``loser``; any pair, asked for or not."""
        winner = arm_number(winner)
        pair, asked = self._oriented(winner, arm_number(loser))
        answer: Answer = "left" if pair[0] == winner else "right"
        self.record(duel_event(*pair, answer, asked=asked, meta=meta))

    def tie(self, first: int, second: int, *, meta: Meta | None = None) -> None:
        """Record that both were equally good: half a win for each."""
        pair, asked = self._oriented(arm_number(first), arm_number(second))
        self.record(duel_event(*pair, "same", asked=asked, meta=meta))

    def skip(self, *, meta: Meta | None = None) -> None:
        """Pass over the pending pair; it counts as nothing and another pair is asked."""
        self.answer("skip", meta=meta)

    def answer(self, answer: Answer, *, meta: Meta | None = None) -> None:
        """Record "left", "right", "same" or "skip" for the pending pair."""
        self.record(duel_event(*self.ask(), answer, asked=True, meta=meta))

    def tell_ranking(self, ranking: Iterable[int | Iterable[int]]) -> None:
        """Record a ranking from best to worst as all its pairs; a nested sequence is a tie.

        Elimination happens once, after all pairs, so their order has no influence.
        """
        self.record(ranking_event(ranking))

    def void(self, number: int, *, meta: Meta | None = None) -> None:
        """Declare answer ``number`` (1 is the first of :attr:`history`) void, as if skipped."""
        value = whole_number(number, "void", DuelError, least=1)
        self.record(Event(kind="void", value=value, meta=meta or {}))

    def undo(self, *, meta: Meta | None = None) -> Event:
        """Take back the last event that is not a note and return it."""
        last = self._log[self._last()]
        self.record(Event(kind="undo", meta=meta or {}))
        return last

    def force(self, first: int, second: int) -> None:
        """Ask for this pair next, whatever the algorithm would propose."""
        self.record(set_event("force", (first, second)))

    def exclude(self, arms: Iterable[int], *, neighbours_above: float | None = None) -> None:
        """Never propose these arms; with a threshold, nor any arm with r above it.

        Reversible and no loss: the set is as if the arms had not been candidates from the start,
        so nothing stays eliminated because of an arm that is not available. Comparisons with them
        still inform about the others.
        """
        self.record(set_event("exclude", arms, value=neighbours_above))

    def include(self, arms: Iterable[int], *, neighbours_above: float | None = None) -> None:
        """Readmit excluded arms, as if they had never been excluded."""
        self.record(set_event("include", arms, value=neighbours_above))

    def exclude_contact(self, contact: int, sign: int = 0) -> None:
        """Never propose what uses a contact with this sign, or at all if that is 0.

        Of a store that defines its configurations and does not list them.
        """
        self.record(Event(kind="exclude", contact=(contact, sign)))

    def include_contact(self, contact: int, sign: int = 0) -> None:
        """Readmit what uses a contact, as if it had never been excluded."""
        self.record(Event(kind="include", contact=(contact, sign)))

    def extend(self, horizon: int) -> None:
        """Change the planned number of duels."""
        value = whole_number(horizon, "horizon", DuelError, least=1)
        self.record(Event(kind="extend", value=value))

    def note(self, meta: Meta) -> None:
        """Keep metadata in the list of events; it changes nothing."""
        self.record(Event(kind="note", meta=meta))

    def record(self, event: Event) -> None:
        """Take any event: check it, have it kept, change the state.

        Interrupted on the way (Ctrl-C), an engine without a journal has either taken the event or
        not. One with a journal cannot know which; it then refuses everything until it is reopened.
        """
        self._mend()
        self.check(event)
        kept = False
        try:
            if self._keep is not None:
                self._keep(event)
            kept = True
            self._listed(event)
            if event.kind == "undo" or event.kind in _RETROACTIVE:
                self._relearn()
            else:
                self._advance(event)
        except BaseException as error:
            # An ordinary error on the way to the disk: not kept, and nothing has changed.
            self._in_doubt = kept or not isinstance(error, Exception)
            raise

    def replay(self, events: Iterable[Event]) -> None:
        """Take a list of events at once: the same state as recording them one by one."""
        self._mend()
        try:
            for event in events:
                self.check(event)
                if self._listed(event).kind in _RETROACTIVE:
                    self._course.terms = self._settled()
        finally:
            self._relearn()

    def fresh(self) -> Self:
        """Return an engine of the same kind, source and settings, before its first event."""
        return type(self)(
            self.source,
            horizon=self._planned,
            seed=self.seed,
            whitelist=self._whitelist,
            repeats=self.repeats,
            **self.settings,
        )

    def keep_events(self, keep: Callable[[Event], object]) -> None:
        """Have every further event handed to ``keep`` after it is checked, before it counts."""
        self._keep = keep

    def check(self, event: Event) -> None:
        """Raise DuelError if the event cannot be taken; change nothing."""
        kind, arms, terms = event.kind, list(self._checked_arms(event.arms)), self._course.terms
        if len(set(arms)) != len(arms):
            raise DuelError(f"{kind}: arm named twice in {arms}")
        if kind == "duel" and event.answer not in ANSWERS:
            raise DuelError(f"answer {event.answer!r} is not one of {', '.join(ANSWERS)}")
        if kind in ("duel", "force", "ranking") and len(arms) < 2:
            raise DuelError(f"{kind}: needs at least two arms, not {len(arms)}")
        if kind in ("duel", "force") and len(arms) > 2:
            raise DuelError(f"{kind}: takes two arms, not {len(arms)}")
        if kind == "force" and terms.excluded[arms].any():
            raise DuelError(f"force: one of {arms} is excluded")
        if kind == "force" and not terms.allowed[arms].all():
            raise DuelError(f"force: one of {arms} is not in the whitelist")
        if kind == "void":
            self._check_void(event.value)
        if kind == "extend":
            whole_number(event.value, "horizon", DuelError, least=1)
        if kind in ("exclude", "include") and event.value is not None:
            threshold = real_number(event.value, "neighbours above", DuelError)
            if not -1.0 <= threshold < 1.0:
                raise DuelError(f"neighbours above {threshold!r}: not a correlation in [-1, 1)")
        if event.contact is not None:
            self._check_contact(event)
        if kind == "undo":
            self._last()

    # -- results --------------------------------------------------------------------------------

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that counts, in order: what was undone is not in it."""
        return tuple(self._log)

    @property
    def history(self) -> tuple[Event, ...]:
        """The answers, in order; :meth:`void` counts in this list from 1."""
        return tuple(event for event in self._log if event.kind in ("duel", "ranking"))

    @property
    def answers(self) -> int:
        """Number of answers so far, skipped and void ones included."""
        return self._now.answers

    @property
    def duels(self) -> int:
        """Number of comparisons that count."""
        return self._now.duels

    @property
    def horizon(self) -> int:
        """Planned number of duels T."""
        return self._now.terms.horizon

    @property
    def active(self) -> NDArray[np.int64]:
        """Arms still in the set, ascending."""
        return np.flatnonzero(self._active)

    @property
    def excluded(self) -> NDArray[np.int64]:
        """Arms excluded for safety, ascending."""
        return np.flatnonzero(self._now.terms.excluded)

    @property
    def best(self) -> int:
        """The arm with the largest estimate among the survivors (Algorithm 3, line 14)."""
        ranked = self.survivors
        if not len(ranked):
            raise DuelError("no arm is left: everything is excluded")
        return ranked[0].arm

    @property
    def progress(self) -> Standing:
        """How far the session has come."""
        terms = self._now.terms
        return Standing(
            duels=self.duels,
            horizon=terms.horizon,
            skipped=sum(event.answer == "skip" for event in self._log),
            voided=len(terms.voided),
            left=self._left,
            allowed=int(np.count_nonzero(terms.allowed)),
            excluded=int(np.count_nonzero(terms.excluded)),
        )

    @property
    def outlook(self) -> dict[str, float]:
        """What is believed about the best arm, by name; nothing for an engine without beliefs."""
        return {}

    @property
    def warning(self) -> str | None:
        """What a person should know about the answers or the rest of the session, or None."""
        return self.rater.warning

    @property
    def rater(self) -> RaterFigures:
        """What the answers say about who gave them."""
        now = self._now
        if now.figures is None:
            now.figures = rater_figures(self.source, now.shown)
        return now.figures

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a journal must keep, beside horizon, seed and whitelist, to build the same again."""

    @property
    def survivors(self) -> Survivors:
        """The arms still in the set, ranked, with count and radius."""
        self._mend()
        return self._ranked()

    # -- what algorithms add --------------------------------------------------------------------

    @abstractmethod
    def _blank(self) -> Any:
        """Return what is known before the first duel."""

    @abstractmethod
    def _learn(self, event: Event) -> None:
        """Change :attr:`_learnt` and :attr:`_active` by one event that compares arms."""

    @abstractmethod
    def _propose(self) -> tuple[int, int]:
        """Return the pair for the current step; must not change the state."""

    @abstractmethod
    def _ranked(self) -> Survivors:
        """Return the arms still in the set, ranked."""

    @property
    def _learnt(self) -> Any:
        return self._course.learnt

    @property
    def _active(self) -> NDArray[np.bool_]:
        return self._course.active

    @property
    def _left(self) -> int:
        return int(np.count_nonzero(self._active))

    # -- the state as a function of the events ----------------------------------------------------

    @property
    def _now(self) -> Course:
        """The state, mended if need be: what everything public looks at."""
        self._mend()
        return self._course

    def _mend(self) -> None:
        """Make good what an interruption left half changed, or say that only reopening can."""
        if self._in_doubt:
            if self._keep is not None:
                raise DuelError("interrupted while an event was recorded: open the session again")
            self._remembered.clear()
            self._relearn()
            self._in_doubt = False

    def _listed(self, event: Event) -> Event:
        """Put the event on the list, or take one off; return the one that came or went."""
        place = len(self._log)
        if event.kind == "undo":
            place = self._last()
            event = self._log.pop(place)
        else:
            self._log.append(event)
        if event.kind in _RETROACTIVE:
            self._remembered.clear()
        while self._remembered and self._remembered[-1].events > place:
            self._remembered.pop()
        return event

    def _settled(self) -> Terms:
        """Return what holds for the whole session, whenever it was said."""
        arms, horizon, voided = len(self.source), self._planned, set()
        allowed = np.ones(arms, dtype=np.bool_)
        if self._whitelist is not None:
            allowed[:] = False
            allowed[list(self._whitelist)] = True
        excluded = np.zeros(arms, dtype=np.bool_)
        for event in self._log:
            if event.kind == "void":
                voided.add(int(event.value or 0))
            elif event.kind == "extend":
                horizon = int(event.value or 0)
            elif event.kind in ("exclude", "include"):
                out = event.kind == "exclude"
                if event.contact is not None and isinstance(self.source, WholeSource):
                    excluded[self.source.whole.space.uses(*event.contact)] = out
                for arm in event.arms:
                    excluded[arm] = out
                    if event.value is not None:
                        excluded[self.source.row(arm) > event.value] = out
        return Terms(horizon, frozenset(voided), allowed, excluded)

    def _relearn(self) -> None:
        """Go through all events from the start, or from where it is remembered."""
        if self._remembered:
            self._course = self._remembered.pop()
        else:
            terms = self._settled()
            self._course = Course(terms, terms.allowed & ~terms.excluded, self._blank())
        for event in self._log[self._course.events :]:
            self._advance(event)

    def _advance(self, event: Event) -> None:
        """Move on by one event: learn from it, choose what is asked next."""
        now = self._course
        self._remember()
        now.events += 1
        if event.kind == "force" and not now.terms.excluded[list(event.arms)].any():
            now.forced = (event.arms[0], event.arms[1])
            now.pending = None
        if event.kind not in ("duel", "ranking"):
            return
        now.answers += 1
        if event.compares and now.answers not in now.terms.voided:
            self._learn(event)
            now.duels += len(event.comparisons())
            if event.kind == "duel" and event.answer is not None:
                now.shown.append((*event.arms[:2], event.answer))  # type: ignore[arg-type]
                now.figures = None
        now.step += 1
        now.previous = event.arms[0] if event.answer == "skip" else event.arms[-1]
        if now.forced is not None and set(now.forced) == set(event.arms):
            now.forced = None
        now.pending = None

    def _remember(self) -> None:
        """Keep a copy of the state now and then, of the last ones only."""
        copies, events = _MOST_REMEMBERED_ARMS // self._size_of_a_copy, self._course.events
        copies = min(_MOST_REMEMBERED, copies)
        # A large state takes long to go on from: of fewer copies each is younger.
        every = max(1, _REMEMBERED_EVERY * copies // _MOST_REMEMBERED)
        is_near_the_end = len(self._log) - events <= copies * every
        if copies and is_near_the_end and events % every == 0:
            while len(self._remembered) >= copies:
                self._remembered.popleft()
            self._remembered.append(self._course.copy())

    @property
    def _size_of_a_copy(self) -> int:
        """How many arms a copy of the state holds numbers of."""
        return len(self.source)

    def _next_pair(self) -> tuple[int, int]:
        now = self._course
        if now.forced is not None:
            return now.forced
        if self._left < 2:
            raise DuelError("nothing to ask: fewer than two configurations are left")
        if now.duels >= now.terms.horizon:
            raise DuelError(f"nothing to ask: the horizon of {self.horizon} duels is reached")
        return self._rater_question() or self._propose()

    def _rater_question(self) -> tuple[int, int] | None:
        """Return a pair that is asked to learn about the rater, if this step is for that."""
        if self.repeats == 0.0:
            return None
        now, counter = self._course, self._course.step * _kernels.STRIDE + _REPEAT
        free = now.terms.allowed & ~now.terms.excluded
        chance = float(_kernels.uniform(self.seed, counter))
        if now.step % 2 == 0 and len(now.shown) < MOST and self.rater.doubtful:
            left, right = self.rater.extremes
            if free[left] and free[right]:
                before = [i for i, j, _ in now.shown if {i, j} == {left, right}]
                swap = before[-1] == left if before else chance < 0.5
                return (right, left) if swap else (left, right)
        if chance >= self.repeats:
            return None
        times = Counter(frozenset((i, j)) for i, j, _ in now.shown)
        once = [
            (j, i) for i, j, _ in now.shown if free[i] and free[j] and times[frozenset((i, j))] == 1
        ]
        return once[int(_kernels.below(self.seed, counter + 1, len(once)))] if once else None

    # -- helpers --------------------------------------------------------------------------------

    def _oriented(self, first: int, second: int) -> tuple[tuple[int, int], bool]:
        """Return the pair as it was shown, and whether it is the one that was asked."""
        pending = None if self.done else self.ask()
        if pending is not None and {first, second} == set(pending):
            return pending, True
        return (first, second), False

    def _last(self) -> int:
        """Return the place of the last event that is not a note."""
        for place in reversed(range(len(self._log))):
            if self._log[place].kind != "note":
                return place
        raise DuelError("nothing to undo")

    def _checked_arms(self, arms: Iterable[int]) -> tuple[int, ...]:
        checked = tuple(map(arm_number, arms))
        for arm in checked:
            if not 0 <= arm < len(self.source):
                raise DuelError(f"arm {arm} is outside 0..{len(self.source) - 1}")
        return checked

    def _check_contact(self, event: Event) -> None:
        contact, sign = event.contact or (0, 0)
        if not isinstance(self.source, WholeSource) or event.kind not in ("exclude", "include"):
            raise DuelError(f"{event.kind}: a contact stands for arms that are not listed alone")
        contacts = len(self.source.whole.space.allowed)
        if not 0 <= contact < contacts or sign not in (-1, 0, 1):
            raise DuelError(
                f"{event.kind}: contact {contact} with sign {sign} is none of {contacts}"
            )

    def _check_void(self, value: float | None) -> None:
        number = whole_number(value, "void", DuelError, least=1)
        answers = self.history
        if number > len(answers) or not answers[number - 1].compares:
            raise DuelError(f"void: there is no answer {number} that counts")


class EliminatingEngine(Engine):
    """An engine that counts wins and plays of single arms, and eliminates the dominated ones."""

    _learnt: Tallied

    @property
    @abstractmethod
    def _choices(self) -> _kernels.Choices:
        """What kernels need to know of the options."""

    def _blank(self) -> Tallied:
        # Algorithm 2: line 1, W_1 <- B, is the active set; line 8, t <- 0, the count of duels.
        return Tallied(self.source.tally())  # lines 3-4: n_b <- 0, w_b <- 0

    @property
    def _size_of_a_copy(self) -> int:
        return self._learnt.tally.wins.size + len(self.source) // 8  # the tally, and a mask

    @property
    def _whole(self) -> WholeArms | None:
        """The arms where they are too many to list, else None."""
        source, tally = self.source, self._learnt.tally
        if isinstance(source, WholeSource) and isinstance(tally, WholeTally):
            return WholeArms(source.whole, tally, self._active, self._choices)
        return None

    def _eliminate(self) -> set[int]:
        """Take the dominated arms out of the set; return those in :attr:`Tallied.duels`."""
        compared = [a for duel in self._learnt.duels for a in duel[:2] if self._active[int(a)]]
        if (whole := self._whole) is not None:
            whole.eliminate()
        else:
            _, _, dominated = self._judged()
            self._active[dominated] = False
        return {int(arm) for arm in compared if not self._active[int(arm)]}

    def _judged(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        """Return P-hat_b and the radius of every arm, (K,), and the arms to eliminate."""
        tally, estimate, radius = self._learnt.tally, *np.empty((2, len(self.source)))
        out = np.empty(len(self.source), dtype=np.int64)
        arrays = tally.wins, tally.plays, tally.background, self._active
        count = _kernels.judge(self._choices, *arrays, estimate, radius, out)
        return estimate, radius, out[:count]

    def _ranked(self) -> Survivors:
        if (whole := self._whole) is not None:
            return WholeSurvivors(whole, self._left)
        estimate, radius, _ = self._judged()
        return Survivors.ranked(self._active, estimate, self._learnt.tally.all_plays, radius)
