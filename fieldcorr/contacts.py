"""The electrodes of a mesh: which faces, how they conduct, what the outer boundary does.

:class:`Electrodes` are plain arrays that the lead-field solver turns into a system.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import triangle_areas

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model

ContactModel = Literal["equipotential", "impedance", "uniform-current"]


@dataclass(frozen=True, eq=False)
class Electrodes:
    """Faces and behaviour of all electrodes.

    Attributes
    ----------
    names
        E names; the stimulator case, where it is an electrode, comes last.
    facets
        Per electrode (F_e, 3) triangles of the mesh.
    positions
        (E, 3) m, area-weighted centres of the faces.
    areas
        (E,) m2.
    model
        "equipotential": the face is one node. "impedance": a layer of ``impedance`` lies between
        the metal node and the tissue (complete electrode model). "uniform-current": the current
        leaves the face with constant density, the contact's voltage is the mean over the face.
    impedance
        ohm m2; 0 unless the model is "impedance".
    grounded
        (G, 3) triangles held at 0 V; none for an insulated outer boundary.
    """

    names: tuple[str, ...]
    facets: tuple[NDArray[np.int32], ...]
    positions: NDArray[np.float64]
    areas: NDArray[np.float64]
    model: ContactModel
    impedance: float
    grounded: NDArray[np.int32]

    @property
    def is_grounded(self) -> bool:
        """Whether current may leave through the outer boundary."""
        return len(self.grounded) > 0


def named_facets(mesh: "Mesh", name: str) -> NDArray[np.int32]:
    """Return the triangles (F, 3) of a named set; a missing or empty one is an error."""
    facets = mesh.facets[mesh.facet_tags == mesh.facet_tag(name)]
    if facets.shape[0] == 0:
        raise MeshError(f"mesh: contact {name!r} has no faces")
    return np.array(facets, dtype=np.int32)


def electrodes_on(
    mesh: "Mesh",
    names: tuple[str, ...],
    *,
    model: ContactModel = "equipotential",
    impedance: float = 0.0,
    grounded: str | None = None,
) -> Electrodes:
    """Collect the electrodes ``names``, each a facet set of the mesh; see :class:`Electrodes`.

    ``impedance`` is in ohm m2; ``grounded`` names the facet set held at 0 V.
    """
    facets = tuple(named_facets(mesh, name) for name in names)
    sizes = [triangle_areas(mesh.points, f) for f in facets]
    centres = [
        np.average(mesh.points[f].mean(axis=1), axis=0, weights=s)
        for f, s in zip(facets, sizes, strict=True)
    ]
    areas = np.array([s.sum() for s in sizes])
    ground = named_facets(mesh, grounded) if grounded else np.empty((0, 3), dtype=np.int32)
    return Electrodes(names, facets, np.array(centres), areas, model, impedance, ground)


def electrodes_of(model: "Model", mesh: "Mesh") -> Electrodes:
    """Collect the electrodes that a model asks for on a mesh."""
    return electrodes_on(
        mesh,
        model.electrode_names,
        model=model.contacts.model,
        impedance=model.contacts.impedance_ohm_m2,
        grounded="outer" if model.boundary.outer == "grounded" else None,
    )
