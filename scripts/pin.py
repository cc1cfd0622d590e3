#!/usr/bin/env python3
"""Write the pinned requirement files from what is installed in the Python that runs this.

Usage: .venv/bin/python scripts/pin.py

What flows in: the dependencies and extras of pyproject.toml and the installed packages. What
flows out: scripts/requirements-run.txt and scripts/requirements-test.txt, closed under
dependencies.
"""

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
BUILD = ["hatchling", "editables"]
TEST_EXTRAS = ["mesh", "plot", "export", "notebooks", "docs"]
TEST_TOOLS = ["ruff", "mypy", "pytest", "pytest-xdist", "hypothesis", "scikit-fem"]


def closure(requirements: Iterable[str], extras: dict[str, list[str]]) -> set[str]:
    """Return the canonical names of all packages that the requirements lead to."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name == "fieldcorr":
            waiting += [Requirement(t) for extra in requirement.extras for t in extras[extra]]
        elif name not in found:
            found.add(name)
            waiting += dependencies(name, requirement.extras)
    return found


def dependencies(name: str, extras: set[str]) -> list[Requirement]:
    """Return what an installed package needs on this platform."""
    wanted = [Requirement(text) for text in distribution(name).requires or []]
    return [
        requirement
        for requirement in wanted
        if requirement.marker is None
        or any(requirement.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def write(path: Path, names: set[str], head: str) -> None:
    """Write one pinned file."""
    pins = "".join(f"{name}=={version(name)}\n" for name in sorted(names))
    path.write_text(head + pins, encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {len(names)} packages")


def main() -> None:
    """Write both files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    run = closure(project["dependencies"] + BUILD, extras)
    test = closure([t for e in TEST_EXTRAS for t in extras[e]] + TEST_TOOLS, extras)
    head = "# Pinned by scripts/pin.py from pyproject.toml; do not edit.\n"
    write(ROOT / "scripts/requirements-run.txt", run, head)
    write(ROOT / "scripts/requirements-test.txt", test - run, head + "-r requirements-run.txt\n")


if __name__ == "__main__":
    try:
        main()
    except PackageNotFoundError as error:
        sys.exit(f"scripts/pin.py: {error.name} is not installed")
