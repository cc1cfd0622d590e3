"""From a model to a mesh.

What flows in: a model (anatomy, array, case patch) and sizes. What flows out: a :class:`Mesh` of
nested cylinders that share their interfaces, with the paddle as a void, contacts and case
imprinted, enclosed volumes corrected, points in a local order. gmsh is loaded only when a mesh is
built.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.gmsh_session import gmsh_session, gmsh_version
from fieldcorr.mesh.gmsh_spine import add_spine, collect_spine
from fieldcorr.mesh.interfaces import VolumeChange, correct_volumes
from fieldcorr.mesh.order import tidy
from fieldcorr.mesh.sizes import MeshSizes
from fieldcorr.model import Model, Sizes


def build_mesh(model: Model, *, sizes: MeshSizes | Sizes | None = None) -> Mesh:
    """Build the mesh of a model with gmsh; the same input gives the same mesh.

    Parameters
    ----------
    model : Model
    sizes : MeshSizes or the table ``[mesh.sizes]`` of a model, optional
        By default the model's own sizes.

    Returns
    -------
    Mesh
        Facet sets: every contact by its name, "outer" (the torso's surface with its flat ends,
        without the case) and "case". The uncovered faces of the paddle carry no name.

    Raises
    ------
    MissingExtraError
        gmsh is not installed.
    MeshError
        gmsh cannot mesh the geometry at these sizes.
    """
    chosen = MeshSizes.of(model.mesh.sizes if sizes is None else sizes)
    with gmsh_session(model.name) as gmsh:
        spine = add_spine(gmsh, model, chosen)
        gmsh.model.mesh.generate(3)
        mesh, interfaces = collect_spine(gmsh, model, spine)
    points, changes = correct_volumes(mesh.points, mesh.cells, interfaces)
    return tidy(replace(mesh, points=points, origin=_origin(model, chosen, changes)))


def _origin(model: Model, sizes: MeshSizes, changes: Mapping[str, VolumeChange]) -> dict[str, Any]:
    return {
        "made-by": "build_mesh",
        "model": model.name,
        "shape-sha256": model.shape_hash,
        "sizes": asdict(sizes),
        "gmsh": gmsh_version(),
        "volume-error": {
            name: {"before": change.before, "after": change.after}
            for name, change in changes.items()
        },
    }
