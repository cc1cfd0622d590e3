"""The modules are a pipeline: imports point up-stream only, and light modules stay light."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "fieldcorr"

# A module may import from its left. The text form of configurations is so low because rules and
# stores are written in it.
PIPELINE = (
    "errors",
    "progress",
    "_parallel",
    "elements",
    "configurations.text",
    "layout",
    "notebook",
    "model",
    "mesh",
    "tissue",
    "contacts",
    "fem",
    "analytic",
    "leadfield",
    "configurations",
    "drive",
    "correlation",
    "store",
    "batch",
    "export",
    "duel",
    "verification",
    "plot",
    "cli",
)

FINITE_ELEMENT_SIDE = ("model", "mesh", "tissue", "contacts", "fem", "analytic", "leadfield")
LIGHT = ("configurations.text", "correlation", "store", "duel")
HEAVY_PACKAGES = ("pydantic", "basix", "pyamg", "meshio", "typer", "gmsh", "matplotlib", "anndata")


def stage_of(module: str) -> str:
    """Return the entry of the pipeline that a module below ``fieldcorr`` belongs to."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in PIPELINE:
            return name
    raise AssertionError(f"fieldcorr.{module} has no place in the pipeline")


def sources() -> dict[str, Path]:
    """Return every module of the package, but the lazy top level, by its name below the package."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name not in ("", "__main__"):
            found[name] = path
    return found


def is_type_checking(node: ast.AST) -> bool:
    """Tell whether a node is ``if TYPE_CHECKING:``, whose imports never run."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def running_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes below ``node`` that can run."""
    for child in ast.iter_child_nodes(node):
        if not is_type_checking(child):
            yield child
            yield from running_nodes(child)


def imported(path: Path) -> Iterator[str]:
    """Yield the full names of what a file imports, inside its functions too."""
    for node in running_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def stages_imported(path: Path) -> Iterator[str]:
    """Yield the stages of the pipeline that a file imports from."""
    for name in imported(path):
        below = name.removeprefix("fieldcorr.")
        if name.startswith("fieldcorr.") and not below.startswith("__"):
            yield stage_of(below)


def loaded_after(code: str) -> list[str]:
    """Return the modules that a fresh interpreter has loaded after running ``code``."""
    program = f"{code}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules: list[str] = json.loads(run.stdout.splitlines()[-1])
    return modules


@pytest.mark.parametrize("module", sorted(sources()))
def test_imports_point_up_stream(module: str) -> None:
    own = stage_of(module)
    for stage in stages_imported(sources()[module]):
        allowed = PIPELINE.index(stage) <= PIPELINE.index(own)
        assert allowed, f"fieldcorr.{module} imports fieldcorr.{stage}"


@pytest.mark.parametrize("module", [m for m in sorted(sources()) if m.startswith(LIGHT)])
def test_light_modules_name_nothing_heavy(module: str) -> None:
    path = sources()[module]
    assert not set(stages_imported(path)) & set(FINITE_ELEMENT_SIDE)
    assert not {name.split(".")[0] for name in imported(path)} & {"pydantic", "basix", "pyamg"}


@pytest.mark.parametrize("module", ["fieldcorr.store", "fieldcorr.duel"])
def test_store_and_duel_load_no_finite_elements(module: str) -> None:
    loaded = loaded_after(f"import {module}")
    heavy = [f"fieldcorr.{name}" for name in FINITE_ELEMENT_SIDE]
    heavy += [*HEAVY_PACKAGES, "scipy.sparse.linalg"]
    assert not set(heavy) & set(loaded)


def test_package_import_is_light() -> None:
    own = [name for name in loaded_after("import fieldcorr") if name.startswith("fieldcorr")]
    assert own == ["fieldcorr"]
    outside = {name.split(".")[0] for name in loaded_after("import fieldcorr")}
    assert not outside & {"numpy", "scipy", "numba", "h5py", *HEAVY_PACKAGES}


def test_every_public_name_is_found() -> None:
    import fieldcorr

    for name in fieldcorr.__all__:
        assert getattr(fieldcorr, name) is not None
    assert set(fieldcorr.__all__) <= set(dir(fieldcorr))


def test_unknown_public_name_is_an_attribute_error() -> None:
    import fieldcorr

    with pytest.raises(AttributeError, match="no attribute 'opn_store'"):
        _ = fieldcorr.opn_store


def test_kernels_live_alone() -> None:
    for name, path in sources().items():
        decorated = "@numba.njit" in path.read_text(encoding="utf-8")
        if decorated:
            assert path.stem.startswith("_"), name
            assert path.stem.endswith("_kernels"), name
            own = [n for n in imported(path) if n.startswith("fieldcorr")]
            assert not own, f"{name} calls helpers of another file: numba's cache would go stale"
