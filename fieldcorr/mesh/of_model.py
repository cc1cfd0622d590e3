"""The mesh of a model: found, read, and made sure to show the model's geometry.

What flows in: a model and the name of one of its meshes, or a path. What flows out: the mesh and
where it came from.
"""

from pathlib import Path

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.files import read_mesh
from fieldcorr.model import Model, resolve_mesh


def load_mesh(model: Model, which: str) -> tuple[Mesh, Path]:
    """Read a mesh and make sure that it shows the model's geometry."""
    path = resolve_mesh(model, which)
    mesh = read_mesh(path)
    made_for = mesh.origin.get("shape-sha256")
    if made_for is not None and made_for != model.shape_hash:
        raise MeshError(
            f"{path}: was made for another geometry than {model.path} describes; "
            '"fieldcorr mesh" makes one for it'
        )
    return mesh, path
