"""Events of a session: everything a person can say, as plain records.

The state of an engine is a function of the list of events alone, so a journal of events is all
there is to keep.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from operator import index
from typing import Any, Literal, SupportsIndex, cast, get_args

import numpy as np

from fieldcorr.correlation.numbers import real_number
from fieldcorr.errors import DuelError

Meta = Mapping[str, str | float | int]
Answer = Literal["left", "right", "same", "skip"]
Kind = Literal["duel", "ranking", "void", "force", "exclude", "include", "extend", "note", "undo"]

ANSWERS: tuple[str, ...] = get_args(Answer)
KINDS: tuple[str, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that was said.

    Attributes
    ----------
    kind : str
        "duel" (``groups`` = ((left,), (right,)) with an ``answer``), "ranking" (``groups`` from
        best to worst, arms of one group are equal), "void" (duel number ``value`` does not count),
        "force" (compare the two arms of ``groups`` next), "exclude" and "include" (``groups[0]``,
        with every arm correlated above ``value``, or all that use a ``contact``), "extend"
        (``value`` is the new horizon), "note", "undo" (takes back the last event that is not a
        note).
    asked : bool
        Whether the engine had proposed this pair.
    contact : (int, int), optional
        Number of a contact and its sign, 0 for both, in place of arms that are too many to list.
    meta : mapping
        Free metadata: rater, amplitude, frequency, notes. It never changes the state, but that an
        engine may learn how reliable each rater is.
    """

    kind: Kind
    groups: tuple[tuple[int, ...], ...] = ()
    answer: Answer | None = None
    value: float | None = None
    asked: bool = False
    contact: tuple[int, int] | None = None
    meta: Meta = field(default_factory=dict)

    @property
    def arms(self) -> tuple[int, ...]:
        """All arms that the event names, in order."""
        return tuple(chain.from_iterable(self.groups))

    @property
    def compares(self) -> bool:
        """Whether the event carries information about arms (a skip does not)."""
        return self.kind == "ranking" or (self.kind == "duel" and self.answer != "skip")

    def comparisons(self) -> list[tuple[int, int, bool]]:
        """Return (winner, loser, tie) of every pair that the event compares."""
        if self.answer == "skip":
            return []
        if self.kind == "duel":
            left, right = self.arms
            won = (right, left) if self.answer == "right" else (left, right)
            return [(*won, self.answer == "same")]
        pairs = []
        for rank, group in enumerate(self.groups):
            for a, arm in enumerate(group):
                pairs += [(arm, other, True) for other in group[a + 1 :]]
                pairs += [
                    (arm, other, False) for below in self.groups[rank + 1 :] for other in below
                ]
        return pairs


def duel_event(
    left: int, right: int, answer: Answer, *, asked: bool = False, meta: Meta | None = None
) -> Event:
    """Return the event "``left`` and ``right`` were shown, and this was the answer"."""
    groups = ((arm_number(left),), (arm_number(right),))
    return Event(kind="duel", groups=groups, answer=answer, asked=asked, meta=meta or {})


def ranking_event(ranking: Iterable[int | Iterable[int]]) -> Event:
    """Return the event of a ranking from best to worst; a nested sequence holds equal arms."""
    numbers = []
    for entry in ranking:
        single = np.ndim(cast("Any", entry)) == 0
        group = (entry,) if single else entry
        numbers.append(tuple(arm_number(arm) for arm in cast("Iterable[int]", group)))
    return Event(kind="ranking", groups=tuple(numbers))


def set_event(kind: Kind, arms: Iterable[int], *, value: float | None = None) -> Event:
    """Return an event about a set of arms: "exclude", "include" or "force"."""
    if value is not None:
        value = real_number(value, "neighbours above", DuelError)
    return Event(kind=kind, groups=(tuple(arm_number(arm) for arm in arms),), value=value)


def arm_number(arm: SupportsIndex) -> int:
    """Return an arm as a plain integer; numpy's integers are welcome, anything else is not."""
    try:
        if not isinstance(arm, bool):
            return index(arm)
    except TypeError:
        pass
    raise DuelError(f"arm {arm!r} is not a whole number")


def event_record(event: Event) -> dict[str, object]:
    """Return the event as a flat dictionary with only the keys that say something."""
    record: dict[str, object] = {"event": event.kind}
    if event.kind == "duel":
        record |= {"left": event.arms[0], "right": event.arms[1], "answer": event.answer}
        record |= {"asked": event.asked}
    elif event.kind == "ranking":
        record["ranking"] = [list(group) for group in event.groups]
    elif event.groups:
        record["arms"] = list(event.arms)
    if event.value is not None:
        record["value"] = event.value
    if event.contact is not None:
        record["contact"] = list(event.contact)
    if event.meta:
        record["meta"] = dict(event.meta)
    return record


def event_from_record(record: Mapping[str, Any]) -> Event:
    """Rebuild the event that :func:`event_record` wrote; refuse what it cannot have written."""
    kind = record.get("event")
    if not isinstance(kind, str) or kind not in KINDS:
        raise DuelError(f"event {kind!r} is not one of {', '.join(KINDS)}")
    try:
        groups = _groups(kind, record)
        answer = record["answer"] if kind == "duel" else None
        contact = _contact(record["contact"]) if "contact" in record else None
    except (KeyError, TypeError, ValueError) as error:
        raise DuelError(f"event {kind!r} is incomplete: {error!r}") from error
    value, asked, meta = record.get("value"), record.get("asked", False), record.get("meta", {})
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise DuelError(f"event {kind!r}: value {value!r} is not a number")
    if not isinstance(asked, bool) or not isinstance(meta, Mapping):
        raise DuelError(f"event {kind!r}: asked or meta is something else than it should be")
    return Event(kind=cast("Kind", kind), groups=groups, answer=answer, value=value, asked=asked,
                 contact=contact, meta=meta)  # fmt: skip


def _contact(said: Any) -> tuple[int, int]:
    number, sign = map(arm_number, said)
    return number, sign


def _groups(kind: str, record: Mapping[str, Any]) -> tuple[tuple[int, ...], ...]:
    if kind == "duel":
        return (arm_number(record["left"]),), (arm_number(record["right"]),)
    if kind == "ranking":
        return tuple(tuple(arm_number(arm) for arm in group) for group in record["ranking"])
    return (tuple(arm_number(arm) for arm in record["arms"]),) if "arms" in record else ()
