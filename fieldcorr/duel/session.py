"""A session: an engine and its journal.

There is no other state: opening a session is replaying its journal, and a record that is on the
disk counts once, whatever happened to the process that wrote it.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from fieldcorr.correlation.sources import Correlations, CorrelationSource, Via, as_source
from fieldcorr.correlation.whole import WholeSource
from fieldcorr.duel.baselines import RUCB, BeatTheMean, SparringUCB1
from fieldcorr.duel.bayes import BayesDuel
from fieldcorr.duel.corrduel import CorrDuel
from fieldcorr.duel.engine import Engine
from fieldcorr.duel.events import Event, Meta, arm_number, event_from_record, event_record
from fieldcorr.duel.fields import check_fields
from fieldcorr.duel.journal import Journal, JournalContent, read_journal
from fieldcorr.duel.options import DuelOptions
from fieldcorr.duel.origin import belongs, store_record
from fieldcorr.errors import DuelError, JournalError
from fieldcorr.files import Closing

NOTICE = (
    "Research software, not a medical device: check every configuration before it is delivered."
)

MOST_LABELS = 20
"""A record that names more arms than this, by a contact, has no texts of them."""

ALGORITHMS: Mapping[str, type[Engine]] = {
    kind.__name__: kind for kind in (BayesDuel, CorrDuel, BeatTheMean, RUCB, SparringUCB1)
}


class Session(Closing):
    """An engine and its journal; a context manager.

    Use :meth:`new` or :meth:`open`. Everything told to :attr:`engine` is on the disk before it
    takes effect; an exception from the journal means that it did not. ``torn`` is an unfinished
    last line that was found and set aside: an answer never acknowledged.
    """

    def __init__(self, engine: Engine, journal: Journal) -> None:
        self.engine = engine
        self.journal = journal
        self.torn = journal.content.torn
        engine.keep_events(self._write)

    @classmethod
    def new(
        cls,
        path: Path | str,
        correlation: Correlations,
        *,
        horizon: int,
        seed: int = 0,
        algorithm: str | None = None,
        settings: Mapping[str, object] | None = None,
        whitelist: Iterable[int] | None = None,
        store_name: str = "",
        meta: Meta | None = None,
        via: Via = "auto",
        repeats: float = 0.0,
        stimulation: Mapping[str, object] | None = None,
    ) -> Self:
        """Begin a session in a new journal; an existing file is refused.

        Without an ``algorithm`` it is BayesDuel, or CorrDuel if ``settings`` has an option of its
        own, as ``delta``, if there are too many arms to list, or if r is read via "damped", which
        no other engine uses. ``stimulation`` has a checked ``stimulator`` table and ``limits``, in
        place of the store's.
        """
        source, settings = as_source(correlation, via=via), settings or {}
        chosen = None if whitelist is None else sorted({arm_number(arm) for arm in whitelist})
        algorithm = algorithm or _suited(source, settings)
        if source.via == "damped" and algorithm != CorrDuel.__name__:
            raise DuelError(f"{algorithm} does not use r less its spread (damped): CorrDuel does")
        engine = _build(algorithm, source, horizon, seed, chosen, repeats, settings)
        header = session_header(engine, store_name=store_name, whitelist=chosen, meta=meta or {})
        if stimulation is not None:
            header["stimulation"] = dict(stimulation)
        return cls(engine, Journal.create(Path(path), header))

    @classmethod
    def open(cls, path: Path | str, correlation: Correlations, *, via: Via | None = None) -> Self:
        """Resume a session; another store, a damaged journal or a second process is refused.

        A store that was computed again is not another one (:mod:`fieldcorr.duel.origin`).
        A store is read the way it was when the session began. ``via`` is for journals of versions
        that did not keep it, which are read by the embedding otherwise.
        """
        journal = Journal.open(Path(path))
        try:
            return cls(replayed(journal.content, correlation, Path(path), via=via), journal)
        except BaseException:
            journal.close()
            raise

    def close(self) -> None:
        """Release the journal."""
        self.journal.close()

    def _write(self, event: Event) -> None:
        check_fields(event.meta)
        record = event_record(event)
        if event.arms and len(event.arms) <= MOST_LABELS:
            record["labels"] = [self.engine.source.label(arm) for arm in event.arms]
        self.journal.append(record)


def session_header(
    engine: Engine, *, store_name: str, whitelist: list[int] | None, meta: Meta
) -> dict[str, object]:
    """Return the first record of a journal: all that is needed to build the engine again."""
    from fieldcorr import __version__

    return {
        "notice": NOTICE,
        "version": __version__,
        "store": store_record(engine.source, store_name),
        "algorithm": type(engine).__name__,
        "horizon": engine.horizon,
        "seed": engine.seed,
        "settings": engine.settings,
        "whitelist": whitelist,
        "repeats": engine.repeats,
        "meta": dict(meta),
    }


def replayed(
    content: JournalContent, correlation: Correlations, path: Path, *, via: Via | None = None
) -> Engine:
    """Return the engine that a journal describes; ``path`` is for messages."""
    header, store = content.header, content.header.get("store")
    if not isinstance(store, dict):
        raise JournalError(f"{path}: the first line lacks 'store'")
    source = _source(correlation, store.get("via"), path, via)
    if not belongs(store, source):
        raise JournalError(
            f"{path}: belongs to another store: {store.get('name')!r} with hash "
            f"{str(store.get('hash'))[:12]!r}, not {source.fingerprint()[:12]!r}"
        )
    line = 1
    try:
        names = ("algorithm", "horizon", "seed", "whitelist", "settings")
        algorithm, horizon, seed, whitelist, settings = (header[name] for name in names)
        if algorithm == CorrDuel.__name__:
            settings = {"patience": 0, **settings}  # older journals eliminated from the first on
        repeats = header.get("repeats", 0.0)
        engine = _build(algorithm, source, horizon, seed, whitelist, repeats, settings)

        def events() -> Iterator[Event]:
            nonlocal line
            for record in content.records:
                line = record["line"]
                if record.get("event") != "torn":
                    yield event_from_record(record)

        engine.replay(events())
    except KeyError as error:
        raise JournalError(f"{path}: the first line lacks {error}") from error
    except (DuelError, TypeError) as error:
        raise JournalError(f"{path}: line {line}: {error}") from error
    return engine


def _source(
    correlation: Correlations, kept: object, path: Path, via: Via | None
) -> CorrelationSource:
    """Return the source, read the way that the journal keeps."""
    if kept not in (None, "embedding", "matrix", "neighbours", "rules", "damped"):
        raise JournalError(f"{path}: the first line has a store read via {kept!r}")
    source = as_source(correlation, via=via or kept or "auto")
    if kept is not None and source.via != kept:
        raise JournalError(f"{path}: r was read via {kept}, not via {source.via}")
    return source


def read_session(
    path: Path | str, correlation: Correlations, *, via: Via | None = None
) -> tuple[Engine, JournalContent]:
    """Return the engine of a journal for looking at, without lock; nothing told to it is kept."""
    content = read_journal(Path(path))
    return replayed(content, correlation, Path(path), via=via), content


def _suited(source: CorrelationSource, settings: Mapping[str, object]) -> str:
    """Return the algorithm of a session for which none is named."""
    own = DuelOptions().record().keys() - {"chain"}
    paper = isinstance(source, WholeSource) or source.via == "damped" or own & settings.keys()
    return (CorrDuel if paper else BayesDuel).__name__


def _build(
    algorithm: str,
    source: CorrelationSource,
    horizon: int,
    seed: int,
    whitelist: Iterable[int] | None,
    repeats: float,
    settings: Mapping[str, Any],
) -> Engine:
    if str(algorithm) not in ALGORITHMS:
        known = ", ".join(ALGORITHMS)
        raise DuelError(f"algorithm {algorithm!r} is not one of {known}")
    try:
        return ALGORITHMS[algorithm](
            source, horizon=horizon, seed=seed, whitelist=whitelist, repeats=repeats, **settings
        )
    except TypeError as error:
        raise DuelError(f"settings of {algorithm}: {error}") from error
