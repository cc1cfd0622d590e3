"""The journal: durable before acknowledged, damage noticed, one writer, one store.

Flipped bits, lost lines, a full disk, another store, a hundred kills.
"""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.duel import RUCB, DuelOptions, Session, read_session
from fieldcorr.duel.journal import Journal, is_locked, parse_journal, read_journal
from fieldcorr.duel.session import ALGORITHMS
from fieldcorr.errors import DuelError, JournalError
from fieldcorr.store import Options, open_store
from tests.damage import sealed
from tests.duel.killing import MATRIX
from tests.duel.support import STEPS, correlations, interrupted_at, perform, state
from tests.store.synthetic import make_store, values

NAME = Path("a.journal")


def filled(path: Path, answers: int = 6) -> list[bytes]:
    """Write a session with some answers and return the lines of its journal."""
    with Session.new(path, MATRIX, horizon=50, seed=4, settings={"delta": 0.5}) as session:
        for number in range(answers):
            session.engine.answer(("left", "right", "same", "skip")[number % 4])
        session.engine.exclude([3], neighbours_above=0.9)
        session.engine.note({"note": "größer"})
    return path.read_bytes().splitlines(keepends=True)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return filled(tmp_path_factory.mktemp("journal") / "a.journal")


def test_a_session_resumes_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    with Session.new(path, MATRIX, horizon=50, seed=4, whitelist=range(10)) as session:
        rng = [("left", 0, 1, 2), ("exclude", 3, 0, 0), ("undo", 0, 0, 0), ("right", 0, 0, 0)]
        for step in rng + [(kind, 5, 7, 8) for kind in STEPS]:
            perform(session.engine, step)
        live = state(session.engine)
    with Session.open(path, MATRIX) as again:
        assert state(again.engine) == live
        assert again.torn == b""
        again.engine.tell(5, 2)
    engine, content = read_session(path, MATRIX)
    assert engine.history[-1].arms == (5, 2)
    assert content.header["whitelist"] == list(range(10))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_sessions(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.journal"
    options = {"update": "corr"} if name == "RUCB" else {}
    with Session.new(path, MATRIX, horizon=20, algorithm=name, settings=options) as session:
        for _ in range(5):
            session.engine.answer("left")
        live = state(session.engine)
    with Session.open(path, MATRIX) as again:
        assert type(again.engine) is ALGORITHMS[name]
        assert state(again.engine) == live
        assert not isinstance(again.engine, RUCB) or again.engine.update == "corr"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [({}, "BayesDuel"), ({"chain": True}, "BayesDuel"), ({"delta": 0.8}, "CorrDuel"),
     ({"floor": 0.02}, "CorrDuel")],
)  # fmt: skip
def test_a_session_learns_unless_a_setting_is_of_corrduel(
    tmp_path: Path, settings: dict[str, Any], kind: str
) -> None:
    with Session.new(tmp_path / "a.journal", MATRIX, horizon=20, settings=settings) as session:
        assert type(session.engine).__name__ == kind


def test_the_journal_can_be_read_by_people_and_by_json(lines: list[bytes]) -> None:
    records = [json.loads(line) for line in lines]
    assert records[0]["format"] == "fieldcorr-journal 1"
    assert "not a medical device" in records[0]["notice"]
    assert [record["line"] for record in records] == list(range(1, len(lines) + 1))
    assert records[1]["answer"] == "left"
    assert records[1]["labels"] == [str(records[1]["left"]), str(records[1]["right"])]
    assert "größer".encode() in lines[-1]


def test_an_answer_is_on_the_disk_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.journal"
    with Session.new(path, MATRIX, horizon=50) as session:
        seen: list[tuple[int, int]] = []
        sync = os.fsync

        def spy(descriptor: int) -> None:
            sync(descriptor)
            seen.append((session.engine.duels, path.read_bytes().count(b"\n")))

        monkeypatch.setattr(os, "fsync", spy)
        session.engine.answer("left")
        session.engine.answer("right")
    # At the time of each fsync the line is complete, and the engine has not moved yet.
    assert seen == [(0, 2), (1, 3)]


def test_a_failed_write_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.journal"
    with Session.new(path, MATRIX, horizon=50) as session:
        session.engine.answer("left")
        before = state(session.engine)
        write = os.write

        def full(descriptor: int, data: bytes) -> int:
            if len(data) > 40:
                return write(descriptor, data[:40])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", full)
        with pytest.raises(JournalError, match=r"not recorded: No space left"):
            session.engine.answer("right")
        monkeypatch.undo()
        with pytest.raises(JournalError, match="closed"):
            session.engine.answer("right")
        assert state(session.engine) == before
    with Session.open(path, MATRIX) as again:
        assert len(again.torn) > 0
        assert state(again.engine) == before


def test_a_line_torn_anywhere_is_reported_and_never_counts(
    tmp_path: Path, lines: list[bytes]
) -> None:
    whole = b"".join(lines[:-2])
    last = lines[-2]
    for cut in (1, 2, 17, len(last) // 2, len(last) - 2, len(last) - 1):
        path = tmp_path / f"{cut}.journal"
        path.write_bytes(whole + last[:cut])
        engine, content = read_session(path, MATRIX)
        assert content.torn == last[:cut]
        assert len(engine.events) == len(lines) - 3
        assert path.read_bytes() == whole + last[:cut]
        with Session.open(path, MATRIX) as session:
            assert session.torn == last[:cut]
            assert len(session.engine.events) == len(lines) - 3
            session.engine.answer("left")
        mark = json.loads(path.read_bytes().splitlines()[len(lines) - 2])
        assert (mark["event"], mark["bytes"]) == ("torn", cut)
        assert mark["text"] == last[:cut].decode("utf-8", "replace")
        assert len(read_session(path, MATRIX)[0].events) == len(lines) - 2


def test_a_torn_first_line_is_no_session(tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "a.journal"
    for content in (b"", lines[0][:50]):
        path.write_bytes(content)
        with pytest.raises(JournalError, match="nothing was recorded"):
            Session.open(path, MATRIX)


@given(data=st.data())
@settings(max_examples=150)
def test_flipped_bits_are_never_read_as_something_else(
    lines: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(lines)
    place = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[place] ^= data.draw(st.integers(1, 255))
    if place < len(whole) - 1:
        with pytest.raises(JournalError, match=r"a.journal: (line \d+|format)"):
            parse_journal(bytes(changed), NAME)
    else:
        # Without its last line end, the last line looks torn, and does not count.
        content = parse_journal(bytes(changed), NAME)
        assert content.torn
        assert content.records == parse_journal(whole, NAME).records[:-1]


@given(data=st.data())
@settings(max_examples=60)
def test_lost_moved_and_repeated_lines_are_noticed(lines: list[bytes], data: st.DataObject) -> None:
    order = data.draw(st.lists(st.integers(0, len(lines) - 1), min_size=1, max_size=12))
    changed = b"".join(lines[i] for i in order)
    if order == list(range(len(order))):
        assert len(parse_journal(changed, NAME).records) == len(order) - 1
    else:
        with pytest.raises(JournalError):
            parse_journal(changed, NAME)


def test_lines_cut_off_at_the_end_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    lines = filled(path)
    path.write_bytes(b"".join(lines[:-1]))
    for attempt in (read_journal, Journal.open):
        with pytest.raises(JournalError, match=r"ends after line 8, but 9 lines were recorded"):
            attempt(path)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:-1])  # torn in the middle of a copy
    with pytest.raises(JournalError, match=r"remove a\.journal\.end"):
        read_journal(path)
    (tmp_path / "a.journal.end").unlink()
    assert read_journal(path).lines == 8
    with Session.open(path, MATRIX) as session:
        session.engine.answer("left")
        assert session.journal.end in (tmp_path / "a.journal.end").read_text()
    path.unlink()
    assert len(filled(path, answers=1)) == 4  # a new journal of that name begins anew
    assert read_journal(path).lines == 4


@pytest.mark.parametrize("link", [False, True])
def test_what_is_not_ours_beside_a_journal_stays(tmp_path: Path, link: bool) -> None:
    notes = tmp_path / ("notes" if link else "a.journal.end")
    notes.write_text("my notes")
    if link:
        (tmp_path / "a.journal.end").symlink_to(notes)
    filled(tmp_path / "a.journal")
    assert notes.read_text() == "my notes"
    read_journal(tmp_path / "a.journal")


@pytest.mark.parametrize("old", ["", "end of jou", "end of journal: 29 lines, check "])
def test_a_torn_file_beside_a_journal_says_nothing(tmp_path: Path, old: str) -> None:
    path, end = tmp_path / "a.journal", tmp_path / "a.journal.end"
    end.write_text(old)
    filled(path)
    whole = end.read_text()
    assert read_journal(path).lines == 9
    end.write_text(whole.replace("9 lines", "29 lines"))  # torn between two numbers
    assert read_journal(path).lines == 9


def test_an_edited_line_is_named(lines: list[bytes]) -> None:
    edited = [*lines]
    edited[2] = edited[2].replace(b"right", b"left ")
    with pytest.raises(JournalError, match="line 3 is damaged"):
        parse_journal(b"".join(edited), NAME)
    with pytest.raises(JournalError, match="line 3 calls itself 4: lines are lost or moved"):
        parse_journal(b"".join(lines[:2] + lines[3:]), NAME)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    filled(path)
    program = (
        "import sys; from pathlib import Path; from fieldcorr.duel.journal import Journal;"
        "Journal.open(Path(sys.argv[1]))"
    )
    with Session.open(path, MATRIX):
        assert is_locked(path)
        with pytest.raises(JournalError, match="in use by another process"):
            Session.open(path, MATRIX)
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
        )
        assert "in use by another process" in done.stderr
        read_session(path, MATRIX)
    assert not is_locked(path)
    Session.open(path, MATRIX).close()


def test_another_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    filled(path)
    path.write_bytes(path.read_bytes() + b"torn")
    before = path.read_bytes()
    with pytest.raises(JournalError, match="belongs to another store"):
        Session.open(path, correlations(12, seed=9))
    assert path.read_bytes() == before
    Session.open(path, MATRIX).close()


def changed_store(path: Path, change: str, size: float) -> Path:
    """Write a store like the small one in all but one respect."""
    content = values(slim=True)
    rng = np.random.default_rng(1)
    current = content["/configurations/current"]
    options = Options()
    if change in ("gram", "admittance"):
        matrix = content[f"/leadfield/{change}"]
        content[f"/leadfield/{change}"] = matrix * (1 + size * rng.uniform(-1, 1, matrix.shape))
    if change == "gram":
        gram = content["/leadfield/gram"]
        content["/correlation/embedding"] = embedding_from_gram(current, (gram + gram.T) / 2)
    elif change == "mirrored":
        content["/configurations/polarity"] = -content["/configurations/polarity"]
    elif change == "names":
        content["/contacts/name"] = ("4", "3", "2", "1", "0")
    elif change == "threshold":
        options = Options(threshold=size)
    return make_store(path, content, options=options)


@pytest.mark.parametrize(
    ("change", "size", "accepted"),
    [
        ("gram", 1e-12, True),
        ("gram", 1e-7, True),
        ("gram", 1e-4, False),
        ("admittance", 1e-12, True),
        ("mirrored", 0.0, False),
        ("names", 0.0, False),
        ("threshold", 0.2, True),
    ],
)
def test_a_store_that_was_computed_again_is_the_same_one(
    tmp_path: Path, small_store: Path, change: str, size: float, accepted: bool
) -> None:
    path = tmp_path / "a.journal"
    with open_store(small_store) as store, Session.new(path, store, horizon=50) as session:
        for answer in ("left", "right", "same") * 5:
            session.engine.answer(answer)
        events, best = session.engine.events, session.engine.best
    with open_store(changed_store(tmp_path / "again.h5", change, size)) as again:
        if not accepted:
            with pytest.raises(JournalError, match="belongs to another store"):
                Session.open(path, again)
            return
        with Session.open(path, again) as session:
            assert session.engine.events == events
            assert session.engine.best == best
            session.engine.answer("left")
    with open_store(small_store) as store:
        assert len(read_session(path, store)[0].history) == 16


def test_neighbourhoods_above_another_threshold_are_others(
    tmp_path: Path, small_store: Path
) -> None:
    path = tmp_path / "a.journal"
    with open_store(small_store) as store:
        Session.new(path, store, horizon=50, via="neighbours").close()
        Session.open(path, store).close()
    with (
        open_store(changed_store(tmp_path / "again.h5", "threshold", 0.2)) as again,
        pytest.raises(JournalError, match="belongs to another store"),
    ):
        Session.open(path, again)


def test_numpy_numbers_are_kept_as_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    with Session.new(path, MATRIX, horizon=50, settings={"delta": 0.01}) as session:
        arms = session.engine.survivors.arm
        session.engine.tell(arms[0], arms[1], meta={"amplitude_mA": np.float64(3.5)})
        session.engine.tell_ranking([arms[2], arms[3:5]])
        session.engine.exclude(arms[5:7])
        live = state(session.engine)
    assert state(read_session(path, MATRIX)[0]) == live
    assert json.loads(path.read_text().splitlines()[1])["meta"] == {"amplitude_mA": 3.5}


def test_an_existing_journal_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    filled(path)
    with pytest.raises(JournalError, match="never overwritten"):
        Session.new(path, MATRIX, horizon=5)


@pytest.mark.parametrize("how", ["appended", "replaced", "removed"])
def test_a_journal_changed_from_outside_takes_nothing_more(tmp_path: Path, how: str) -> None:
    path = tmp_path / "a.journal"
    filled(path)
    with Session.open(path, MATRIX) as session:
        content = path.read_bytes()
        if how == "appended":
            with path.open("ab") as file:
                file.write(b"x")
        else:
            path.unlink()
        if how == "replaced":
            path.write_bytes(content)
        with pytest.raises(JournalError, match=r"changed by something else|was removed"):
            session.engine.answer("left")


def test_a_journal_of_another_format_or_algorithm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="'fieldcorr-journal 2' is not"):
        Journal.create(tmp_path / "new.journal", {"format": "fieldcorr-journal 2"})
    with pytest.raises(JournalError, match="'fieldcorr-journal 2' is not"):
        read_journal(tmp_path / "new.journal")
    with pytest.raises(DuelError, match="'Chess' is not one of"):
        Session.new(tmp_path / "b.journal", MATRIX, horizon=5, algorithm="Chess")
    assert not (tmp_path / "b.journal").exists()
    with pytest.raises(JournalError, match="cannot be opened"):
        Session.open(tmp_path / "missing.journal", MATRIX)


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "kills"), [("CorrDuel", 100), ("BayesDuel", 40)])
def test_killed_again_and_again_nothing_is_lost_or_counted_twice(
    tmp_path: Path, algorithm: str, kills: int
) -> None:
    path = tmp_path / "a.journal"
    command = [sys.executable, "-m", "tests.duel.killing", str(path), str(kills), "7", algorithm]
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=root, timeout=300
    )
    report = json.loads(done.stdout)
    engine, content = read_session(path, MATRIX)
    assert [event.answer for event in engine.history] == report["meant"]
    assert content.torn == b""
    # The kills fell on both sides of the moment an answer reaches the disk.
    assert 0 < report["repeated"] < report["unheard"]


def test_the_way_r_is_read_is_part_of_the_session(tmp_path: Path, small_store: Path) -> None:
    """The printed rule tells r < 0 from r = 0, which is how sparse neighbourhoods read it."""
    printed = DuelOptions.paper(delta=0.5).record()
    winners = {}
    with open_store(small_store) as store:
        for via in ("embedding", "neighbours"):
            path = tmp_path / f"{via}.journal"
            ways: Any = {"via": via, "settings": printed}
            with Session.new(path, store, horizon=60, seed=1, **ways) as session:
                for number in range(60):
                    session.engine.answer(("left", "right")[number % 3 == 0])
                live = state(session.engine)
            assert state(read_session(path, store)[0]) == live
            with Session.open(path, store) as again:
                assert state(again.engine) == live
            winners[via] = live["tally"]
        assert winners["embedding"] != winners["neighbours"]
        with pytest.raises(JournalError, match="read via neighbours, not via matrix"):
            read_session(tmp_path / "neighbours.journal", store, via="matrix")


def resealed(lines: list[bytes], change: Callable[[list[dict[str, Any]]], object]) -> bytes:
    """Change the records of a journal and seal them again, as a forger would."""
    records = [json.loads(line) for line in lines]
    change(records)
    return sealed(records)


def test_a_journal_that_does_not_say_how_r_was_read_means_the_embedding(
    tmp_path: Path, small_store: Path
) -> None:
    path = tmp_path / "a.journal"
    with open_store(small_store) as store:
        with Session.new(path, store, horizon=60) as session:
            session.engine.answer("left")
            live = state(session.engine)
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(resealed(lines, lambda records: records[0]["store"].pop("via")))
        engine, _ = read_session(path, store)
        assert engine.source.via == "embedding"
        assert state(engine) == live
        assert read_session(path, store, via="neighbours")[0].source.via == "neighbours"


FORGED: dict[str, Callable[[list[dict[str, Any]]], object]] = {
    "no store": lambda r: r[0].pop("store"),
    "store a list": lambda r: r[0].update(store=[1]),
    "hash a number": lambda r: r[0]["store"].update(hash=3),
    "via unknown": lambda r: r[0]["store"].update(via="guess"),
    "via a list": lambda r: r[0]["store"].update(via=["matrix"]),
    "algorithm a list": lambda r: r[0].update(algorithm=["CorrDuel"]),
    "algorithm unknown": lambda r: r[0].update(algorithm="Chess"),
    "horizon text": lambda r: r[0].update(horizon="50"),
    "seed negative": lambda r: r[0].update(seed=-1),
    "seed huge": lambda r: r[0].update(seed=10**30),
    "whitelist text": lambda r: r[0].update(whitelist="abc"),
    "whitelist a number": lambda r: r[0].update(whitelist=3),
    "settings a list": lambda r: r[0].update(settings=[1]),
    "settings unknown": lambda r: r[0]["settings"].update(dleta=1),
    "settings text": lambda r: r[0]["settings"].update(delta="0.9"),
    "event missing": lambda r: r[2].pop("event"),
    "event a list": lambda r: r[2].update(event=["duel"]),
    "event unknown": lambda r: r[2].update(event="bet"),
    "arm text": lambda r: r[2].update(left="3"),
    "arm a fraction": lambda r: r[2].update(left=1.5),
    "arm true": lambda r: r[2].update(left=True),
    "arm outside": lambda r: r[2].update(left=99),
    "arm twice": lambda r: r[2].update(left=r[2]["right"]),
    "arm missing": lambda r: r[2].pop("left"),
    "answer missing": lambda r: r[2].pop("answer"),
    "answer a list": lambda r: r[2].update(answer=["left"]),
    "asked text": lambda r: r[2].update(asked="yes"),
    "meta a list": lambda r: r[2].update(meta=[1]),
    "ranking a number": lambda r: r[2].update(event="ranking", ranking=4),
    "ranking flat": lambda r: r[2].update(event="ranking", ranking=[1, 2]),
    "void a fraction": lambda r: r[2].update(event="void", value=1.5),
    "void nothing": lambda r: r[2].update(event="void", value=77),
    "horizon infinite": lambda r: r[2].update(event="extend", value=1e400),
    "threshold text": lambda r: r[-2].update(value="0.9"),
    "threshold a list": lambda r: r[-2].update(value=[0.9]),
    "arms a number": lambda r: r[-2].update(arms=3),
    "force three": lambda r: r[2].update(event="force", arms=[1, 2, 3]),
    "force nothing": lambda r: r[2].update(event="force"),
    "too many undone": lambda r: [x.update(event="undo") for x in r[1:]],
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_journal_is_an_error_in_one_line(
    tmp_path: Path, lines: list[bytes], name: str
) -> None:
    path = tmp_path / "a.journal"
    path.write_bytes(resealed(lines, FORGED[name]))
    with pytest.raises(JournalError, match=r"a\.journal"):
        read_session(path, MATRIX)
    with pytest.raises(JournalError, match=r"a\.journal"):
        Session.open(path, MATRIX)
    assert not is_locked(path)


def test_a_line_of_deep_brackets_is_damage(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="line 1 is damaged"):
        parse_journal(b"[" * 200_000 + b"\n", NAME)


def test_a_check_covers_the_line_before(tmp_path: Path) -> None:
    """Two journals that differ in one answer: a later line of one does not fit the other."""
    first, second = tmp_path / "first", tmp_path / "second"
    for path, answer in ((first, "left"), (second, "right")):
        with Session.new(path, MATRIX, horizon=50, seed=4, settings={"delta": 0.5}) as session:
            session.engine.answer(answer)  # type: ignore[arg-type]
            session.engine.note({"note": "well"})
    mine, other = (path.read_bytes().splitlines(keepends=True) for path in (first, second))
    parse_journal(b"".join(mine), NAME)
    with pytest.raises(JournalError, match="line 3 is damaged or edited"):
        parse_journal(b"".join([*mine[:2], other[2]]), NAME)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_journal_that_cannot_be_made_leaves_nothing_open_or_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "a.journal"
    Session.new(tmp_path / "warm", MATRIX, horizon=5).close()

    def fails(*_: Any) -> None:
        raise OSError(5, "Input/output error")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(os, call, fails)
    with pytest.raises(JournalError, match="cannot be written: Input/output error"):
        Session.new(path, MATRIX, horizon=5)
    monkeypatch.undo()
    assert len(os.listdir("/proc/self/fd")) == before
    assert not path.exists()
    assert not list(tmp_path.glob("*.new"))
    Session.new(path, MATRIX, horizon=5).close()


def test_without_locks_a_journal_says_so_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: Any, **__: Any) -> None:
        raise NotImplementedError("no locks on this file system")

    before = len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr("filelock.FileLock.acquire", none)
    with pytest.raises(JournalError, match="cannot be locked: no locks"):
        Session.new(tmp_path / "a.journal", MATRIX, horizon=5)
    assert not (tmp_path / "a.journal").exists()
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_empty_file_does_not_block_the_name_of_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    path.touch()
    Session.new(path, MATRIX, horizon=5).close()
    assert read_session(path, MATRIX)[0].horizon == 5


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(JournalError, match="is no regular file"):
            read_session(path, MATRIX)
        with pytest.raises(JournalError, match="is no regular file"):
            Session.open(path, MATRIX)
        with pytest.raises(JournalError, match="never overwritten"):
            Session.new(path, MATRIX, horizon=5)


def test_looking_at_a_session_does_not_keep_others_out(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    filled(path)
    stop = Event()

    def poll() -> None:
        while not stop.is_set():
            is_locked(path)

    with ThreadPoolExecutor(2) as pool:
        polls = [pool.submit(poll) for _ in range(2)]
        try:
            for _ in range(60):
                Session.open(path, MATRIX).close()
        finally:
            stop.set()
        assert all(done.exception() is None for done in polls)


def test_a_value_that_json_lacks_is_refused_before_it_counts(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    with Session.new(path, MATRIX, horizon=5) as session:
        before = path.read_bytes()
        with pytest.raises(JournalError, match="cannot be kept"):
            session.engine.answer("left", meta={"temperature": float("nan")})
        assert path.read_bytes() == before
        session.engine.answer("left")
    assert len(read_session(path, MATRIX)[0].history) == 1


def test_an_interrupted_answer_never_differs_from_the_journal_without_a_word(
    tmp_path: Path,
) -> None:
    path, step, refused = tmp_path / "a.journal", 0, 0
    while True:
        step += 1
        path.unlink(missing_ok=True)
        with Session.new(path, MATRIX, horizon=50, seed=4) as session:
            session.engine.answer("left")
            if not interrupted_at(step, lambda e=session.engine: e.tell(2, 7)):  # type: ignore[misc]
                break
            try:
                live = state(session.engine)
                session.engine.answer("right")
                session.engine.undo()
            except DuelError:
                refused += 1
                continue
        assert state(read_session(path, MATRIX)[0]) == live
    assert step > 60
    assert refused > 20


ARCHIVE = Path(__file__).with_name("archive")
ARCHIVED: dict[str, tuple[str, int, list[int], list[float]]] = {
    "corrduel": (
        "8e161ce7a8cf6d243f71317f072097999bb1872324b9865c7cdf75e7c3c1a88b",
        11,
        [7, 9, 10, 11],
        [0.772974954746, 0.73644271637, 0.625632504108],
    ),
    "paper": (
        "6f5b82bf01f30e1c31b193c97b6a2cd3902797eacfcc4179cd8301771c0c4fe6",
        10,
        [1, 2, 4, 6, 7, 8, 9, 10, 11],
        [0.785056971553, 0.716497251046, 0.64963838519],
    ),
    "rucb": (
        "2725e09c0567ccc9bd3ceabb1f7861f4a822f3fdff68fe021097941b44ce7c66",
        11,
        [0, 1, 2, 4, 6, 7, 8, 9, 10, 11],
        [11.0, 9.0, 7.0],
    ),
}


@pytest.mark.parametrize("name", ARCHIVED)
def test_journals_of_old_stay_readable(name: str) -> None:
    """Files of version 1 as they were written then; they are never made again."""
    digest, best, active, estimate = ARCHIVED[name]
    path = ARCHIVE / f"{name}.journal"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    places = np.arange(12)
    engine, content = read_session(path, 1.0 / (1.0 + np.abs(places[:, None] - places)))
    assert engine.best == best
    assert engine.active.tolist() == active
    np.testing.assert_allclose(engine.survivors.estimate[:3], estimate, atol=1e-11)
    assert (engine.duels, engine.horizon, engine.progress.skipped) == (19, 60, 1)
    assert content.lines == 1 + len(content.records)
