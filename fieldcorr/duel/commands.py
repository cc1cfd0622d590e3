"""What a person can type in a session, such as ``left amplitude_mA=3.2`` or ``exclude right``.

Every line becomes an event in the journal and one line that says so, after it is on the disk. The
same lines come from a terminal, a file or another program.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from fieldcorr.duel.events import ANSWERS, Answer, Event, Meta, set_event
from fieldcorr.duel.fields import (
    IMPEDANCE_OF,
    NOT_SAID,
    check_fields,
    doses_of,
    last_said,
    stimulation_in,
)
from fieldcorr.duel.session import Session
from fieldcorr.errors import DuelError
from fieldcorr.stimulation import Stimulation, check_impedances

if TYPE_CHECKING:
    from fieldcorr.store import Store

ENTRIES = (
    ("l, left, 1", "the left configuration was better; or the left arrow key"),
    ("r, right, 2", "the right one was better; or the right arrow key"),
    ("s, same, tie", "no difference"),
    ("k, skip", "another pair, please"),
    ("u, undo WHY", "take back the last entry"),
    ("v, void N WHY", "answer number N does not count"),
    (
        "x, exclude WHAT",
        "never propose WHAT (for safety, no loss): left, right, both, 0- 5+, or contact 3, 3-, 3+; "
        '"above 0.9" at the end adds all correlated above 0.9',
    ),
    ("i, include WHAT", 'take back an exclusion, also with "above"'),
    ("a, adverse WHAT TEXT", "keep an adverse event and exclude WHAT at once"),
    ("z, impedance WHAT N", "measured, ohm: of contact 3, or of left, right, 0- 5+"),
    ("c, compare A with B", "ask for this pair next"),
    ("rank A > B = C", "several at once, from best to worst"),
    ("horizon N", "change the planned number of duels"),
    ("n, note TEXT", "keep a remark"),
    ("h, help / q, quit", "this text / stop: the journal has everything"),
)
AFTER = (
    "Kept with an entry if typed after it: amplitude_mA=3.2 (or amplitude_V), pulse_width_us=210 "
    "rate_Hz=40, rater=A.B. actor=C.D., or any other name=value."
)


def help_text(width: int = 80) -> str:
    """Return what can be typed, within so many columns."""
    indent = 2 + max(len(words) for words, _ in ENTRIES)
    lines = []
    for words, meaning in ENTRIES:
        rest = " " * indent
        lines += wrap(words.ljust(indent) + meaning, width, subsequent_indent=rest)
    return "\n".join([*lines, *wrap(AFTER, width)]) + "\n"


_ALIASES = {
    "l": "left",
    "r": "right",
    "s": "same",
    "k": "skip",
    "u": "undo",
    "x": "exclude",
    "i": "include",
    "v": "void",
    "a": "adverse",
    "z": "impedance",
    "c": "compare",
    "n": "note",
    "h": "help",
    "?": "help",
    "q": "quit",
    "1": "left",
    "2": "right",
    "tie": "same",
    "\x1b[d": "left",  # arrow keys, as a terminal sends them
    "\x1b[c": "right",
}
VERBS = (*dict.fromkeys(_ALIASES.values()), "rank", "horizon")


@dataclass(frozen=True)
class Command:
    """One typed line: what to do, its arguments, and its ``key=value`` words.

    ``number`` is the duel that the line means to answer ("12: left"): a program that repeats a line
    after a crash is told that it counts already, and it does not count twice.
    """

    verb: str
    words: tuple[str, ...] = ()
    meta: dict[str, str | float] = field(default_factory=dict)
    number: int | None = None


def parse_command(line: str) -> Command:
    """Read one typed line."""
    if any("\ud800" <= letter <= "\udfff" for letter in line):
        raise DuelError(f"{line.strip()!r} is not UTF-8")
    head, colon, rest = line.partition(":")
    number = int(head) if colon and _is_whole(head) else None
    words = (rest if number is not None else line).split()
    if not words:
        raise DuelError("nothing typed; h is help")
    verb = _ALIASES.get(words[0].lower(), words[0].lower())
    if verb not in VERBS:
        raise DuelError(f"{words[0]!r} is not understood; h is help")
    if number is not None and verb not in ANSWERS:
        raise DuelError(f"{words[0]!r} takes no number before it: only an answer does")
    if verb == "note":
        return Command(verb, (line.split(maxsplit=1)[1],) if len(words) > 1 else ())
    plain = tuple(word for word in words[1:] if "=" not in word.strip("="))
    pairs = (word.partition("=") for word in words[1:] if "=" in word.strip("="))
    return Command(verb, plain, {key: _value(text) for key, _, text in pairs}, number)


def _value(text: str) -> str | float:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if isfinite(number) else text


def _is_whole(text: str) -> bool:
    """Tell whether a text is a whole number, of a length that makes sense."""
    return text.isascii() and text.strip().isdecimal() and len(text) < 19


SIDES = {"left": (0,), "l": (0,), "right": (1,), "r": (1,), "both": (0, 1)}


class Actions:
    """Commands on an open session and its store."""

    def __init__(self, session: Session, store: "Store") -> None:
        self._engine, self._store = session.engine, store
        self._header = session.journal.content.header

    def perform(self, command: Command) -> str:
        """Do what was typed and return what was done, in words."""
        check_fields(command.meta)
        verb = command.verb
        if verb in ANSWERS:
            return self._answer(command, cast("Answer", verb))
        asked = self._asked()
        if verb in ("exclude", "include"):
            told = self._restrict(cast("Literal['exclude', 'include']", verb), command)
        else:
            action: Callable[[Command], str] = getattr(self, f"_{verb}")
            told = action(command)
        changed = verb != "undo" and asked is not None and asked != self._asked()
        return f"{told}; the pair to compare has CHANGED" if changed else told

    @property
    def stimulation(self) -> Stimulation | None:
        """The stimulator of the session, with the impedances measured so far."""
        return stimulation_in(self._store, self._header, self._engine.events)

    def _asked(self) -> tuple[int, int] | None:
        return None if self._engine.done else self._engine.ask()

    @property
    def number(self) -> int:
        """Number of the duel that is asked."""
        return self._engine.answers + 1

    def _answer(self, command: Command, answer: Answer) -> str:
        number = self.number
        if command.words:
            raise DuelError(f"{answer} takes no {command.words[0]!r}; h is help")
        if command.number is not None and command.number != number:
            return self._repeated(command.number, answer)
        careful = self._above_ceiling(command.meta)
        self._engine.answer(answer, meta=command.meta)
        return f"duel {number} recorded: {answer}{careful}"

    def _above_ceiling(self, meta: Meta) -> str:
        """Return a warning if the amplitude that was said is above what the limits allow."""
        stimulation = self.stimulation
        unit = "" if stimulation is None else stimulation.stimulator.unit
        said, pair = float(meta.get(f"amplitude_{unit}", 0.0)), self._asked()
        if stimulation is None or not said or pair is None:
            return ""
        doses = doses_of(stimulation, self._store, pair, meta)
        above = [
            f"; CAREFUL: {said:g} {unit} is above the {ceiling:g} {unit} that "
            f"{self._engine.source.label(arm)} may have"
            for arm, ceiling in zip(pair, doses.ceiling, strict=True)
            if said > ceiling
        ]
        return "".join(above)

    def _repeated(self, number: int, answer: Answer) -> str:
        """Acknowledge an answer that stands in the journal already; refuse anything else."""
        history = self._engine.history
        if not 1 <= number <= len(history):
            raise DuelError(f"duel {number} is not asked; duel {self.number} is")
        if history[number - 1].answer != answer:
            given = history[number - 1].answer
            raise DuelError(f"duel {number} was answered {given}, not {answer}; void or undo it")
        return f"duel {number} was recorded already: {answer}"

    def _restrict(self, verb: Literal["exclude", "include"], command: Command) -> str:
        threshold, words = None, command.words
        if len(words) >= 2 and words[-2] == "above":
            threshold = _number(words[-1], "above")
            words = words[:-2]
        contact, arms = self._contact(words), list[int]()
        before = self._engine.progress.excluded
        if contact is not None and self._store.is_whole:
            if threshold is not None:
                raise DuelError("above: goes with a configuration; a contact has too many here")
            event = Event(kind=verb, contact=contact)
        else:
            arms = self._named_arms(words) if contact is None else self._arms_with(*contact)
            event = set_event(verb, arms, value=threshold)
        said: Meta = {} if contact is None else {"contact": " ".join(words)}
        self._engine.record(replace(event, meta={**said, **command.meta}))
        change = abs(self._engine.progress.excluded - before)
        names = " ".join(words)
        if contact is None:
            names = ", ".join(self._engine.source.label(arm) for arm in arms)
        changed = f"{change} configuration{'s' * (change != 1)} changed"
        return f"{verb}d {names}: {changed}, {self._left()}"

    def _contact(self, words: tuple[str, ...]) -> tuple[int, int] | None:
        """Return the contact and sign (0 for both) that the words name, None if they name none.

        One contact alone is no configuration: "3-" means all that use contact 3 as a cathode.
        """
        name = words[-1] if len(words) == 1 + (words[:1] == ("contact",)) else ""
        sign = {"-": -1, "+": 1}.get(name[-1:], 0)
        names = self._store.contact_names
        if sign and name[:-1] in names:
            return names.index(name[:-1]), sign
        if words[:1] != ("contact",):
            return None
        if name not in names:
            raise DuelError(f"contact {' '.join(words[1:])!r}: not one of {', '.join(names)}")
        return names.index(name), 0

    def _arms_with(self, contact: int, sign: int) -> list[int]:
        polarity = self._store.polarity[:, contact]
        arms = np.flatnonzero(polarity == sign if sign else polarity != 0)
        if not arms.size:
            raise DuelError("no configuration of the store uses this contact so")
        return [int(arm) for arm in arms]

    def _named_arms(self, words: tuple[str, ...]) -> list[int]:
        if len(words) == 1 and words[0] in SIDES:
            pair = self._engine.ask()
            return [pair[side] for side in SIDES[words[0]]]
        if not words:
            raise DuelError("left, right, both, or which configuration? h is help")
        return [self._arm(" ".join(words))]

    def _adverse(self, command: Command) -> str:
        """Exclude what an adverse event came with, and keep what it was."""
        words = command.words
        count = 1 if words[:1] and words[0] in SIDES else 2 if words[:1] == ("contact",) else 0
        if not count:
            signed = [word[-1:] in ("+", "-") for word in words]
            count = signed.index(False) if False in signed else len(words)
        what, text = words[:count], words[count:]
        above: tuple[str, ...] = ()
        if text[-2:-1] == ("above",):
            text, above = text[:-2], text[-2:]
        if not what or not text:
            raise DuelError("adverse WHAT TEXT, such as: adverse left tingling in the foot")
        meta: Meta = {**command.meta, "adverse_event": " ".join(text)}
        told = self._restrict("exclude", Command("exclude", what + above, dict(meta)))
        return f"adverse event kept; {told}; include or undo takes it back"

    def _impedance(self, command: Command) -> str:
        """Keep a measured impedance: charges are computed with it from now on."""
        *words, ohm = command.words or ("",)
        pair = self._asked()
        if len(words) == 1 and words[0] in SIDES and words[0] != "both" and pair is not None:
            what = self._engine.source.label(pair[SIDES[words[0]][0]])
        else:
            what = " ".join(words[words[:1] == ["contact"] :])
        if not what:
            raise DuelError("impedance WHAT OHM, such as: impedance 0- 5+ 900")
        check_impedances({what: 0.0}, self._store.contact_names)
        value = _number(ohm, "impedance")
        self._engine.note({**command.meta, IMPEDANCE_OF: what, "impedance_ohm": value})
        return f"impedance of {what} kept: {value:g} ohm"

    def _quit(self, _: Command) -> str:
        raise DuelError("quit stands alone on its line; h is help")

    def _undo(self, command: Command) -> str:
        if len(command.words) == 1 and _is_whole(command.words[0]):
            raise DuelError(f"undo takes no {command.words[0]!r}: one entry at a time")
        event = self._engine.undo(meta=self._decided(command.meta, command.words))
        what = f"{event.kind} {self._said(event)}".strip()
        warning = ""
        if event.kind == "exclude":
            warning = "; CAREFUL: what it excluded can be proposed again"
        return f"taken back: {what}{warning}"

    def _void(self, command: Command) -> str:
        number = _whole(" ".join(command.words[:1]), "void")
        self._engine.void(number, meta=self._decided(command.meta, command.words[1:]))
        return f"duel {number} does not count any more, {self._left()}"

    def _decided(self, meta: Meta, words: tuple[str, ...]) -> Meta:
        """Return metadata with who takes something back, and why."""
        kept, events = self._header.get("meta", {}), self._engine.events
        actor = last_said("actor", kept, events) or last_said("rater", kept, events)
        reason = " ".join(words)
        return {"actor": actor or NOT_SAID, "reason": reason or NOT_SAID, **meta}

    def _compare(self, command: Command) -> str:
        first, found, second = " ".join(command.words).partition(" with ")
        if not found:
            raise DuelError("compare A with B, such as: compare 0- 5+ with 3- 7+")
        self._engine.force(self._arm(first), self._arm(second))
        return f"next: {first.strip()} with {second.strip()}"

    def _rank(self, command: Command) -> str:
        groups = [part.split(" = ") for part in " ".join(command.words).split(" > ")]
        self._engine.tell_ranking([[self._arm(text) for text in group] for group in groups])
        return f"ranking recorded: {len(self._engine.history[-1].comparisons())} comparisons"

    def _horizon(self, command: Command) -> str:
        self._engine.extend(_whole(" ".join(command.words), "horizon"))
        return f"the session is planned for {self._engine.horizon} duels"

    def _note(self, command: Command) -> str:
        if not command.words:
            raise DuelError("note what?")
        self._engine.note({**command.meta, "note": command.words[0].strip()})
        return "note kept"

    def _arm(self, text: str) -> int:
        text = text.strip()
        if text.startswith("#") and _is_whole(text[1:]):
            return int(text[1:])
        return self._store.index_of(text)

    def _said(self, event: Event) -> str:
        names = str(event.meta.get("contact", ""))
        if not names:
            names = " | ".join(self._engine.source.label(arm) for arm in event.arms)
        value = "" if event.value is None else f"{event.value:g}"
        return " ".join(part for part in (names, event.answer, value) if part)

    def _left(self) -> str:
        return f"{self._engine.progress.left} left"


def _whole(text: str, name: str) -> int:
    if not _is_whole(text):
        raise DuelError(f"{name}: {text!r} is not a whole number")
    return int(text)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise DuelError(f"{name}: {text!r} is not a number") from error
