"""The finite-element side against every closed form, and the list of all comparisons.

Contacts (uniform current, equipotential, impedance) go through the same code as the lead fields of
a model. Potentials are compared at quadrature points of one compartment, weighted by volume, each
less its mean: an insulated body leaves a constant free.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fieldcorr.contacts import electrodes_on
from fieldcorr.elements import Space
from fieldcorr.leadfield.compute import per_ampere, solve_electrodes
from fieldcorr.leadfield.system import build_system
from fieldcorr.mesh import Mesh
from fieldcorr.mesh.structured import grid_mesh
from fieldcorr.verification._checks import FloatArray
from fieldcorr.verification.compare import Comparison, lnmag, rdm, without_mean
from fieldcorr.verification.cylinder import BlurredPatch, Cylinders, cylinder_potential
from fieldcorr.verification.disc import disc_current, slab_resistance
from fieldcorr.verification.manufactured import order_case
from fieldcorr.verification.meshes import (
    CYLINDER_HALF_LENGTH_MM,
    CYLINDER_MM,
    DISC_OUTER_MM,
    DISC_RADIUS_MM,
    SPHERE_MM,
    graded_line,
    shipped_mesh,
)
from fieldcorr.verification.peer import load_ngsolve, peer_case
from fieldcorr.verification.problem import (
    TOLERANCE,
    ScalarField,
    diagonal_tensors,
    facet_load,
    sample,
    solve_insulated,
    stiffness,
)
from fieldcorr.verification.slab import Layer, Rectangle, Slab, slab_potential
from fieldcorr.verification.sphere import BlurredElectrode, Spheres, sphere_potential

MM = 1e-3
MAX_CELLS = 1000
"""Cells of the compartment that are compared; drawn with a fixed seed where there are more."""

SLAB_TISSUES = ("fat", "dura", "csf", "white")
SLAB = Slab(
    (24 * MM, 16 * MM),
    (
        Layer(1.0 * MM, (0.04, 0.04, 0.04)),
        Layer(0.3 * MM, (0.03, 0.03, 0.03)),
        Layer(3.0 * MM, (1.7, 1.7, 1.7)),
        Layer(6.0 * MM, (0.6, 0.083, 0.083)),
    ),
)
"""The stack between a paddle and the cord, with the fibres along x."""
SLAB_CONTACTS = (
    Rectangle((6 * MM, 10 * MM), (5.5 * MM, 7 * MM), 1.0),
    Rectangle((14 * MM, 18 * MM), (9 * MM, 10.5 * MM), -1.0),
)
HEAD = Spheres(tuple(MM * r for r in SPHERE_MM.values()), (0.33, 1.79, 0.01, 0.43))
HEAD_ELECTRODES = (
    BlurredElectrode((0.0, 0.3, 1.0), 1.0, blur=0.8),
    BlurredElectrode((1.0, -0.2, 0.1), -1.0, blur=0.8),
)
CORD = Cylinders(
    tuple(MM * r for r in CYLINDER_MM.values()),
    2.0 * MM * CYLINDER_HALF_LENGTH_MM,
    across=(0.083, 1.7, 0.04, 0.25),
    along=(0.6, 1.7, 0.04, 0.35),
)
CORD_ELECTRODES = (BlurredPatch(0.3, -4 * MM, 1.0), BlurredPatch(2.0, 7 * MM, -1.0))


def slab_mesh(*, size: float = 1.0) -> Mesh:
    """Return the grid of the layered slab, z up, surface at z = 0; ``size`` scales its steps."""
    step = {"growth": 0.3, "coarse": 1.0 * size}
    edges = dict.fromkeys((6.0, 10.0, 14.0, 18.0), 0.5 * size)
    x = graded_line((0.0, 6.0, 10.0, 14.0, 18.0, 24.0), edges, **step)
    edges = dict.fromkeys((5.5, 7.0, 9.0, 10.5), 0.5 * size)
    y = graded_line((0.0, 5.5, 7.0, 9.0, 10.5, 16.0), edges, **step)
    depths = {0.0: 0.3 * size, 1.0: 0.3 * size, 1.3: 0.3 * size, 4.3: 0.5 * size}
    depth = graded_line((0.0, 1.0, 1.3, 4.3, 10.3), depths, **step)
    return grid_mesh(
        x * MM,
        y * MM,
        -depth[::-1] * MM,
        tag=lambda centroids: np.searchsorted(SLAB.tops, -centroids[:, 2]) - 1,
        tissues=SLAB_TISSUES,
        facets={str(n): partial(_is_under, contact) for n, contact in enumerate(SLAB_CONTACTS)},
    )


def _is_under(contact: Rectangle, centroids: FloatArray) -> FloatArray:
    """Tell which facet centroids (B, 3) lie on a contact of the slab."""
    low = np.array([contact.x[0], contact.y[0], -1e-9])
    high = np.array([contact.x[1], contact.y[1], 1e-9])
    return np.asarray(((centroids > low) & (centroids < high)).all(axis=1))


def slab_case(
    order: int = 2, *, size: float = 1.0, target: float | None = None
) -> list[Comparison]:
    """Compare two rectangular contacts of uniform current on the layered anisotropic slab."""
    mesh = slab_mesh(size=size)
    space = Space(mesh, order)
    layers = zip(SLAB_TISSUES, SLAB.layers, strict=True)
    sigma = diagonal_tensors(space, {name: layer.sigma for name, layer in layers})
    electrodes = electrodes_on(mesh, ("0", "1"), model="uniform-current")
    basis, admittance, _ = solve_electrodes(build_system(space, sigma, electrodes), TOLERANCE)
    current = np.array([contact.current for contact in SLAB_CONTACTS])
    nodal = per_ampere(basis, admittance, electrodes) @ current

    def truth(points: FloatArray) -> FloatArray:
        return slab_potential(points * np.array([1.0, 1.0, -1.0]), SLAB, SLAB_CONTACTS)

    names = ("layered anisotropic slab", f"grid, {mesh.n_cells} tets")
    return _compare(names, space, nodal, "white", truth, (target, target))


def sphere_case(mesh: str = "sphere", *, target: float | None = None) -> list[Comparison]:
    """Compare the four-layer sphere in its inner compartment, on a shipped mesh."""
    sigma = {n: (s, s, s) for n, s in zip(SPHERE_MM, HEAD.sigma, strict=True)}
    sources = [(e.current, partial(e.density, radius=HEAD.radii[-1])) for e in HEAD_ELECTRODES]
    space, nodal = _solve_surface_currents(shipped_mesh(mesh), sigma, sources)
    truth = partial(sphere_potential, spheres=HEAD, electrodes=HEAD_ELECTRODES)
    return _compare(("four-layer sphere", mesh), space, nodal, "brain", truth, (target, None))


def cylinder_case(mesh: str = "cylinder", *, target: float | None = None) -> list[Comparison]:
    """Compare the layered anisotropic cylinder in its core, on a shipped mesh."""
    triples = zip(CYLINDER_MM, CORD.across, CORD.along, strict=True)
    sigma = {name: (across, across, along) for name, across, along in triples}
    sources = [(e.current, partial(e.density, cylinders=CORD)) for e in CORD_ELECTRODES]
    space, nodal = _solve_surface_currents(shipped_mesh(mesh), sigma, sources)
    truth = partial(cylinder_potential, cylinders=CORD, electrodes=CORD_ELECTRODES)
    names = ("layered anisotropic cylinder", mesh)
    return _compare(names, space, nodal, "white", truth, (target, None))


def disc_case(order: int = 2, *, target: float | None = None) -> list[Comparison]:
    """Compare the current of the equipotential disc in its grounded confocal spheroid."""
    mesh = shipped_mesh("disc")
    space = Space(mesh, order)
    sigma = diagonal_tensors(space, {"medium": (0.3, 0.3, 0.3)})
    electrodes = electrodes_on(mesh, ("disc",), grounded="outer")
    _, admittance, _ = solve_electrodes(build_system(space, sigma, electrodes), TOLERANCE)
    exact = disc_current(MM * DISC_RADIUS_MM, 0.3, ground=MM * DISC_OUTER_MM[0])
    error = abs(float(admittance[0, 0]) / exact - 1.0)
    quantity = "current, relative error"
    return [Comparison("equipotential disc", "disc", quantity, order, space.n_dofs, error, target)]


def impedance_case(order: int = 2, *, target: float | None = None) -> list[Comparison]:
    """Compare the resistance of a two-layer slab between contacts with impedance."""
    impedance, sigmas = 1e-3, (0.3, 1.7)
    line = np.linspace(0.0, 4 * MM, 4)
    mesh = grid_mesh(
        line,
        line,
        np.array([0.0, 2.0, 4.0, 5.0, 6.0]) * MM,
        tag=lambda centroids: centroids[:, 2] > 4 * MM,
        tissues=("lower", "upper"),
        facets={
            "bottom": lambda centroids: centroids[:, 2] < 1e-9,
            "top": lambda centroids: centroids[:, 2] > 6 * MM - 1e-9,
        },
    )
    space = Space(mesh, order)
    sigma = diagonal_tensors(space, {"lower": (sigmas[0],) * 3, "upper": (sigmas[1],) * 3})
    electrodes = electrodes_on(mesh, ("bottom", "top"), model="impedance", impedance=impedance)
    _, admittance, _ = solve_electrodes(build_system(space, sigma, electrodes), TOLERANCE)
    lengths = np.array([4 * MM, 2 * MM])
    exact = slab_resistance(lengths, np.array(sigmas), (4 * MM) ** 2, (impedance, impedance))
    error = abs(1.0 / float(admittance[0, 0]) / exact - 1.0)
    names = ("contact-impedance slab", f"grid, {mesh.n_cells} tets", "resistance, relative error")
    return [Comparison(*names, order, space.n_dofs, error, target)]


def _solve_surface_currents(
    mesh: Mesh,
    sigma: dict[str, tuple[float, float, float]],
    sources: Sequence[tuple[float, ScalarField]],
) -> tuple[Space, FloatArray]:
    """Solve with current densities on the surface, each scaled to carry exactly its current."""
    space = Space(mesh, 2)
    total = np.zeros(space.n_dofs)
    for current, density in sources:
        load = facet_load(space, mesh.facets, density)
        total += load * (current / load.sum())
    matrix = stiffness(space, diagonal_tensors(space, sigma))
    return space, solve_insulated(space, matrix, total)


def _compare(
    names: tuple[str, str],
    space: Space,
    nodal: FloatArray,
    tissue: str,
    truth: ScalarField,
    targets: tuple[float | None, float | None],
) -> list[Comparison]:
    """Return RDM and |lnMAG| of a nodal field in one compartment."""
    inside = np.flatnonzero(space.mesh.cell_tags == space.mesh.tissues.index(tissue))
    if len(inside) > MAX_CELLS:
        inside = np.sort(np.random.default_rng(1).choice(inside, MAX_CELLS, replace=False))
    found = sample(space, nodal, inside)
    a = without_mean(found.value, found.weight)
    b = without_mean(truth(found.points), found.weight)
    figures = (
        (f"RDM, {tissue}", rdm(a, b, found.weight)),
        (f"abs lnMAG, {tissue}", abs(lnmag(a, b, found.weight))),
    )
    return [
        Comparison(*names, quantity, space.order, space.n_dofs, value, target)
        for (quantity, value), target in zip(figures, targets, strict=True)
    ]


@dataclass(frozen=True)
class Case:
    """One entry of the accuracy table; without a target (not judged) it is there for comparison."""

    name: str
    run: Callable[[], list[Comparison]]
    is_judged: bool = True


CASES = (
    Case("convergence, P1", partial(order_case, 1)),
    Case("convergence, P2", partial(order_case, 2)),
    Case("slab", partial(slab_case, target=1e-3)),
    Case("slab, P1", partial(slab_case, 1), is_judged=False),
    Case("sphere", partial(sphere_case, target=5e-4)),
    Case("sphere, uncorrected", partial(sphere_case, "sphere-uncorrected"), is_judged=False),
    Case("cylinder", partial(cylinder_case, target=1e-3)),
    Case("cylinder, uncorrected", partial(cylinder_case, "cylinder-uncorrected"), is_judged=False),
    Case("disc", partial(disc_case, target=5e-3)),
    Case("disc, P1", partial(disc_case, 1), is_judged=False),
    Case("impedance, P1", partial(impedance_case, 1, target=1e-6)),
    Case("impedance, P2", partial(impedance_case, 2, target=1e-6)),
)
"""In the order of the table; "uncorrected" meshes have their points on the exact surfaces."""


def compare_all(
    *,
    everything: bool = False,
    peer_mesh: str | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Iterator[Comparison]:
    """Yield the comparisons of the accuracy table as they are made.

    With ``everything`` also those without a target, with ``peer_mesh`` (tiny, companion or standard
    of the bundled model) also r against NGSolve. ``progress`` is called with the name of a case and
    0 before it, 1 after it.
    """
    cases = [case for case in CASES if case.is_judged or everything]
    if peer_mesh is not None:
        load_ngsolve()  # its absence is better said before the work than after it
        cases.append(Case("NGSolve", partial(peer_case, peer_mesh)))
    report = progress or (lambda case, done: None)
    for case in cases:
        report(case.name, 0.0)
        yield from case.run()
        report(case.name, 1.0)
