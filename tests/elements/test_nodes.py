"""Numbering, basis functions and point location of the Lagrange elements."""

import basix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.elements import (
    EDGE_ENDS,
    CellLocator,
    Edges,
    basis,
    basis_gradients,
    cell_dofs,
    interpolate,
    node_points,
)
from fieldcorr.mesh.structured import box_mesh, grid_mesh


def quadratic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1.0 + x[:, 0] * x[:, 1] - 2.0 * x[:, 2] ** 2 + 3.0 * x[:, 0]


def test_edge_order_is_that_of_basix() -> None:
    assert EDGE_ENDS.tolist() == basix.topology(basix.CellType.tetrahedron)[1]


@pytest.mark.parametrize("order", [1, 2])
def test_basis_agrees_with_basix(order: int) -> None:
    points = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    element = basix.create_element(
        basix.ElementFamily.P,
        basix.CellType.tetrahedron,
        order,
        basix.LagrangeVariant.equispaced,
    )
    table = np.asarray(element.tabulate(1, points[:, 1:]))[:, :, :, 0]
    np.testing.assert_allclose(basis(points, order), table[0], atol=1e-14)
    # d/dx_k = d/dl_(k+1) - d/dl_0 on the reference cell.
    slopes = basis_gradients(points, order)
    for axis in range(3):
        np.testing.assert_allclose(
            slopes[:, :, axis + 1] - slopes[:, :, 0], table[1 + axis], atol=1e-13
        )


def test_every_edge_has_one_number_and_its_midpoint() -> None:
    mesh = box_mesh(3, 2, 4)
    dofs, count = cell_dofs(mesh.cells, mesh.n_points, 2)
    points = node_points(mesh.points, mesh.cells, 2)
    distinct = {tuple(sorted(c[list(e)])) for c in mesh.cells for e in EDGE_ENDS}
    assert count == mesh.n_points + len(distinct) == points.shape[0]
    for local, (a, b) in enumerate(EDGE_ENDS):
        middle = 0.5 * (mesh.points[mesh.cells[:, a]] + mesh.points[mesh.cells[:, b]])
        np.testing.assert_allclose(points[dofs[:, 4 + local]], middle, atol=1e-15)


def test_facet_nodes_lie_on_the_facet() -> None:
    mesh = box_mesh(2, 2, 2, facets={"top": lambda c: c[:, 2] > 1.0 - 1e-9})
    edges = Edges.of_mesh(np.array(mesh.cells), mesh.n_points)
    nodes = edges.nodes_of(mesh.facets)
    assert nodes.shape == (8, 6)
    np.testing.assert_allclose(node_points(mesh.points, mesh.cells, 2)[nodes][:, :, 2], 1.0)


@given(st.integers(0, 2**32 - 1))
def test_interpolation_reproduces_quadratics_everywhere(seed: int) -> None:
    mesh = grid_mesh([0.0, 0.1, 1.0], [0.0, 0.4, 0.5, 1.0], [0.0, 0.9, 1.0])
    dofs, _ = cell_dofs(mesh.cells, mesh.n_points, 2)
    nodal = quadratic(node_points(mesh.points, mesh.cells, 2))[None]
    queries = np.random.default_rng(seed).random((50, 3))
    cell, bary = CellLocator(mesh.points, mesh.cells).locate(queries)
    assert (cell >= 0).all()
    found = interpolate(nodal, dofs, cell, bary, 2)[0]
    np.testing.assert_allclose(found, quadratic(queries), atol=1e-13)


def test_location_on_vertices_faces_outside_and_in_a_hole() -> None:
    whole = box_mesh(5, 5, 5)
    centres = whole.points[whole.cells].mean(axis=1)
    hole = (np.abs(centres - 0.5) < 0.3).all(axis=1)
    locator = CellLocator(whole.points, np.array(whole.cells[~hole]))
    cell, bary = locator.locate(whole.points[np.unique(whole.cells[~hole])])
    assert (cell >= 0).all()
    np.testing.assert_allclose(bary.max(axis=1), 1.0, atol=1e-12)
    nowhere = [[0.5, 0.5, 0.5], [1.1, 0.5, 0.5], [np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0]]
    assert locator.locate(nowhere)[0].tolist() == [-1, -1, -1, -1]
    # Behind the hole as seen from its own nearest vertices, reached by the exhaustive search.
    assert (locator.locate(centres[~hole])[0] == np.arange((~hole).sum())).all()


def test_points_outside_interpolate_to_nan() -> None:
    mesh = box_mesh(1, 1, 1)
    dofs, _ = cell_dofs(mesh.cells, mesh.n_points, 1)
    cell, bary = CellLocator(mesh.points, mesh.cells).locate([[2.0, 0.0, 0.0], [0.5, 0.5, 0.5]])
    values = interpolate(np.ones((1, mesh.n_points)), dofs, cell, bary, 1)
    assert np.isnan(values[0, 0])
    assert values[0, 1] == pytest.approx(1.0)


def test_other_orders_are_refused() -> None:
    mesh = box_mesh(1, 1, 1)
    with pytest.raises(ValueError, match="order 3"):
        cell_dofs(mesh.cells, mesh.n_points, 3)
