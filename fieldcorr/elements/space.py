"""The Lagrange space of a mesh: which node belongs to which cell and facet, and where it lies."""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements.locate import CellLocator, Located
from fieldcorr.elements.nodes import EDGE_ENDS, TRIANGLE_EDGE_ENDS, basis_gradients
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

    Nodes are the mesh's points, then, for order 2, the midpoints of its edges. The vertex numbers
    of cells are not checked here.
    """

    mesh: TissueMesh
    order: int

    def __post_init__(self) -> None:
        if np.ndim(self.order) != 0 or self.order not in (1, 2):
            raise FieldError(f"order {self.order!r}: elements have order 1 or 2")
        object.__setattr__(self, "order", int(self.order))

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
        return self._dofs(self.cells, EDGE_ENDS)

    def facet_dofs(self, facets: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the node numbers (F, 3) or (F, 6) of triangles (F, 3) of the mesh."""
        return self._dofs(np.ascontiguousarray(facets, dtype=np.int32), TRIANGLE_EDGE_ENDS)

    @property
    def n_dofs(self) -> int:
        """Number of nodes."""
        return len(self.vertices) + (len(self._edge_keys) if self.order == 2 else 0)

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Coordinates of the nodes, (n_dofs, 3)."""
        if self.order == 1:
            return self.vertices
        ends = self._edges
        middle = 0.5 * (self.vertices[ends[:, 0]] + self.vertices[ends[:, 1]])
        return np.concatenate([self.vertices, middle])

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
        halves = np.full(self._edges.shape, 0.5)
        return np.concatenate([parents, self._edges]), np.concatenate([weights, halves])

    # -- edges ------------------------------------------------------------------------------------

    def _keys(self, simplices: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return one number per edge of each simplex, in the order of smaller, then larger end."""
        one, other = simplices[:, ends[:, 0]], simplices[:, ends[:, 1]]
        return np.minimum(one, other) * np.int64(len(self.vertices)) + np.maximum(one, other)

    @cached_property
    def _edge_keys(self) -> NDArray[np.int64]:
        keys = np.sort(self._keys(self.cells, EDGE_ENDS), axis=None)
        return keys[np.diff(keys, prepend=-1) > 0]  # np.unique would hash, at ten times the time

    @cached_property
    def _edges(self) -> NDArray[np.int32]:
        """Both ends (edges, 2) of every edge, smaller first."""
        return np.stack(np.divmod(self._edge_keys, len(self.vertices)), axis=1).astype(np.int32)

    def _dofs(self, simplices: NDArray[np.int32], ends: NDArray[np.int64]) -> NDArray[np.int32]:
        if self.order == 1:
            return simplices
        edges = np.searchsorted(self._edge_keys, self._keys(simplices, ends))
        return np.concatenate([simplices, len(self.vertices) + edges.astype(np.int32)], axis=1)

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

    def gradients(
        self, cells: NDArray[np.int64], barycentric: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the gradients (N, 4 | 10, 3) 1/m of the basis at barycentrics (N, 4) of cells."""
        corners = self.vertices[self.cells[cells]]
        # Columns of the inverse edge matrix are the gradients of barycentrics 1 to 3; that of the
        # first one follows, because all four sum to 1.
        inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])
        slopes = np.concatenate([-inverse.sum(axis=2, keepdims=True), inverse], axis=2)
        table = basis_gradients(barycentric, self.order)
        gradients: NDArray[np.float64] = np.einsum("nkl,ndl->nkd", table, slopes)
        return gradients
