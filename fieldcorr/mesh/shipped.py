"""The meshes that come with the package, and how each is made.

What flows in: the folder to write to, and names. What flows out: the mesh files, checked, and a
table of their sizes and hashes. ``scripts/build-meshes`` runs this module.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from fieldcorr.mesh.check import check_mesh
from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.fcmesh import write_fcmesh
from fieldcorr.mesh.gmsh.sizes import MeshSizes
from fieldcorr.mesh.gmsh.spine import build_mesh
from fieldcorr.mesh.verification import verification_mesh
from fieldcorr.model import load_model

SIZES = {
    "tiny": MeshSizes(
        rim_mm=0.7, growth=0.8, cord_mm=3.0, end_mm=3.0, far_mm=60.0, stretch=3.0, end_stretch=12.0
    ),
    "companion": MeshSizes(rim_mm=0.1, growth=0.4, cord_mm=2.0, end_mm=3.0),
}
"""Sizes that differ from those in the bundled model file, which are the standard mesh's."""


def build_shipped(folder: Path, names: Sequence[str] = ()) -> list[str]:
    """Build the named meshes, or all; return a Markdown table with a row for each."""
    recipes = shipped_recipes()
    unknown = [name for name in names if name not in recipes]
    if unknown:
        raise SystemExit(f"no shipped mesh {unknown[0]!r}; there are {', '.join(recipes)}")
    rows = ["| file | tetrahedra | nodes | bytes | sha256 of the mesh |", "|---|---|---|---|---|"]
    for name in names or recipes:
        file, build = recipes[name]
        rows.append(_build_one(folder / file, build))
    return rows


def shipped_recipes() -> dict[str, tuple[str, Callable[[], Mesh]]]:
    """Return name -> file below the folder of meshes, and the function that makes the mesh."""
    recipes = {name: _spinal_recipe(name) for name in ("standard", "companion", "tiny")}
    for name in ("sphere", "cylinder", "disc"):
        recipes[name] = _verification_recipe(name, name, corrected=True)
    for name in ("sphere", "cylinder"):
        long = f"{name}-uncorrected"
        recipes[long] = _verification_recipe(long, name, corrected=False)
    return recipes


def _spinal_recipe(which: str) -> tuple[str, Callable[[], Mesh]]:
    model = load_model()
    return getattr(model.mesh, which), lambda: build_mesh(model, sizes=SIZES.get(which))


def _verification_recipe(
    file: str, name: str, *, corrected: bool
) -> tuple[str, Callable[[], Mesh]]:
    path = f"verification/{file}.fcmesh"
    return path, lambda: verification_mesh(name, corrected=corrected)


def _build_one(path: Path, build: Callable[[], Mesh]) -> str:
    mesh = build()
    check_mesh(mesh, name=path.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_fcmesh(mesh, path)
    size = path.stat().st_size
    return f"| {path.name} | {mesh.n_cells} | {mesh.n_points} | {size} | `{mesh.hash}` |"


if __name__ == "__main__":
    print("\n".join(build_shipped(Path(sys.argv[1]), sys.argv[2:])))
