"""N tried, N failed: a table of attacks on everything that the package reads, writes and shares.

A failure is what a user must never see: a traceback, a crash, a hang, a number that is silently
wrong, or something lost that was acknowledged. An error of one line is none.

An attack takes how often to try, a seed and an empty folder, and returns its failures, a line each.
Most are an attempt by seed (:func:`each`); a parser's is one of ``tests.damage``.
"""

import argparse
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import cast

import numpy as np

from fieldcorr.correlation.tiles import correlation_rows, pack_embedding
from fieldcorr.duel import Session, read_session
from fieldcorr.duel.commands import VERBS
from fieldcorr.duel.terminal import TextFront, converse
from fieldcorr.errors import FieldcorrError
from fieldcorr.store import check_store, open_store
from tests.damage import ATTEMPTS, ODD_TEXTS
from tests.disk import recording
from tests.duel.killing import MATRIX
from tests.store.synthetic import content_hash, make_store, values
from tests.store.test_store_fuzz import try_damages
from tests.store.test_store_kill import Worker
from tests.test_disk import MADE, Promise, checked, prepared
from tests.web.page_fuzz import try_requests

Attack = Callable[[int, int, Path], list[str]]

PATIENCE = 300
"""Seconds after which an attempt has hung."""


class Hung(Exception):
    """An attempt took too long."""


def each(attempt: Callable[[int, Path], object]) -> Attack:
    """Return the attack that makes an attempt with every seed, in a folder of its own."""

    def attack(tries: int, seed: int, folder: Path) -> list[str]:
        failures = []
        for number in range(seed, seed + tries):
            place = folder / str(number)
            place.mkdir()
            signal.signal(signal.SIGALRM, _hang)
            signal.alarm(PATIENCE)
            try:
                attempt(number, place)
            except Exception:
                failures.append(f"seed {number}: {traceback.format_exc()}")
            finally:
                signal.alarm(0)
            shutil.rmtree(place, ignore_errors=True)
        return failures

    return attack


def _hang(*_: object) -> None:
    raise Hung


def damaged_stores(tries: int, seed: int, folder: Path) -> list[str]:
    """Open, read and check stores that were damaged by accident or by a forger."""
    victim = make_store(folder / "victim.h5", values(count=12))
    return try_damages(victim, seed, seed + tries, folder)[1]


def hostile_requests(tries: int, seed: int, folder: Path) -> list[str]:
    """Send what no page sends; the journal holds what was acknowledged, in its order."""
    return list(try_requests(seed, seed + tries, folder))


def killed_batches(tries: int, seed: int, folder: Path) -> list[str]:
    """Kill a batch at random moments, again and again, then let it end."""
    whole = content_hash(make_store(folder / "whole.h5"))
    rng, failures, worker = np.random.default_rng(seed), [], Worker()
    events = worker.run(folder / "count.h5", kill_at=0)[1]
    for number in range(tries):
        output = folder / f"{number // 20}.h5"
        status, _ = worker.run(output, kill_at=int(rng.integers(1, events)))
        if status not in (-signal.SIGKILL, 0, 1):  # 1: it had been finished before
            failures.append(f"kill {number}: status {status}")
        if number % 20 == 19 or number == tries - 1:
            worker.run(output, kill_at=0)
        if output.exists() and (content_hash(output) != whole or check_store(output)):
            failures.append(f"kill {number}: another store")
    worker.process.communicate(timeout=60)
    return failures


def killed_sessions(tries: int, seed: int, folder: Path) -> list[str]:
    """Kill sessions around their answers; nothing acknowledged is lost, nothing counts twice."""
    failures = []
    for algorithm, kills in (("CorrDuel", tries - tries // 2), ("BayesDuel", tries // 2)):
        journal = folder / f"{algorithm}.journal"
        module = [sys.executable, "-m", "tests.duel.killing"]
        command = [*module, str(journal), str(kills), str(seed), algorithm]
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
        if done.returncode:
            failures.append(done.stderr)
            continue
        meant = json.loads(done.stdout)["meant"]
        found = [event.answer for event in read_session(journal, MATRIX)[0].history]
        if found != meant:
            failures.append(f"{found} is not {meant}")
    return failures


def in_children(count: int, work: Callable[[int], object]) -> list[str]:
    """Do something in several processes at the same moment; return what they said.

    A process says what its function returns, or the error on purpose that it ended with.
    """
    ready, go = os.pipe()
    children, pipes = [], []
    for number in range(count):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(ready, 1)
            signal.alarm(PATIENCE)
            try:
                said = str(work(number))
            except FieldcorrError as error:
                said = f"error: {error}"
            except BaseException:
                said = traceback.format_exc()
            os.write(writing, said.encode()[-60_000:])
            os._exit(0)
        os.close(writing)
        children.append(child)
        pipes.append(reading)
    os.write(go, b"x" * count)
    answers = []
    for child, pipe in zip(children, pipes, strict=True):
        with os.fdopen(pipe, "rb") as file:
            answers.append(file.read().decode())
        os.waitpid(child, 0)
    os.close(ready)
    os.close(go)
    return answers


def raced_store(seed: int, folder: Path) -> None:
    """Write one store from three processes."""
    content = values(count=24, slim=True)
    path, force = folder / "a.h5", bool(seed % 2)
    said = in_children(3, lambda _: make_store(path, content, force=force).name)
    errors = ("another process is writing here", "exists already")
    assert path.name in said, said
    assert force or said.count(path.name) == 1, said
    assert all(s == path.name or any(error in s for error in errors) for s in said), said
    assert check_store(path) == []
    assert [item.name for item in folder.iterdir()] == ["a.h5"]


def raced_session(seed: int, folder: Path) -> None:
    """Begin one session in three processes, and look at it from a fourth."""
    path = folder / "a.journal"

    def work(number: int) -> str:
        if number == 3:
            for _ in range(30):
                if path.exists():
                    read_session(path, MATRIX)
            return "looked"
        with Session.new(path, MATRIX, horizon=200, seed=seed, settings={"delta": 1e-9}) as session:
            for _ in range(20):
                session.engine.answer("left")
        return "made"

    said = in_children(4, work)
    assert (said.count("made"), said[3]) == (1, "looked"), said
    assert all(
        s in ("made", "looked") or "exists already" in s or "in use by another" in s for s in said
    ), said
    assert len(read_session(path, MATRIX)[0].history) == 20


def promise_of(seed: int) -> Promise:
    """Return something that is made on a disk; each comes in turn."""
    return MADE[seed % len(MADE)]


def full_disk(seed: int, folder: Path) -> None:
    """Let files grow to a random size only, as a disk that is full at that byte."""
    rng, promise = np.random.default_rng(seed), promise_of(seed)
    place = prepared(promise, folder / "a")
    limit = int(np.exp(rng.uniform(0, np.log(60_000))))

    def work(_: int) -> str:
        marks: list[str] = []
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        with suppress(FieldcorrError):
            promise.act(place, marks.append)
        return json.dumps(marks)

    (said,) = in_children(1, work)
    checked(promise, place, json.loads(said))


def failing_disk(seed: int, folder: Path) -> None:
    """Fail calls of the system at random, or all from one on."""
    rng, promise, marks = np.random.default_rng(seed), promise_of(seed), cast("list[str]", [])
    place, first, once = prepared(promise, folder / "a"), int(rng.integers(1, 150)), rng.integers(2)
    error = int(rng.choice([errno.EIO, errno.ENOSPC, errno.EACCES, errno.EROFS]))

    def fails(number: int, _kind: str, _path: str) -> bool:
        return bool(number == first if once else number >= first)

    with recording(place, fails=fails, error=error), suppress(FieldcorrError):
        promise.act(place, marks.append)
    checked(promise, place, marks)


def power_cut(seed: int, folder: Path) -> None:
    """Cut the power after a random call, and lose a random part of what was not synced."""
    promise = promise_of(seed)
    with recording(prepared(promise, folder / "a")) as disk:
        promise.act(disk.root, disk.mark)
    for number in range(5):
        rng = np.random.default_rng([seed, number])
        after = int(rng.integers(len(disk.calls) + 1))
        marks = disk.crash(after, int(rng.integers(1000)), folder / f"{number}")
        checked(promise, folder / f"{number}", marks)


def typed_lines(seed: int, folder: Path) -> None:
    """Type nonsense into a session; its journal must give the same session again."""
    rng = np.random.default_rng(seed)
    words = [*VERBS, *ODD_TEXTS, "both", "with", "above", ">", "=", "12:", "1:", "0-", "1+", "0.5"]
    words += ["3", "1e9", "amplitude_mA=3", "²", "\udcff", ";", "inf"]
    lines = [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(40)]
    store_path = make_store(folder / "a.h5", values(slim=True, count=60))
    path = folder / "a.journal"
    said: list[str] = []
    with open_store(store_path) as store:
        with Session.new(path, store, horizon=500, settings={"delta": 1e-9}) as session:
            front = TextFront(store, said.append, prompt=True)
            converse(session, store, iter(lines), front, forgiving=True)
            events = session.engine.events
        assert read_session(path, store)[0].events == events
    assert not any(letter in text for text in said for letter in "\x1b\0\x07")


def forked_while_computing(seed: int, folder: Path) -> None:
    """Fork while another thread runs kernels; the child computes the same rows."""
    del folder
    packed = pack_embedding(values(count=170)["/correlation/embedding"])
    wanted, stop = correlation_rows(packed, 0, 160).tobytes(), Event()

    def compute() -> None:
        while not stop.is_set():
            correlation_rows(packed, 0, 160)

    thread = Thread(target=compute)
    thread.start()
    try:
        time.sleep(0.001 * (seed % 7))
        said = in_children(2, lambda _: correlation_rows(packed, 0, 160).tobytes() == wanted)
    finally:
        stop.set()
        thread.join()
    assert said == ["True", "True"], said


ATTACKS: dict[str, tuple[int, Attack]] = {
    "damaged stores": (8600, damaged_stores),
    **{
        f"damaged {name}" if "forged" not in name else name: (
            100 if name == "mesh files" else 1000,
            each(attempt),
        )
        for name, attempt in ATTEMPTS.items()
    },
    "typed lines, 40 at a time": (100, each(typed_lines)),
    "requests to the session page": (5000, hostile_requests),
    "kills of a batch": (275, killed_batches),
    "kills of a session": (500, killed_sessions),
    "races for a store, 3 processes": (55, each(raced_store)),
    "races for a journal, 4 processes": (55, each(raced_session)),
    "forks while kernels run": (55, each(forked_while_computing)),
    "full disks": (50, each(full_disk)),
    "failing calls of the system": (150, each(failing_disk)),
    "power cuts, 5 at a time": (50, each(power_cut)),
}
"""What the table calls it, how often by default, and how."""


def main() -> None:
    """Attack, print the table, and fail if anything did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="words of the rows to try; all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="try so many times as often")
    parser.add_argument("--seed", type=int, default=0, help="other damage")
    options = parser.parse_args()
    total = 0
    print("| attack | tried | failed |\n|---|---:|---:|", flush=True)
    for name, (usual, attack) in ATTACKS.items():
        if options.rows and not any(word in name for word in options.rows):
            continue
        tries, began = max(1, round(usual * options.scale)), time.perf_counter()
        with tempfile.TemporaryDirectory(prefix="fieldcorr-attack-") as folder:
            failures = attack(tries, options.seed, Path(folder))
        total += len(failures)
        seconds = time.perf_counter() - began
        print(f"| {name} | {tries} | {len(failures)} |", flush=True)
        print(f"{name}: {seconds:.0f} s", file=sys.stderr, flush=True)
        for failure in failures[:5]:
            print(f"{name}: {failure}", file=sys.stderr, flush=True)
    sys.exit(total > 0)


if __name__ == "__main__":
    main()
