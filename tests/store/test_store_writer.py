"""Writing: in one piece, in the same bytes, and never over something else."""

import errno
import os
import shutil
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.correlation.tiles import correlation_rows
from fieldcorr.errors import StoreError
from fieldcorr.files import QuietFile
from fieldcorr.store import Options, WorkFolder, check_store, layout, open_store, write_store
from fieldcorr.store import blocks as blocks_module
from fieldcorr.store import write as write_module
from fieldcorr.store.blocks import block_rows, bounds
from fieldcorr.store.work import LOCK
from fieldcorr.store.write import recut
from tests.disk import recording
from tests.store.synthetic import content_hash, make_store, settled_values, values


@pytest.mark.parametrize(
    "options",
    [
        Options(threads=1),
        Options(memory=1),
        Options(memory=180 * 24 * 24),
        Options(memory=180 * 24 * 64, threads=1),
    ],
    ids=["one thread", "least memory", "24 rows", "64 rows"],
)
def test_bytes_do_not_depend_on_threads_or_memory(
    options: Options, small_store: Path, tmp_path: Path
) -> None:
    path = make_store(tmp_path / "again.h5", options=options)
    assert content_hash(path) == content_hash(small_store)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 17])
def test_any_number_of_configurations(count: int, tmp_path: Path) -> None:
    path = make_store(tmp_path / "few.h5", values(count=count))
    assert check_store(path) == []
    with open_store(path) as store:
        assert store.row(count - 1).shape == (count,)


@pytest.mark.parametrize(("threshold", "top_k"), [(0.5, 0), (0.0, 3), (0.9, 2), (0.9999, 0)])
def test_thresholds_and_top_k(threshold: float, top_k: int, tmp_path: Path) -> None:
    options = Options(threshold=threshold, top_k=top_k)
    path = make_store(tmp_path / "some.h5", options=options)
    assert check_store(path) == []
    with open_store(path) as store:
        for i in (0, 50, 179):
            row = store.row(i).astype(np.float64)
            row[i] = -2.0
            wanted = np.flatnonzero(row > threshold)
            if top_k:
                best = np.lexsort((wanted, -row[wanted]))[:top_k]
                wanted = np.sort(wanted[best])
            np.testing.assert_array_equal(store.neighbours(i)[0], wanted)


@pytest.mark.parametrize("memory", [1 << 30, 1 << 10])
def test_a_search_without_rows_finds_the_same_neighbours(memory: int, tmp_path: Path) -> None:
    with_rows = Options(threshold=0.1, top_k=5)
    options = replace(with_rows, matrix=False, memory=memory)
    found = []
    for name, chosen in (("a.h5", with_rows), ("b.h5", options)):
        with open_store(make_store(tmp_path / name, options=chosen)) as store:
            digests = store.digests.items()
            found.append({path: digest for path, digest in digests if "neighbourhoods" in path})
            assert store.has_matrix == chosen.matrix
    assert found[0] == found[1]


def test_without_any_neighbour(tmp_path: Path) -> None:
    path = make_store(tmp_path / "none.h5", values(count=2))
    assert check_store(path) == []
    with open_store(path) as store:
        assert store.nnz == 0
        assert store.neighbours(1)[0].size == 0


def test_without_matrix_and_fields(tmp_path: Path) -> None:
    path = make_store(tmp_path / "lean.h5", values(slim=True), options=Options(matrix=False))
    assert check_store(path) == []
    with h5py.File(path) as file:
        assert "matrix" not in file["correlation"]
        assert "mesh" not in file


def test_blocks_fit_into_memory_and_cover_all_rows() -> None:
    assert block_rows(10**5, 2**31) * 10**5 * 24 <= 2**31
    assert block_rows(10**5, 1) == 8
    assert block_rows(100, 2**40) == 512
    assert bounds(20, 8) == [(0, 8), (8, 16), (16, 20)]


@pytest.mark.parametrize(
    ("memory", "files"),
    [(1, 250), (2**20, 6), (2**23, 1)],
    ids=["8 rows", "336 rows", "all rows"],
)
def test_blocks_of_a_search_are_as_large_as_what_they_find(
    memory: int, files: int, tmp_path: Path
) -> None:
    """Memory that numpy takes; whole rows of r would be 8 kB each."""
    rows = np.random.default_rng(1).standard_normal((2000, 5))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    options = Options(top_k=64, matrix=False, memory=memory)
    blocks = blocks_module.Blocks(rows, options, tmp_path)
    blocks._in_files = True
    next(iter(blocks.rows()))  # loads the kernel
    tracemalloc.start()
    try:
        taken = [tracemalloc.get_traced_memory()[1] for _ in blocks.rows()]
    finally:
        tracemalloc.stop()
    assert len(list(tmp_path.glob("*-*-*.rows"))) == len(taken) == files
    assert memory == 1 or taken[-1] < memory


@given(
    sizes=st.lists(st.integers(0, 7), max_size=8),
    piece=st.integers(1, 9),
)
def test_pieces_do_not_depend_on_the_blocks(sizes: list[int], piece: int) -> None:
    whole = np.arange(sum(sizes))
    memory = np.empty((2, 8), dtype=np.int64)

    def parts() -> Iterator[tuple[Any, ...]]:
        """Yield two arrays part by part, every part in the memory of the one before."""
        end = 0
        for size in sizes:
            memory[:] = -1
            memory[:, :size] = whole[end : end + size]
            memory[1] *= 10
            yield memory[0, :size], memory[1, :size]
            end += size

    pieces = [tuple(p.copy() for p in both) for both in recut(parts(), piece)]
    assert [len(p) for p, _ in pieces[:-1]] == [piece] * (len(pieces) - 1)
    assert np.concatenate([whole[:0], *(p for p, _ in pieces)]).tolist() == whole.tolist()
    assert np.concatenate([whole[:0], *(p for _, p in pieces)]).tolist() == (10 * whole).tolist()


def test_nothing_is_left_beside_the_store(tmp_path: Path) -> None:
    make_store(tmp_path / "only.h5")
    assert [p.name for p in tmp_path.iterdir()] == ["only.h5"]


def test_an_existing_store_is_replaced_only_on_demand(tmp_path: Path) -> None:
    path = make_store(tmp_path / "mine.h5", values(count=20))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="exists already; use --force"):
        make_store(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["mine.h5"]
    with open_store(path) as reader:
        make_store(path, force=True)
        # Who has the old store open keeps reading the old store.
        assert len(reader) == 20
        assert reader.row(19).shape == (20,)
    with open_store(path) as new:
        assert len(new) == 180


def test_a_name_taken_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "late.h5"

    def intrude() -> dict[str, Any]:
        path.write_bytes(b"theirs")
        return {}

    with WorkFolder(path) as folder, pytest.raises(StoreError, match="exists already"):
        write_store(folder, values(), run=intrude)
    assert path.read_bytes() == b"theirs"


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shared.h5"
    program = (
        "import sys; from pathlib import Path; from fieldcorr.store import WorkFolder\n"
        "with WorkFolder(Path(sys.argv[1])): pass"
    )
    with WorkFolder(path) as folder:
        with pytest.raises(StoreError, match=f"another process is writing here .*{os.getpid()}"):
            make_store(path)
        command = [sys.executable, "-c", program, str(path)]
        second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert "another process is writing here" in second.stderr
        write_store(folder, values())
    assert check_store(path) == []


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the folder does not exist"):
        make_store(tmp_path / "absent" / "a.h5")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="not a folder"):
        make_store(tmp_path / "file" / "a.h5")


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Permissions do not bind the superuser: the system's answer is given by hand."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(StoreError, match="the file system is read-only"):
        make_store(tmp_path / "a.h5")


def test_a_disk_that_is_too_small_is_noticed_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(StoreError, match=r"the disk is full: .* MB are needed, 0 MB are free"):
        make_store(tmp_path / "a.h5")


@pytest.mark.parametrize("limit", [10_000, 100_000, 250_000, 360_000])
def test_running_out_of_space_on_the_way(limit: int, tmp_path: Path, small_store: Path) -> None:
    """A file-size limit stops the write at that very byte, as a full disk does."""
    resource = pytest.importorskip("resource")
    path = tmp_path / "full.h5"
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        with pytest.raises(StoreError, match="cannot be written"):
            make_store(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    assert not path.exists()
    make_store(path)
    assert content_hash(path) == content_hash(small_store)


IN_FILES = Options(memory=1)
"""Options that leave every block as a file."""


def test_blocks_of_other_inputs_are_not_used(tmp_path: Path, small_store: Path) -> None:
    path = tmp_path / "a.h5"
    other = values()
    other["/correlation/embedding"] = np.roll(other["/correlation/embedding"], 1, axis=0)
    stop_before_the_end(path, other)
    left = {item.name for item in path.with_name("a.h5.partial").glob("*.rows")}
    assert len(left) == 23
    make_store(path, options=IN_FILES)
    assert content_hash(path) == content_hash(small_store)


@pytest.mark.parametrize("key", ["other code", "same code"])
def test_blocks_of_other_code_are_not_used(
    key: str, tmp_path: Path, small_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other code has another key; another processor has the same, and other last bits."""
    path = tmp_path / "a.h5"

    def other(*arguments: Any, **options: Any) -> Any:
        rows = correlation_rows(*arguments, **options)
        rows[rows < 1.0] += np.float32(2.0**-20)
        return rows

    with monkeypatch.context() as patch:
        patch.setattr(blocks_module, "correlation_rows", other)
        stop_before_the_end(path, settled_values(), key=key)
    with WorkFolder(path) as folder:
        write_store(
            folder,
            settled_values(),
            options=IN_FILES,
            key="same code",
            run=lambda: {"created": "now"},
        )
    assert content_hash(path) == content_hash(small_store)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["torn", "blank", "flipped", "of another name", "a link"])
def test_damaged_blocks_are_made_again(damage: str, tmp_path: Path, small_store: Path) -> None:
    """Lost power may keep the name of a file and lose its bytes."""
    path = tmp_path / "a.h5"
    stop_before_the_end(path, settled_values())
    blocks = sorted(path.with_name("a.h5.partial").glob("*.rows"))
    for block in blocks[3:9]:
        content = block.read_bytes()
        block.unlink()
        if damage == "torn":
            block.write_bytes(content[: len(content) // 2])
        elif damage == "blank":
            block.write_bytes(bytes(len(content)))
        elif damage == "flipped":
            place = len(content) // 2
            block.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        elif damage == "of another name":
            block.write_bytes(blocks[0].read_bytes())
        else:
            block.symlink_to(blocks[0])
    before = blocks[0].read_bytes()
    stop_before_the_end(path, settled_values())
    assert blocks[0].read_bytes() == before
    assert not any(block.is_symlink() for block in blocks)
    make_store(path, options=IN_FILES)
    assert content_hash(path) == content_hash(small_store)


def stop_before_the_end(path: Path, content: dict[str, Any], *, key: str = "") -> None:
    """Write a store whose blocks are files, then stop as Ctrl-C does."""
    with WorkFolder(path) as folder, pytest.raises(KeyboardInterrupt):
        write_store(folder, content, options=IN_FILES, key=key, run=interrupt)


def interrupt() -> dict[str, Any]:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


# -- what is on the disk when ----------------------------------------------------------------------


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("force", [False, True])
def test_data_then_status_then_name_reach_the_disk(force: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    if force:
        make_store(path, values(count=20))
    with recording(tmp_path) as disk:
        make_store(path, force=force)
    steps = [
        (call.kind, b"complete" in call.data)
        for call in disk.calls
        if call.kind.startswith("fsync") or call.target == str(path)
    ]
    assert steps == [
        ("fsync", False),  # all datasets
        ("fsync", False),  # digests and run
        ("fsync", True),  # the status
        ("rename" if force else "link", False),
        ("fsync folder", False),
    ]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_every_block_reaches_the_disk_before_it_counts(tmp_path: Path) -> None:
    with recording(tmp_path) as disk:
        make_store(tmp_path / "a.h5", options=IN_FILES)
    steps = [
        (call.kind, Path(call.path).name.endswith(".new"))
        for call in disk.calls
        if call.kind in ("fsync", "fsync folder", "rename")
    ]
    assert steps[:46] == [("fsync", True), ("rename", True)] * 23
    assert steps[46] == ("fsync folder", False)


def test_blocks_are_known_by_all_that_they_depend_on() -> None:
    """Their first rows are compared as well, but these may be the same by chance."""
    rows = np.eye(3)
    keys = {
        blocks_module._key_of(embedding, Options(threshold=t, top_k=k, matrix=matrix), code)
        for embedding in (rows, rows[::-1])
        for t in (0.0, 1e-9)
        for k in (0, 5)
        for matrix in (True, False)
        for code in ("one", "other")
    }
    assert len(keys) == 32
    same = blocks_module._key_of(rows, Options(memory=1, threads=1), "one")
    assert same in keys


def test_a_block_that_says_it_is_another_is_not_used(tmp_path: Path) -> None:
    rows = values(count=24)["/correlation/embedding"]
    for _ in blocks_module.Blocks(rows, IN_FILES, tmp_path).rows():
        pass
    path = next(tmp_path.glob("*-0-8.rows"))
    with np.load(path) as file:
        arrays = {**file, "key": np.array("another")}
    arrays["r"][3] = 0.0  # its first row is right
    with path.open("wb") as raw:
        np.savez(raw, **arrays)
    first = next(iter(blocks_module.Blocks(rows, IN_FILES, tmp_path).rows()))
    assert first[3, 3] == 1.0


def test_an_error_beside_the_computation_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces are written and digested in other threads; the last ones have no successor."""
    calls, failing = 0, 0

    def digest(*arguments: Any) -> bytes:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise MemoryError
        return layout.digest_block(*arguments)

    monkeypatch.setattr(write_module, "digest_block", digest)
    make_store(tmp_path / "a.h5")
    for number in (1, calls - 1, calls):
        calls, failing = 0, number
        with pytest.raises(MemoryError):
            make_store(tmp_path / "b.h5")
        assert not (tmp_path / "b.h5").exists()


# -- what is not ours ------------------------------------------------------------------------------


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("kind", ["folder", "link", "dangling link", "file", "linked lock"])
def test_what_does_not_carry_our_mark_is_not_touched(
    kind: str, force: bool, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("store.h5", "thesis.txt", "a.rows"):
        (theirs / name).write_bytes(b"theirs")
    partial = tmp_path / "a.h5.partial"
    if kind == "folder":
        theirs.rename(partial)
    elif kind == "link":
        partial.symlink_to(theirs)
    elif kind == "dangling link":
        partial.symlink_to(tmp_path / "nowhere")
    elif kind == "file":
        partial.write_bytes(b"theirs")
    else:
        partial.mkdir()
        (partial / LOCK).symlink_to(theirs / "thesis.txt")
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="is in the way; it is no work folder"):
        make_store(tmp_path / "a.h5", force=force)
    assert contents(tmp_path) == before
    assert not (tmp_path / "nowhere").exists()


def test_finished_blocks_survive_a_command_that_forgets_force(tmp_path: Path) -> None:
    path = make_store(tmp_path / "a.h5", values(count=20))
    with WorkFolder(path, force=True) as folder, pytest.raises(KeyboardInterrupt):
        write_store(folder, settled_values(), options=IN_FILES, run=interrupt)
    blocks = contents(folder.path)
    assert len(blocks) > 23
    with pytest.raises(StoreError, match="exists already"):
        make_store(path, options=IN_FILES)
    assert set(contents(folder.path)) == set(blocks)


def test_a_draft_is_a_new_file(tmp_path: Path) -> None:
    (tmp_path / "a.h5").write_bytes(b"theirs")
    (tmp_path / "link").symlink_to(tmp_path / "a.h5")
    for name in ("a.h5", "link"):
        with pytest.raises(FileExistsError):
            QuietFile(tmp_path / name)
    assert (tmp_path / "a.h5").read_bytes() == b"theirs"


def test_files_of_others_in_a_work_folder_stay(tmp_path: Path, small_store: Path) -> None:
    path = tmp_path / "a.h5"
    stop_before_the_end(path, settled_values())
    partial = path.with_name("a.h5.partial")
    theirs = tmp_path / "theirs.h5"
    theirs.write_bytes(b"theirs")
    (partial / "store.h5").unlink()
    (partial / "store.h5").symlink_to(theirs)
    (partial / "notes.txt").write_text("theirs")
    make_store(path, options=IN_FILES)
    assert content_hash(path) == content_hash(small_store)
    assert theirs.read_bytes() == b"theirs"
    assert {item.name for item in partial.iterdir()} == {"notes.txt", LOCK}


def test_a_mark_made_while_the_folder_is_looked_at_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, listdir = tmp_path / "a.h5.partial", os.listdir
    folder.mkdir()

    def late(path: Path) -> list[str]:
        (folder / LOCK).touch()
        return listdir(path)

    monkeypatch.setattr(os, "listdir", late)
    with WorkFolder(tmp_path / "a.h5") as work:
        assert work.path == folder
