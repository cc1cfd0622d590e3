"""The journal: durable before acknowledged, damage noticed, one writer, one store.

Flipped bits, lost lines, a full disk, another store, a hundred kills.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldcorr.duel import RUCB, Session, read_session
from fieldcorr.duel.journal import Journal, is_locked, parse_journal, read_journal
from fieldcorr.duel.session import ALGORITHMS
from fieldcorr.errors import DuelError, JournalError
from tests.duel.killing import MATRIX
from tests.duel.support import STEPS, correlations, perform, state

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


def test_the_journal_can_be_read_by_people_and_by_json(lines: list[bytes]) -> None:
    records = [json.loads(line) for line in lines]
    assert records[0]["format"] == "fieldcorr-journal 1"
    assert "no medical device" in records[0]["notice"]
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
    Journal.create(tmp_path / "new.journal", {"format": "fieldcorr-journal 2"}).close()
    with pytest.raises(JournalError, match="'fieldcorr-journal 2' is not"):
        read_journal(tmp_path / "new.journal")
    with pytest.raises(DuelError, match="'Chess' is not one of"):
        Session.new(tmp_path / "b.journal", MATRIX, horizon=5, algorithm="Chess")
    assert not (tmp_path / "b.journal").exists()
    with pytest.raises(JournalError, match="cannot be opened"):
        Session.open(tmp_path / "missing.journal", MATRIX)


def test_killed_a_hundred_times_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.journal"
    command = [sys.executable, "-m", "tests.duel.killing", str(path), "100", "7"]
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
