"""Writing: in one piece, in the same bytes, and never over something else."""

import errno
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store import Options, WorkFolder, check_store, open_store, write_store
from fieldcorr.store._kernels import WEIGHTS, fletcher32
from fieldcorr.store.skeleton import build_skeleton
from fieldcorr.store.stream import tile_rows, tiles
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


def test_our_checksum_is_the_one_of_hdf5(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    blocks = [
        np.zeros(4096, np.uint8),
        np.full(4096, 255, np.uint8),
        rng.integers(0, 256, 4096).astype(np.uint8),
        rng.integers(0, 256, 60000).astype(np.uint8),
        rng.integers(0, 256, 2).astype(np.uint8),
        rng.integers(0, 256, 514).astype(np.uint8),
        np.r_[np.zeros(4094, np.uint8), [255, 255]].astype(np.uint8),
    ]
    for block in blocks:
        with h5py.File(tmp_path / "f.h5", "w") as file:
            item = file.create_dataset("x", data=block, chunks=block.shape, fletcher32=True)
            stored = item.id.read_direct_chunk((0,))[1]
        assert int(fletcher32(block.view(np.uint16), WEIGHTS)) == int.from_bytes(
            stored[-4:], "little"
        )


def test_tiles_fit_into_memory_and_cover_all_rows() -> None:
    assert tile_rows(10**5, 2**31) * 10**5 * 24 <= 2**31
    assert tile_rows(10**5, 1) == 8
    assert tile_rows(100, 2**40) == 512
    assert list(tiles(20, 8)) == [(0, 8), (8, 16), (16, 20)]


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

    with WorkFolder(path) as folder:
        folder.claim("{}")
        with pytest.raises(StoreError, match="exists already"):
            write_store(folder, values(), run=intrude)
    assert path.read_bytes() == b"theirs"


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shared.h5"
    program = (
        "import sys; from pathlib import Path; from fieldcorr.store import WorkFolder\n"
        "with WorkFolder(Path(sys.argv[1])): pass"
    )
    with WorkFolder(path) as folder:
        folder.claim("{}")
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


def test_other_inputs_do_not_meet_old_tiles(tmp_path: Path, small_store: Path) -> None:
    path = tmp_path / "a.h5"
    stop_before_the_end(path, values(count=50), inputs="other inputs")
    assert path.with_name("a.h5.partial").exists()
    make_store(path)
    assert content_hash(path) == content_hash(small_store)


def test_torn_tiles_are_written_again(tmp_path: Path, small_store: Path) -> None:
    """Lost power may keep the record of a tile and lose its bytes."""
    path = tmp_path / "a.h5"
    stop_before_the_end(path, settled_values(), inputs="{}")
    draft = path.with_name("a.h5.partial") / "store.h5"
    with h5py.File(draft) as file:
        places = [
            file[name].id.get_chunk_info(0)
            for name in ("/correlation/matrix", "/neighbourhoods/data", "/neighbourhoods/indices")
        ]
    with draft.open("r+b") as raw:
        for place in places:
            raw.seek(place.byte_offset + 1000)
            raw.write(b"torn")
        raw.seek(places[0].byte_offset + places[0].size - 4)
        raw.write(b"torn")
    make_store(path)
    assert content_hash(path) == content_hash(small_store)


def test_tiles_between_finished_ones_are_written_again(tmp_path: Path) -> None:
    """Several chunks of neighbours, some of whose tiles are lost while others are kept."""
    content = {
        **values(contacts=6),
        "/provenance/settings": settled_values()["/provenance/settings"],
    }
    options = Options(memory=1)
    whole = make_store(tmp_path / "whole.h5", content, options=options)
    path = tmp_path / "torn.h5"
    stop_before_the_end(path, content, inputs="{}", options=options)
    draft = path.with_name("torn.h5.partial") / "store.h5"
    with h5py.File(draft) as file:
        matrix, data = file["/correlation/matrix"].id, file["/neighbourhoods/data"].id
        assert data.get_num_chunks() > 8
        ends = [matrix.get_chunk_info(k) for k in (3, 20, 40)]
        middles = [data.get_chunk_info(k) for k in (2, 6)]
    with draft.open("r+b") as raw:
        for place in ends:  # the checksum alone
            raw.seek(place.byte_offset + place.size - 3)
            raw.write(b"\xa5")
        for place in middles:
            raw.seek(place.byte_offset + place.size // 2)
            raw.write(b"torn")
    make_store(path, content, options=options)
    assert content_hash(path) == content_hash(whole)


def test_room_for_tiles_costs_no_disk(tmp_path: Path) -> None:
    """Otherwise every byte of a large store would be written twice."""
    path = tmp_path / "skeleton.h5"
    content = {**settled_values(), "/neighbourhoods/indptr": np.zeros(181, np.int64)}
    streams = {"/neighbourhoods/data": (10**8,), "/neighbourhoods/indices": (10**8,)}
    build_skeleton(path, content, streams, {})
    assert path.stat().st_size > 12 * 10**8
    assert path.stat().st_blocks * 512 < 10**7


def stop_before_the_end(
    path: Path, content: dict[str, Any], *, inputs: str, options: Options | None = None
) -> None:
    """Write all tiles of a store, then stop as Ctrl-C does."""

    def stop() -> dict[str, Any]:
        raise KeyboardInterrupt

    with WorkFolder(path) as folder:
        folder.claim(inputs)
        with pytest.raises(KeyboardInterrupt):
            write_store(folder, content, options=options, run=stop)
