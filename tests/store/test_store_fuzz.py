"""Two thousand damaged stores: an error or the right answer, never a crash, a hang or a lie."""

import subprocess
import sys
from pathlib import Path

import h5py
import pytest

from tests.store.mutations import (
    INDEX_SIZES,
    RAW,
    THROUGH_HDF5,
    header_end,
    index_block_end,
    lookup3,
    signatures,
)
from tests.store.synthetic import make_store, values

TRIALS = 2100
WORKERS = 2


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of a few configurations with everything that a store may have."""
    return make_store(tmp_path_factory.mktemp("fuzz") / "victim.h5", values(count=12))


def test_the_forger_knows_the_checksum_of_hdf5(victim: Path) -> None:
    data = bytearray(victim.read_bytes())
    headers = [p for p in signatures(data) if data[p : p + 4] == b"OHDR"]
    assert len(headers) > 30
    for start in headers:
        end = header_end(data, start)
        assert end is not None
        assert int.from_bytes(data[end : end + 4], "little") == lookup3(bytes(data[start:end]))
    kinds = set()
    for start in signatures(data):
        kind = bytes(data[start : start + 4])
        if kind in INDEX_SIZES:
            kinds.add(kind)
            end = start + INDEX_SIZES[kind]
            end = index_block_end(data, start) if kind == b"FADB" else end
            assert int.from_bytes(data[end : end + 4], "little") == lookup3(bytes(data[start:end]))
    assert kinds == set(INDEX_SIZES)


@pytest.mark.slow
def test_damaged_stores_give_an_error_or_the_right_answer(victim: Path) -> None:
    assert TRIALS // (len(RAW) + len(THROUGH_HDF5)) >= 100, "every damage is tried often"
    share = TRIALS // WORKERS
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.store.fuzz_worker"]
    running = [
        subprocess.Popen(
            [*command, str(victim), str(share * k), str(share * (k + 1))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for k in range(WORKERS)
    ]
    try:
        for process in running:
            assert_survived(process, share)
    finally:
        for process in running:
            process.kill()
            process.communicate()


def assert_survived(process: "subprocess.Popen[str]", share: int) -> None:
    """Wait for a worker: no failure, no crash, damage found, little memory."""
    output = process.communicate(timeout=600)[0]
    lines = output.splitlines()
    failures = [line for line in lines if line.startswith("FAILED")]
    assert not failures, output[output.index("FAILED") :][:3000]
    assert process.returncode == 0, f"died after {lines[-40:]}"
    words = lines[-1].split()
    assert words[0] == "DONE"
    found, peak = int(words[4]), int(words[6])
    assert found > share // 2
    assert peak < 600


def test_a_damaged_heap_does_not_hang_the_reader(victim: Path, tmp_path: Path) -> None:
    """HDF5 itself loops for ever on this one; the reader must not ask it."""
    from fieldcorr.store import check_store

    data = bytearray(victim.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 24 : heap + 32] = (2**64 - 16).to_bytes(8, "little")
    path = tmp_path / "heap.h5"
    path.write_bytes(data)
    assert "heap" in str(check_store(path)[0])


def test_h5py_may_change_attributes_without_blinding_the_reader(
    victim: Path, tmp_path: Path
) -> None:
    """Attributes move to continuation blocks and other heaps when they are rewritten."""
    from fieldcorr.store import open_store

    path = tmp_path / "notes.h5"
    path.write_bytes(victim.read_bytes())
    with h5py.File(path, "r+") as file:
        for number in range(3):
            file.attrs[f"note {number}"] = "a longer text that does not fit into the header" * 3
        file.attrs["fieldcorr-status"] = "complete"
        file.attrs["fieldcorr-format"] = "1.0"
    with open_store(path) as store:
        assert store.format == "1.0"
