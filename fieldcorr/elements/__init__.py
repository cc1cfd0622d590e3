"""Lagrange elements on tetrahedra: numbering, basis functions, and fields anywhere in a mesh.

The solver numbers its unknowns with a :class:`Space`; lead fields, stores, pictures and exports
evaluate potential and electric field through :class:`Volume` and :class:`NodalField`. There is one
numbering, one interpolation and one zero of the potential, and none of it needs more than numpy
and numba (and scipy's kd-tree when points are located).

Nodes are the mesh's points, then, for order 2, the midpoints of its edges, ordered by the smaller
and then by the larger end. Inside a cell the six edges come in the order of :data:`EDGE_ENDS`,
which is the order of basix.
"""

from fieldcorr.elements.curve import curve_order
from fieldcorr.elements.field import NodalField, Volume
from fieldcorr.elements.locate import CellLocator, Located
from fieldcorr.elements.nodes import EDGE_ENDS, basis, basis_gradients
from fieldcorr.elements.space import Space, TissueMesh

__all__ = [
    "EDGE_ENDS",
    "CellLocator",
    "Located",
    "NodalField",
    "Space",
    "TissueMesh",
    "Volume",
    "basis",
    "basis_gradients",
    "curve_order",
]
