"""Meshes: build them from a model, read and write them, refuse bad ones.

What flows in: a model file's geometry, or a mesh file. What flows out: a checked :class:`Mesh`
with tissue tags on its cells and names on its contacts. ``data`` holds the arrays, ``fcmesh`` the
compact file, ``structured`` boxes without a mesh generator, ``build`` the gmsh builder, ``check``
the refusals and the report.
"""

from fieldcorr.mesh.build import build_mesh
from fieldcorr.mesh.check import check_mesh
from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.files import read_mesh, write_mesh
from fieldcorr.mesh.order import tidy
from fieldcorr.mesh.report import MeshReport
from fieldcorr.mesh.sizes import MeshSizes

__all__ = [
    "Mesh",
    "MeshReport",
    "MeshSizes",
    "build_mesh",
    "check_mesh",
    "read_mesh",
    "tidy",
    "write_mesh",
]
