"""Which unknown each node is: free nodes in an order with locality, then floating electrodes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.contacts import Electrodes
from fieldcorr.elements import Space, curve_order


def locality_order(points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Order points (n, 3) along a space-filling curve with 21 bits per axis."""
    low = points.min(axis=0)
    span = float(np.max(points.max(axis=0) - low)) or 1.0
    return curve_order(((points - low) * ((2**21 - 1) / span)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which unknown each node of a space is.

    ``node`` (n_dofs,) is the number of the unknown, or -1 for nodes that are held or grounded,
    ``owner`` (n_dofs,) the electrode that a node is tied to, or -1, ``contact`` (E,) the number of
    the unknown that a floating electrode is, or -1. ``free`` (f,) are the free nodes in the order
    of their numbers, ``size`` is the number of unknowns.
    """

    node: NDArray[np.int32]
    owner: NDArray[np.int32]
    contact: NDArray[np.int32]
    free: NDArray[np.int64]
    size: int


def number_unknowns(
    space: Space, electrodes: Electrodes, floating: NDArray[np.bool_], *, pinned: bool
) -> Numbering:
    """Give the unknowns their numbers: free nodes, then electrodes that are ``floating`` (E,).

    With ``pinned``, one vertex far from the electrodes is held at 0 V: for problems with currents
    only, whose potential is defined up to a constant. The reaction there is zero when currents
    balance.
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
    node = np.full(space.n_dofs, -1, dtype=np.int32)
    node[free] = np.arange(free.size, dtype=np.int32)
    contact = np.full(len(electrodes.names), -1, dtype=np.int32)
    contact[floating] = free.size + np.arange(int(floating.sum()), dtype=np.int32)
    tied = owner >= 0
    node[tied] = contact[owner[tied]]
    return Numbering(node, owner, contact, free, free.size + int(floating.sum()))


def _far_vertex(space: Space, electrodes: Electrodes) -> int:
    away = space.vertices - electrodes.positions.mean(axis=0)
    return int(np.argmax(np.einsum("ij,ij->i", away, away)))
