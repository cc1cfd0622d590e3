"""What the study changes, one thing at a time.

A variant of the bundled model has its mesh, built or extended once and then kept in
``results/study``, and its lead field.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import fieldcorr.mesh as mesh_package
from fieldcorr.leadfield import compute_lead_field
from fieldcorr.mesh import Mesh, build_mesh, read_mesh, write_mesh
from fieldcorr.model import Model, resolve_mesh
from fieldcorr.progress import Progress, silent
from study_parts.domain import extend_domain

CACHE = Path(__file__).resolve().parent.parent.parent / "results" / "study"
LARGE_RADIUS_MM, LARGE_LENGTH_MM, LARGE_SIZE_MM = 300.0, 800.0, 80.0


@dataclass(frozen=True)
class Variant:
    """One change.

    Parameters
    ----------
    name, effect
        First two columns of the table.
    sizes
        Factors on the mesh sizes of the model; a new mesh is built where there are any.
    changes
        Values of the model by dotted key.
    mesh
        "own": the mesh under study or the one built; "extended": it, wrapped in a larger body; or
        the name of a bundled mesh.
    order
        Order of the elements.
    aim
        Largest max and median of |delta r| hoped for.
    long
        Needs several minutes and GB.
    """

    name: str
    effect: str
    sizes: Mapping[str, float] = field(default_factory=dict)
    changes: Mapping[str, object] = field(default_factory=dict)
    mesh: Literal["own", "extended", "companion"] = "own"
    order: int = 2
    aim: tuple[float, float] | None = None
    long: bool = False


MESH_AIM = (5e-3, 1e-4)
DOMAIN_AIM = (1e-2, 1e-2)
BULK = ("cord_mm", "end_mm", "far_mm")

VARIANTS = (
    Variant("rims", "contact rims halved", {"rim_mm": 0.5}, aim=MESH_AIM),
    Variant("bulk", "cord, ends, far: 0.7", dict.fromkeys(BULK, 0.7), aim=MESH_AIM),
    Variant("growth", "growth from the rims: 0.75", {"growth": 0.75}, aim=MESH_AIM),
    Variant(
        "all",
        "rims 0.5, bulk 0.7, growth 0.75",
        {"rim_mm": 0.5, "growth": 0.75, **dict.fromkeys(BULK, 0.7)},
        aim=MESH_AIM,
        long=True,
    ),
    Variant(
        "domain",
        "same mesh in a body of radius 300 mm, length 800",
        mesh="extended",
        aim=DOMAIN_AIM,
    ),
    Variant(
        "boundary",
        "same mesh, outer boundary grounded (bracket)",
        changes={"boundary.outer": "grounded"},
        aim=DOMAIN_AIM,
    ),
    Variant(
        "tolerance", "same mesh, solver to 1e-11", changes={"solver.tolerance": 1e-11}, aim=MESH_AIM
    ),
    Variant(
        "twin",
        "all sizes 0.985: another mesh of the same recipe",
        dict.fromkeys(("rim_mm", *BULK), 0.985),
    ),
    Variant("companion", "all sizes about doubled", mesh="companion"),
    Variant("P1", "same mesh, linear elements", order=1),
)


@dataclass(frozen=True)
class Result:
    """What the comparison needs of one lead field."""

    admittance: NDArray[np.float64]
    gram: NDArray[np.float64]
    cells: int
    dofs: int
    seconds: float


def variant_model(variant: Variant, model: Model) -> Model:
    """Return the model with the changes of a variant."""
    sizes = {
        f"mesh.sizes.{key}": factor * getattr(model.mesh.sizes, key)
        for key, factor in variant.sizes.items()
    }
    changes = {**sizes, **variant.changes}
    return model.replace(changes) if changes else model


def variant_mesh(variant: Variant, model: Model, studied: Mesh) -> Mesh:
    """Return the mesh of a variant, from the cache where it has been built before."""
    if variant.mesh == "companion":
        return read_mesh(resolve_mesh(model, "companion"))
    if variant.mesh == "own" and not variant.sizes:
        return studied
    key = studied.hash if variant.mesh == "extended" else model.geometry_hash
    path = CACHE / f"{variant.name}-{key[:12]}-{builder_hash()[:12]}.fcmesh"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_mesh(_build(variant, model, studied), path)
    return read_mesh(path)


def builder_hash() -> str:
    """Return the sha256 of the mesh builder's sources: a changed recipe makes new meshes."""
    sources = [*sorted(Path(mesh_package.__file__).parent.rglob("*.py")), Path(__file__)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()


def _build(variant: Variant, model: Model, studied: Mesh) -> Mesh:
    """Build or extend a mesh with gmsh."""
    if variant.mesh == "extended":
        return extend_domain(studied, LARGE_RADIUS_MM, LARGE_LENGTH_MM, LARGE_SIZE_MM)
    return build_mesh(model)


def solve(model: Model, mesh: Mesh, order: int, progress: Progress = silent) -> Result:
    """Return what the comparison needs of the lead field of a model on a mesh."""
    lead = compute_lead_field(model, mesh, order=order, progress=progress)
    seconds = float(sum(lead.times.values()))
    return Result(lead.admittance, lead.gram, mesh.n_cells, lead.space.n_dofs, seconds)
