"""Conductivity of every cell: one symmetric tensor each, from the tissues of a model."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ModelError

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model


def cell_conductivity(model: "Model", mesh: "Mesh") -> NDArray[np.float64]:
    """Return the conductivity tensors (T, 6) S/m of all cells: xx, yy, zz, xy, xz, yz.

    The principal axes are those of the model: the cord runs along z, so that white matter conducts
    ``conductivity_along_S_per_m`` along z and ``conductivity_across_S_per_m`` along x and y. A cell
    of a tissue that the model does not describe raises a ModelError.
    """
    table = np.zeros((len(mesh.tissues), 6))
    for tag in np.unique(mesh.cell_tags):
        name = mesh.tissues[tag]
        if name not in model.tissues:
            known = ", ".join(sorted(model.tissues))
            raise ModelError(
                f"{model.path}: [tissues.{name}] is missing, but the mesh has such cells"
                f" (described are {known})"
            )
        table[tag, :3] = model.tissues[name].principal_S_per_m
    return np.ascontiguousarray(table[mesh.cell_tags])
