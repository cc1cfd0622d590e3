"""The problems of the finite-element rows, the same for us and for every peer."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.contacts import electrodes_of
from fieldcorr.elements import Space
from fieldcorr.leadfield.system import build_skeleton, fill_system
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.mesh.structured import box_mesh
from fieldcorr.model import load_model, resolve_mesh
from fieldcorr.tissue import cell_conductivity


def load(mesh: str) -> tuple[Mesh, NDArray[np.float64]]:
    """Return a mesh of the bundled model and the tensors (T, 6) of its cells."""
    model = load_model("lumbosacral-565")
    found = read_mesh(resolve_mesh(model, mesh))
    return found, cell_conductivity(model, found)


def contact_problem(mesh: str, order: int) -> tuple[Any, NDArray[np.float64], Any, Any]:
    """Return the matrix, the 16 right-hand sides, and P1 inside P2 with its matrix (or None)."""
    found, sigma = load(mesh)
    electrodes = electrodes_of(load_model("lumbosacral-565"), found)
    skeleton = build_skeleton(Space(found, order), electrodes)
    system = fill_system(skeleton, sigma, electrodes)
    rhs = -system.coupling.toarray()
    if skeleton.coarse is None:
        return system.matrix, rhs, None, None
    coarse = fill_system(skeleton.coarse, sigma, electrodes).matrix
    return system.matrix, rhs, skeleton.prolongation, coarse


def box_with_contacts(steps: int) -> tuple[Mesh, NDArray[np.float64]]:
    """Return a unit cube of 6 steps^3 tetrahedra with 16 contacts on its top, and its tensors."""

    def on_contact(number: int) -> Any:
        low = (np.array(divmod(number, 4)) + 0.25) / 4.0
        return lambda c: (c[:, 2] > 1 - 1e-9) & ((c[:, :2] > low) & (c[:, :2] < low + 0.125)).all(1)

    mesh = box_mesh(steps, steps, steps, facets={str(n): on_contact(n) for n in range(16)})
    sigma = np.tile([0.083, 0.083, 0.6, 0.0, 0.0, 0.0], (mesh.n_cells, 1))
    sigma[mesh.points[mesh.cells].mean(axis=1)[:, 2] > 0.5, :3] = 1.7
    return mesh, sigma


def worst_residual(matrix: Any, x: NDArray[np.float64], rhs: NDArray[np.float64]) -> float:
    """Return the largest true relative residual of the columns."""
    gap = np.linalg.norm(rhs - matrix @ x, axis=0)
    return float((gap / np.linalg.norm(rhs, axis=0)).max())
