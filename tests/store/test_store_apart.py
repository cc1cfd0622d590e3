"""The check in a process of its own: what crashes or hangs HDF5 is a finding, not the end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fieldcorr.store import check_apart, check_store
from tests.store.synthetic import make_store, values


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("apart") / "sound.h5", values(count=12))


@pytest.fixture
def hanging(sound: Path, tmp_path: Path) -> Path:
    """Return a store with a damaged heap of texts, on which HDF5 2.0 loops for ever."""
    data = bytearray(sound.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 24 : heap + 32] = (2**64 - 16).to_bytes(8, "little")
    path = tmp_path / "hanging.h5"
    path.write_bytes(data)
    return path


@pytest.mark.slow
def test_it_says_what_the_check_in_this_process_says(sound: Path, tmp_path: Path) -> None:
    seen: dict[str, float] = {}
    assert check_apart(sound, progress=lambda stage, done: seen.__setitem__(stage, done)) == []
    assert {"checksums", "currents", "rows"} <= set(seen)
    damaged = tmp_path / "\u00fcber.h5"
    damaged.write_bytes(sound.read_bytes()[:-9000])
    assert check_apart(damaged) == check_store(damaged) != []


@pytest.mark.slow
def test_a_file_on_which_hdf5_hangs_is_a_finding(hanging: Path) -> None:
    found = [str(finding) for finding in check_apart(hanging, patience=20.0)]
    assert found
    assert "hangs" in found[0] or "damaged" in found[0]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_process_that_dies_is_a_finding(
    sound: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Python that ends itself by a signal stands for HDF5 that does."""
    dying = tmp_path / "python"
    dying.write_text("#!/bin/sh\nkill -SEGV $$\n")
    dying.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(dying))
    (finding,) = check_apart(sound)
    assert str(finding) == "structure: the HDF5 library crashed on it (SIGSEGV)"


@pytest.mark.slow
def test_the_command_ends_with_one_for_a_crash(hanging: Path, sound: Path) -> None:
    program = (
        "import sys; from fieldcorr.store import check\n"
        "check.check_apart.__kwdefaults__['patience'] = 20.0\n"
        "from fieldcorr.cli import main; sys.argv = ['fieldcorr', 'check', sys.argv[1]]; main()\n"
    )
    for path, code in ((hanging, 1), (sound, 0)):
        run = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
        )
        assert run.returncode == code, run.stdout + run.stderr
        assert "Traceback" not in run.stderr
