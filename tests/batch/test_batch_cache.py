"""The cache of solved lead fields: shared by processes, and never believed."""

import dataclasses
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import fieldcorr
from fieldcorr.batch import cache as module
from fieldcorr.batch.cache import Cache, code_hash, field_code_hash, key_of
from fieldcorr.batch.fields import lead_field, physics
from fieldcorr.leadfield import LeadField
from fieldcorr.mesh import read_mesh
from fieldcorr.model import Model, resolve_mesh

ARRAYS = {"x": np.arange(500.0), "names": np.array(["a", "b"])}


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    """Return the file of an entry with the key "key"."""
    Cache(tmp_path).save("key", ARRAYS)
    return tmp_path / "key.npz"


def load(entry: Path) -> object:
    return Cache(entry.parent).load(entry.stem)


def test_an_entry_comes_back(entry: Path) -> None:
    found = Cache(entry.parent).load("key")
    assert found is not None
    assert set(found) == set(ARRAYS)
    for name, values in ARRAYS.items():
        np.testing.assert_array_equal(found[name], values)


def test_any_changed_byte_makes_an_entry_absent(entry: Path) -> None:
    content = entry.read_bytes()
    for place in range(0, len(content), 101):
        damaged = bytearray(content)
        damaged[place] ^= 1
        entry.write_bytes(damaged)
        assert load(entry) is None, place
    for length in (0, 31, 32, len(content) // 2, len(content) - 1):
        entry.write_bytes(content[:length])
        assert load(entry) is None, length


def test_a_poisoned_entry_is_absent(entry: Path) -> None:
    """A sound NumPy file of other numbers, as np.savez writes it."""
    np.savez(entry, **{**ARRAYS, "x": np.zeros(500)})  # type: ignore[arg-type]
    assert load(entry) is None


def test_an_entry_under_the_name_of_another_is_absent(entry: Path) -> None:
    other = entry.rename(entry.with_name("other.npz"))
    assert load(other) is None


@pytest.mark.skipif(os.name != "posix", reason="owners and permissions of POSIX")
def test_an_entry_that_others_may_write_is_absent(entry: Path) -> None:
    assert entry.stat().st_mode & 0o777 == 0o600
    entry.chmod(0o622)
    assert load(entry) is None
    entry.chmod(0o644)
    assert load(entry) is not None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give away files")
def test_an_entry_of_another_user_is_absent(entry: Path) -> None:
    os.chown(entry, 65534, -1)
    assert load(entry) is None


def test_a_damaged_entry_is_solved_again(
    small_model: Model, solved: LeadField, cache: Path, tmp_path: Path
) -> None:
    mesh = read_mesh(resolve_mesh(small_model, "tiny"))
    name = f"{key_of(physics(small_model, mesh, 2))}.npz"
    (tmp_path / name).write_bytes((cache / name).read_bytes()[:-5000])
    again = lead_field(small_model, mesh, name="tiny", cache=Cache(tmp_path))
    assert again.times
    assert again.nodal.tobytes() == solved.nodal.tobytes()
    assert (tmp_path / name).read_bytes()[-32:] == (cache / name).read_bytes()[-32:]


FILLING = """
    import sys
    from pathlib import Path
    import numpy as np
    from fieldcorr.batch import cache as module

    module.LIMIT_BYTES = 20_000
    kept = module.Cache(Path(sys.argv[1]))
    for number in range(300):
        kept.save(f"{number % 7}", {"x": np.full(1000, float(number % 7))})
        found = kept.load(f"{number % 5}")
        assert found is None or (found["x"] == number % 5).all()
"""


@pytest.mark.slow
def test_processes_may_fill_it_at_the_same_time(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(FILLING), str(tmp_path)]
    jobs = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    errors = [job.communicate()[1] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0, 0], errors
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz"}


def test_a_folder_that_cannot_be_written_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    kept = Cache(tmp_path / "file", fallback=tmp_path / "second")
    kept.save("key", ARRAYS)
    assert kept.load("key") is not None
    Cache(tmp_path / "file").save("key", ARRAYS)  # nowhere to keep it: nothing is kept
    assert Cache(tmp_path / "file").load("key") is None


def hashes_now() -> tuple[str, str]:
    """Return the hashes of all code and of the field's code, computed anew and not remembered."""
    for hash_of in (module.code_hash, module.field_code_hash):
        hash_of.cache_clear()
    try:
        return code_hash(), field_code_hash()
    finally:
        for hash_of in (module.code_hash, module.field_code_hash):
            hash_of.cache_clear()


def hashes_after(change: str, package: Path) -> tuple[str, str]:
    """Return the hashes of all code and of the field's code with a comment added to a source."""
    path = package / change
    before = path.read_text()
    path.write_text(before + "\n# changed\n")
    try:
        return hashes_now()
    finally:
        path.write_text(before)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of the package, which the hashes are taken of."""
    copy = tmp_path / "fieldcorr"
    shutil.copytree(Path(fieldcorr.__file__).parent, copy)
    monkeypatch.setattr(fieldcorr, "__file__", str(copy / "__init__.py"))
    return copy


@pytest.mark.parametrize(
    ("change", "store_differs", "field_differs"),
    [
        ("fem/solve.py", True, True),
        ("leadfield/compute.py", True, True),
        ("contacts.py", True, True),
        ("drive/_kernels.py", True, False),
        ("correlation/tiles.py", True, False),
        ("configurations/rules.py", True, False),
        ("store/layout.py", True, False),
        ("batch/embed.py", True, False),
        ("cli/precompute.py", False, False),
        ("plot/style.py", False, False),
    ],
)
def test_changed_code_changes_the_keys(
    change: str, store_differs: bool, field_differs: bool, package: Path
) -> None:
    changed, unchanged = hashes_after(change, package), hashes_now()
    differ = tuple(a != b for a, b in zip(changed, unchanged, strict=True))
    assert differ == (store_differs, field_differs)


def test_another_processor_changes_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_hash(), field_code_hash()
    monkeypatch.setattr("llvmlite.binding.get_host_cpu_name", lambda: "another")
    assert not set(before) & set(hashes_now())


def test_the_code_is_in_the_key_of_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of({})
    monkeypatch.setattr(module, "field_code_hash", lambda: "another")
    assert key_of({}) != before


@pytest.mark.parametrize("name", ["numpy", "scipy", "numba", "fenics-basix", "pyamg"])
def test_other_versions_change_the_keys(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_hash(), field_code_hash()
    found = {**module.versions(), name: "0.0"}
    monkeypatch.setattr(module, "versions", lambda: found)
    assert not set(before) & set(hashes_now())


@pytest.mark.parametrize(
    "change",
    [
        {"tissues.csf.conductivity_S_per_m": 1.5},
        {"contacts.model": "impedance", "contacts.impedance_ohm_m2": 0.01},
        {"boundary.outer": "grounded"},
        {"solver.tolerance": 1e-6},
        {"geometry.cord.width_mm": 9.0},
    ],
)
def test_every_part_of_the_physics_is_in_the_key(
    change: dict[str, object], bundled_model: Model
) -> None:
    mesh = read_mesh(resolve_mesh(bundled_model, "tiny"))
    other = bundled_model.replace(change)
    assert key_of(physics(other, mesh, 2)) != key_of(physics(bundled_model, mesh, 2))
    assert key_of(physics(bundled_model, mesh, 1)) != key_of(physics(bundled_model, mesh, 2))
    moved = dataclasses.replace(mesh, points=mesh.points + 1e-3)
    assert key_of(physics(bundled_model, moved, 2)) != key_of(physics(bundled_model, mesh, 2))
