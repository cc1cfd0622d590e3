"""The finite-element side against every closed form, on the shipped meshes.

What flows in: an element order, and meshes from ``meshes/verification`` or built from grid lines.
What flows out: :class:`~fieldcorr.verification.report.Finding` lines. Contacts (uniform current,
equipotential, impedance) go through the same code as the lead fields of a model.

Potentials are compared at quadrature points of one compartment, weighted by volume, each less its
mean: an insulated body leaves a constant free.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from fieldcorr.analytic import (
    BlurredElectrode,
    BlurredPatch,
    Cylinders,
    Layer,
    Rectangle,
    Slab,
    Spheres,
    cylinder_potential,
    disc_current,
    lnmag,
    rdm,
    slab_potential,
    slab_resistance,
    sphere_potential,
    without_mean,
)
from fieldcorr.contacts import electrodes_on
from fieldcorr.fem import Space
from fieldcorr.leadfield.compute import per_ampere, solve_electrodes
from fieldcorr.leadfield.system import build_system
from fieldcorr.mesh import Mesh, read_mesh
from fieldcorr.mesh.structured import grid_mesh
from fieldcorr.model import bundled_folder
from fieldcorr.verification.grids import graded_line
from fieldcorr.verification.problem import (
    TOLERANCE,
    diagonal_tensors,
    facet_load,
    sample,
    solve_insulated,
    stiffness,
)
from fieldcorr.verification.report import Finding

FloatArray = NDArray[np.float64]
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
HEAD = Spheres((78 * MM, 80 * MM, 86 * MM, 92 * MM), (0.33, 1.79, 0.01, 0.43))
HEAD_ELECTRODES = (
    BlurredElectrode((0.0, 0.3, 1.0), 1.0, blur=0.8),
    BlurredElectrode((1.0, -0.2, 0.1), -1.0, blur=0.8),
)
CORD = Cylinders(
    (4.5 * MM, 8 * MM, 10 * MM, 20 * MM), 40 * MM, (0.083, 1.7, 0.04, 0.25), (0.6, 1.7, 0.04, 0.35)
)
CORD_ELECTRODES = (BlurredPatch(0.3, -4 * MM, 1.0), BlurredPatch(2.0, 7 * MM, -1.0))


def shipped_mesh(name: str) -> Mesh:
    """Read a mesh of ``meshes/verification``."""
    return read_mesh(bundled_folder() / "verification" / f"{name}.fcmesh")


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
        facets={str(n): _under(contact) for n, contact in enumerate(SLAB_CONTACTS)},
    )


def _under(contact: Rectangle) -> Callable[[FloatArray], NDArray[np.bool_]]:
    """Return the test whether facet centroids lie on a contact of the slab."""

    def chosen(centroids: FloatArray) -> NDArray[np.bool_]:
        low = np.array([contact.x[0], contact.y[0], -1e-9])
        high = np.array([contact.x[1], contact.y[1], 1e-9])
        return np.asarray(((centroids > low) & (centroids < high)).all(axis=1))

    return chosen


def slab_case(order: int, *, size: float = 1.0, target: float | None = None) -> list[Finding]:
    """Compare two rectangular contacts of uniform current on the layered anisotropic slab."""
    mesh = slab_mesh(size=size)
    space = Space(mesh, order)
    layers = zip(SLAB_TISSUES, SLAB.layers, strict=True)
    sigma = diagonal_tensors(space, {name: layer.sigma for name, layer in layers})
    electrodes = electrodes_on(mesh, ("0", "1"), model="uniform-current")
    basis, admittance, _ = solve_electrodes(build_system(space, sigma, electrodes), TOLERANCE)
    current = np.array([contact.current for contact in SLAB_CONTACTS])
    nodal = per_ampere(basis, admittance, electrodes) @ current
    return _compare(
        ("layered anisotropic slab", f"grid, {mesh.n_cells} tets"),
        space,
        nodal,
        "white",
        lambda p: slab_potential(p * np.array([1.0, 1.0, -1.0]), SLAB, SLAB_CONTACTS),
        (target, target),
    )


def sphere_case(mesh: Mesh, name: str, order: int, *, target: float | None = None) -> list[Finding]:
    """Compare the four-layer sphere in its inner compartment."""
    space = Space(mesh, order)
    names = ("brain", "csf", "skull", "scalp")
    sigma = {n: (s, s, s) for n, s in zip(names, HEAD.sigma, strict=True)}
    loads = [
        (e.current, facet_load(space, mesh.facets, partial(e.density, radius=HEAD.radii[-1])))
        for e in HEAD_ELECTRODES
    ]
    nodal = _solve_loads(space, diagonal_tensors(space, sigma), loads)
    return _compare(
        ("four-layer sphere", name),
        space,
        nodal,
        "brain",
        lambda p: sphere_potential(p, HEAD, HEAD_ELECTRODES),
        (target, None),
    )


def cylinder_case(
    mesh: Mesh, name: str, order: int, *, target: float | None = None
) -> list[Finding]:
    """Compare the layered anisotropic cylinder in its core."""
    space = Space(mesh, order)
    names = ("white", "csf", "fat", "muscle")
    triples = zip(names, CORD.across, CORD.along, strict=True)
    sigma = {n: (across, across, along) for n, across, along in triples}
    loads = [
        (e.current, facet_load(space, mesh.facets, partial(e.density, cylinders=CORD)))
        for e in CORD_ELECTRODES
    ]
    nodal = _solve_loads(space, diagonal_tensors(space, sigma), loads)
    return _compare(
        ("layered anisotropic cylinder", name),
        space,
        nodal,
        "white",
        lambda p: cylinder_potential(p, CORD, CORD_ELECTRODES),
        (target, None),
    )


def disc_case(mesh: Mesh, name: str, order: int, *, target: float | None = None) -> list[Finding]:
    """Compare the current of the equipotential disc in its grounded confocal spheroid."""
    space = Space(mesh, order)
    sigma = diagonal_tensors(space, {"medium": (0.3, 0.3, 0.3)})
    electrodes = electrodes_on(mesh, ("disc",), grounded="outer")
    _, admittance, _ = solve_electrodes(build_system(space, sigma, electrodes), TOLERANCE)
    exact = disc_current(1 * MM, 0.3, ground=10 * MM)
    error = float(admittance[0, 0]) / exact - 1.0
    quantity = "current, relative error"
    return [Finding("equipotential disc", name, quantity, order, space.n_dofs, abs(error), target)]


def impedance_case(order: int, *, target: float | None = None) -> list[Finding]:
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
    quantity = "resistance, relative error"
    return [
        Finding(
            "contact-impedance slab",
            f"grid, {mesh.n_cells} tets",
            quantity,
            order,
            space.n_dofs,
            error,
            target,
        )
    ]


def _solve_loads(
    space: Space, sigma: FloatArray, loads: list[tuple[float, FloatArray]]
) -> FloatArray:
    """Solve with surface loads scaled so that each carries exactly its current."""
    total = sum((load * (current / load.sum()) for current, load in loads), np.zeros(space.n_dofs))
    return solve_insulated(space, stiffness(space, sigma), total)


def _compare(
    names: tuple[str, str],
    space: Space,
    nodal: FloatArray,
    tissue: str,
    truth: Callable[[FloatArray], FloatArray],
    targets: tuple[float | None, float | None],
) -> list[Finding]:
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
        Finding(names[0], names[1], quantity, space.order, space.n_dofs, value, target)
        for (quantity, value), target in zip(figures, targets, strict=True)
    ]
