"""Assembly against scikit-fem, against algebra, and against itself on other thread counts."""

import numpy as np
import pytest
import skfem
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from skfem.helpers import grad

from fieldcorr._parallel import threads
from fieldcorr.elements import Space
from fieldcorr.fem import Pattern, stiffness_matrix
from fieldcorr.mesh import Mesh
from fieldcorr.mesh.structured import box_mesh


def shaken_box(n: int, seed: int = 0) -> Mesh:
    """Return a box whose inner points are moved, so that no two cells are alike."""
    box = box_mesh(n, n, n)
    rng = np.random.default_rng(seed)
    inner = ((box.points > 0.0) & (box.points < 1.0)).all(axis=1)
    points = np.array(box.points)
    points[inner] += rng.uniform(-0.15, 0.15, (int(inner.sum()), 3)) / n
    return Mesh(
        points, box.cells, box.cell_tags, box.tissues, box.facets, box.facet_tags, box.facet_names
    )


def random_tensors(count: int, seed: int) -> NDArray[np.float64]:
    """Return symmetric positive definite conductivities (count, 6): xx, yy, zz, xy, xz, yz."""
    root = np.random.default_rng(seed).normal(size=(count, 3, 3))
    full = root @ root.transpose(0, 2, 1) + 0.1 * np.eye(3)
    rows, columns = [0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]
    return np.ascontiguousarray(full[:, rows, columns])


def assembled(space: Space, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
    pattern = Pattern.of_elements(space.cell_dofs, space.n_dofs)
    matrix = stiffness_matrix(pattern, space.vertices, space.cells, sigma, space.order)
    return np.asarray(matrix.toarray())


@pytest.mark.parametrize("order", [1, 2])
def test_stiffness_equals_that_of_scikit_fem(order: int) -> None:
    mesh = shaken_box(3)
    sigma = random_tensors(mesh.n_cells, 1)
    space = Space(mesh, order)
    own = assembled(space, sigma)
    other = skfem.MeshTet(np.array(mesh.points.T), np.array(mesh.cells.T, dtype=np.int64))
    element = skfem.ElementTetP1() if order == 1 else skfem.ElementTetP2()
    basis = skfem.Basis(other, element, intorder=2 * order)

    @skfem.BilinearForm
    def form(u, v, w):  # type: ignore[no-untyped-def]
        s = [sigma[:, k][:, None] for k in range(6)]
        (ux, uy, uz), (vx, vy, vz) = grad(u), grad(v)
        diagonal = s[0] * ux * vx + s[1] * uy * vy + s[2] * uz * vz
        mixed = s[3] * (ux * vy + uy * vx) + s[4] * (ux * vz + uz * vx) + s[5] * (uy * vz + uz * vy)
        return diagonal + mixed

    theirs = form.assemble(basis).toarray()
    # Match the two numberings by the position of the nodes.
    gaps = np.abs(space.points[:, None] - basis.doflocs.T[None]).max(axis=2)
    match = gaps.argmin(axis=1)
    assert gaps.min(axis=1).max() < 1e-12
    np.testing.assert_allclose(own, theirs[np.ix_(match, match)], atol=1e-12 * np.abs(own).max())


@settings(max_examples=15)
@given(st.integers(1, 2), st.integers(0, 10_000))
def test_left_out_and_tied_nodes_equal_a_congruence(order: int, seed: int) -> None:
    """Numbers -1 drop nodes and equal numbers tie them: the matrix is S' K S."""
    rng = np.random.default_rng(seed)
    space = Space(shaken_box(2, seed), order)
    sigma = random_tensors(space.cells.shape[0], seed)
    size = max(2, space.n_dofs // 2)
    numbers = rng.integers(-1, size, space.n_dofs).astype(np.int32)
    pattern = Pattern.of_elements(numbers[space.cell_dofs], size)
    matrix = stiffness_matrix(pattern, space.vertices, space.cells, sigma, order)
    selection = np.zeros((space.n_dofs, size))
    kept = numbers >= 0
    selection[np.flatnonzero(kept), numbers[kept]] = 1.0
    expected = selection.T @ assembled(space, sigma) @ selection
    np.testing.assert_allclose(matrix.toarray(), expected, atol=1e-11 * np.abs(expected).max())
    assert all(np.all(np.diff(row) > 0) for row in np.split(matrix.indices, matrix.indptr[1:-1]))


def test_long_rows_are_sorted_too() -> None:
    """One node tied to a whole face has more columns than insertion sort takes."""
    space = Space(box_mesh(8, 8, 2), 2)
    numbers = np.arange(space.n_dofs, dtype=np.int32)
    numbers[space.points[:, 2] > 1.0 - 1e-12] = 0
    pattern = Pattern.of_elements(numbers[space.cell_dofs], space.n_dofs)
    first = pattern.indices[pattern.indptr[0] : pattern.indptr[1]]
    assert first.size > 200
    assert np.all(np.diff(first) > 0)


def test_pattern_serves_other_conductivities() -> None:
    space = Space(shaken_box(3), 2)
    pattern = Pattern.of_elements(space.cell_dofs, space.n_dofs)
    for seed in (3, 4):
        sigma = random_tensors(space.cells.shape[0], seed)
        reused = stiffness_matrix(pattern, space.vertices, space.cells, sigma, 2)
        np.testing.assert_array_equal(reused.toarray(), assembled(space, sigma))


def test_constants_carry_no_current_and_the_matrix_is_symmetric() -> None:
    space = Space(shaken_box(3), 2)
    matrix = assembled(space, random_tensors(space.cells.shape[0], 5))
    scale = np.abs(matrix).max()
    assert np.abs(matrix.sum(axis=1)).max() < 1e-12 * scale
    assert np.abs(matrix - matrix.T).max() < 1e-13 * scale
    assert np.linalg.eigvalsh(matrix)[1] > 0.0


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    space = Space(shaken_box(4), 2)
    sigma = random_tensors(space.cells.shape[0], 6)
    with threads(1):
        alone = assembled(space, sigma)
    with threads(2):
        together = assembled(space, sigma)
    assert alone.tobytes() == together.tobytes()
