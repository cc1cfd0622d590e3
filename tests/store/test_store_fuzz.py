"""Damaged stores: an error or the right answer; where HDF5 itself dies, ``check`` says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store import check_apart, open_store
from tests.store.mutations import (
    INDEX_SIZES,
    RAW,
    THROUGH_HDF5,
    header_end,
    index_block_end,
    lookup3,
    mutate,
    signatures,
)
from tests.store.synthetic import make_store, values

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX")

TRIALS = 600


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


@pytest.mark.parametrize("seed", [1963, 3741, 4971])
def test_damages_that_once_ended_in_a_traceback(seed: int, victim: Path, tmp_path: Path) -> None:
    """A number of neighbours that is none, and links of a group that cannot be read."""
    mutate(victim.read_bytes(), tmp_path / "damaged.h5", seed)
    with pytest.raises(StoreError, match=r"is no number|check link existence"):
        open_store(tmp_path / "damaged.h5")


@pytest.mark.slow
def test_damaged_stores_give_an_error_or_the_right_answer(victim: Path, tmp_path: Path) -> None:
    """A damage that ends the worker must be a finding of the check, and the check must survive."""
    assert TRIALS // (len(RAW) + len(THROUGH_HDF5)) >= 40, "every damage is tried often"
    found, failures = try_damages(victim, 0, TRIALS, tmp_path)
    assert not failures, failures[0][:3000]
    assert found > TRIALS // 2


def try_damages(victim: Path, first: int, last: int, folder: Path) -> tuple[int, list[str]]:
    """Try the damages ``first`` to ``last``; return how many were found, and what went wrong."""
    command = [sys.executable, "-m", "tests.store.fuzz_worker", str(victim)]
    found, failures = 0, []
    while first < last:
        arguments = [*command, str(first), str(last)]
        run = subprocess.run(arguments, capture_output=True, text=True, timeout=3600, check=False)
        lines = run.stdout.splitlines()
        failures += [line for line in lines if line.startswith("FAILED")]
        if run.returncode == 0:
            return found + int(lines[-1].split()[4]), failures
        seed = int(lines[-1])  # of a damage that ends the worker
        path = folder / "deadly.h5"
        mutate(victim.read_bytes(), path, seed)
        if not check_apart(path, patience=10.0):
            failures.append(f"FAILED seed {seed}: ends the reader, and the check finds nothing")
        found += seed - first
        first = seed + 1
    return found, failures
