"""Which unknown each node is: free nodes in an order with locality, then floating electrodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.contacts import Electrodes
from fieldcorr.elements import Space, curve_order

LEFT_OUT = -1
"""Number of nodes that are not unknown (held or grounded) in a numbering."""


def locality_order(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order points (n, 3) along a space-filling curve with 21 bits per axis."""
    low = points.min(axis=0)
    span = float(np.max(points.max(axis=0) - low)) or 1.0
    return curve_order(((points - low) * ((2**21 - 1) / span)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which unknown each node of a space is.

    Attributes
    ----------
    node
        (n_dofs,) number of the unknown, or -1 for nodes that are held or grounded.
    owner
        (n_dofs,) electrode that a node is tied to, or -1.
    contact
        (E,) number of the unknown that a floating electrode is, or -1.
    free
        (f,) the free nodes in the order of their numbers.
    size
        Number of unknowns.
    """

    node: NDArray[np.int32]
    owner: NDArray[np.int32]
    contact: NDArray[np.int32]
    free: NDArray[np.int64]
    size: int


def number_unknowns(
    space: Space, electrodes: Electrodes, floating: NDArray[np.bool_], *, pinned: bool
) -> Numbering:
    """Give the unknowns of a space their numbers.

    Parameters
    ----------
    space, electrodes
        What is solved on.
    floating
        (E,) which electrodes are unknowns; the others are held at a given voltage.
    pinned
        Hold one vertex far from the electrodes at 0 V: for problems with currents only, whose
        potential is defined up to a constant. The reaction there is zero when currents balance.
    """
    owner = np.full(space.n_dofs, -1, dtype=np.int32)
    if electrodes.model == "equipotential":
        for e, facets in enumerate(electrodes.facets):
            owner[space.facet_dofs(facets).ravel()] = e
    grounded = np.zeros(space.n_dofs, dtype=bool)
    grounded[space.facet_dofs(electrodes.grounded).ravel()] = True
    if pinned:
        grounded[_far_vertex(space, electrodes)] = True
    candidates = np.flatnonzero((owner < 0) & ~grounded)
    free = candidates[locality_order(space.points[candidates])]
    node = np.full(space.n_dofs, LEFT_OUT, dtype=np.int32)
    node[free] = np.arange(free.size, dtype=np.int32)
    contact = np.full(len(electrodes.names), LEFT_OUT, dtype=np.int32)
    contact[floating] = free.size + np.arange(int(floating.sum()), dtype=np.int32)
    tied = owner >= 0
    node[tied] = contact[owner[tied]]
    return Numbering(node, owner, contact, free, free.size + int(floating.sum()))


def _far_vertex(space: Space, electrodes: Electrodes) -> int:
    centre = electrodes.positions.mean(axis=0)
    vertices = space.points[: space.mesh.points.shape[0]]
    return int(np.argmax(np.einsum("ij,ij->i", vertices - centre, vertices - centre)))
