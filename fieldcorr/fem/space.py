"""The Lagrange space of a mesh: which node belongs to which cell and facet.

What flows in: points and cells. What flows out: node numbers of cells and facets, and the nodes'
coordinates. Nothing is assembled or solved here.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements import Edges

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh


@dataclass(frozen=True, eq=False)
class Space:
    """Continuous piecewise polynomials of order 1 or 2 on a tetrahedral mesh.

    Attributes
    ----------
    mesh
        The mesh; only ``points`` (P, 3) and ``cells`` (T, 4) are used.
    order
        1 or 2. Nodes are the mesh points, then the edge midpoints.
    """

    mesh: "Mesh"
    order: int

    def __post_init__(self) -> None:
        if self.order not in (1, 2):
            raise ValueError(f"order {self.order} is not 1 or 2")

    @cached_property
    def _edges(self) -> Edges:
        return Edges.of_mesh(self.cells, self.mesh.points.shape[0])

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """The mesh's cells (T, 4); writable, as read-only arrays would compile kernels twice."""
        return np.array(self.mesh.cells, dtype=np.int32)

    @cached_property
    def vertices(self) -> NDArray[np.float64]:
        """The mesh's points (P, 3); a copy for the same reason."""
        return np.array(self.mesh.points, dtype=np.float64)

    @cached_property
    def cell_dofs(self) -> NDArray[np.int32]:
        """Node numbers of the cells, (T, 4) or (T, 10)."""
        return self.cells if self.order == 1 else self._edges.nodes_of(self.cells)

    @property
    def n_dofs(self) -> int:
        """Number of nodes."""
        n_points = int(self.mesh.points.shape[0])
        return n_points if self.order == 1 else n_points + int(self._edges.upper.size)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Coordinates of the nodes, (n_dofs, 3)."""
        if self.order == 1:
            return self.vertices
        ends = self._edges.vertices()
        middle = 0.5 * (self.vertices[ends[:, 0]] + self.vertices[ends[:, 1]])
        return np.concatenate([self.vertices, middle])

    def facet_dofs(self, facets: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the node numbers (F, 3) or (F, 6) of triangles (F, 3) of the mesh."""
        facets = np.ascontiguousarray(facets, dtype=np.int32)
        return facets if self.order == 1 else self._edges.nodes_of(facets)

    @cached_property
    def vertex_transfer(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Parents (n_dofs, 2) and weights (n_dofs, 2): P1 nodes that carry each node of the space.

        A vertex has itself with weight 1 (and 0), an edge midpoint its two ends with weight 1/2:
        the embedding of P1 in P2.
        """
        own = np.arange(self.vertices.shape[0], dtype=np.int32)
        parents = np.stack([own, own], axis=1)
        weights = np.tile(np.array([1.0, 0.0]), (own.size, 1))
        if self.order == 1:
            return parents, weights
        ends = self._edges.vertices()
        halves = np.full(ends.shape, 0.5)
        return np.concatenate([parents, ends]), np.concatenate([weights, halves])
