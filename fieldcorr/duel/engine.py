"""What every duel engine does: ask for a pair, take an answer, keep the list of events.

What flows in: correlations, a horizon, a seed, and events. What flows out: the next pair and the
ranked survivors. The state is a function of the list of events and nothing else: taking an event
back, leaving out an exclusion or resuming a journal is a replay, so undo gives the same bits as
never having answered. Algorithms add three methods: forget, learn, propose.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from fieldcorr.duel.events import (
    ANSWERS,
    Answer,
    Event,
    arm_number,
    duel_event,
    ranking_event,
    set_event,
)
from fieldcorr.duel.sources import CorrelationSource, Via, as_source
from fieldcorr.duel.survivors import Survivors
from fieldcorr.errors import DuelError

Meta = Mapping[str, str | float | int]


@dataclass(frozen=True)
class Progress:
    """How far a session has come.

    Attributes
    ----------
    duels, horizon : int
        Comparisons that count, and how many are planned.
    skipped, voided : int
        Pairs passed over, and answers declared void.
    left, allowed, excluded : int
        Arms still in the set, arms that may be in it at all, arms excluded for safety.
    """

    duels: int
    horizon: int
    skipped: int
    voided: int
    left: int
    allowed: int
    excluded: int


class Engine(ABC):
    """Base of the duel engines.

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
    """

    def __init__(
        self,
        correlation: Any,
        *,
        horizon: int,
        seed: int = 0,
        whitelist: Iterable[int] | None = None,
        via: Via = "auto",
    ) -> None:
        self.source: CorrelationSource = as_source(correlation, via=via)
        self.seed = _integer(seed, "seed", least=0)
        if self.seed >= 2**63:
            raise DuelError(f"seed: {seed} is not below 2^63")
        self._planned = _integer(horizon, "horizon", least=1)
        self._whitelist = None if whitelist is None else self._checked_arms(whitelist)
        self._log: list[Event] = []
        self._keep: Callable[[Event], object] | None = None
        self._pending: tuple[int, int] | None = None
        self._forced: tuple[int, int] | None = None
        self._previous: int | None = None
        self._settle()
        self._relearn()

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import duel_card

        return duel_card(self)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self) -> tuple[int, int]:
        """Return the pair to compare next; the same one until it is answered or skipped."""
        if self._pending is None:
            self._pending = self._next_pair()
        return self._pending

    @property
    def done(self) -> bool:
        """Whether there is nothing left to ask (Algorithm 3, line 1)."""
        return self._forced is None and (self.duels >= self.horizon or self._left < 2)

    # -- telling --------------------------------------------------------------------------------

    def tell(self, winner: int, loser: int, *, meta: Meta | None = None) -> None:
        """Record that ``winner`` was better than ``loser``; any pair, asked for or not."""
        pair, asked = self._oriented(winner, loser)
        answer: Answer = "left" if pair[0] == winner else "right"
        self.record(duel_event(*pair, answer, asked=asked, meta=meta))

    def tie(self, first: int, second: int, *, meta: Meta | None = None) -> None:
        """Record that both were equally good: half a win for each."""
        pair, asked = self._oriented(first, second)
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

    def void(self, number: int) -> None:
        """Declare answer ``number`` (1 is the first of :attr:`history`) void, as if skipped."""
        self.record(Event(kind="void", value=number))

    def undo(self) -> Event:
        """Take back the last event that is not a note and return it."""
        last = self._log[self._last()]
        self.record(Event(kind="undo"))
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

    def extend(self, horizon: int) -> None:
        """Change the planned number of duels."""
        self.record(Event(kind="extend", value=horizon))

    def note(self, meta: Meta) -> None:
        """Keep metadata in the list of events; it changes nothing."""
        self.record(Event(kind="note", meta=meta))

    def record(self, event: Event) -> None:
        """Take any event: check it, have it kept, change the state."""
        self.check(event)
        if self._keep is not None:
            self._keep(event)
        if self._enter(event):
            self._relearn()
        else:
            self._advance(event)

    def replay(self, events: Iterable[Event]) -> None:
        """Take a list of events at once: the same state as recording them one by one."""
        for event in events:
            self.check(event)
            self._enter(event)
        self._relearn()

    def fresh(self) -> Self:
        """Return an engine of the same kind, source and settings, before its first event."""
        return type(self)(
            self.source,
            horizon=self._planned,
            seed=self.seed,
            whitelist=self._whitelist,
            **self.settings,
        )

    def keep_events(self, keep: Callable[[Event], object]) -> None:
        """Have every further event handed to ``keep`` after it is checked, before it counts."""
        self._keep = keep

    def check(self, event: Event) -> None:
        """Raise DuelError if the event cannot be taken; change nothing."""
        self._checked_arms(event.arms)
        if len(set(event.arms)) != len(event.arms):
            raise DuelError(f"{event.kind}: arm named twice in {list(event.arms)}")
        if event.kind == "duel" and event.answer not in ANSWERS:
            raise DuelError(f"answer {event.answer!r} is not one of {', '.join(ANSWERS)}")
        if event.kind in ("duel", "force", "ranking") and len(event.arms) < 2:
            raise DuelError(f"{event.kind}: needs at least two arms, not {len(event.arms)}")
        if event.kind == "force" and self._excluded[list(event.arms)].any():
            raise DuelError(f"force: one of {list(event.arms)} is excluded")
        if event.kind == "force" and not self._allowed[list(event.arms)].all():
            raise DuelError(f"force: one of {list(event.arms)} is not in the whitelist")
        if event.kind == "void":
            self._check_void(event.value)
        if event.kind == "extend":
            _integer(event.value, "horizon", least=1)
        if event.kind in ("exclude", "include") and event.value is not None:
            _threshold(event.value)
        if event.kind == "undo":
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
    def active(self) -> NDArray[np.int64]:
        """Arms still in the set, ascending."""
        return np.flatnonzero(self._active)

    @property
    def excluded(self) -> NDArray[np.int64]:
        """Arms excluded for safety, ascending."""
        return np.flatnonzero(self._excluded)

    @property
    def best(self) -> int:
        """The arm with the largest estimate among the survivors (Algorithm 3, line 14)."""
        ranked = self.survivors
        if not len(ranked):
            raise DuelError("no arm is left: everything is excluded")
        return int(ranked.arm[0])

    @property
    def progress(self) -> Progress:
        """How far the session has come."""
        skipped = sum(event.answer == "skip" for event in self._log)
        return Progress(
            duels=self.duels,
            horizon=self.horizon,
            skipped=skipped,
            voided=len(self._voided),
            left=self._left,
            allowed=int(np.count_nonzero(self._allowed)),
            excluded=int(np.count_nonzero(self._excluded)),
        )

    @property
    def warning(self) -> str | None:
        """What a person should know about the rest of the session, or None."""
        return None

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """What a journal must keep, beside horizon, seed and whitelist, to build the same again."""

    @property
    @abstractmethod
    def survivors(self) -> Survivors:
        """The arms still in the set, ranked."""

    # -- what algorithms add --------------------------------------------------------------------

    @abstractmethod
    def _forget(self) -> None:
        """Set the algorithm's own state to that before the first duel."""

    @abstractmethod
    def _learn(self, event: Event) -> None:
        """Take one event that compares arms."""

    @abstractmethod
    def _propose(self) -> tuple[int, int]:
        """Return the pair for the current step; must not change the state."""

    # -- the state as a function of the events ----------------------------------------------------

    def _enter(self, event: Event) -> bool:
        """Put the event on the list; return whether what was learnt before must be relearnt."""
        if event.kind == "undo":
            del self._log[self._last()]
        else:
            self._log.append(event)
        if event.kind not in ("void", "exclude", "include", "extend", "undo"):
            return False
        self._settle()
        return True

    def _settle(self) -> None:
        """Work out what holds for the whole session, whenever it was said."""
        arms = len(self.source)
        self.horizon = self._planned
        self._voided: set[int] = set()
        self._allowed = np.ones(arms, dtype=np.bool_)
        if self._whitelist is not None:
            self._allowed[:] = False
            self._allowed[list(self._whitelist)] = True
        self._excluded = np.zeros(arms, dtype=np.bool_)
        for event in self._log:
            if event.kind == "void":
                self._voided.add(int(event.value or 0))
            elif event.kind == "extend":
                self.horizon = int(event.value or 0)
            elif event.kind in ("exclude", "include"):
                self._excluded[self._with_neighbours(event)] = event.kind == "exclude"

    def _relearn(self) -> None:
        """Go through all events from the start."""
        self._active = self._allowed & ~self._excluded
        self.duels, self._step, self._answers = 0, 0, 0
        self._forced = self._previous = self._pending = None
        self._forget()
        for event in self._log:
            self._advance(event)

    def _advance(self, event: Event) -> None:
        """Move on by one event: learn from it, choose what is asked next."""
        if event.kind == "force" and not self._excluded[list(event.arms)].any():
            self._forced = (event.arms[0], event.arms[1])
            self._pending = None
        if event.kind not in ("duel", "ranking"):
            return
        self._answers += 1
        if event.compares and self._answers not in self._voided:
            self._learn(event)
            self.duels += len(event.comparisons())
        self._step += 1
        self._previous = event.arms[0] if event.answer == "skip" else event.arms[-1]
        if self._forced is not None and set(self._forced) == set(event.arms):
            self._forced = None
        self._pending = None

    def _next_pair(self) -> tuple[int, int]:
        if self._forced is not None:
            return self._forced
        if self._left < 2:
            raise DuelError("nothing to ask: fewer than two configurations are left")
        if self.duels >= self.horizon:
            raise DuelError(f"nothing to ask: the horizon of {self.horizon} duels is reached")
        return self._propose()

    @property
    def _left(self) -> int:
        return int(np.count_nonzero(self._active))

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

    def _with_neighbours(self, event: Event) -> list[int]:
        arms = list(event.arms)
        if event.value is None:
            return arms
        near = [np.flatnonzero(self.source.row(arm) > event.value).tolist() for arm in arms]
        return sorted({*arms, *(arm for row in near for arm in row)})

    def _checked_arms(self, arms: Iterable[int]) -> tuple[int, ...]:
        checked = tuple(arm_number(arm) for arm in arms)
        for arm in checked:
            if not 0 <= arm < len(self.source):
                raise DuelError(f"arm {arm} is outside 0..{len(self.source) - 1}")
        return checked

    def _check_void(self, value: float | None) -> None:
        number = _integer(value, "void", least=1)
        answers = self.history
        if number > len(answers) or not answers[number - 1].compares:
            raise DuelError(f"void: there is no answer {number} that counts")


def _integer(value: Any, name: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise DuelError(f"{name}: {value!r} is not a whole number of at least {least}")
    return int(value)


def _threshold(value: Any) -> None:
    if not isinstance(value, int | float) or not -1.0 <= value < 1.0:
        raise DuelError(f"neighbours above {value!r}: not a correlation in [-1, 1)")
