"""What a person can type in a session, such as ``left amplitude_mA=3.2`` or ``exclude right``.

Every line becomes an event in the journal and one line that says so, after it is on the disk. The
same lines come from a terminal, a file or another program.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import ANSWERS, Answer, Event, set_event
from fieldcorr.errors import DuelError

if TYPE_CHECKING:
    from fieldcorr.store import Store

HELP = """\
l, left, 1       the left configuration was better; or the left arrow key
r, right, 2      the right one was better; or the right arrow key
s, same, tie     no difference
k, skip          another pair, please
u, undo          take back the last entry
x, exclude WHAT  never propose WHAT again (a safety exclusion, no loss);
                 WHAT is left, right, both, a configuration such as 0- 5+,
                 or a contact: 3- (as a cathode), 3+, contact 3 (at all);
                 "above 0.9" at the end adds everything correlated above 0.9
i, include WHAT  take back an exclusion, also with "above"
v, void N        answer number N does not count
c, compare A with B       ask for this pair next
rank A > B = C > D        several at once, from best to worst
horizon N        change the planned number of duels
n, note TEXT     keep a remark
h, help          this text
q, quit          stop; the journal has everything, run again to go on
Anything like amplitude_mA=3.2 frequency_Hz=40 after an answer is kept with it.
"""

_ALIASES = {
    "l": "left",
    "r": "right",
    "s": "same",
    "k": "skip",
    "u": "undo",
    "x": "exclude",
    "i": "include",
    "v": "void",
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


class Actions:
    """Commands on the engine of an open session; ``find`` returns the arm of a text."""

    def __init__(self, engine: Engine, find: Callable[[str], int]) -> None:
        self._engine = engine
        self._find = find

    def perform(self, command: Command) -> str:
        """Do what was typed and return what was done, in words."""
        verb = command.verb
        if verb in ANSWERS:
            return self._answer(command, cast("Answer", verb))
        asked = self._asked()
        if verb in ("exclude", "include"):
            told = self._restrict(cast("Literal['exclude', 'include']", verb), command)
        else:
            action: Callable[[tuple[str, ...]], str] = getattr(self, f"_{verb}")
            told = action(command.words)
        changed = verb != "undo" and asked is not None and asked != self._asked()
        return f"{told}; the pair to compare has CHANGED" if changed else told

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
        self._engine.answer(answer, meta=command.meta)
        return f"duel {number} recorded: {answer}"

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
        contact = self._contact(words)
        arms = self._named_arms(words) if contact is None else self._arms_with(*contact)
        before = self._engine.progress.excluded
        event = set_event(verb, arms, value=threshold)
        said = {} if contact is None else {"contact": " ".join(words)}
        self._engine.record(replace(event, meta=said | command.meta))
        change = abs(self._engine.progress.excluded - before)
        names = " ".join(words)
        if contact is None:
            names = ", ".join(self._engine.source.label(arm) for arm in arms)
        return f"{verb}d {names}: {change} configurations changed, {self._left()}"

    def _contact(self, words: tuple[str, ...]) -> tuple[int, int] | None:
        """Return the contact and sign (0 for both) that the words name, None if they name none.

        One contact alone is no configuration: "3-" means all that use contact 3 as a cathode.
        """
        store = self._engine.source.store
        name = words[-1] if len(words) == 1 + (words[:1] == ("contact",)) else ""
        sign = {"-": -1, "+": 1}.get(name[-1:], 0)
        names = () if store is None else store.contact_names
        if sign and name[:-1] in names:
            return names.index(name[:-1]), sign
        if words[:1] != ("contact",):
            return None
        if name not in names:
            raise DuelError(f"contact {' '.join(words[1:])!r}: not one of {', '.join(names)}")
        return names.index(name), 0

    def _arms_with(self, contact: int, sign: int) -> list[int]:
        polarity = cast("Store", self._engine.source.store).polarity[:, contact]
        arms = np.flatnonzero(polarity == sign if sign else polarity != 0)
        if not arms.size:
            raise DuelError("no configuration of the store uses this contact so")
        return [int(arm) for arm in arms]

    def _named_arms(self, words: tuple[str, ...]) -> list[int]:
        sides = {"left": [0], "l": [0], "right": [1], "r": [1], "both": [0, 1]}
        if len(words) == 1 and words[0] in sides:
            pair = self._engine.ask()
            return [pair[side] for side in sides[words[0]]]
        if not words:
            raise DuelError("left, right, both, or which configuration? h is help")
        return [self._arm(" ".join(words))]

    def _quit(self, words: tuple[str, ...]) -> str:
        raise DuelError("quit stands alone on its line; h is help")

    def _undo(self, words: tuple[str, ...]) -> str:
        if words:
            raise DuelError(f"undo takes no {words[0]!r}: it takes back one entry at a time")
        event = self._engine.undo()
        what = f"{event.kind} {self._said(event)}".strip()
        warning = ""
        if event.kind == "exclude":
            warning = "; CAREFUL: what it excluded can be proposed again"
        return f"taken back: {what}{warning}"

    def _void(self, words: tuple[str, ...]) -> str:
        number = _whole(" ".join(words), "void")
        self._engine.void(number)
        return f"duel {number} does not count any more, {self._left()}"

    def _compare(self, words: tuple[str, ...]) -> str:
        first, found, second = " ".join(words).partition(" with ")
        if not found:
            raise DuelError("compare A with B, such as: compare 0- 5+ with 3- 7+")
        self._engine.force(self._arm(first), self._arm(second))
        return f"next: {first.strip()} with {second.strip()}"

    def _rank(self, words: tuple[str, ...]) -> str:
        groups = [part.split(" = ") for part in " ".join(words).split(" > ")]
        self._engine.tell_ranking([[self._arm(text) for text in group] for group in groups])
        return f"ranking recorded: {len(self._engine.history[-1].comparisons())} comparisons"

    def _horizon(self, words: tuple[str, ...]) -> str:
        self._engine.extend(_whole(" ".join(words), "horizon"))
        return f"the session is planned for {self._engine.horizon} duels"

    def _note(self, words: tuple[str, ...]) -> str:
        if not words:
            raise DuelError("note what?")
        self._engine.note({"note": words[0].strip()})
        return "note kept"

    def _arm(self, text: str) -> int:
        text = text.strip()
        return int(text[1:]) if text.startswith("#") and _is_whole(text[1:]) else self._find(text)

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
