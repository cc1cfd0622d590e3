"""The Lagrange space of a mesh: which node belongs to which cell and facet, and where it lies."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements.locate import CellLocator, Located
from fieldcorr.elements.nodes import Edges, basis_gradients
from fieldcorr.errors import FieldError


class TissueMesh(Protocol):
    """What a space needs of a mesh, be it a file's or a store's."""

    @property
    def points(self) -> NDArray[np.float64]:
        """Vertices, (P, 3) m."""

    @property
    def cells(self) -> NDArray[np.int32]:
        """Vertex numbers of the tetrahedra, (T, 4)."""

    @property
    def cell_tags(self) -> NDArray[np.int32]:
        """Tissue number of each tetrahedron, (T,)."""

    @property
    def tissues(self) -> tuple[str, ...]:
        """Names of the tissues, by number."""


@dataclass(frozen=True, eq=False)
class Space:
    """Continuous piecewise polynomials of order 1 or 2 on a tetrahedral mesh.

    Attributes
    ----------
    mesh
        The mesh; vertex numbers of its cells are not checked here.
    order
        1 or 2. Nodes are the mesh points, then the edge midpoints.
    """

    mesh: TissueMesh
    order: int

    def __post_init__(self) -> None:
        if np.ndim(self.order) != 0 or self.order not in (1, 2):
            raise FieldError(f"order {self.order!r}: elements have order 1 or 2")
        object.__setattr__(self, "order", int(self.order))

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

    # -- points inside the mesh -------------------------------------------------------------------

    @cached_property
    def _locator(self) -> CellLocator:
        return CellLocator(self.vertices, self.cells)

    def locate(self, points: ArrayLike) -> Located:
        """Find the cells of points (N, 3) m."""
        return self._locator.locate(points)

    def locate_in_plane(self, points: ArrayLike, *, axis: int, at: float) -> Located:
        """Find the cells of points whose coordinate ``axis`` is ``at``.

        Only the cells that the plane meets are searched: points in the void of the paddle, which
        lie in no cell, would else be looked for in all of them.
        """
        along = self.vertices[:, axis][self.cells]
        met = np.flatnonzero((along.min(axis=1) <= at) & (along.max(axis=1) >= at))
        found = CellLocator(self.vertices, self.cells[met]).locate(points)
        cell = found.cell
        cell[found.inside] = met[cell[found.inside]]
        return found

    def centroids(self, cells: NDArray[np.int64]) -> Located:
        """Return the centroids of some cells (N,) as located points."""
        return Located(cells, np.full((cells.size, 4), 0.25))

    def gradients(self, where: Located) -> NDArray[np.float64]:
        """Return the gradients (N, 4 | 10, 3) 1/m of the basis at points inside the mesh."""
        corners = self.vertices[self.cells[where.cell]]
        # Columns of the inverse edge matrix are the gradients of barycentrics 1 to 3; that of the
        # first one follows, because all four sum to 1.
        inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])
        slopes = np.concatenate([-inverse.sum(axis=2, keepdims=True), inverse], axis=2)
        table = basis_gradients(where.barycentric, self.order)
        gradients: NDArray[np.float64] = np.einsum("nkl,ndl->nkd", table, slopes)
        return gradients
