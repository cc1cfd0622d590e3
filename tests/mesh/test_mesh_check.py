"""Every defect is made from a sound mesh and must be refused with its own message."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.errors import MeshError
from fieldcorr.mesh import Mesh, check_mesh
from fieldcorr.mesh.structured import box_mesh
from tests.mesh.boxes import joined, layered_box

GOOD = layered_box()


def with_cell(mesh: Mesh, cell: list[int], *, points: list[list[float]] | None = None) -> Mesh:
    """Return the mesh with one more cell of tissue 0, and further points."""
    return replace(
        mesh,
        points=np.concatenate((mesh.points, np.reshape(points or [], (-1, 3)))),
        cells=np.concatenate((mesh.cells, np.array([cell], np.int32))),
        cell_tags=np.append(mesh.cell_tags, np.int32(0)),
    )


def split_node(mesh: Mesh, node: int, cells: np.ndarray) -> Mesh:
    """Return the mesh in which some cells use a copy of a node."""
    changed = mesh.cells.copy()
    changed[cells] = np.where(changed[cells] == node, mesh.n_points, changed[cells])
    return replace(mesh, points=np.vstack((mesh.points, mesh.points[node])), cells=changed)


def test_sound_mesh_is_reported() -> None:
    report = check_mesh(GOOD, tissues=("fat", "white"), contacts=("0", "1", "outer"))
    assert (report.n_cells, report.n_points) == (6 * 3 * 3 * 6, 4 * 4 * 7)
    assert report.size == pytest.approx((0.03, 0.03, 0.03))
    assert report.tissues["white"] == pytest.approx((162, 0.03**3 / 2))
    assert report.facets["0"] == pytest.approx((6, 0.03**2 / 3))
    # Kuhn's tetrahedron in a brick of 10 x 10 x 5 mm: edges 5 mm to the brick's diagonal of 15 mm
    assert report.edge == pytest.approx((0.005, 0.015))


def test_regular_tetrahedron_has_quality_one() -> None:
    points = 0.01 * np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1.0]])
    mesh = Mesh(points, np.array([[0, 1, 3, 2]]), np.zeros(1, np.int32), ("a",), *NO_FACETS)
    mesh = mesh if mesh.volumes()[0] > 0 else replace(mesh, cells=np.array([[0, 1, 2, 3]]))
    quality = check_mesh(mesh)
    assert quality.radius_ratio == pytest.approx((1.0, 1.0, 1.0))
    assert quality.dihedral_degree == pytest.approx((np.degrees(np.arccos(1 / 3)),) * 2)


NO_FACETS = (np.zeros((0, 3), np.int32), np.zeros(0, np.int32), ())


def test_no_cells() -> None:
    empty = Mesh(GOOD.points, np.zeros((0, 4), np.int32), np.zeros(0, np.int32), (), *NO_FACETS)
    refused(empty, "there are no tetrahedra")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_coordinates_not_finite(value: float) -> None:
    points = GOOD.points.copy()
    points[17, 1] = value
    refused(
        replace(GOOD, points=points), "1 nodes have coordinates that are not finite, first node 17"
    )


def test_unused_node() -> None:
    points = np.vstack((GOOD.points, [[0.01, 0.01, 0.2]]))
    refused(replace(GOOD, points=points), f"1 nodes belong to no cell, first node {GOOD.n_points}")


@pytest.mark.parametrize(("factor", "other"), [(1000.0, "0.03 m"), (1e-2, "3e-07 m")])
def test_wrong_units(factor: float, other: str) -> None:
    refused(replace(GOOD, points=factor * GOOD.points), f"wrong units.*read in mm.*{other}")


def test_unknown_tissue() -> None:
    with pytest.raises(
        MeshError, match=r"m\.msh: unknown tissue 'fat' on 162 cells; known are white"
    ):
        check_mesh(GOOD, tissues=("white",), name="m.msh")


def test_missing_tissue() -> None:
    with pytest.raises(MeshError, match="missing tissue 'csf': no cell carries this tag"):
        check_mesh(GOOD, tissues=("white", "fat", "csf"))
    refused(replace(GOOD, tissues=("white", "fat", "csf")), "missing tissue 'csf'")


def test_flat_cell() -> None:
    corners = [0, 7 * 4 * 1, 7 * 4 * 2 + 7, 7]  # four nodes of the bottom
    refused(with_cell(GOOD, corners), f"1 cells are flat, first cell {GOOD.n_cells} in 'white'")


@given(cell=st.integers(0, GOOD.n_cells - 1), column=st.integers(0, 2))
def test_inverted_cell(cell: int, column: int) -> None:
    cells = GOOD.cells.copy()
    cells[cell, [column, column + 1]] = cells[cell, [column + 1, column]]
    refused(replace(GOOD, cells=cells), f"1 cells are inverted, first cell {cell} in ")


@given(data=st.data())
def test_any_split_node_is_refused(data: st.DataObject) -> None:
    node = data.draw(st.integers(0, GOOD.n_points - 1))
    around = np.flatnonzero(np.any(GOOD.cells == node, axis=1))
    if len(around) < 2:
        return
    some = data.draw(st.sets(st.sampled_from(list(around)), min_size=1, max_size=len(around) - 1))
    refused(split_node(GOOD, node, np.array(sorted(some))), "(duplicate nodes|coincide)")


def test_duplicate_nodes_within_a_tissue() -> None:
    node = int(np.flatnonzero(GOOD.points[:, 2] == 0.0)[5])
    cell = np.flatnonzero(np.any(GOOD.cells == node, axis=1))[:1]
    refused(
        split_node(GOOD, node, cell),
        rf"1 pairs of duplicate nodes, first {node} and {GOOD.n_points} \(white\)",
    )


def test_nodes_on_an_interface_that_are_not_shared() -> None:
    white = replace(GOOD, cells=GOOD.cells[GOOD.cell_tags == 0], cell_tags=np.zeros(162, np.int32))
    fat = replace(GOOD, cells=GOOD.cells[GOOD.cell_tags == 1], cell_tags=np.ones(162, np.int32))
    both = drop_unused(joined(white, fat))
    refused(both, r"non-conforming compartments: 16 pairs of nodes coincide but are not shared")


def drop_unused(mesh: Mesh) -> Mesh:
    used = np.unique(mesh.cells)
    number = np.full(mesh.n_points, -1, np.int32)
    number[used] = np.arange(len(used))
    return Mesh(mesh.points[used], number[mesh.cells], mesh.cell_tags, mesh.tissues, *NO_FACETS)


def test_face_with_three_owners() -> None:
    refused(with_cell(GOOD, list(GOOD.cells[40])), "4 faces belong to more than two cells")


def test_overlapping_cells() -> None:
    bottom = [0, 7 * 4, 7 * 4 + 7]
    inside = [0.004, 0.002, 0.001]
    a, b, c = (GOOD.points[node] for node in bottom)
    order = [*bottom, GOOD.n_points]
    if np.dot(np.cross(b - a, c - a), inside - a) < 0:
        order = [bottom[1], bottom[0], bottom[2], GOOD.n_points]
    refused(with_cell(GOOD, order, points=[inside]), "lie on the same side of a common face")


def test_hanging_nodes_between_grids_that_do_not_match() -> None:
    below = box_mesh(2, 2, 2, bounds=((0, 0.02), (0, 0.02), (0, 0.02)), tissues=("white", "fat"))
    above = box_mesh(
        4,
        4,
        4,
        bounds=((0, 0.02), (0, 0.02), (0.02, 0.04)),
        tag=lambda centroids: np.ones(len(centroids)),
        tissues=("white", "fat"),
    )
    both = merge_equal(joined(below, above))
    refused(
        both, r"16 nodes hang within the faces of others, first node \d+ \(fat\) in a face of white"
    )


def merge_equal(mesh: Mesh) -> Mesh:
    points, inverse = np.unique(np.round(mesh.points, 9), axis=0, return_inverse=True)
    return Mesh(
        points, inverse.astype(np.int32)[mesh.cells], mesh.cell_tags, mesh.tissues, *NO_FACETS
    )


def test_disconnected_compartments() -> None:
    far = box_mesh(1, 1, 1, bounds=((0.1, 0.11), (0, 0.01), (0, 0.01)))
    refused(
        joined(GOOD, far),
        "falls into 2 parts that share no face; the smallest has 6 cells of white",
    )


def test_compartments_that_touch_in_one_node_are_disconnected() -> None:
    touching = box_mesh(1, 1, 1, bounds=((0.03, 0.04), (0.03, 0.04), (0.03, 0.04)))
    refused(merge_equal(joined(GOOD, touching)), "disconnected compartments")


def test_contact_without_faces() -> None:
    refused(replace(GOOD, facet_names=(*GOOD.facet_names, "2")), "contact '2' has no faces")
    with pytest.raises(MeshError, match="contact '7' has no faces"):
        check_mesh(GOOD, contacts=("0", "7"))


def interior_facet() -> np.ndarray:
    middle = np.isclose(GOOD.points[:, 2], 0.015)
    cell = next(row for row in GOOD.cells if middle[row].sum() == 3)
    return np.array([cell[middle[cell]]])


def with_facets(facets: np.ndarray, tag: int) -> Mesh:
    return replace(
        GOOD,
        facets=np.concatenate((GOOD.facets, facets)),
        facet_tags=np.append(GOOD.facet_tags, np.full(len(facets), tag)),
    )


def test_contact_inside_a_conductor() -> None:
    refused(with_facets(interior_facet(), 1), "contact '1' has 1 faces inside a conductor")


def test_facets_of_other_names_are_not_looked_at() -> None:
    report = check_mesh(with_facets(interior_facet(), 2), contacts=("0", "1"))
    assert report.facets["outer"][0] == 19


def test_contact_off_the_mesh() -> None:
    refused(
        with_facets(np.array([[0, 50, 100]]), 0), "contact '0' has 1 faces that are no face of any"
    )


def test_facet_with_two_names() -> None:
    refused(
        with_facets(GOOD.facets[GOOD.facet_tags == 0][:2], 1), "has 2 faces that are listed twice"
    )


@given(
    st.lists(st.floats(-0.6, 0.6), min_size=9, max_size=9),
    st.floats(0.5, 2.0),
    st.integers(0, 2**32 - 1),
)
def test_any_affine_image_in_any_order_is_sound(
    shear: list[float], scale: float, seed: int
) -> None:
    matrix = scale * (3.0 * np.eye(3) + np.reshape(shear, (3, 3)))
    order = np.random.default_rng(seed).permutation(GOOD.n_points)
    number = np.argsort(order).astype(np.int32)
    moved = replace(
        GOOD,
        points=(GOOD.points @ matrix.T)[order],
        cells=number[GOOD.cells],
        facets=number[GOOD.facets],
    )
    report = check_mesh(moved)
    volume = sum(volume for _, volume in report.tissues.values())
    assert volume == pytest.approx(0.03**3 * np.linalg.det(matrix))


def refused(mesh: Mesh, message: str) -> None:
    with pytest.raises(MeshError, match=message) as caught:
        check_mesh(mesh)
    assert "\n" not in str(caught.value)
