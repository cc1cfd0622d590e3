"""The conversation of a session: ask, read a line, act, say that it is recorded.

It is text for a person, or one JSON object per line for a program. An answer is called recorded
only after it is on the disk.
"""

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, TextIO

from fieldcorr.configurations.text import format_configuration
from fieldcorr.duel.commands import Actions, help_text, parse_command
from fieldcorr.duel.drawing import draw_array, draw_pair
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.fields import dose_texts, doses_of
from fieldcorr.duel.session import NOTICE, Session
from fieldcorr.errors import ConfigurationError, DuelError, JournalError
from fieldcorr.stimulation import Stimulation

if TYPE_CHECKING:
    from fieldcorr.store import Store

Reply = Literal["done", "wrong", "help"]

TOP = 10
"""Configurations listed at the end."""

LEGEND = "rostral is up, the patient's left is left; [+] anode, (-) cathode"

NARROW, WIDE = 60, 80
"""Columns that lines are wrapped at, as far as a terminal has them."""


def converse(
    session: Session,
    store: "Store",
    lines: Iterator[str],
    front: "Front",
    *,
    forgiving: bool,
    discard: Callable[[], object] = lambda: None,
) -> None:
    """Go on until the lines end or someone quits.

    ``discard`` forgets what was typed before a pair was shown: nobody had seen it.

    A line that cannot be used is answered and forgotten if ``forgiving`` (a person mistypes), or
    ends the session with the error (a program must not go on with half of its answers).
    """
    engine = session.engine
    actions = Actions(session, store)
    front.begin(session)
    while True:
        front.end(engine) if engine.done else front.ask(engine, actions.stimulation)
        discard()
        line = next(lines, None)
        if line is None or line.strip().lower() in ("q", "quit"):
            break
        if not line.strip():
            continue
        try:
            command = parse_command(line)
            if command.verb == "help":
                front.reply("help", help_text(front.width))
            else:
                front.reply("done", actions.perform(command))
        except JournalError:
            raise
        except (DuelError, ConfigurationError) as error:
            if not forgiving:
                raise
            front.reply("wrong", str(error))
    if not engine.done:
        front.end(engine)


def read_lines(stream: TextIO) -> Iterator[str]:
    """Yield lines as they come, without waiting for more; bytes that are not UTF-8 stand out."""
    while line := stream.buffer.readline():
        yield line.decode("utf-8", "surrogateescape")


def discard_typed() -> None:
    """Forget what was typed at the terminal and not read yet, where the system can."""
    try:
        from termios import TCIFLUSH, tcflush
    except ImportError:  # not on Windows
        return
    tcflush(sys.stdin.fileno(), TCIFLUSH)


def printable(text: str) -> str:
    """Return text that a file may have brought, its control characters spelt out."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in text
    )


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line in parts of at most so many columns; its own spaces stay."""
    if len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    parts = wrap(line, width, subsequent_indent=indent, replace_whitespace=False)
    return parts if line[-1:] != " " else [*parts[:-1], parts[-1] + " "]


class TextFront:
    """Talks to a person; ``prompt``, if one is there, prints what can be typed."""

    def __init__(self, store: "Store", write: Callable[[str], object], *, prompt: bool) -> None:
        self._store = store
        self._say = write
        self._prompt = prompt
        self._shown: tuple[int, ...] = ()

    @property
    def width(self) -> int:
        """Columns to write in."""
        return min(WIDE, max(NARROW, shutil.get_terminal_size().columns - 1))

    def _write(self, text: str) -> None:
        """Write lines, wrapped at words for a person; a program gets them as they are."""
        lines = printable(text).split("\n")
        if self._prompt:
            lines = ["\n".join(_wrapped(line, self.width)) for line in lines]
        self._say("\n".join(lines))

    def begin(self, session: Session) -> None:
        """Say what this is and how far it has come."""
        self._write(
            f"{NOTICE}\nAny configuration of the store that nobody has excluded may be proposed.\n"
        )
        if session.torn:
            self._write(
                f"The last line of the journal was unfinished ({len(session.torn)} bytes): it was "
                "never acknowledged and does not count; its pair is asked again.\n"
            )

    def ask(self, engine: Engine, stimulation: Stimulation | None) -> None:
        """Show the pair to compare, how far the set has narrowed, and any warning.

        The same pair again is named in a line: what was answered in between, such as the help,
        stays on the screen.
        """
        pair = engine.ask()
        before, self._shown = self._shown, (engine.answers, *pair)
        if self._prompt and before == self._shown:
            left, right = (engine.source.label(arm) for arm in pair)
            self._write(f"\nStill duel {engine.answers + 1}: LEFT {left} | RIGHT {right}\n")
        else:
            self._write("\n".join(["", progress_line(engine), *outlook_lines(engine.outlook), ""]))
            if engine.warning:
                self._write(f"Warning: {engine.warning}.\n")
            self._say(printable(f"\n{self.picture(pair)}\n"))
            self._write(f"{LEGEND}\n")
        if stimulation is not None:
            doses = doses_of(stimulation, self._store, pair, {})
            told = zip(("LEFT ", "RIGHT"), dose_texts(stimulation, doses), strict=True)
            self._write("".join(f"{side}  {text}\n" for side, text in told))
        if self._prompt:
            self._write("\nBetter? left right same skip undo exclude help quit > ")

    def picture(self, pair: tuple[int, int]) -> str:
        """Return both arrays side by side."""
        names, positions = self._store.contact_names, self._store.contact_positions
        polarities = [self._store.polarity[arm] for arm in pair]
        left, right = (draw_array(polarity, names, positions) for polarity in polarities)
        texts = (format_configuration(polarity, names) for polarity in polarities)
        titles = (f"LEFT   {next(texts)}", f"RIGHT  {next(texts)}")
        return draw_pair(left, right, titles)

    def reply(self, kind: Reply, message: str) -> None:
        """Say what has been recorded, why a line cannot be used, or what can be typed."""
        self._write(message if kind == "help" else f"{message}\n")

    def end(self, engine: Engine) -> None:
        """Say where the session stands: the ranked set, and what it is worth."""
        self._write(f"\n{result_text(engine)}\n")
        if engine.done and self._prompt:
            self._write("\nNothing left to ask. undo, horizon N, help or quit > ")


class JsonFront:
    """Talks to a program: one JSON object per line, with a key ``type``."""

    width = WIDE

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def begin(self, session: Session) -> None:
        """Say what this is and how far it has come."""
        self._say("begin", notice=NOTICE, torn=len(session.torn), answers=session.engine.answers)

    def ask(self, engine: Engine, stimulation: Stimulation | None) -> None:
        """Show the pair to compare."""
        left, right = engine.ask()
        ceilings = None
        if stimulation is not None and (store := engine.source.store) is not None:
            found = doses_of(stimulation, store, (left, right), {}).ceiling.tolist()
            ceilings = [None if value != value else value for value in found]
        self._say(
            "ask",
            number=engine.answers + 1,
            left={"arm": left, "text": engine.source.label(left)},
            right={"arm": right, "text": engine.source.label(right)},
            progress=asdict(engine.progress),
            outlook=engine.outlook,
            warning=engine.warning,
            ceilings=ceilings,
        )

    def reply(self, kind: Reply, message: str) -> None:
        """Say what has been recorded, why a line cannot be used, or what can be typed."""
        self._say(kind, text=message)

    def end(self, engine: Engine) -> None:
        """Say where the session stands."""
        ranked = engine.survivors
        top = [asdict(row) | {"text": engine.source.label(row.arm)} for row in ranked[:TOP]]
        self._say("end", done=engine.done, progress=asdict(engine.progress), top=top)

    def _say(self, kind: str, **content: object) -> None:
        self._write(json.dumps({"type": kind, **content}) + "\n")


Front = TextFront | JsonFront
"""How a session talks."""


def progress_line(engine: Engine) -> str:
    """Return how far the session has come, in one line."""
    p = engine.progress
    parts = [f"duel {engine.answers + 1}: {p.duels} of {p.horizon} done", _kept(engine)]
    counts = {"excluded": p.excluded, "skipped": p.skipped, "void": p.voided}
    return "; ".join(parts + [f"{count} {name}" for name, count in counts.items() if count])


def _kept(engine: Engine) -> str:
    p = engine.progress
    if not p.duels:
        return f"{p.allowed} configurations"
    share = f"{100 * p.left / p.allowed:.0f} %"
    return f"{p.left} of {p.allowed} configurations {engine.kept_as} ({share})"


def settings_text(settings: Mapping[str, object]) -> str:
    """Return settings in one line; what would fill pages is only said to be there."""
    short = {key: "given" if isinstance(value, dict) else value for key, value in settings.items()}
    return ", ".join(f"{key} {value}" for key, value in short.items() if value is not None)


def outlook_lines(outlook: Mapping[str, float]) -> list[str]:
    """Return what is believed about the best arm, as sentences."""
    if not outlook:
        return []
    lines = [
        f"The leader is the best with probability {outlook['probability_best']:.2f}; the best "
        f"would win {50 + 100 * outlook['regret']:.0f} % of its duels with it."
    ]
    if "sure" in outlook:
        lines.append(
            f"Nothing wins more than {50 + 100 * outlook['within']:g} % of its duels with it: "
            f"probability {outlook['sure']:.2f}, enough is {outlook['stop_at']:g}; about "
            f"{outlook['answers_to_go']:.0f} answers to go."
        )
    return lines


def result_text(engine: Engine) -> str:
    """Return the ranked set as text, and how much it says."""
    p, ranked = engine.progress, engine.survivors
    standing = f"{p.duels} of {p.horizon} duels; {_kept(engine)}."
    if len(ranked) > 1 and ranked.estimate.min() == ranked.estimate.max():
        return f"{standing}\nNothing is ranked: no comparison tells one from another yet."
    lines = [
        standing,
        *outlook_lines(engine.outlook),
        "rank  estimate  interval  comparisons  configuration",
    ]
    for rank, row in enumerate(ranked[:TOP], start=1):
        lines.append(
            f"{rank:4d}  {row.estimate:8.3f}  +-{row.radius:6.3f}  {row.count:11.1f}  "
            f"{engine.source.label(row.arm)}"
        )
    if len(ranked) > TOP:
        lines.append(f"      ... and {len(ranked) - TOP} more: fieldcorr duel export writes them")
    lines.append("The set counts, not the first rank: no guarantee goes with these intervals.")
    return "\n".join(lines)
