"""What is promised of files holds when any call fails, and when the power goes after any call.

Every output is made on a disk that records (:mod:`tests.disk`). Then every call is failed in turn,
and the run is cut after every call. Each time: what had the name before is whole, or what was to
have it is; what was acknowledged is there; what belongs to others is as it was; and the next run
ends as if nothing had happened.
"""

import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from fieldcorr.batch.cache import Cache
from fieldcorr.duel import CorrDuel, Session, read_session
from fieldcorr.duel.export import write_rows
from fieldcorr.errors import FieldcorrError
from fieldcorr.export import export_store
from fieldcorr.mesh import read_mesh, write_mesh
from fieldcorr.store import Options, WorkFolder, open_store
from tests.disk import EVERYTHING, NAMES, NOTHING, recording
from tests.duel.killing import MATRIX
from tests.mesh.boxes import layered_box
from tests.store.synthetic import content_hash, make_store, values

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

Mark = Callable[[str], None]

SURVIVALS = (NOTHING, NAMES, EVERYTHING, 3, 4)


class Promise(ABC):
    """Something that is made below a folder, and what must be there whatever happens.

    Files whose names end as ``dispensable`` says are done without where they cannot be written.
    """

    dispensable: tuple[str, ...] = ()

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Make what is there before: nothing, unless said otherwise."""

    @abstractmethod
    def act(self, folder: Path, mark: Mark) -> None:
        """Make it; mark what a user may rely on from then on."""

    @abstractmethod
    def check(self, folder: Path, marks: list[str]) -> None:
        """Look at what was left, then make it again and look at that."""


class StoreInFiles(Promise):
    """A new store from blocks in files."""

    content = values(count=24, slim=True)
    options = Options(memory=1, threads=1)
    force = False

    @cached_property
    def whole(self) -> str:
        return self._hash_of(self.content)

    def _hash_of(self, content: dict[str, object]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            return content_hash(make_store(Path(folder) / "a.h5", content, options=self.options))

    def act(self, folder: Path, mark: Mark) -> None:
        make_store(folder / "a.h5", self.content, options=self.options, force=self.force)
        mark("made")

    def check(self, folder: Path, marks: list[str]) -> None:
        path = folder / "a.h5"
        assert path.exists() or not marks
        if path.exists():
            assert content_hash(path) == self.whole
            with pytest.raises(FieldcorrError, match="exists already"), WorkFolder(path):
                pass
        else:
            self.act(folder, marks.append)
        assert content_hash(path) == self.whole
        assert [item.name for item in folder.iterdir() if item.name != "notes.txt"] == ["a.h5"]


class StoreByForce(StoreInFiles):
    """A store in the place of another."""

    options = Options(threads=1)
    force = True

    @cached_property
    def old(self) -> str:
        return self._hash_of(values(count=12, slim=True))

    def prepare(self, folder: Path) -> None:
        make_store(folder / "a.h5", values(count=12, slim=True), options=self.options)

    def check(self, folder: Path, marks: list[str]) -> None:
        path = folder / "a.h5"
        assert content_hash(path) in ({self.whole} if marks else {self.whole, self.old})
        self.act(folder, marks.append)
        assert content_hash(path) == self.whole


ANSWERS = ("left", "right", "same", "left")


class NewSession(Promise):
    """A new journal, and answers in it."""

    dispensable = (".end",)

    def act(self, folder: Path, mark: Mark) -> None:
        path = folder / "a.journal"
        settings = {"delta": 1e-9}
        new = not path.exists()
        with (
            Session.new(path, MATRIX, horizon=50, seed=4, settings=settings)
            if new
            else Session.open(path, MATRIX)
        ) as session:
            mark("0")
            for answer in ANSWERS[len(session.engine.history) :]:
                session.engine.answer(answer)  # type: ignore[arg-type]
                mark(str(len(session.engine.history)))

    def check(self, folder: Path, marks: list[str]) -> None:
        path = folder / "a.journal"
        assert path.exists() or not marks
        if path.exists():
            answers = [event.answer for event in read_session(path, MATRIX)[0].history]
            assert answers == list(ANSWERS[: len(answers)])
            assert len(answers) >= int(marks[-1] if marks else 0)
        self.act(folder, marks.append)
        wanted = CorrDuel(MATRIX, horizon=50, seed=4, delta=1e-9)
        for answer in ANSWERS:
            wanted.answer(answer)  # type: ignore[arg-type]
        assert read_session(path, MATRIX)[0].events == wanted.events


class TornSession(NewSession):
    """A journal with an answer, whose last line was not finished."""

    def prepare(self, folder: Path) -> None:
        path = folder / "a.journal"
        with Session.new(path, MATRIX, horizon=50, seed=4, settings={"delta": 1e-9}) as session:
            session.engine.answer("left")
        with path.open("ab") as file:
            file.write(b'{"line": 3, "time": "2026')

    def check(self, folder: Path, marks: list[str]) -> None:
        assert len(read_session(folder / "a.journal", MATRIX)[0].history) >= 1
        super().check(folder, marks)


class CacheEntry(Promise):
    """An entry of the cache."""

    dispensable = ("",)
    arrays = {"x": np.arange(300.0), "names": np.array(["a", "b"])}  # noqa: RUF012

    def prepare(self, folder: Path) -> None:
        (folder / "cache").mkdir()

    def act(self, folder: Path, mark: Mark) -> None:
        cache = Cache(folder / "cache")
        cache.save("key", self.arrays)
        if cache.load("key") is not None:
            mark("kept")

    def check(self, folder: Path, marks: list[str]) -> None:
        for kept in (bool(marks), True):
            found = Cache(folder / "cache").load("key")
            assert found is not None or not kept
            if found is not None:
                assert all(np.array_equal(found[name], x) for name, x in self.arrays.items())
            self.act(folder, marks.append)


class MeshByForce(Promise):
    """A mesh file in the place of another."""

    old, new = layered_box(1), layered_box(2)

    def prepare(self, folder: Path) -> None:
        write_mesh(self.old, folder / "m.fcmesh")

    def act(self, folder: Path, mark: Mark) -> None:
        write_mesh(self.new, folder / "m.fcmesh", force=True)
        mark("made")

    def check(self, folder: Path, marks: list[str]) -> None:
        path = folder / "m.fcmesh"
        assert read_mesh(path).hash in (
            {self.new.hash} if marks else {self.old.hash, self.new.hash}
        )
        self.act(folder, marks.append)
        assert read_mesh(path).hash == self.new.hash


class Exports(Promise):
    """Tables of a store and of a session, in the place of others."""

    names = ("a.csv", "r.json")
    rows = [{"number": number, "text": "x" * 50} for number in range(200)]  # noqa: RUF012

    def prepare(self, folder: Path) -> None:
        for name in self.names:
            (folder / name).write_text("old")
        make_store(folder / "a.h5", values(count=12, slim=True))

    def act(self, folder: Path, mark: Mark) -> None:
        with open_store(folder / "a.h5") as store:
            export_store(store, folder / "a.csv", force=True)
            mark("a.csv")
        write_rows(self.rows, folder / "r.json", force=True)
        mark("r.json")

    def check(self, folder: Path, marks: list[str]) -> None:
        found = {name: (folder / name).read_bytes() for name in self.names}
        self.act(folder, lambda name: None)
        for name in self.names:
            whole = (folder / name).read_bytes()
            assert found[name] in ([whole] if name in marks else [b"old", whole])
            assert len(whole) > 500


MADE: tuple[Promise, ...] = (
    StoreInFiles(), StoreByForce(), NewSession(), TornSession(), CacheEntry(), MeshByForce(),
    Exports(),
)  # fmt: skip
promises = pytest.mark.parametrize(
    "promise",
    [
        pytest.param(
            promise,
            id=type(promise).__name__,
            marks=[pytest.mark.slow] if isinstance(promise, StoreInFiles) else [],
        )
        for promise in MADE
    ],
)


def prepared(promise: Promise, folder: Path) -> Path:
    """Make a folder with what is there before, and with a file of somebody else's."""
    folder.mkdir()
    promise.prepare(folder)
    (folder / "notes.txt").write_text("mine")
    return folder


def checked(promise: Promise, folder: Path, marks: list[str]) -> None:
    promise.check(folder, marks)
    assert (folder / "notes.txt").read_text() == "mine"


@promises
def test_after_a_crash_at_any_call(promise: Promise, tmp_path: Path) -> None:
    with recording(prepared(promise, tmp_path / "whole")) as disk:
        promise.act(disk.root, disk.mark)
    # Between two writes of one file lies nothing new: some are enough.
    points = [
        place + 1
        for place, call in enumerate(disk.calls)
        if call.kind != "write" or disk.calls[place + 1].kind != "write" or place % 16 == 0
    ]
    seen = set()
    for after in [0, *points]:
        for survives in SURVIVALS:
            folder = tmp_path / f"{after}-{survives}"
            marks = disk.crash(after, survives, folder)
            left = {
                str(path.relative_to(folder)): path.read_bytes()
                for path in folder.rglob("*")
                if path.is_file()
            }
            key = hash((tuple(marks), tuple(sorted(left.items()))))
            if key not in seen:
                seen.add(key)
                checked(promise, folder, marks)
    assert len(seen) > 2


@pytest.mark.parametrize("once", [True, False], ids=["once", "from then on"])
@promises
def test_after_any_call_has_failed(promise: Promise, once: bool, tmp_path: Path) -> None:
    _, calls = failed_at(0, once, promise, tmp_path / "none")
    assert calls > 3
    # HDF5 writes its file in a hundred pieces: some are enough.
    for number in [n for n in range(1, calls + 1) if n < 20 or n > calls - 20 or n % 9 == 0]:
        marks, _ = failed_at(number, once, promise, tmp_path / f"{number}")
        checked(promise, tmp_path / f"{number}", marks)


def failed_at(number: int, once: bool, promise: Promise, folder: Path) -> tuple[list[str], int]:
    """Fail the call of that number, or all from it on, 0 for none; return marks and calls made."""
    marks: list[str] = []
    failed: list[str] = []

    def fails(count: int, kind: str, path: str) -> bool:
        chosen = count == number if once else 0 < number <= count
        if chosen and not path.endswith(promise.dispensable):
            failed.append(kind)
        return chosen

    with recording(prepared(promise, folder), fails=fails) as disk:
        try:
            promise.act(folder, marks.append)
        except FieldcorrError:
            return marks, disk.count
    assert not {"write", "fsync", "fsync folder"} & set(failed), "not on the disk, and not a word"
    return marks, disk.count
