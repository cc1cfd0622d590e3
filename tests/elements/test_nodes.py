"""Numbering, basis functions and point location of the Lagrange elements."""

from typing import Any

import basix
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.elements import (
    EDGE_ENDS,
    CellLocator,
    NodalField,
    Space,
    basis,
    basis_gradients,
    curve_order,
)
from fieldcorr.errors import FieldError
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
    space = Space(mesh, 2)
    dofs, points = space.cell_dofs, space.points
    distinct = {tuple(sorted(c[list(e)])) for c in mesh.cells for e in EDGE_ENDS}
    assert space.n_dofs == mesh.n_points + len(distinct) == points.shape[0]
    for local, (a, b) in enumerate(EDGE_ENDS):
        middle = 0.5 * (mesh.points[mesh.cells[:, a]] + mesh.points[mesh.cells[:, b]])
        np.testing.assert_allclose(points[dofs[:, 4 + local]], middle, atol=1e-15)


def test_facet_nodes_lie_on_the_facet() -> None:
    mesh = box_mesh(2, 2, 2, facets={"top": lambda c: c[:, 2] > 1.0 - 1e-9})
    space = Space(mesh, 2)
    nodes = space.facet_dofs(mesh.facets)
    assert nodes.shape == (8, 6)
    np.testing.assert_allclose(space.points[nodes][:, :, 2], 1.0)


@given(st.integers(0, 2**32 - 1))
def test_interpolation_reproduces_quadratics_everywhere(seed: int) -> None:
    mesh = grid_mesh([0.0, 0.1, 1.0], [0.0, 0.4, 0.5, 1.0], [0.0, 0.9, 1.0])
    space = Space(mesh, 2)
    queries = np.random.default_rng(seed).random((50, 3))
    where = space.locate(queries)
    assert where.inside.all()
    field = NodalField(space, quadratic(space.points))
    np.testing.assert_allclose(field.potential(where), quadratic(queries), atol=1e-13)
    x, y, z = queries.T
    slope = np.stack([y + 3.0, x, -4.0 * z], axis=1)
    np.testing.assert_allclose(field.electric_field(where), -slope, atol=1e-11)


def test_several_fields_are_evaluated_as_each_of_them() -> None:
    space = Space(box_mesh(2, 3, 2), 2)
    nodal = np.random.default_rng(5).normal(size=(3, space.n_dofs))
    points = np.random.default_rng(6).random((20, 3)) * 1.1
    together = NodalField(space, nodal)
    assert together.potential(points).shape == (3, 20)
    assert together.electric_field(points).shape == (3, 20, 3)
    for row in range(3):
        alone = NodalField(space, nodal[row])
        np.testing.assert_array_equal(together.potential(points)[row], alone.potential(points))
        np.testing.assert_array_equal(
            together.electric_field(points)[row], alone.electric_field(points)
        )


def test_location_on_vertices_faces_outside_and_in_a_hole() -> None:
    whole = box_mesh(5, 5, 5)
    centres = whole.points[whole.cells].mean(axis=1)
    hole = (np.abs(centres - 0.5) < 0.3).all(axis=1)
    locator = CellLocator(whole.points, np.array(whole.cells[~hole]))
    corners = locator.locate(whole.points[np.unique(whole.cells[~hole])])
    assert corners.inside.all()
    np.testing.assert_allclose(corners.barycentric.max(axis=1), 1.0, atol=1e-12)
    nowhere = [[0.5, 0.5, 0.5], [1.1, 0.5, 0.5], [np.nan, 0.0, 0.0], [np.inf, 0.0, 0.0]]
    assert locator.locate(nowhere).cell.tolist() == [-1, -1, -1, -1]
    # Behind the hole as seen from its own nearest vertices, reached by the exhaustive search.
    assert (locator.locate(centres[~hole]).cell == np.arange((~hole).sum())).all()


def test_points_outside_have_no_field() -> None:
    space = Space(box_mesh(1, 1, 1), 1)
    field = NodalField(space, np.ones(space.n_dofs))
    points = [[2.0, 0.0, 0.0], [0.5, 0.5, 0.5], [1e300, -1e300, 0.0], [np.nan, 0.5, 0.5]]
    outside = [True, False, True, True]
    np.testing.assert_array_equal(np.isnan(field.potential(points)), outside)
    np.testing.assert_array_equal(np.isnan(field.electric_field(points)).all(axis=1), outside)
    assert field.potential(points)[1] == pytest.approx(1.0)


def test_one_point_and_no_point() -> None:
    space = Space(box_mesh(1, 1, 1), 1)
    field = NodalField(space, space.points[:, 0])
    np.testing.assert_allclose(field.potential([0.25, 0.5, 0.5]), [0.25])
    assert field.potential([]).shape == (0,)


@pytest.mark.parametrize(
    "points", [0.5, [0.5, 0.5], [[0.5] * 6], [[[0.5] * 3]], [[0.5] * 3, [0.5]], ["here"]]
)
def test_points_of_another_shape_are_refused(points: Any) -> None:
    with pytest.raises(FieldError, match="points:"):
        Space(box_mesh(1, 1, 1), 1).locate(points)


def test_flat_cells_hold_no_point() -> None:
    mesh = box_mesh(2, 2, 2)
    flat = [[0, 1, 2, 2], [0, 0, 0, 0], mesh.cells[3][[0, 1, 2, 0]]]
    locator = CellLocator(mesh.points, np.concatenate([flat, mesh.cells]).astype(np.int32))
    queries = np.random.default_rng(2).random((200, 3))
    found = locator.locate(np.concatenate([queries, mesh.points]))
    assert (found.cell >= len(flat)).all()


def test_a_vertex_that_all_cells_share_costs_no_walk_through_all_of_them() -> None:
    """Cells of a broken mesh around one vertex; a walk would meet all of them at every step."""
    count = 20_000
    rng = np.random.default_rng(4)
    points = np.concatenate([[[0.5, 0.5, 0.5]], rng.random((3 * count, 3))])
    fan = 1 + np.arange(3 * count).reshape(count, 3)
    cells = np.column_stack([np.zeros(count, dtype=np.int64), fan]).astype(np.int32)
    where = CellLocator(points, cells).locate(0.25 + 0.5 * rng.random((5, 3)))
    assert where.inside.all()
    assert (where.barycentric >= -1e-9).all()


@pytest.mark.parametrize("order", [0, 3, None, float("nan"), "2", [1]])
def test_other_orders_are_refused(order: Any) -> None:
    with pytest.raises(FieldError, match="elements have order 1 or 2"):
        Space(box_mesh(1, 1, 1), order)


def test_an_order_may_be_any_whole_number() -> None:
    for order in (np.int64(2), np.array(2), 2.0):
        assert Space(box_mesh(1, 1, 1), order).n_dofs == 27  # type: ignore[arg-type]


def test_the_curve_takes_the_bits_of_the_axes_in_turn() -> None:
    grid = np.random.default_rng(1).integers(0, 2**21, size=(300, 3))
    words = [[f"{value:021b}" for value in (z, y, x)] for x, y, z in grid]
    turns = [[z + y + x for z, y, x in zip(*word, strict=True)] for word in words]
    assert curve_order(grid).tolist() == sorted(range(300), key=turns.__getitem__)
    equal = np.zeros((5, 3), dtype=np.int64)
    assert curve_order(equal).tolist() == [0, 1, 2, 3, 4]
    assert curve_order(equal[:0]).size == 0
