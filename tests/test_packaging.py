"""The package as it is shipped: pins within ranges, one version, scripts that parse."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import fieldcorr

ROOT = Path(__file__).resolve().parent.parent
TEST_EXTRAS = ("mesh", "plot", "export", "notebooks")


def pyproject() -> dict[str, Any]:
    """Return what pyproject.toml says."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def project() -> dict[str, Any]:
    """Return the table ``[project]`` of pyproject.toml."""
    table: dict[str, Any] = pyproject()["project"]
    return table


def pinned_lines(which: str) -> list[str]:
    """Return the pins of a file, each with its hashes in one line."""
    text = (ROOT / f"scripts/requirements-{which}.txt").read_text(encoding="utf-8")
    return [line for line in text.replace("\\\n", "").splitlines() if "==" in line]


def pins(which: str) -> dict[str, str]:
    """Return pinned versions by canonical name."""
    found: dict[str, str] = {}
    for line in pinned_lines(which):
        requirement = Requirement(line.split("--hash")[0])
        if requirement.marker is None or requirement.marker.evaluate():
            found[canonicalize_name(requirement.name)] = str(requirement.specifier).strip("=")
    return found


def unmet(requirements: list[str], pinned: dict[str, str]) -> list[str]:
    """Return the requirements that the pins do not meet."""
    wanted = [Requirement(text) for text in requirements]
    return [
        str(requirement)
        for requirement in wanted
        if requirement.name != "fieldcorr"
        and not requirement.specifier.contains(pinned.get(canonicalize_name(requirement.name), "0"))
    ]


def test_run_pins_meet_the_dependencies() -> None:
    assert unmet(project()["dependencies"], pins("run")) == []


@pytest.mark.parametrize("extra", TEST_EXTRAS)
def test_test_pins_meet_the_extras(extra: str) -> None:
    assert unmet(project()["optional-dependencies"][extra], pins("test")) == []


@pytest.mark.parametrize("group", ["build", "docs", "test"])
def test_test_pins_meet_the_groups(group: str) -> None:
    wanted = [text for text in pyproject()["dependency-groups"][group] if isinstance(text, str)]
    assert unmet(wanted, pins("test")) == []


def test_the_test_set_holds_the_run_set() -> None:
    assert pins("run").items() <= pins("test").items()


@pytest.mark.parametrize("which", ["run", "test"])
def test_every_pin_has_hashes(which: str) -> None:
    bare = [line for line in pinned_lines(which) if not re.search(r"--hash=sha256:\w{64}", line)]
    assert bare == []


def test_the_oldest_set_is_that_of_the_floors() -> None:
    oldest = pins("oldest")
    wanted = project()["dependencies"] + [
        text for extra in TEST_EXTRAS for text in project()["optional-dependencies"][extra]
    ]
    for requirement in map(Requirement, wanted):
        if requirement.name != "fieldcorr":
            floor = min(Version(s.version) for s in requirement.specifier if s.operator == ">=")
            found = Version(oldest[canonicalize_name(requirement.name)])
            assert found.release[:2] == floor.release[:2] or found == floor, requirement


def test_what_is_imported_is_declared() -> None:
    """Packages that others bring along may stop doing so."""
    declared = {canonicalize_name(Requirement(t).name) for t in project()["dependencies"]}
    for extra in ("mesh", "plot", "plot3d", "export", "serve", "widget", "dask", "bench"):
        texts = project()["optional-dependencies"][extra]
        declared |= {canonicalize_name(Requirement(t).name) for t in texts}
    distribution = {"basix": "fenics-basix", "skfem": "scikit-fem", "sklearn": "scikit-learn",
                    "netgen": "ngsolve", "mpl_toolkits": "matplotlib", "PIL": "pillow"}  # fmt: skip
    pattern = re.compile(r"^\s*(?:from|import) (\w+)", re.MULTILINE)
    for path in (ROOT / "fieldcorr").rglob("*.py"):
        code = re.sub(r'"""(?s:.*?)"""', "", path.read_text(encoding="utf-8"))
        for name in set(pattern.findall(code)) - sys.stdlib_module_names - {"fieldcorr"}:
            assert canonicalize_name(distribution.get(name, name)) in declared, f"{path}: {name}"


def test_one_version() -> None:
    assert version("fieldcorr") == fieldcorr.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {fieldcorr.__version__}\n" in citation


def test_one_version_of_ruff() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert f"rev: v{pins('test')['ruff']} #" in hooks


@pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for POSIX shells")
@pytest.mark.parametrize(
    "script",
    ["scripts/run", "scripts/test", "scripts/set-up", "scripts/pin", "scripts/docs",
     "scripts/figures", ".ci/run"],
)  # fmt: skip
def test_script_parses_and_may_run(script: str) -> None:
    path = ROOT / script
    assert path.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", str(path)], check=True)


def kernel_state_module() -> ModuleType:
    """Return the script that names the folder of compiled kernels."""
    spec = importlib.util.spec_from_file_location("kernel_state", ROOT / "scripts/kernel_state.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_folder_of_compiled_kernels_follows_every_kernel_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = kernel_state_module()
    monkeypatch.setattr(script, "PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    kernels, other = tmp_path / "room/_x_kernels.py", tmp_path / "room/plain.py"
    kernels.write_text("a = 1")
    other.write_text("b = 1")
    before = script.kernel_state()
    other.write_text("b = 2")
    assert script.kernel_state() == before
    kernels.write_text("a = 2")
    after = script.kernel_state()
    assert after != before
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert script.kernel_state() == after
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert script.kernel_state() != after
