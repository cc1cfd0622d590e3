"""The linear system of a volume conductor with electrodes.

:func:`build_system` assembles a symmetric positive definite matrix over the unknowns, its coupling
to the electrodes that are held at a voltage, and the multigrid hierarchy for it.

Unknowns are the free nodes, ordered along a space-filling curve for locality, then the electrodes
that float. An equipotential electrode ties its nodes to one number; an electrode with contact
impedance z keeps its nodes and adds a number of its own, coupled through
(1/z) integral (u - U)(v - V) over its faces. In both cases "floating" means that the number is an
unknown with zero net current, which is what an electrode that is switched off does.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from fieldcorr.contacts import Electrodes
from fieldcorr.elements import Space
from fieldcorr.fem import Pattern
from fieldcorr.fem.amg import Hierarchy, build_hierarchy
from fieldcorr.fem.assembly import geometry_tensors
from fieldcorr.fem.reference import facet_load_vector, facet_mass_tensor, stiffness_tensor
from fieldcorr.leadfield import _kernels
from fieldcorr.leadfield.numbering import Numbering, number_unknowns
from fieldcorr.mesh.data import triangle_areas


@dataclass(frozen=True, eq=False)
class System:
    """A volume conductor with electrodes, ready to be solved.

    ``matrix`` (n, n) acts on the unknowns, which ``numbering`` names, and ``hierarchy`` is its
    preconditioner. ``coupling`` (n, E) lies between the unknowns and the electrodes' voltages
    (columns of floating electrodes are empty), ``contact_block`` (E, E) between held electrodes.
    ``tensors`` (T, 6) are the geometry tensors of the cells.
    """

    space: Space
    electrodes: Electrodes
    numbering: Numbering
    tensors: NDArray[np.float64]
    matrix: scipy.sparse.csr_matrix
    hierarchy: Hierarchy
    coupling: scipy.sparse.csc_matrix
    contact_block: NDArray[np.float64]

    def nodal(self, x: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
        """Spread unknowns (n, m) and electrode voltages (E, m) over all nodes, (n_dofs, m)."""
        numbers, out = self.numbering, np.zeros((self.space.n_dofs, x.shape[1]))
        out[numbers.free] = x[: numbers.free.size]
        voltage = self.voltages(x, held)
        tied = np.flatnonzero(numbers.owner >= 0)
        out[tied] = voltage[numbers.owner[tied]]
        return out

    def voltages(self, x: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the electrodes' voltages (E, m): those held, and those found for floating ones."""
        floating = self.numbering.contact >= 0
        out = np.array(held, dtype=np.float64)
        out[floating] = x[self.numbering.contact[floating]]
        return out

    def currents(self, x: NDArray[np.float64], held: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the current (E, m) A that flows from each held electrode into the tissue."""
        return np.asarray(self.coupling.T @ x + self.contact_block @ held)

    def power(
        self,
        first: tuple[NDArray[np.float64], NDArray[np.float64]],
        second: tuple[NDArray[np.float64], NDArray[np.float64]],
    ) -> float:
        """Return the integral of sigma grad u . grad v, plus (1/z) (u - U)(v - V) in the layers.

        Each of ``first`` and ``second`` is (nodal values, contact voltages).
        """
        (u, voltage_u), (v, voltage_v) = first, second
        dofs, reference = self.space.cell_dofs, stiffness_tensor(self.space.order)
        power = float(_kernels.mutual_energy(u, v, dofs, self.tensors, reference))
        if self.electrodes.model != "impedance":
            return power
        mass = facet_mass_tensor(self.space.order)
        for e in range(len(self.electrodes.names)):
            nodes, weight = _layer(self.space, self.electrodes, e)
            gap_u, gap_v = u[nodes] - voltage_u[e], v[nodes] - voltage_v[e]
            power += float(np.einsum("f,fi,ij,fj->", weight, gap_u, mass, gap_v))
        return power


def contact_loads(space: Space, electrodes: Electrodes) -> scipy.sparse.csr_matrix:
    """Return (E, n_dofs): the mean of each basis function over the faces of each electrode.

    Its product with nodal values gives mean potentials over the faces; its rows are the loads of
    1 A that enters with uniform density.
    """
    load = facet_load_vector(space.order)
    rows, columns, values = [], [], []
    for e, facets in enumerate(electrodes.facets):
        share = triangle_areas(space.vertices, facets) / electrodes.areas[e]
        columns.append(space.facet_dofs(facets).ravel())
        values.append((share[:, None] * load).ravel())
        rows.append(np.full(columns[-1].size, e))
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return scipy.sparse.csr_matrix(entries, shape=(len(electrodes.names), space.n_dofs))


@dataclass(frozen=True, eq=False)
class Skeleton:
    """What a system is before conductivities and contact impedances are known.

    ``numbering`` and ``pattern`` belong to the space; ``coarse`` are those of order 1 below a space
    of order 2, with the ``prolongation`` from there.
    """

    space: Space
    floating: NDArray[np.bool_]
    numbering: Numbering
    pattern: Pattern
    coarse: "Skeleton | None" = None
    prolongation: scipy.sparse.csr_matrix | None = None


def build_skeleton(
    space: Space, electrodes: Electrodes, *, floating: NDArray[np.bool_] | None = None
) -> Skeleton:
    """Give the unknowns of a space their numbers and find the pattern of its matrix.

    The voltage of electrodes that are ``floating`` (E,) is unknown; by default none is. With the
    uniform-current model there are no held electrodes and the argument is ignored.
    """
    uniform = electrodes.model == "uniform-current"
    if floating is None or uniform:
        floating = np.zeros(len(electrodes.names), dtype=bool)
    pinned = not electrodes.is_grounded and (uniform or bool(floating.all()))
    numbering = number_unknowns(space, electrodes, floating, pinned=pinned)
    pattern = Pattern.of_elements(numbering.node[space.cell_dofs], numbering.size)
    if space.order == 1:
        return Skeleton(space, floating, numbering, pattern)
    coarse = build_skeleton(Space(space.mesh, 1), electrodes, floating=floating)
    prolongation = _transfer(space, numbering, coarse.numbering)
    return Skeleton(space, floating, numbering, pattern, coarse, prolongation)


def build_system(
    space: Space,
    conductivity: NDArray[np.float64],
    electrodes: Electrodes,
    *,
    floating: NDArray[np.bool_] | None = None,
) -> System:
    """Assemble the system of a space for conductivities (T, 6) S/m; see :func:`build_skeleton`."""
    skeleton = build_skeleton(space, electrodes, floating=floating)
    return fill_system(skeleton, conductivity, electrodes)


def fill_system(
    skeleton: Skeleton, conductivity: NDArray[np.float64], electrodes: Electrodes
) -> System:
    """Assemble the system of a skeleton for conductivities (T, 6) S/m.

    The electrodes are those of the skeleton, but for their impedance.
    """
    space = skeleton.space
    tensors = geometry_tensors(space.vertices, space.cells, conductivity)

    def assemble(part: Skeleton) -> scipy.sparse.csr_matrix:
        matrix = part.pattern.matrix(tensors, stiffness_tensor(part.space.order))
        if electrodes.model == "impedance":
            layer = _layer_matrix(part.space, electrodes, part.numbering)
            matrix = scipy.sparse.csr_matrix(matrix + layer)
            matrix.sort_indices()
        return matrix

    matrix, numbering = assemble(skeleton), skeleton.numbering
    coarse = None if skeleton.coarse is None else assemble(skeleton.coarse)
    hierarchy = build_hierarchy(
        matrix, first_prolongation=skeleton.prolongation, first_coarse=coarse
    )
    if electrodes.model == "impedance":
        coupling = _layer_coupling(space, electrodes, numbering)
    else:
        coupling = _tied_coupling(space, numbering, tensors)
    return System(space, electrodes, numbering, tensors, matrix, hierarchy, *coupling)


# -- contact layers -------------------------------------------------------------------------------


def _layer(
    space: Space, electrodes: Electrodes, e: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the nodes (F, nf) of electrode ``e`` and the weights area / impedance (F,)."""
    facets = electrodes.facets[e]
    areas = triangle_areas(space.vertices, facets)
    return space.facet_dofs(facets), areas / electrodes.impedance


def _layer_matrix(
    space: Space, electrodes: Electrodes, numbering: Numbering
) -> scipy.sparse.csr_matrix:
    """Assemble (1/z) integral (u - U)(v - V) over the electrodes, between unknowns."""
    mass, load = facet_mass_tensor(space.order), facet_load_vector(space.order)
    size = numbering.size
    total = scipy.sparse.csr_matrix((size, size))
    for e, own in enumerate(numbering.contact):
        dofs, weight = _layer(space, electrodes, e)
        nodes, weights = numbering.node[dofs], weight[:, None, None]
        total = total + _scatter(nodes, nodes, weights * mass, size)
        if own >= 0:
            column = np.full((len(nodes), 1), own)
            half = _scatter(nodes, column, -weights * load[None, :, None], size)
            corner = scipy.sparse.csr_matrix(([weight.sum()], ([own], [own])), shape=(size, size))
            total = total + half + half.T + corner
    return scipy.sparse.csr_matrix(total)


def _layer_coupling(
    space: Space, electrodes: Electrodes, numbering: Numbering
) -> tuple[scipy.sparse.csc_matrix, NDArray[np.float64]]:
    """Return the columns (n, E) and the block (E, E) of the electrodes that are held."""
    count = len(electrodes.names)
    load = facet_load_vector(space.order)
    columns = np.zeros((numbering.size, count))
    block = np.zeros((count, count))
    for e in np.flatnonzero(numbering.contact < 0):
        dofs, weight = _layer(space, electrodes, int(e))
        nodes, values = numbering.node[dofs], -weight[:, None] * load
        np.add.at(columns[:, e], nodes[nodes >= 0], values[nodes >= 0])
        block[e, e] = weight.sum()
    return scipy.sparse.csc_matrix(columns), block


# -- tied nodes -----------------------------------------------------------------------------------


def _tied_coupling(
    space: Space, numbering: Numbering, tensors: NDArray[np.float64]
) -> tuple[scipy.sparse.csc_matrix, NDArray[np.float64]]:
    """Gather columns (n, E) and block (E, E) of held electrodes from the few cells at them."""
    count = len(numbering.contact)
    held = np.where(numbering.contact >= 0, -1, np.arange(count)).astype(np.int32)
    of_node = np.where(numbering.owner >= 0, held[numbering.owner], -1)
    touching = np.flatnonzero((of_node[space.cell_dofs] >= 0).any(axis=1))
    dofs = space.cell_dofs[touching]
    local = np.einsum("tc,ijc->tij", tensors[touching], stiffness_tensor(space.order))
    size = numbering.size + count
    contact = np.where(of_node[dofs] >= 0, numbering.size + of_node[dofs], -1)
    everyone = np.where(of_node[dofs] >= 0, contact, numbering.node[dofs])
    full = scipy.sparse.csc_matrix(_scatter(everyone, contact, local, size))[:, numbering.size :]
    return full[: numbering.size], full[numbering.size :].toarray()


def _scatter(
    rows: NDArray[np.integer], columns: NDArray[np.integer], values: NDArray[np.float64], size: int
) -> scipy.sparse.csr_matrix:
    """Add element blocks (T, a, b) at rows (T, a) and columns (T, b), leaving out negatives."""
    i = np.broadcast_to(rows[:, :, None], values.shape).ravel()
    j = np.broadcast_to(columns[:, None, :], values.shape).ravel()
    keep = (i >= 0) & (j >= 0)
    return scipy.sparse.csr_matrix((values.ravel()[keep], (i[keep], j[keep])), shape=(size, size))


def _transfer(space: Space, fine: Numbering, coarse: Numbering) -> scipy.sparse.csr_matrix:
    """Embed the P1 unknowns in the P2 unknowns; floating electrodes map to themselves."""
    parents, weights = space.vertex_transfer
    columns = coarse.node[parents[fine.free]]
    values = weights[fine.free]
    rows = np.repeat(np.arange(fine.free.size), 2).reshape(columns.shape)
    keep = (columns >= 0) & (values != 0.0)
    floating = fine.contact >= 0
    i = np.concatenate([rows[keep], fine.contact[floating]])
    j = np.concatenate([columns[keep], coarse.contact[floating]])
    v = np.concatenate([values[keep], np.ones(int(floating.sum()))])
    return scipy.sparse.csr_matrix((v, (i, j)), shape=(fine.size, coarse.size))
