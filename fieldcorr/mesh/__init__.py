"""Meshes: build them from a model, read and write them, refuse bad ones.

``data`` holds the arrays, ``topology`` the faces between cells, ``files`` and ``fcmesh`` read and
write, ``structured`` makes boxes without a mesh generator, ``gmsh`` builds the spine, ``check``
refuses unsound meshes, ``match`` those that do not belong to a model.
"""

from fieldcorr.mesh.check import MeshReport, check_mesh, measure_mesh
from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.files import read_mesh, write_mesh
from fieldcorr.mesh.gmsh.sizes import MeshSizes
from fieldcorr.mesh.gmsh.spine import build_mesh
from fieldcorr.mesh.match import check_mesh_of_model, load_mesh, require_same_geometry
from fieldcorr.mesh.order import tidy

__all__ = [
    "Mesh",
    "MeshReport",
    "MeshSizes",
    "build_mesh",
    "check_mesh",
    "check_mesh_of_model",
    "load_mesh",
    "measure_mesh",
    "read_mesh",
    "require_same_geometry",
    "tidy",
    "write_mesh",
]
