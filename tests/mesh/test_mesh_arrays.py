"""The mesh as arrays, its faces, its order and boxes made without a mesh generator."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldcorr.errors import MeshError
from fieldcorr.mesh import Mesh, tidy
from fieldcorr.mesh.data import triangle_normals
from fieldcorr.mesh.order import hilbert_key
from fieldcorr.mesh.structured import box_mesh, grid_mesh
from fieldcorr.mesh.topology import all_faces, boundary_facets, group_rows, locate_facets
from tests.mesh.boxes import layered_box

BOX = layered_box()
steps = st.lists(st.floats(0.1, 3.0), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("points", np.zeros((4, 2)), "points has shape"),
        ("points", None, "points must be numbers, not object"),
        ("points", [["a", "b", "c"]], "points must be numbers"),
        ("tissues", ("white", "white"), "tissues must be different printable names"),
        ("facet_names", ("0", "\ud800", "outer"), "facet_names must be different printable names"),
        ("cells", np.zeros((3, 3), int), "cells has shape"),
        ("cells", np.zeros((324, 4)), "cells must be integers, not float64"),
        ("cells", np.full((324, 4), 112), r"cells holds 112..112, allowed are 0..111"),
        ("cells", np.full((324, 4), 2**33), "out of range"),
        ("cells", np.full((324, 4), -1), r"cells holds -1..-1"),
        ("cell_tags", np.zeros(5, int), "cell_tags has shape"),
        ("cell_tags", np.full(324, 2), r"cell_tags holds 2..2, allowed are 0..1"),
        ("facets", np.zeros((1, 4), int), "facets has shape"),
        ("facet_tags", np.full(len(BOX.facets), 3), "facet_tags holds 3..3"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(field: str, value: object, message: str) -> None:
    with pytest.raises(MeshError, match=message):
        replace(BOX, **{field: value})  # type: ignore[arg-type]


def test_arrays_cannot_be_changed_through_the_mesh() -> None:
    with pytest.raises(ValueError, match="read-only"):
        BOX.points[0, 0] = 1.0


def test_names_are_looked_up() -> None:
    assert BOX.facet_tag("outer") == 2
    with pytest.raises(MeshError, match="no facet set named '9'"):
        BOX.facet_tag("9")


def test_hash_sees_every_array_and_name_but_not_the_origin() -> None:
    points, cells = BOX.points.copy(), BOX.cells.copy()
    points[3, 1] += 1e-9
    cells[7] = np.roll(cells[7], 2)
    changed = [
        replace(BOX, points=points),
        replace(BOX, cells=cells),
        replace(BOX, cell_tags=1 - BOX.cell_tags),
        replace(BOX, tissues=("white", "bone")),
        replace(BOX, facets=BOX.facets[:, [1, 2, 0]]),
        replace(BOX, facet_tags=BOX.facet_tags[::-1]),
        replace(BOX, facet_names=("0", "2", "outer")),
    ]
    assert len({mesh.hash for mesh in (BOX, *changed)}) == 8
    assert replace(BOX, origin={"made-by": "someone"}).hash == BOX.hash


@given(steps, steps, steps)
def test_grid_fills_its_box_and_names_its_boundary(
    dx: list[float], dy: list[float], dz: list[float]
) -> None:
    x, y, z = (np.cumsum([-1.0, *step]) for step in (dx, dy, dz))
    mesh = grid_mesh(x, y, z)
    sides = [np.ptp(line) for line in (x, y, z)]
    assert mesh.n_cells == 6 * len(dx) * len(dy) * len(dz)
    assert np.all(mesh.volumes() > 0)
    assert mesh.volumes().sum() == pytest.approx(np.prod(sides))
    area = 2 * sum(a * b for a, b in combinations(sides, 2))
    assert mesh.facet_areas().sum() == pytest.approx(area)
    assert np.sum(triangle_normals(mesh.points, mesh.facets), axis=0) == pytest.approx(
        0.0, abs=1e-9
    )
    assert all_faces(mesh.cells).uses.max() <= 2


def test_first_name_has_the_facet() -> None:
    mesh = box_mesh(1, 1, 1, facets={"a": lambda c: c[:, 2] > 0.9, "b": lambda c: c[:, 2] > 0.5})
    assert mesh.facet_names == ("a", "b")
    assert Counter(mesh.facet_tags.tolist()) == {0: 2, 1: 4}


@pytest.mark.parametrize("line", [[0.0], [0.0, 1.0, 1.0], [1.0, 0.0], [0.0, np.nan]])
def test_grid_lines_must_ascend(line: list[float]) -> None:
    with pytest.raises(MeshError, match="grid lines along y"):
        grid_mesh([0.0, 1.0], line, [0.0, 1.0])


def faces_by_counting(cells: np.ndarray) -> Counter[tuple[int, ...]]:
    return Counter(
        tuple(sorted(int(node) for node in face))
        for cell in cells
        for face in combinations(cell, 3)
    )


@pytest.mark.parametrize("largest", [BOX.n_points, 2**31 - 1])  # three fit in 64 bits, or not
def test_faces_agree_with_counting(largest: int) -> None:
    numbers = np.random.default_rng(2).integers(0, largest, 40 * BOX.n_points)
    distinct = np.random.default_rng(3).permutation(np.unique(numbers))[: BOX.n_points]
    cells = distinct.astype(np.int32)[BOX.cells[::3]]
    faces = all_faces(cells)
    counted = faces_by_counting(cells)
    found = {
        tuple(sorted(map(int, face))): int(uses)
        for face, uses in zip(faces.vertices, faces.uses, strict=True)
    }
    assert found == dict(counted)
    for face, owners in zip(faces.vertices, faces.cells, strict=True):
        for owner in owners[owners >= 0]:
            assert set(face) <= set(cells[owner])


def test_rows_that_would_share_a_packed_key_are_told_apart() -> None:
    rows = np.array([[0, 0, 1 << 21], [0, 1, 0], [0, 0, 1 << 21]], np.int32)
    order, starts = group_rows(rows)
    assert (order.tolist(), starts.tolist()) == ([0, 2, 1], [0, 2])


def test_boundary_points_outwards() -> None:
    facets, owners = boundary_facets(BOX.cells)
    outward = BOX.points[facets].mean(axis=1) - BOX.points[BOX.cells[owners]].mean(axis=1)
    assert np.all(np.einsum("ij,ij->i", outward, triangle_normals(BOX.points, facets)) > 0)


def test_facets_are_found_in_any_vertex_order() -> None:
    among, _ = boundary_facets(BOX.cells)
    wanted = np.concatenate((among[[5, 2]][:, [2, 0, 1]], [[0, 1, 110]])).astype(np.int32)
    assert locate_facets(wanted, among).tolist() == [5, 2, -1]
    assert len(locate_facets(wanted[:0], among)) == 0
    assert group_rows(np.zeros((0, 3), np.int32))[1].tolist() == []


@given(st.integers(0, 2**32 - 1))
def test_tidy_does_not_depend_on_the_order_it_gets(seed: int) -> None:
    assert tidy(shuffled(BOX, seed)).hash == tidy(BOX).hash


def shuffled(mesh: Mesh, seed: int) -> Mesh:
    """Return the same mesh with points, cells and facets in another order, even vertex orders."""
    rng = np.random.default_rng(seed)
    order, rows = rng.permutation(mesh.n_points), rng.permutation(mesh.n_cells)
    number = np.argsort(order).astype(np.int32)
    facets = rng.permutation(len(mesh.facets))
    return replace(
        mesh,
        points=mesh.points[order],
        cells=number[mesh.cells][rows][:, [1, 2, 0, 3]],
        cell_tags=mesh.cell_tags[rows],
        facets=number[mesh.facets][facets][:, [1, 0, 2]],
        facet_tags=mesh.facet_tags[facets],
    )


def test_tidy_keeps_the_mesh_and_orients_facets() -> None:
    neat = tidy(shuffled(BOX, 7))
    assert np.all(neat.volumes() > 0)
    by_tissue = [np.bincount(mesh.cell_tags, mesh.volumes()) for mesh in (BOX, neat)]
    assert by_tissue[1] == pytest.approx(by_tissue[0])
    tops = triangle_normals(neat.points, neat.facets[neat.facet_tags < 2])
    assert np.all(tops[:, 2] > 0)


def test_tidy_rounds_to_nanometres_without_negative_zero() -> None:
    shifted = tidy(replace(BOX, points=BOX.points - 1e-12))
    assert np.array_equal(shifted.points, tidy(BOX).points)
    assert not np.any(np.signbit(shifted.points))


def test_tidy_drops_unused_points_and_can_order_like_other_points() -> None:
    extra = replace(BOX, points=np.vstack((BOX.points, [[1.0, 1.0, 1.0]])))
    assert tidy(extra).n_points == BOX.n_points
    moved = replace(BOX, points=BOX.points[:, ::-1] + [0.0, 0.0, 0.001])
    turned = replace(moved, cells=moved.cells[:, [0, 1, 3, 2]])
    alike = tidy(turned, like=BOX.points)
    assert np.array_equal(np.sort(alike.cells, axis=1), np.sort(tidy(BOX).cells, axis=1))


def test_hilbert_curve_visits_neighbours() -> None:
    side = 8
    grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    key = hilbert_key(grid)
    walk = np.abs(np.diff(grid[np.argsort(key)], axis=0)).sum(axis=1)
    assert len(np.unique(key)) == side**3
    assert np.all(walk == 1)
