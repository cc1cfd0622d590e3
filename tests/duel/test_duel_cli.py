"""``fieldcorr duel`` as a person and as a program use it."""

import csv
import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from fieldcorr.cli import build_app
from fieldcorr.duel import Session, as_source, read_session
from fieldcorr.duel.commands import help_text
from fieldcorr.duel.drawing import draw_array, draw_pair
from fieldcorr.duel.journal import read_journal
from fieldcorr.duel.terminal import TextFront, converse
from fieldcorr.errors import DuelError
from fieldcorr.store import open_store
from tests.store.synthetic import make_store, values, whole_values

PADDLE = 1e-3 * np.array(
    [[2.5, 0, 4.25 * (4 - 2 * k)] for k in range(5)]
    + [[0, 0, 4.25 * (5 - 2 * k)] for k in range(6)]
    + [[-2.5, 0, 4.25 * (4 - 2 * k)] for k in range(5)]
)
NAMES = [str(e) for e in range(16)]


def invoke(*arguments: object, lines: str | bytes = "") -> Result:
    return CliRunner().invoke(build_app(), ["duel", *map(str, arguments)], input=lines)


@pytest.fixture
def journal(tmp_path: Path, small_store: Path) -> Path:
    path = tmp_path / "a.journal"
    done = invoke("new", path, small_store, "--horizon", 40, "--seed", 3, "--rater", "A B")
    assert done.exit_code == 0, done.output
    return path


def answers(journal: Path, store: Path) -> list[str | None]:
    with open_store(store) as opened:
        return [event.answer for event in read_session(journal, opened)[0].history]


def test_a_session_from_a_pipe(journal: Path, small_store: Path) -> None:
    done = invoke("run", journal, lines="l amplitude_mA=3.2 side=left\nright\ns\nk\nu\nq\nleft\n")
    assert done.exit_code == 0
    assert "not a medical device" in done.stdout
    assert "duel 1 recorded: left" in done.stdout
    assert "taken back: duel" in done.stdout
    assert "3 of 40 done" in done.stdout
    assert answers(journal, small_store) == ["left", "right", "same"]
    record = json.loads(journal.read_text().splitlines()[1])
    assert record["meta"] == {"amplitude_mA": 3.2, "side": "left"}
    again = invoke("run", journal, lines="")
    assert "duel 4: 3 of 40 done" in again.stdout


def test_answers_from_a_file_stop_at_the_first_bad_line(
    journal: Path, small_store: Path, tmp_path: Path
) -> None:
    (tmp_path / "answers.txt").write_text("left\n\nperhaps\nright\n")
    done = invoke("run", journal, "--answers", tmp_path / "answers.txt")
    assert done.exit_code == 2
    assert "'perhaps' is not understood" in done.stderr
    assert answers(journal, small_store) == ["left"]


def test_a_numbered_answer_counts_once(journal: Path, small_store: Path) -> None:
    done = invoke("run", journal, lines="1: left\n1: left\n2: right\n1: left\n")
    assert done.exit_code == 0
    assert done.stdout.count("recorded already") == 2
    assert answers(journal, small_store) == ["left", "right"]
    assert "was answered left, not right" in invoke("run", journal, lines="1: right\n").stderr
    assert "duel 9 is not asked" in invoke("run", journal, lines="9: right\n").stderr
    assert answers(journal, small_store) == ["left", "right"]


def test_json_lines_for_programs(journal: Path) -> None:
    done = invoke("run", journal, "--json", lines="left\nnote all well\nhelp\n")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [item["type"] for item in said]
    assert kinds == ["begin", "ask", "done", "ask", "done", "ask", "help", "ask", "end"]
    assert said[1]["number"] == 1
    assert set(said[1]["left"]) == {"arm", "text"}
    assert said[-1]["progress"]["duels"] == 1
    assert len(said[-1]["top"]) == 10


def test_exclusions_are_honoured_and_reversible(journal: Path, small_store: Path) -> None:
    lines = "exclude left\nx 0- 1+ above 0.5\ni 0- 1+ above 0.5\nu\nu\nq\n"
    done = invoke("run", journal, lines=lines)
    assert done.exit_code == 0, done.output
    assert "CAREFUL" not in done.stdout.split("taken back: include")[0]
    assert "taken back: exclude 0- 1+ 0.5; CAREFUL" in done.stdout
    with open_store(small_store) as store:
        engine, _ = read_session(journal, store)
        assert engine.excluded.size == 1
        assert not set(engine.ask()) & set(engine.excluded.tolist())


def test_compare_rank_void_horizon(journal: Path, small_store: Path) -> None:
    lines = (
        "compare 0- 1+ with 2- 3+\nleft\nrank 0- 1+ > 2- 3+ = 0+ 1- > #12\n"
        "void 1\nhorizon 60\nrank 0- 1+\n"
    )
    done = invoke("run", journal, lines=lines)
    assert "ranking recorded: 6 comparisons" in done.stdout
    assert "duel 1 does not count any more" in done.stdout
    assert "planned for 60 duels" in done.stdout
    assert "needs at least two arms" in done.stderr
    with open_store(small_store) as store:
        engine, _ = read_session(journal, store)
        first = engine.history[0].arms
        assert [store.texts[arm] for arm in first] == ["0- 1+", "2- 3+"]
        assert engine.progress.voided == 1
        assert engine.horizon == 60


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("left 5", "left takes no '5'"),
        ("exclude", "which configuration?"),
        ("exclude left above often", "'often' is not a number"),
        ("exclude 9- 1+", "unknown contact"),
        ("compare 0- 1+", "compare A with B"),
        ("void x", "'x' is not a whole number"),
        ("note", "note what?"),
        ("undo", "nothing to undo"),
        ("undo 5", "undo takes no '5'"),
        ("quit 5", "quit stands alone"),
        ("q a=b", "quit stands alone"),
        ("\u00b2: left", "is not understood"),
        ("12: undo", "takes no number before it"),
        ("compare #\u00b2 with #3", "does not end in"),
        ("void nan", "'nan' is not a whole number"),
        ("void 1.7", "'1.7' is not a whole number"),
        (f"void {'9' * 5000}", "is not a whole number"),
        ("horizon inf", "'inf' is not a whole number"),
        ("horizon 99.9", "'99.9' is not a whole number"),
        ("exclude left above nan", "not a number"),
        (b"note caf\xe9", "is not UTF-8"),
        (b"l\xe9ft", "is not UTF-8"),
    ],
)
def test_what_cannot_be_done_is_said(journal: Path, line: str | bytes, says: str) -> None:
    before = journal.read_bytes()
    typed = line if isinstance(line, bytes) else line.encode()
    done = invoke("run", journal, lines=typed + b"\n")
    assert done.exit_code == 2
    assert says in done.stderr
    assert journal.read_bytes() == before


def test_status_undo_export(journal: Path, tmp_path: Path) -> None:
    invoke("run", journal, lines="left note=x\nskip\nright\ntied\n")
    invoke("run", journal, lines="same\nvoid 1\nnote done\n")
    assert "taken back: void 1" in invoke("undo", journal).stdout
    status = invoke("status", journal)
    assert "BayesDuel on" in status.stdout
    assert "3 of 40 duels" in status.stdout
    record = json.loads(invoke("status", journal, "--json").stdout)
    assert record["progress"]["skipped"] == 1
    assert (record["answers"], record["running"], record["done"]) == (4, False, False)
    invoke("undo", journal, "--count", 2)
    table = tmp_path / "duels.csv"
    assert invoke("export", journal, "-o", table, "--what", "duels").exit_code == 0
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["outcome"] for row in rows] == ["first better", "skipped"]
    assert json.loads(rows[0]["meta"]) == {"note": "x"}
    ranked = tmp_path / "ranked.json"
    assert invoke("export", journal, "-o", ranked).exit_code == 0
    best = json.loads(ranked.read_text())[0]
    assert best["rank"] == 1
    assert (
        best["configuration"]
        == json.loads(invoke("status", journal, "--json").stdout)["best"]["text"]
    )
    assert "must end in .csv" in invoke("export", journal, "-o", tmp_path / "x.txt").stderr
    assert "not one of" in invoke("export", journal, "-o", table, "--what", "all").stderr


def test_an_export_overwrites_nothing_unless_told(journal: Path, tmp_path: Path) -> None:
    named = journal.rename(tmp_path / "s.json")
    before = named.read_bytes()
    for force in ([], ["--force"]):
        done = invoke("export", named, "-o", named, *force)
        assert done.exit_code == 2
        assert "is being read" in done.stderr
    assert named.read_bytes() == before
    table = tmp_path / "ranked.csv"
    table.write_text("mine")
    assert "--force to replace it" in invoke("export", named, "-o", table).stderr
    assert table.read_text() == "mine"
    assert invoke("export", named, "-o", table, "--force").exit_code == 0
    assert table.read_text().startswith("rank,")
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"s.json", "a.journal.lock", "ranked.csv"}


def test_a_failed_export_leaves_what_was_there(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "ranked.csv"
    table.write_text("mine")

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fails)
    done = invoke("export", journal, "-o", table, "--force")
    assert "cannot be written: the disk is full" in done.stderr
    assert table.read_text() == "mine"
    assert not list(tmp_path.glob(".ranked*"))


def test_a_journal_in_a_linked_folder_finds_its_store(tmp_path: Path, small_store: Path) -> None:
    far, near = tmp_path / "a" / "b" / "far", tmp_path / "near"
    far.mkdir(parents=True)
    near.symlink_to(far)
    store = tmp_path / "small.h5"
    store.write_bytes(small_store.read_bytes())
    assert invoke("new", near / "s.journal", store, "--horizon", 9).exit_code == 0
    for path in (near / "s.journal", far / "s.journal"):
        assert invoke("status", path).exit_code == 0
    (tmp_path / "link.journal").symlink_to(far / "s.journal")
    assert invoke("status", tmp_path / "link.journal").exit_code == 0


def test_control_characters_of_a_file_never_reach_the_terminal(
    tmp_path: Path, small_store: Path
) -> None:
    content = values(slim=True)
    names = [f"{name}\x1b[31m" for name in content["/contacts/name"]]
    content["/contacts/name"] = np.array(names, dtype=object)
    store = make_store(tmp_path / "\x1bred.h5", content)
    journal = tmp_path / "a.journal"
    assert invoke("new", journal, store, "--horizon", 9).exit_code == 0
    for command in (["run", journal], ["status", journal], ["undo", journal]):
        done = invoke(*command, lines="left\nexclude left\nundo\n")
        assert done.exit_code == 0, done.output
        assert "\x1b" not in done.stdout
        assert "\\x1b[31m" in done.stdout


def test_the_number_of_lines_is_shown(journal: Path) -> None:
    done = invoke("run", journal, lines="left\nright\n")
    assert "3 lines" in done.stderr
    assert "has 3 lines" in invoke("status", journal).stdout


def test_a_torn_line_is_reported(journal: Path) -> None:
    invoke("run", journal, lines="left\n")
    journal.write_bytes(journal.read_bytes() + b'{"line": 3, "time": "2026')
    assert "last line is unfinished" in invoke("status", journal).stdout
    done = invoke("run", journal, lines="2: same\n")
    assert "was never acknowledged and does not count" in " ".join(done.stdout.split())
    assert "duel 2 recorded: same" in done.stdout


def test_options_reach_the_engine(tmp_path: Path, small_store: Path) -> None:
    only = tmp_path / "only.txt"
    only.write_text("# three\n0- 1+\n2- 3+\n\n0+ 1-\n")
    paths = [tmp_path / name for name in ("a", "b", "c")]
    new = ["--horizon", 20]
    assert invoke("new", paths[0], small_store, *new, "--paper", "--chain").exit_code == 0
    options = ["--option", "radius=global", "--delta", "0.8", "--only", only]
    assert invoke("new", paths[1], small_store, *new, *options).exit_code == 0
    kind = ["--algorithm", "RUCB", "--option", "update=corr"]
    assert invoke("new", paths[2], small_store, *new, *kind).exit_code == 0
    with open_store(small_store) as store:
        printed, told, rucb = (read_session(path, store)[0] for path in paths)
    assert printed.settings["eliminate"] == "one"
    assert printed.settings["chain"] is True
    assert (told.settings["radius"], told.settings["delta"]) == ("global", 0.8)
    assert told.progress.left == 3
    assert rucb.settings == {"alpha": 0.51, "update": "corr"}


def test_a_session_stops_by_its_rule_and_teaches_another(tmp_path: Path, small_store: Path) -> None:
    first, second, lesson = (tmp_path / name for name in ("a", "b", "lesson.json"))
    new = [small_store, "--horizon", 60, "--seed", 1]
    assert invoke("new", first, *new, "--stop", "0.5,0.3").exit_code == 0
    assert "answers to go" in invoke("run", first, lines="skip\n").stdout
    with open_store(small_store) as store, Session.open(first, store) as session:
        engine, utility = session.engine, store.embedding[:, 0]
        while not engine.done:
            left, right = engine.ask()
            engine.answer("left" if utility[left] > utility[right] else "right")
    record = json.loads(invoke("status", first, "--json").stdout)
    assert record["done"]
    assert record["progress"]["duels"] < 60
    assert record["outlook"]["sure"] >= record["outlook"]["stop_at"] == 0.5
    assert invoke("export", first, "-o", lesson, "--what", "lesson").exit_code == 0
    taught = invoke("new", second, *new, "--prior", lesson, "--prior-weight", "0.5")
    assert taught.exit_code == 0, taught.stderr
    status = invoke("status", second).stdout
    assert "prior given, prior_weight 0.5" in status
    assert "0 of 60 duels" in status


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--engine", "chess"], "--engine chess: not one of bayesduel, corrduel"),
        (["--stop", "0.9"], "--stop 0.9: not P,EPS such as 0.9,0.05"),
        (["--stop", "0.9,2"], "stop: 2.0 is not between 0 and 0.5"),
        (["--prior", "missing.json"], "missing.json: cannot be read"),
        (["--engine", "corrduel", "--stop", "0.9,0.1"], "option 'stop' does not exist"),
        (["--engine", "bayesduel", "--option", "radius=arm"], "settings of BayesDuel: "),
    ],
)
def test_what_a_new_session_cannot_be_is_said(
    tmp_path: Path, small_store: Path, options: list[str], says: str
) -> None:
    done = invoke("new", tmp_path / "a", small_store, "--horizon", 5, *options)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not (tmp_path / "a").exists()


def test_only_an_engine_that_learns_has_a_lesson(tmp_path: Path, small_store: Path) -> None:
    other, lesson = tmp_path / "a", tmp_path / "lesson.json"
    assert invoke("new", other, small_store, "--horizon", 5, "--engine", "corrduel").exit_code == 0
    assert "CorrDuel learns no" in invoke("export", other, "-o", lesson, "--what", "lesson").stderr
    lesson.write_text("[]")
    done = invoke("new", tmp_path / "b", small_store, "--horizon", 5, "--prior", lesson)
    assert "is no lesson of a session" in done.stderr


def test_a_hopeless_plan_is_warned_about(tmp_path: Path, small_store: Path) -> None:
    done = invoke("new", tmp_path / "a", small_store, "--horizon", 5, "--delta", "0.01")
    assert "no elimination is possible" in done.stderr


def test_the_store_must_be_there(journal: Path, small_store: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "a.journal"
    moved.parent.mkdir()
    journal.rename(moved)
    assert "name it with --store" in invoke("status", moved).stderr
    assert invoke("status", moved, "--store", small_store).exit_code == 0


def test_sources_of_a_store_agree(small_store: Path) -> None:
    with open_store(small_store) as store:
        ways = [as_source(store, via=via) for via in ("embedding", "matrix", "neighbours")]
        prints = {way.fingerprint() for way in ways}
        assert prints == {store.hash}
        assert ways[0].label(0) == store.texts[0]
        rows = [way.row(7) for way in ways]
    np.testing.assert_array_equal(rows[0], rows[1])
    np.testing.assert_array_equal(np.maximum(rows[0], 0.0), rows[2])


PROMPT = b"left right same skip undo exclude help quit >"


def test_a_person_at_a_terminal(journal: Path) -> None:
    """Type through a pseudo-terminal: prompts, a typing error, the answer, Ctrl-D."""
    person, terminal = pty.openpty()
    command = [sys.executable, "-m", "fieldcorr", "duel", "run", str(journal)]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as session:
        os.close(terminal)
        # Typed before the pair is shown: nobody has seen it, so it does not count.
        os.write(person, b"right\nright\n")
        typed, said = [b"lft\n", b"left\n", b"\x04"], b""
        try:
            while chunk := os.read(person, 65536):
                said += chunk
                if typed and said.count(PROMPT) == 4 - len(typed):
                    time.sleep(0.2)  # what is typed at once after the prompt may be forgotten
                    os.write(person, typed.pop(0))
        except OSError:
            pass  # the terminal is closed when the session ends
        assert session.wait(timeout=60) == 0
    os.close(person)
    text = said.decode()
    assert "'lft' is not understood" in text
    assert "duel 1 recorded: left" in text
    assert said.count(PROMPT) == 3
    assert [event["answer"] for event in read_journal(journal).records] == ["left"]
    assert "Everything recorded is in" in text


def test_the_array_is_drawn_in_its_own_layout() -> None:
    polarity = np.zeros(16, dtype=np.int8)
    polarity[[0, 5, 11]] = -1, 1, 1
    lines = draw_array(polarity, NAMES, PADDLE)
    assert len(lines) == 11
    assert lines[0].split() == ["[", "5+]"]
    assert lines[1].split() == ["(", "0-)", "[11+]"]
    assert lines[2].split() == ["6"]
    assert lines[-1].split() == ["10"]
    assert len({len(line) for line in lines}) == 1


@given(
    st.lists(
        st.tuples(st.integers(-40, 40), st.integers(-400, 400)),
        min_size=1,
        max_size=20,
        unique=True,
    )
)
def test_no_contact_hides_another(places: list[tuple[int, int]]) -> None:
    positions = 1e-4 * np.array([[x, 0, z] for x, z in places], dtype=np.float64)
    names = [f"c{k}" for k in range(len(places))]
    lines = draw_array(np.zeros(len(places), dtype=np.int8), names, positions)
    assert sorted(" ".join(lines).split()) == sorted(names)


@given(st.lists(st.floats(2.0, 90.0), min_size=1, max_size=8), st.floats(0.0, 0.2))
def test_one_column_stays_one_column(gaps: list[float], noise: float) -> None:
    along = np.concatenate([[0.0], np.cumsum(gaps)])
    across = noise * (-1.0) ** np.arange(len(along))
    positions = 1e-3 * np.stack([across, np.zeros(len(along)), along], axis=1)
    names = [str(k) for k in range(len(along))]
    lines = draw_array(np.zeros(len(along), dtype=np.int8), names, positions)
    assert [line.strip() for line in lines] == names[::-1]


def test_a_session_on_all_configurations(tmp_path: Path) -> None:
    store, path = make_store(tmp_path / "whole.h5", whole_values()), tmp_path / "whole.journal"
    assert invoke("new", path, store, "--horizon", 9).exit_code == 0
    done = invoke("run", path, lines="left\nx contact 1\nadverse 2- too warm\nright\nu\n")
    assert done.exit_code == 0, done.stderr
    assert "excluded contact 1: 130 configurations changed" in done.stdout
    assert "above: goes with" in invoke("run", path, lines="x 0- above 0.9\n").stderr
    with open_store(store) as opened:
        engine, content = read_session(path, opened)
        used = opened.polarity[:]
        gone = (used[:, 1] != 0) | (used[:, 2] == -1)
        np.testing.assert_array_equal(engine.excluded, np.flatnonzero(gone))
    assert content.records[1]["contact"] == [1, 0]
    assert "arms" not in content.records[1]
    table = tmp_path / "first.csv"
    assert invoke("export", path, "-o", table, "--top", 3).exit_code == 0
    assert len(table.read_text().splitlines()) == 4


def test_a_set_too_large_for_a_table_says_so(
    journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fieldcorr.duel.export.MOST_SURVIVORS", 5)
    done = invoke("export", journal, "-o", tmp_path / "all.csv")
    assert done.exit_code == 2
    assert "configurations are left, too many for a table: --top N" in done.stderr


def test_a_contact_is_excluded_and_readmitted(journal: Path, small_store: Path) -> None:
    with open_store(small_store) as store:
        cathodes = int((store.polarity[:, 3] == -1).sum())
        active = int((store.polarity[:, 3] != 0).sum())
    name = "3"
    done = invoke("run", journal, lines=f"x {name}-\nx contact {name}\ni {name}-\n")
    assert done.exit_code == 0, done.stderr
    assert f"excluded {name}-: {cathodes} configurations changed" in done.stdout
    assert f"excluded contact {name}: {active - cathodes} configurations changed" in done.stdout
    assert f"included {name}-: {cathodes} configurations changed" in done.stdout
    first = read_journal(journal).records[0]
    assert first["meta"] == {"contact": f"{name}-"}
    assert len(first["arms"]) == cathodes
    assert "not one of" in invoke("run", journal, lines="x contact 77\n").stderr
    assert f"taken back: include {name}-" in invoke("undo", journal).stdout


def test_a_changed_pair_is_told(journal: Path) -> None:
    said = invoke("run", journal, lines="left\nright\nexclude left\n").stdout
    assert "the pair to compare has CHANGED" in said


def test_raters_and_parameters_are_columns(journal: Path, tmp_path: Path) -> None:
    invoke("run", journal, "--rater", "A", lines="1 amplitude_mA=3.2\n2\n")
    invoke("run", journal, lines="tie rater=B rate_Hz=40 number=7\n")
    table = tmp_path / "duels.csv"
    assert invoke("export", journal, "-o", table, "--what", "duels").exit_code == 0
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert [row["rater"] for row in rows] == ["A", "A", "B"]
    assert [row["amplitude_mA"] for row in rows] == ["3.2", "", ""]
    assert [row["rate_Hz"] for row in rows] == ["", "", "40.0"]
    assert [row["number"] for row in rows] == ["1", "2", "3"]
    shown = [row["left_configuration"] for row in rows]
    assert shown[0] == rows[0]["first_configuration"]
    assert shown[1] == rows[1]["second_configuration"]


def test_tables_in_the_columns_of_bids(journal: Path, tmp_path: Path) -> None:
    invoke("run", journal, lines="left\nskip rate_Hz=40\n")
    for what, columns in (("events", "onset duration trial_type"), ("electrodes", "name x y z")):
        path = tmp_path / f"{what}.tsv"
        assert invoke("export", journal, "-o", path, "--what", what).exit_code == 0
        with path.open() as file:
            rows = list(csv.DictReader(file, dialect="excel-tab"))
        assert " ".join(rows[0]).startswith(columns)
        if what == "events":
            assert [row["trial_type"] for row in rows] == ["first better", "skipped"]
            assert [row["rate_Hz"] for row in rows] == ["n/a", "40.0"]
            assert all(float(row["onset"]) >= 0.0 for row in rows)
        else:
            assert [float(row["x"]) for row in rows] == [2.5, 2.5, 0.0, -2.5, -2.5]


def test_a_tilted_paddle_is_drawn_upright_and_the_case_below() -> None:
    angle = np.deg2rad(8.0)
    turn = np.array(
        [[np.cos(angle), 0, -np.sin(angle)], [0, 1, 0], [np.sin(angle), 0, np.cos(angle)]]
    )
    polarity = np.zeros(17, dtype=np.int8)
    polarity[[3, 16]] = -1, 1
    straight = draw_array(polarity[:16], NAMES, PADDLE)
    tilted = draw_array(
        polarity, [*NAMES, "case"], np.vstack([PADDLE @ turn.T, [[0.1, 0.1, -0.1]]])
    )
    assert tilted[:-1] == straight
    assert tilted[-1].strip() == "[case+]"


def test_two_arrays_stand_side_by_side() -> None:
    text = draw_pair(["ab", "cd"], ["ef", "gh"], ("LEFT", "RIGHT")).splitlines()
    assert text == ["LEFT      RIGHT", "", "ab        ef", "cd        gh"]


# -- typed fields ---------------------------------------------------------------------------------


def test_typed_fields_are_checked_before_they_are_kept(journal: Path, small_store: Path) -> None:
    before = journal.read_bytes()
    for field, says in (
        ("amplitude_mA=lots", "amplitude_mA = 'lots' is not a number"),
        ("amplitude_V=-1", "amplitude_V = -1 is not within 0 and 1000"),
        ("pulse_width_us=0", "pulse_width_us = 0 is not within"),
        ("rate_Hz=nan", "is not a number"),
        ("impedance_ohm=1e9", "is not within 1 and 1e+07"),
        ("reason=7", "reason = 7.0 is not a text"),
    ):
        done = invoke("run", journal, lines=f"left {field}\n")
        assert (done.exit_code, journal.read_bytes()) == (2, before)
        assert says in done.stderr
    with (
        open_store(small_store) as store,
        Session.open(journal, store) as session,
        pytest.raises(DuelError, match="amplitude_V = True is not a number"),
    ):
        session.engine.answer("left", meta={"amplitude_V": True})
    assert journal.read_bytes() == before


def test_an_adverse_event_excludes_at_once_and_reversibly(
    journal: Path, small_store: Path, tmp_path: Path
) -> None:
    with open_store(small_store) as store:
        right = read_session(journal, store)[0].ask()[1]
        done = invoke(
            "run", journal, lines="a right numb toe amplitude_mA=4\na 0- 1+ pain above 0.9\n"
        )
        assert done.exit_code == 0, done.stderr
        assert "adverse event kept; excluded" in done.stdout
        engine, content = read_session(journal, store)
        assert right in engine.excluded
        assert store.index_of("0- 1+") in engine.excluded
        assert len(engine.excluded) > 2
        assert content.records[0]["meta"] == {"adverse_event": "numb toe", "amplitude_mA": 4.0}
        invoke("run", journal, lines=f"i {store.texts[right]}\nu too much\n")
        assert right in read_session(journal, store)[0].excluded  # the inclusion was undone
        invoke("run", journal, lines=f"i {store.texts[right]}\n")
        assert right not in read_session(journal, store)[0].excluded
    for line in ("a", "a left", "a numb toe"):
        assert "adverse WHAT TEXT" in invoke("run", journal, lines=f"{line}\n").stderr


def test_who_took_something_back_and_why(journal: Path, tmp_path: Path) -> None:
    invoke(
        "run", journal, "--actor", "C. D.", lines="left\nright\nvoid 1 wrong lead\nundo slipped\n"
    )
    invoke("run", journal, lines="void 2 actor=E.\n")
    invoke("undo", journal, "--actor", "F. G.", "--reason", "by phone")
    invoke("run", journal, lines="void 1\n")
    table = tmp_path / "entries.csv"
    assert invoke("export", journal, "-o", table, "--what", "entries").exit_code == 0
    with table.open() as file:
        rows = [row for row in csv.DictReader(file) if row["entry"] in ("void", "undo")]
    assert [(row["entry"], row["counts"], row["actor"], row["reason"]) for row in rows] == [
        ("void", "False", "C. D.", "wrong lead"),
        ("undo", "False", "C. D.", "slipped"),
        ("void", "False", "E.", "not said"),
        ("undo", "False", "F. G.", "by phone"),
        ("void", "True", "C. D.", "not said"),
    ]
    invoke("export", journal, "-o", tmp_path / "duels.csv", "--what", "duels")
    with (tmp_path / "duels.csv").open() as file:
        first = next(csv.DictReader(file))
    assert (first["void"], first["void_actor"]) == ("True", "C. D.")
    assert {"amplitude_V", "pulse_width_us", "impedance_ohm"} <= set(first)


STIMULATOR = """
[stimulator]
control = "voltage"
pulse_width_us = 200
amplitude_V = { largest = 10 }
[configurations]
current_per_contact_max_mA = 5
"""


def test_a_stimulator_of_the_session(tmp_path: Path, small_store: Path) -> None:
    path, table = tmp_path / "s.journal", tmp_path / "today.toml"
    new = ("new", path, small_store, "--horizon", 40, "--seed", 3, "--stimulator", table)
    table.write_text(STIMULATOR)
    refused = invoke(*new)
    assert refused.exit_code == 2
    assert "no configuration is known to be within the limits" in refused.stderr
    for text, says in (
        ("[stimulators]\n", "needs the table [stimulator]"),
        (STIMULATOR + "adjacent = 'all'\n", "needs the table [stimulator]"),
        (STIMULATOR.replace("200", "-2"), "pulse_width_us"),
        (STIMULATOR + "[stimulator.impedance_ohm]\n99 = 5\n", "impedance_ohm: neither a contact"),
    ):
        table.write_text(text)
        found = invoke(*new)
        assert (found.exit_code, says in found.stderr) == (2, True), found.stderr
    table.write_text(
        STIMULATOR.replace("[configurations]", "").replace("current_per_contact_max_mA = 5", "")
    )
    assert invoke(*new).exit_code == 0
    told = invoke("run", path, lines="z left 800\nz contact 2 900\nleft amplitude_V=3\n").stdout
    assert "charge not known: no impedance of" in told
    assert "at most 10 V; the area of a contact is not known" in told


def test_an_amplitude_above_the_ceiling_is_told(tmp_path: Path, small_store: Path) -> None:
    path, table = tmp_path / "s.journal", tmp_path / "today.toml"
    control = STIMULATOR.replace('"voltage"', '"current"').replace("amplitude_V", "amplitude_mA")
    table.write_text(control)
    invoke("new", path, small_store, "--horizon", 40, "--seed", 3, "--stimulator", table)
    told = invoke("run", path, lines="left amplitude_mA=4.9\nleft amplitude_mA=5.1\n").stdout
    assert "duel 1 recorded: left\n" in told
    assert "duel 2 recorded: left; CAREFUL: 5.1 mA is above the 5 mA" in told


@given(width=st.integers(60, 80))
def test_the_help_fits(width: int) -> None:
    lines = help_text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= (21 if width >= 79 else 27)
    assert " ".join(help_text(80).split()) == " ".join(help_text(width).split())


def test_words_are_wrapped_and_the_help_stays(small_store: Path, journal: Path) -> None:
    said: list[str] = []
    with open_store(small_store) as store, Session.open(journal, store) as session:
        front = TextFront(store, said.append, prompt=True)
        lines = iter(["h\n", "n a note\n", "lft\n", "left\n", "right\n", "void 1\n"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("COLUMNS", "61")
            converse(session, store, lines, front, forgiving=True)
    text = "".join(said).replace("quit > ", "quit >\n")  # as the Enter key does
    assert max(map(len, text.splitlines())) <= 60
    # The pair is drawn when it is new, not after the help, a note or a slip.
    assert text.count("rostral is up") == 4
    assert text.count("Still duel 1: LEFT") == 3
    after = " ".join(text.split("recorded: left")[1].split())
    assert "the pair to compare has CHANGED" in after
