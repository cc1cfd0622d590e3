"""Read and write meshes by the ending of the file's name.

What flows in: a path. What flows out: a :class:`Mesh`: exactly what was written for ``.fcmesh``,
converted by meshio for everything else.
"""

import os

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Mesh
from fieldcorr.mesh.fcmesh import is_fcmesh, read_fcmesh, write_fcmesh
from fieldcorr.mesh.foreign import Names, Unit, read_foreign, write_foreign


def read_mesh(
    path: str | os.PathLike[str],
    *,
    unit: Unit | None = None,
    tissue_names: Names | None = None,
    facet_names: Names | None = None,
    tag_data: str | None = None,
) -> Mesh:
    """Read a mesh; the file is checked as a file, the mesh is not (see ``check_mesh``).

    Parameters
    ----------
    path : path
        ``.fcmesh``, or anything that meshio reads with tetrahedra, tags on them, and tagged
        triangles for the contacts.
    unit : "m" or "mm", optional
        Unit of a foreign file's coordinates; m by default.
    tissue_names, facet_names : tag or name in the file -> name here, optional
        Names of the tags; by default those in the file (Gmsh's physical names).
    tag_data : str, optional
        Which cell data of a foreign file holds the tags; by default Gmsh's physical tags, or the
        only integer data there is.

    Raises
    ------
    MeshError
        The file is missing, damaged or hostile, its tags have no names, or its size does not fit
        the unit.
    """
    if not is_fcmesh(path):
        return read_foreign(
            path,
            unit=unit,
            tissue_names=tissue_names,
            facet_names=facet_names,
            tag_data=tag_data,
        )
    if unit == "mm" or tissue_names or facet_names or tag_data:
        raise MeshError(f"{path}: unit and names are part of a .fcmesh file and cannot be given")
    return read_fcmesh(path)


def write_mesh(mesh: Mesh, path: str | os.PathLike[str]) -> None:
    """Write a mesh: ``.fcmesh``, or any format of meshio's by the ending of the name."""
    if is_fcmesh(path):
        write_fcmesh(mesh, path)
    else:
        write_foreign(mesh, path)
