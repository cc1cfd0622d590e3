"""From model and mesh to the lead field.

Electrodes with a voltage (equipotential, contact impedance) are solved with one of them at 1 V and
the others at 0 V, which gives the admittance matrix Y and, through its inverse, the potential per
ampere; the uniform-current model is solved per ampere directly.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from fieldcorr._parallel import run_ranges
from fieldcorr._parallel import threads as thread_count
from fieldcorr.contacts import Electrodes, electrodes_of
from fieldcorr.elements import Space
from fieldcorr.errors import FieldError, IdentityError
from fieldcorr.fem.solve import Solution, solve_block, solve_direct
from fieldcorr.leadfield import _kernels
from fieldcorr.leadfield.data import LeadField
from fieldcorr.leadfield.region import compared_region
from fieldcorr.leadfield.system import (
    Skeleton,
    System,
    build_skeleton,
    contact_loads,
    fill_system,
)
from fieldcorr.mesh import check_mesh_of_model
from fieldcorr.progress import Progress, silent
from fieldcorr.tissue import cell_conductivity

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model

Method = Literal["multigrid", "direct"]
METHODS = get_args(Method)

IDENTITY_LIMIT = 1e-5
"""Largest relative defect of an identity at the default tolerance; grows with looser ones."""


@contextmanager
def _stage(
    name: str, times: dict[str, float], progress: Progress
) -> Iterator[Callable[[float], None]]:
    """Report and time a stage; yields a function that reports the share done."""

    def report(share: float) -> None:
        progress(name, share)

    started = time.perf_counter()
    report(0.0)
    yield report
    times[name] = time.perf_counter() - started
    report(1.0)


def compute_lead_field(
    model: "Model",
    mesh: "Mesh",
    *,
    order: int | None = None,
    tolerance: float | None = None,
    method: Method = "multigrid",
    threads: int | None = None,
    progress: Progress = silent,
    skeleton: Skeleton | None = None,
) -> LeadField:
    """Compute the potential per ampere of every contact.

    Parameters
    ----------
    model
        Tissues, contact model, outer boundary, compared region, solver.
    mesh
        A sound mesh of the model's geometry, with its tissues and contacts.
    order, tolerance
        In place of the model's ``[solver]`` values.
    method
        "multigrid", or "direct" for a second opinion from a sparse factorisation (needs much more
        time and memory; MKL's PARDISO where pypardiso is installed, SuperLU otherwise).
    threads
        Threads of the kernels; None for all. The result's bits do not depend on it.
    progress
        Called with (stage, share done) for "assemble", "solve" and "region".
    skeleton
        From :func:`skeleton_of`, for the same mesh, order, contact model and outer boundary, whose
        conductivities and contact impedance may be others: numbering and pattern are not made
        again.

    Raises
    ------
    FieldError
        There is no such order or method, or no solver reaches such a tolerance.
    MeshError
        The mesh is unsound or does not belong to the model.
    ConvergenceError
        The solver did not reach its tolerance.
    IdentityError
        A structural identity fails: Y = Y', Y 1 = 0, current balance, reciprocity, energy.
    """
    if method not in METHODS:
        raise FieldError(f"method {method!r}: must be one of {', '.join(METHODS)}")
    check_mesh_of_model(model, mesh)
    order = model.solver.order if order is None else order
    tolerance = model.solver.tolerance if tolerance is None else float(tolerance)
    if not 0.0 < tolerance < 1.0:
        raise FieldError(f"tolerance {tolerance}: must lie between 0 and 1")
    times: dict[str, float] = {}
    stage = partial(_stage, times=times, progress=progress)
    with thread_count(threads):
        with stage("assemble"):
            electrodes = electrodes_of(model, mesh)
            if skeleton is None:
                skeleton = build_skeleton(Space(mesh, order), electrodes)
            space = skeleton.space
            system = fill_system(skeleton, cell_conductivity(model, mesh), electrodes)
        with stage("solve") as report:
            basis, admittance, solution = solve_electrodes(system, tolerance, report, method=method)
        with stage("identities"):
            nodal = per_ampere(basis, admittance, electrodes)
            identities = structural_identities(system, basis, admittance, nodal, tolerance)
        with stage("region"):
            lead_field = LeadField(
                electrodes.names,
                electrodes.positions,
                electrodes.areas,
                exact_laws(admittance, electrodes),
                np.ascontiguousarray(nodal.T),
                space,
                compared_region(model, mesh),
                solution.residuals,
                solution.iterations,
                identities,
                times,
            )
            lead_field.gram  # noqa: B018 - computed here, under the chosen number of threads
    return lead_field


def skeleton_of(model: "Model", mesh: "Mesh") -> Skeleton:
    """Return what all models have in common that differ in conductivities or impedance alone."""
    return build_skeleton(Space(mesh, model.solver.order), electrodes_of(model, mesh))


def solve_electrodes(
    system: System,
    tolerance: float,
    report: Callable[[float], None] | None = None,
    *,
    method: Method = "multigrid",
) -> tuple[NDArray[np.float64], NDArray[np.float64], Solution]:
    """Solve for every electrode of a system.

    Returns the potentials (n_dofs, E) with electrode a at 1 V and the others at 0 V (those of the
    uniform-current model, solved with balanced unit currents, are turned into that form), the
    admittance (E, E) S, not yet symmetrised, so that its asymmetry can be judged, and the solution
    with residuals and iterations.
    """

    def follow(iteration: int, residual: float) -> None:
        if report is not None and residual > 0.0:
            report(float(np.clip(np.log(residual) / np.log(tolerance), 0.0, 1.0)))

    def solve(rhs: NDArray[np.float64]) -> Solution:
        if method == "direct":
            return solve_direct(system.matrix, rhs, tolerance=tolerance)
        return solve_block(
            system.matrix, system.hierarchy, rhs, tolerance=tolerance, progress=follow
        )

    if system.electrodes.model == "uniform-current":
        return _solve_currents(system, solve)
    held = np.eye(len(system.electrodes.names))
    solution = solve(-system.coupling.toarray())
    return system.nodal(solution.x, held), system.currents(solution.x, held), solution


def _solve_currents(
    system: System, solve: Callable[[NDArray[np.float64]], Solution]
) -> tuple[NDArray[np.float64], NDArray[np.float64], Solution]:
    """Solve with uniform current densities; voltages are means over the contact faces."""
    count = len(system.electrodes.names)
    loads = contact_loads(system.space, system.electrodes)
    share = np.eye(count)
    if not system.electrodes.is_grounded:
        share -= 1.0 / count
    rhs = np.zeros((system.numbering.size, count))
    rhs[: system.numbering.free.size] = (loads.T @ share)[system.numbering.free]
    solution = solve(rhs)
    nodal = system.nodal(solution.x, np.zeros((count, count)))
    impedance = loads @ nodal
    if system.electrodes.is_grounded:
        admittance = np.linalg.inv(impedance)
    else:
        # Fix the free constant of each column by a vanishing mean contact voltage.
        means = impedance.mean(axis=0)
        nodal -= means
        admittance = balanced_inverse(impedance - means)
    basis = np.empty_like(nodal)
    run_ranges(_kernels.transform_rows, len(nodal), nodal, admittance, basis)
    if not system.electrodes.is_grounded:
        basis += 1.0 / count
    return basis, admittance, solution


def exact_laws(admittance: NDArray[np.float64], electrodes: Electrodes) -> NDArray[np.float64]:
    """Return an admittance (E, E) that is symmetric and, in an insulated body, has rows of sum 0.

    A solver leaves both to its tolerance. Row sums that are not zero would be read as a way to
    ground, whose conductance is what they sum to: nearly nothing, of either sign.
    """
    symmetric = 0.5 * (admittance + admittance.T)
    if electrodes.is_grounded:
        return symmetric
    means = symmetric.mean(axis=0)
    return np.asarray(symmetric - (means + means[:, None]) + means.mean())


def balanced_inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse of an (E, E) matrix on vectors that sum to zero, zero on constants."""
    count = matrix.shape[0]
    projector = np.eye(count) - 1.0 / count
    scale = float(np.trace(matrix)) / count
    ones = np.full((count, count), 1.0 / count)
    inner = projector @ matrix @ projector
    return np.asarray(np.linalg.inv(inner + scale * ones) - ones / scale)


def per_ampere(
    basis: NDArray[np.float64], admittance: NDArray[np.float64], electrodes: Electrodes
) -> NDArray[np.float64]:
    """Turn potentials per volt (n_dofs, E) into potentials per ampere (n_dofs, E)."""
    weights = contact_impedances(admittance, electrodes)
    out = np.empty_like(basis)
    run_ranges(_kernels.transform_rows, len(basis), basis, np.ascontiguousarray(weights), out)
    return out


def contact_impedances(
    admittance: NDArray[np.float64], electrodes: Electrodes
) -> NDArray[np.float64]:
    """Return (E, E) ohm: the contacts' voltages per ampere, for balanced currents if insulated."""
    symmetric = 0.5 * (admittance + admittance.T)
    if electrodes.is_grounded:
        return np.asarray(np.linalg.inv(symmetric))
    return balanced_inverse(symmetric)


def structural_identities(
    system: System,
    basis: NDArray[np.float64],
    admittance: NDArray[np.float64],
    nodal: NDArray[np.float64],
    tolerance: float,
) -> dict[str, float]:
    """Compute the relative defects of the identities that the exact solution fulfils.

    "symmetry": |Y - Y'|; "row sums" (insulated): |Y 1|; "current balance" (insulated): |1' Y|; each
    over max |Y|. "energy": V'YV against the integral of sigma |grad u|^2. "reciprocity": for two
    sets of currents I, J with fields u, v and contact voltages U, V, the three numbers J.U, I.V and
    the integral of sigma grad u . grad v are one. Integrals are summed cell by cell, contact layers
    included, and use neither the assembled matrix nor the admittance.

    Raises
    ------
    IdentityError
        When a defect is larger than IDENTITY_LIMIT, scaled up for tolerances above 1e-8.
    """
    size = float(np.abs(admittance).max())
    defects = {"symmetry": float(np.abs(admittance - admittance.T).max()) / size}
    if not system.electrodes.is_grounded:
        defects["row sums"] = float(np.abs(admittance.sum(axis=1)).max()) / size
        defects["current balance"] = float(np.abs(admittance.sum(axis=0)).max()) / size
    defects |= _energy_defects(system, basis, admittance, nodal)
    limit = IDENTITY_LIMIT * max(1.0, tolerance / 1e-8)
    for name, defect in defects.items():
        if not defect <= limit:
            raise IdentityError(
                f"lead field: the identity {name!r} fails by {defect:.2e} (allowed {limit:.1e})"
            )
    return defects


def _energy_defects(
    system: System,
    basis: NDArray[np.float64],
    admittance: NDArray[np.float64],
    nodal: NDArray[np.float64],
) -> dict[str, float]:
    """Compare supplied with dissipated power, and the two sides of Green's reciprocity."""
    electrodes = system.electrodes
    numbers = np.arange(len(electrodes.names))
    voltage, one, other = np.cos(1.0 + numbers), np.cos(2.0 + 3.0 * numbers), np.sin(numbers)
    if not electrodes.is_grounded:
        voltage, one, other = (v - v.mean() for v in (voltage, one, other))
    at_contacts = contact_impedances(admittance, electrodes)
    # einsum without BLAS: one order of summation everywhere.
    u, v = (np.einsum("na,a->n", nodal, currents) for currents in (one, other))
    mutual = system.power((u, at_contacts @ one), (v, at_contacts @ other))
    scale = np.sqrt((one @ at_contacts @ one) * (other @ at_contacts @ other))
    field = np.einsum("na,a->n", basis, voltage)
    lost = system.power((field, voltage), (field, voltage))
    supplied = float(voltage @ admittance @ voltage)
    faces = at_contacts
    if electrodes.model != "impedance":
        faces = contact_loads(system.space, electrodes) @ nodal
    sides = (other @ (faces @ one), one @ (faces @ other))
    return {
        "energy": abs(lost - supplied) / supplied,
        "reciprocity": max(abs(mutual - float(side)) for side in sides) / float(scale),
    }
