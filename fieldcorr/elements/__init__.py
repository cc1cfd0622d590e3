"""Lagrange elements on tetrahedra without a finite-element library.

What flows in: points and cells of a tetrahedral mesh, values at its nodes. What flows out: the
numbering of P1 and P2 nodes, basis functions, and values at arbitrary points. The solver and the
store share this module, so that a field is numbered and interpolated in one way only; it needs
numpy and numba (and scipy's kd-tree when points are located).

Nodes are the mesh's points, then, for order 2, the midpoints of its edges, ordered by the smaller
and then by the larger end. Inside a cell the six edges come in the order of :data:`EDGE_ENDS`,
which is the order of basix.
"""

from fieldcorr.elements.locate import CellLocator, interpolate
from fieldcorr.elements.nodes import (
    EDGE_ENDS,
    Edges,
    basis,
    basis_gradients,
    cell_dofs,
    node_points,
)

__all__ = [
    "EDGE_ENDS",
    "CellLocator",
    "Edges",
    "basis",
    "basis_gradients",
    "cell_dofs",
    "interpolate",
    "node_points",
]
