"""Single configurations as boundary-value problems of their own: the check on the algebra.

Delivered currents and potentials come from a finite-element solve of that very problem, with
active contacts held (or fed) and off contacts floating as unknowns. Nothing here uses the
admittance matrix or the lead fields.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import threads as thread_count
from fieldcorr.contacts import electrodes_of
from fieldcorr.elements import Space
from fieldcorr.errors import DriveError
from fieldcorr.fem.solve import solve_block
from fieldcorr.leadfield.system import System, build_system, contact_loads
from fieldcorr.tissue import cell_conductivity

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model


@dataclass(frozen=True, eq=False)
class DirectSolution:
    """Directly solved configurations.

    Attributes
    ----------
    currents
        (K, E) A from each contact into the tissue.
    voltages
        (K, E) V of each contact, off contacts included.
    nodal
        (K, n_dofs) V at all nodes.
    """

    currents: NDArray[np.float64]
    voltages: NDArray[np.float64]
    nodal: NDArray[np.float64]


def solve_configurations(
    model: "Model",
    mesh: "Mesh",
    polarity: NDArray[np.int8],
    *,
    currents: NDArray[np.float64] | None = None,
    order: int | None = None,
    tolerance: float | None = None,
    threads: int | None = None,
) -> DirectSolution:
    """Solve configurations one by one.

    Parameters
    ----------
    model, mesh
        As for ``compute_lead_field``.
    polarity
        (K, E) -1, 0, +1. Anodes are one node, cathodes another, 1 V apart; off contacts float.
    currents
        (K, E) A, for a current drive: each contact delivers this current instead.
    order, tolerance, threads
        As for ``compute_lead_field``.
    """
    order = model.solver.order if order is None else order
    tolerance = model.solver.tolerance if tolerance is None else tolerance
    electrodes = electrodes_of(model, mesh)
    if currents is None and electrodes.model == "uniform-current":
        raise DriveError("a voltage drive needs equipotential contacts or contact impedance")
    build = partial(build_system, Space(mesh, order), cell_conductivity(model, mesh), electrodes)
    with thread_count(threads):
        rows = [
            _solve_voltages(build, row, tolerance)
            if currents is None
            else _solve_currents(build, currents[k], tolerance)
            for k, row in enumerate(np.asarray(polarity, dtype=np.int8))
        ]
    return DirectSolution(*(np.stack(part) for part in zip(*rows, strict=True)))


Row = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _solve_voltages(
    build: Callable[..., System], polarity: NDArray[np.int8], tolerance: float
) -> Row:
    """Hold the active contacts at +-1/2 V and let the others float."""
    system = build(floating=polarity == 0)
    held = 0.5 * polarity.astype(np.float64)[:, None]
    rhs = -np.asarray(system.coupling @ held)
    x = solve_block(system.matrix, system.hierarchy, rhs, tolerance=tolerance).x
    currents = np.where(polarity[:, None] != 0, system.currents(x, held), 0.0)
    return currents[:, 0], system.voltages(x, held)[:, 0], system.nodal(x, held)[:, 0]


def _solve_currents(
    build: Callable[..., System], currents: NDArray[np.float64], tolerance: float
) -> Row:
    """Feed each contact its current; all of them float."""
    system = build(floating=np.ones(len(currents), dtype=bool))
    held = np.zeros((len(currents), 1))
    rhs = np.zeros((system.numbering.size, 1))
    loads = contact_loads(system.space, system.electrodes)
    if system.electrodes.model == "uniform-current":
        rhs[: system.numbering.free.size, 0] = (loads.T @ currents)[system.numbering.free]
    else:
        rhs[system.numbering.contact, 0] = currents
    x = solve_block(system.matrix, system.hierarchy, rhs, tolerance=tolerance).x
    nodal = system.nodal(x, held)[:, 0]
    faces = np.asarray(loads @ nodal)
    if system.electrodes.model == "impedance":
        faces = system.voltages(x, held)[:, 0]
    return np.array(currents), faces, nodal
