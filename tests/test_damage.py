"""Every parser, with damaged files: one line of error, or what was written."""

from collections import Counter
from pathlib import Path

import h5py
import pytest

from fieldcorr.errors import StoreError
from fieldcorr.store.sweeps import open_sweep, write_sweep
from tests.damage import ATTEMPTS, Attempt, attempt_mesh, sweep_values


@pytest.mark.parametrize("attempt", ATTEMPTS.values(), ids=ATTEMPTS)
def test_a_damaged_file_is_refused_or_read_as_it_was(attempt: Attempt, tmp_path: Path) -> None:
    # A mesh file that has lost its checksum is read in a process of its own, which takes a second.
    tries = 10 if attempt is attempt_mesh else 150
    outcomes = Counter(attempt(seed, tmp_path) for seed in range(tries))
    assert outcomes["refused"] > tries // 4


def test_nothing_of_a_sweep_store_is_in_a_heap_without_a_checksum(tmp_path: Path) -> None:
    """HDF5 hangs on texts of variable length whose heap was blanked."""
    write_sweep(tmp_path / "sweep.h5", sweep_values(), run={}, force=False)
    assert b"GCOL" not in (tmp_path / "sweep.h5").read_bytes()


@pytest.mark.parametrize("name", ["fieldcorr-sweep-format", "sha256", "run"])
@pytest.mark.parametrize("odd", [3, "null", "[]", b"\xff"])
def test_odd_attributes_of_a_sweep_store_are_one_line(
    name: str, odd: object, tmp_path: Path
) -> None:
    path = tmp_path / "sweep.h5"
    write_sweep(path, sweep_values(), run={}, force=False)
    with h5py.File(path, "r+") as file:
        file.attrs[name] = odd
    with pytest.raises(StoreError):
        open_sweep(path)
