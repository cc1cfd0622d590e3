"""The parts of the verification harness, each against something exact."""

import numpy as np
import pytest

from fieldcorr.contacts import electrodes_on
from fieldcorr.elements import Space
from fieldcorr.leadfield.system import contact_loads
from fieldcorr.mesh.structured import box_mesh
from fieldcorr.verification import manufactured
from fieldcorr.verification.cases import slab_mesh
from fieldcorr.verification.compare import Comparison, markdown_table
from fieldcorr.verification.meshes import graded_line
from fieldcorr.verification.problem import (
    cell_load,
    diagonal_tensors,
    facet_load,
    sample,
    solve_insulated,
    solve_with_known,
    stiffness,
)
from tests.verification.differences import second_derivatives, slope

RNG = np.random.default_rng(2)
CUBE = box_mesh(2, 3, 2, bounds=((0.0, 1.0), (0.0, 2.0), (-1.0, 1.0)))


def quadratic(p: np.ndarray) -> np.ndarray:
    x, y, z = p.T
    return np.asarray(1 + x - 2 * y + 0.5 * z + x * y - z * z + 2 * x * x)


@pytest.mark.parametrize("order", [1, 2])
def test_loads_integrate_what_they_should(order: int) -> None:
    space = Space(CUBE, order)
    assert cell_load(space, quadratic).sum() == pytest.approx(4.0 / 3.0)
    linear = space.points @ np.array([1.0, 2.0, 3.0])
    weighted = cell_load(space, lambda p: p[:, 0]) @ linear
    assert weighted == pytest.approx(4.0 * (1 / 3 + 2 * 0.5 + 0.0))
    top = CUBE.facets[CUBE.points[CUBE.facets][:, :, 2].min(axis=1) > 1 - 1e-9]
    assert facet_load(space, top, lambda p: p[:, 1]) @ linear == pytest.approx(
        1 * 0.5 * 2 + 2 * 8 / 3 + 3 * 2
    )


def test_samples_of_a_quadratic_are_exact() -> None:
    space = Space(CUBE, 2)
    found = sample(space, quadratic(space.points), np.arange(0, CUBE.n_cells, 3), degree=3)
    np.testing.assert_allclose(found.value, quadratic(found.points), atol=1e-13)
    x, y, z = found.points.T
    expected = np.column_stack([1 + y + 4 * x, -2 + x, 0.5 - 2 * z])
    np.testing.assert_allclose(found.gradient, expected, atol=1e-12)
    assert found.weight.sum() == pytest.approx(CUBE.volumes()[::3].sum())


@pytest.mark.parametrize("order", [1, 2])
def test_polynomials_of_the_order_are_solved_exactly(order: int) -> None:
    space = Space(CUBE, order)
    matrix = stiffness(space, diagonal_tensors(space, {"medium": (1.0, 2.0, 3.0)}))

    def truth(p: np.ndarray) -> np.ndarray:
        return quadratic(p) if order == 2 else np.asarray(p @ np.array([1.0, -2.0, 0.5]))

    source = -(4.0 - 6.0) if order == 2 else 0.0  # -(1 * 4 + 2 * 0 + 3 * (-2))
    load = cell_load(space, lambda p: np.full(len(p), source))
    edge = np.unique(space.facet_dofs(CUBE.facets)).astype(np.int64)
    nodal = solve_with_known(space, matrix, load, edge, truth(space.points[edge]))
    np.testing.assert_allclose(nodal, truth(space.points), atol=1e-9)


def test_insulated_bar_is_linear() -> None:
    space = Space(CUBE, 2)
    matrix = stiffness(space, diagonal_tensors(space, {"medium": (1.0, 1.0, 0.5)}))
    height = CUBE.points[CUBE.facets][:, :, 2]
    ends = [CUBE.facets[(s * height).min(axis=1) > 1 - 1e-9] for s in (1.0, -1.0)]
    load = sum(
        s * facet_load(space, f, lambda p: np.ones(len(p)))
        for s, f in zip((1.0, -1.0), ends, strict=True)
    )
    nodal = solve_insulated(space, matrix, np.asarray(load))
    np.testing.assert_allclose(np.ptp(nodal), 2.0 / 0.5)
    np.testing.assert_allclose(nodal - nodal.mean(), 2.0 * space.points[:, 2], atol=1e-8)


def test_manufactured_solution_fits_its_source_and_its_interface() -> None:
    points = RNG.uniform(0.05, 0.95, size=(40, 3))
    points = points[np.abs(points[:, 0] - 0.5) > 0.03]
    hessian = second_derivatives(manufactured.solution, points, 5e-3)
    tensor = manufactured.TENSORS[(points[:, 0] > 0.5).astype(int)]
    step = 5e-3
    mixed = np.zeros(len(points))
    for i, j in ((0, 1), (0, 2), (1, 2)):
        a, b = np.eye(3)[i] * step, np.eye(3)[j] * step
        cross = (
            manufactured.solution(points + a + b)
            - manufactured.solution(points + a - b)
            - manufactured.solution(points - a + b)
            + manufactured.solution(points - a - b)
        ) / (4 * step**2)
        mixed += 2 * tensor[:, i, j] * cross
    diagonal = np.einsum("nii,ni->n", tensor, hessian)
    np.testing.assert_allclose(manufactured.source(points), -(diagonal + mixed), atol=2e-4)
    plane = np.column_stack([np.full(20, 0.5), RNG.uniform(0, 1, size=(20, 2))])
    right = np.broadcast_to([1e-3, 0.0, 0.0], plane.shape)
    flux = []
    for side, sign in ((0, -1.0), (1, 1.0)):
        start = plane + sign * 1e-9 * right
        along = sign * slope(manufactured.solution, start, sign * right)
        grad = manufactured.gradient(start)
        np.testing.assert_allclose(along, grad[:, 0], rtol=1e-6)
        flux.append(grad @ manufactured.TENSORS[side, 0])
    np.testing.assert_allclose(flux[0], flux[1], rtol=1e-9)


def test_graded_lines_pass_their_stops_and_grow_as_told() -> None:
    line = graded_line((0.0, 1.0, 5.0), {1.0: 0.1}, growth=0.3, coarse=1.0)
    steps = np.diff(line)
    assert {0.0, 1.0, 5.0} <= set(line.tolist())
    assert (steps > 0).all()
    assert steps.min() == pytest.approx(0.1, rel=0.25)
    assert steps.max() < 1.1
    assert (steps[1:] / steps[:-1]).max() < 1.5


def test_contact_loads_of_the_lead_field_are_uniform_densities() -> None:
    mesh = slab_mesh(size=2.0)
    space = Space(mesh, 2)
    loads = contact_loads(space, electrodes_on(mesh, ("0", "1"), model="uniform-current"))
    for number in (0, 1):
        facets = mesh.facets[mesh.facet_tags == number]
        expected = facet_load(space, facets, lambda p: np.full(len(p), 1.0 / 6e-6))
        np.testing.assert_allclose(loads.toarray()[number], expected, atol=1e-12)


def test_comparisons_are_judged_and_printed() -> None:
    good = Comparison("a", "m", "RDM", 2, 1234567, 1e-4, 1e-3)
    bad = Comparison("a", "m", "L2 order", 1, 10, 1.85, 0.1, 2.0)
    free = Comparison("a", "m", "RDM", 1, 10, 0.5)
    assert good.is_met
    assert free.is_met
    assert not bad.is_met
    lines = markdown_table([good, bad, free]).splitlines()
    assert lines[2] == "| a | m | P2 | 1 234 567 | RDM | 1e-03 | 1.0e-04 | yes |"
    assert lines[3].endswith("| 2 ± 0.1 | 1.85 | NO |")
    assert lines[4].endswith("|  | 5.0e-01 |  |")
