"""Whether a mesh belongs to a model: the guard of every way from a mesh to a field.

A model says where its contacts lie, and its rules count neighbours by that; a mesh has contacts of
its own, and fields are computed with those. The two must be the same array.
"""

from pathlib import Path

import numpy as np

from fieldcorr.errors import MeshError
from fieldcorr.mesh.check import refuse_unsound
from fieldcorr.mesh.data import Floats, Mesh
from fieldcorr.mesh.files import read_mesh
from fieldcorr.model import Model, resolve_mesh

CONTACT_TOLERANCE_M = 1e-3
"""How far a contact of the mesh may lie from where the model puts it."""

_sound: set[tuple[object, ...]] = set()  # what check_mesh_of_model has found sound in this process


def load_mesh(model: Model, which: str) -> tuple[Mesh, Path]:
    """Read the mesh that a model names (see ``resolve_mesh``); refuse one of another geometry."""
    path = resolve_mesh(model, which)
    mesh = read_mesh(path)
    require_same_geometry(model, mesh, name=str(path))
    return mesh, path


def check_mesh_of_model(model: Model, mesh: Mesh, *, name: str = "mesh") -> None:
    """Refuse a mesh that is unsound or does not belong to the model.

    The mesh must have the model's tissues and contacts, and no other tissues; see also
    :func:`fieldcorr.check_mesh` and :func:`require_same_geometry`. A mesh that was found sound once
    is not looked through again in the same process.
    """
    _require_same_shapes(model, mesh, name)
    tissues, contacts = tuple(model.tissues), model.electrode_names
    if (mesh.hash, tissues, contacts) not in _sound:
        refuse_unsound(mesh, tissues=tissues, contacts=contacts, name=name)
        _sound.add((mesh.hash, tissues, contacts))
    _require_same_contacts(model, mesh, name)


def require_same_geometry(model: Model, mesh: Mesh, *, name: str = "mesh") -> None:
    """Refuse a mesh that says it was made for other shapes, or whose contacts lie elsewhere; quick.

    A contact of the paddle may lie 1 mm from where the model puts it. The stimulator case is not
    compared.
    """
    _require_same_shapes(model, mesh, name)
    _require_same_contacts(model, mesh, name)


def _require_same_shapes(model: Model, mesh: Mesh, name: str) -> None:
    made_for = mesh.origin.get("shape-sha256")
    if made_for is not None and made_for != model.shape_hash:
        raise MeshError(
            f"{name}: was made for another geometry than {model.path} describes; "
            '"fieldcorr mesh" makes one for it'
        )


def _require_same_contacts(model: Model, mesh: Mesh, name: str) -> None:
    centroids, areas = mesh.points[mesh.facets].mean(axis=1), mesh.facet_areas()
    for contact, wanted in zip(model.device.contact_names, model.contact_positions_m, strict=True):
        tag = mesh.facet_names.index(contact) if contact in mesh.facet_names else -1
        faces = mesh.facet_tags == tag
        if not areas[faces].sum() > 0:
            raise MeshError(f"{name}: contact {contact!r} has no faces")
        found = np.average(centroids[faces], axis=0, weights=areas[faces])
        if not np.linalg.norm(found - wanted) <= CONTACT_TOLERANCE_M:
            raise MeshError(
                f"{name}: contact {contact!r} lies at {_place(found)} in the mesh, but at "
                f"{_place(wanted)} by {model.path} with the device {model.device.name!r}"
            )


def _place(position: Floats) -> str:
    left, dorsal, rostral = 1e3 * position
    return f"left {left:.1f}, dorsal {dorsal:.1f}, rostral {rostral:.1f} mm"
