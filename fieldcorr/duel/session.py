"""A session: an engine whose events stand in a journal before they count.

What flows in: a journal file and the correlations it belongs to. What flows out: an engine that is
exactly as far as the journal. There is no other state: opening a session is replaying its journal,
and a record that is on the disk counts once, whatever happened to the process that wrote it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from fieldcorr.duel.beat_the_mean import BeatTheMean
from fieldcorr.duel.corrduel import CorrDuel
from fieldcorr.duel.engine import Engine, Meta
from fieldcorr.duel.events import Event, event_from_record, event_record
from fieldcorr.duel.journal import Journal, JournalContent, read_journal
from fieldcorr.duel.rucb import RUCB
from fieldcorr.duel.sources import CorrelationSource, Via, as_source
from fieldcorr.duel.sparring import SparringUCB1
from fieldcorr.errors import DuelError, JournalError

NOTICE = "Research software, no medical device: check every configuration before it is delivered."

ALGORITHMS: Mapping[str, type[Engine]] = {
    kind.__name__: kind for kind in (CorrDuel, BeatTheMean, RUCB, SparringUCB1)
}


class Session:
    """An engine and its journal; a context manager.

    Use :meth:`new` or :meth:`open`. Everything told to :attr:`engine` is on the disk before it
    takes effect; an exception from the journal means that it did not.

    Attributes
    ----------
    engine : Engine
        Ask and tell here.
    torn : bytes
        An unfinished last line that was found and set aside: an answer never acknowledged.
    """

    def __init__(self, engine: Engine, journal: Journal, header: Mapping[str, Any]) -> None:
        self.engine = engine
        self.journal = journal
        self.header = header
        self.torn = journal.content.torn if journal.content else b""
        engine.keep_events(self._write)

    @classmethod
    def new(
        cls,
        path: Path | str,
        correlation: Any,
        *,
        horizon: int,
        seed: int = 0,
        algorithm: str = "CorrDuel",
        settings: Mapping[str, Any] | None = None,
        whitelist: Iterable[int] | None = None,
        store_name: str = "",
        meta: Meta | None = None,
        via: Via = "auto",
    ) -> Self:
        """Begin a session in a new journal; an existing file is refused."""
        source = as_source(correlation, via=via)
        chosen = None if whitelist is None else sorted({int(arm) for arm in whitelist})
        engine = _build(algorithm, source, horizon, seed, chosen, settings or {})
        header = session_header(engine, store_name=store_name, whitelist=chosen, meta=meta or {})
        return cls(engine, Journal.create(Path(path), header), header)

    @classmethod
    def open(cls, path: Path | str, correlation: Any, *, via: Via = "auto") -> Self:
        """Resume a session; another store, a damaged journal or a second process is refused."""
        journal = Journal.open(Path(path))
        try:
            if journal.content is None:
                raise JournalError(f"{path}: holds nothing")
            engine = replayed(journal.content, as_source(correlation, via=via), Path(path))
            return cls(engine, journal, journal.content.header)
        except BaseException:
            journal.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the journal."""
        self.journal.close()

    def _write(self, event: Event) -> None:
        record = event_record(event)
        if event.arms:
            record["labels"] = [self.engine.source.label(arm) for arm in event.arms]
        self.journal.append(record)


def session_header(
    engine: Engine, *, store_name: str, whitelist: list[int] | None, meta: Meta
) -> dict[str, Any]:
    """Return the first record of a journal: all that is needed to build the engine again."""
    from fieldcorr import __version__

    return {
        "notice": NOTICE,
        "version": __version__,
        "store": {
            "hash": engine.source.fingerprint(),
            "name": store_name,
            "arms": len(engine.source),
        },
        "algorithm": type(engine).__name__,
        "horizon": engine.horizon,
        "seed": engine.seed,
        "settings": engine.settings,
        "whitelist": whitelist,
        "meta": dict(meta),
    }


def replayed(content: JournalContent, source: CorrelationSource, path: Path) -> Engine:
    """Return the engine that a journal describes; ``path`` is for messages."""
    header = content.header
    try:
        store = header["store"]
        if store["hash"] != source.fingerprint():
            raise JournalError(
                f"{path}: belongs to another store: {store['name']} with hash "
                f"{store['hash'][:12]}, not {source.fingerprint()[:12]}"
            )
        engine = _build(
            header["algorithm"],
            source,
            header["horizon"],
            header["seed"],
            header["whitelist"],
            header["settings"],
        )
    except (KeyError, TypeError) as error:
        raise JournalError(f"{path}: the first line lacks {error}") from error
    engine.replay(journal_events(content, path))
    return engine


def journal_events(content: JournalContent, path: Path) -> list[Event]:
    """Return the events of a journal, in order; marks of torn lines are none."""
    events = []
    for record in content.records:
        if record.get("event") == "torn":
            continue
        try:
            events.append(event_from_record(record))
        except DuelError as error:
            raise JournalError(f"{path}: line {record.get('line')}: {error}") from error
    return events


def read_session(
    path: Path | str, correlation: Any, *, via: Via = "auto"
) -> tuple[Engine, JournalContent]:
    """Return the engine of a journal for looking at, without lock; nothing told to it is kept."""
    content = read_journal(Path(path))
    return replayed(content, as_source(correlation, via=via), Path(path)), content


def _build(
    algorithm: str,
    source: CorrelationSource,
    horizon: int,
    seed: int,
    whitelist: Iterable[int] | None,
    settings: Mapping[str, Any],
) -> Engine:
    if algorithm not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise DuelError(f"algorithm {algorithm!r} is not one of {known}")
    try:
        return ALGORITHMS[algorithm](
            source, horizon=horizon, seed=seed, whitelist=whitelist, **settings
        )
    except TypeError as error:
        raise DuelError(f"settings of {algorithm}: {error}") from error
