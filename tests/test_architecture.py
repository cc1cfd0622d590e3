"""The modules are a pipeline: imports point up-stream only, and light modules stay light."""

import ast
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "fieldcorr"

# A module may import from its left. The text form of configurations is so low because rules and
# stores are written in it.
PIPELINE = (
    "errors",
    "files",
    "progress",
    "_parallel",
    "cluster",
    "elements",
    "configurations.text",
    "layout",
    "stimulation",
    "notebook",
    "model",
    "mesh",
    "tissue",
    "contacts",
    "fem",
    "leadfield",
    "configurations",
    "drive",
    "correlation",
    "store",
    "batch",
    "sweep",
    "export",
    "duel",
    "verification",
    "plot",
    "web",
    "notebook.picker",
    "cli",
)

FINITE_ELEMENT_SIDE = ("model", "mesh", "tissue", "contacts", "fem", "leadfield", "verification")
LIGHT = ("configurations.text", "stimulation", "correlation", "store", "duel", "web")
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


@pytest.mark.parametrize("module", ["fieldcorr.store", "fieldcorr.duel", "fieldcorr.web.report"])
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


# -- kernels: compiled functions live alone, so that numba's cache cannot go stale ----------------

COMPILERS = {"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass",
             "intrinsic", "overload", "overload_method", "overload_attribute"}  # fmt: skip


def is_kernel_file(module: str) -> bool:
    """Tell whether a module is named as one of kernels: ``_kernels`` or ``_x_kernels``."""
    stem = module.split(".")[-1]
    return stem.startswith("_") and stem.endswith("_kernels")


def compilers_named(path: Path) -> set[str]:
    """Return what a file that imports numba names of its ways to compile, in any spelling."""
    if "numba" not in {name.split(".")[0] for name in imported(path)}:
        return set()
    named = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            named.add(node.attr)
        elif isinstance(node, ast.Name):
            named.add(node.id)
        elif isinstance(node, ast.alias):
            named.add(node.name.split(".")[-1])
    return named & COMPILERS


def compiled_functions(module: str) -> dict[str, Any]:
    """Return the compiled functions that a module defines, by whatever decorator, by name."""
    from numba.core.dispatcher import Dispatcher
    from numba.core.extending import _Intrinsic

    full = f"fieldcorr.{module}"
    return {
        name: value
        for name, value in vars(importlib.import_module(full)).items()
        if isinstance(value, Dispatcher | _Intrinsic) and value.__module__ == full
    }


@pytest.mark.parametrize("module", sorted(sources()))
def test_kernels_live_alone(module: str) -> None:
    path = sources()[module]
    compiled = compiled_functions(module)
    if is_kernel_file(module):
        assert compiled, f"fieldcorr.{module} is named as kernels, but compiles nothing"
        own = [name for name in imported(path) if name.startswith("fieldcorr")]
        assert not own, f"{module} calls helpers of another file: numba's cache would go stale"
    else:
        assert not compiled, f"fieldcorr.{module} compiles {[*compiled]}: that belongs to _kernels"
        assert not compilers_named(path), f"fieldcorr.{module} belongs to _kernels"


def untyped_parts(function: Callable[..., Any]) -> list[str]:
    """Return the parameters, and "return", that a function says no type of, or none that tells."""
    signature = inspect.signature(function)
    types = {name: p.annotation for name, p in signature.parameters.items()}
    types["return"] = signature.return_annotation
    return [name for name, t in types.items() if t in (inspect.Parameter.empty, Any, np.ndarray)]


@pytest.mark.parametrize("module", [m for m in sorted(sources()) if is_kernel_file(m)])
def test_kernels_are_annotated(module: str) -> None:
    kernels = {n: k.py_func for n, k in compiled_functions(module).items() if hasattr(k, "py_func")}
    untyped = {name: parts for name, f in kernels.items() if (parts := untyped_parts(f))}
    assert not untyped
