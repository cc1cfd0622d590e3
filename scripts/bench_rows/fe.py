"""Rows of the finite-element side: assembly, the solve of all contacts, growth, threads, start-up.

They use the bundled model and its standard mesh (``FIELDCORR_BENCH_MESH`` names another), and boxes
of tetrahedra for the growth. Peers get the same matrices and the same right-hand sides, and stop at
the same true residual.
"""

import os
from collections.abc import Mapping

from bench_rows import Measured, Row, Task

MESH = os.environ.get("FIELDCORR_BENCH_MESH", "standard")
COLD = (
    "import fieldcorr as fc; m = fc.load_model('lumbosacral-565'); "
    f"fc.compute_lead_field(m, fc.read_mesh(fc.resolve_mesh(m, '{MESH}')))"
)
TOLERANCE = 1e-8
SMALL_BOX, LARGE_BOX = 26, 55
"""Bricks per edge: 105 456 and 998 250 tetrahedra."""


def rows() -> list[Row]:
    """Return the rows of this module."""
    return [*_assembly_rows(), *_solve_rows(), *_growth_rows(), *_start_rows()]


def _assembly_rows() -> list[Row]:
    """Assemble on one thread: numbering, pattern and fill, tensor-valued conductivity."""
    result = []
    for order in (1, 2):
        arguments = {"mesh": MESH, "order": order}
        own = Task("fieldcorr", "fe:assembly_fieldcorr", arguments)
        for name, prepare, aim in (
            ("scikit-fem", "fe_peers:assembly_skfem", 4.0),
            ("NGSolve", "fe_peers:assembly_ngsolve", 2.0),
        ):
            subject = f"assembly P{order}, {MESH} mesh, 1 thread"
            result.append(Row(subject, own, (Task(name, prepare, arguments),), aim))
    return result


def _solve_rows() -> list[Row]:
    """Solve for the 16 contacts, set-up included, to a true relative residual of 1e-8.

    NGSolve's factorisation is measured on the companion mesh: on the standard one it was stopped
    after five minutes with 7.6 GB in use.
    """
    arguments = {"mesh": MESH, "order": 2, "tolerance": TOLERANCE}
    own = Task("fieldcorr", "fe:solve_fieldcorr", arguments, repeat=2)
    peers = tuple(
        Task(name, f"fe_peers:{prepare}", arguments, repeat=1)
        for name, prepare in (("pypardiso", "solve_pypardiso"), ("pyamg SA + CG", "solve_pyamg"))
    )
    smaller = {**arguments, "mesh": "companion"}
    own_smaller = Task("fieldcorr", own.prepare, smaller, repeat=2)
    factorised = Task("NGSolve sparsecholesky", "fe_peers:solve_sparsecholesky", smaller, repeat=1)
    two = Task("fieldcorr, 2 threads", own.prepare, arguments, threads=2, repeat=2)
    one = Task("1 thread", own.prepare, arguments, repeat=2)
    subject = "solve P2, 16 contacts, {} mesh, {}"
    return [
        Row(subject.format(MESH, "1 thread"), own, peers, 2.5, long=True),
        Row(subject.format("companion", "1 thread"), own_smaller, (factorised,), 2.5, long=True),
        Row(subject.format(MESH, "2 threads"), two, (one,), 1.5),
    ]


def _growth_rows() -> list[Row]:
    """Compare ten times the tetrahedra; a ratio of 1 is linear growth."""
    scale = (LARGE_BOX / SMALL_BOX) ** 3
    result = []
    for order in (1, 2):
        tasks = [
            Task(f"{6 * n**3:,} tets", "fe:box_fieldcorr", {"steps": n, "order": order}, repeat=2)
            for n in (LARGE_BOX, SMALL_BOX)
        ]
        subject = f"growth P{order}, assembly + solve, {tasks[0].name}, per tet"
        result.append(Row(subject, tasks[0], (tasks[1],), 0.8, scale=scale, long=True))
    return result


def _start_rows() -> list[Row]:
    """Time an import, and cold lead fields with compilation on two threads."""
    cache = {"NUMBA_CACHE_DIR": "{scratch}"}
    cold = Task("fieldcorr", "command:" + COLD, threads=2, repeat=1, environment=cache)
    return [
        Row(
            "import fieldcorr, with the start of Python",
            Task("fieldcorr", "command:import fieldcorr", repeat=5),
            aim=1.0,
            budget=0.2,
        ),
        Row(f"lead fields, {MESH} mesh, cold, 2 threads", cold, aim=1.0, budget=60.0),
    ]


def energy_of_height(matrix: object, z: object) -> Mapping[str, float]:
    """Return z' A z: the integral of the conductivity along z, equal for every correct matrix."""
    return {"energy": float(z @ (matrix @ z))}  # type: ignore[operator]


def assembly_fieldcorr(mesh: str, order: int) -> Measured:
    """Prepare our assembly."""
    from bench_rows.fe_problem import load
    from fieldcorr.elements import Space
    from fieldcorr.fem import Pattern, stiffness_matrix

    def assemble(name: str) -> Mapping[str, float]:
        model_mesh, sigma = problems[name]
        space = Space(model_mesh, order)
        pattern = Pattern.of_elements(space.cell_dofs, space.n_dofs)
        matrix = stiffness_matrix(pattern, space.vertices, space.cells, sigma, order)
        return energy_of_height(matrix, space.points[:, 2])

    problems = {name: load(name) for name in {"tiny", mesh}}
    assemble("tiny")
    return lambda: assemble(mesh)


def solve_fieldcorr(mesh: str, order: int, tolerance: float) -> Measured:
    """Prepare our solver: hierarchy and block conjugate gradients."""
    from bench_rows.fe_problem import contact_problem
    from fieldcorr.fem.amg import build_hierarchy
    from fieldcorr.fem.solve import solve_block

    def solve(name: str) -> Mapping[str, float]:
        matrix, rhs, transfer, coarse = problems[name]
        hierarchy = build_hierarchy(matrix, first_prolongation=transfer, first_coarse=coarse)
        solution = solve_block(matrix, hierarchy, rhs, tolerance=tolerance)
        return {"residual": float(solution.residuals.max()), "iterations": solution.iterations}

    problems = {name: contact_problem(name, order) for name in {"tiny", mesh}}
    solve("tiny")
    return lambda: solve(mesh)


def box_fieldcorr(steps: int, order: int) -> Measured:
    """Prepare assembly and solve of 16 contacts on a box."""
    from bench_rows.fe_problem import box_with_contacts
    from fieldcorr.contacts import electrodes_on
    from fieldcorr.elements import Space
    from fieldcorr.leadfield.compute import solve_electrodes
    from fieldcorr.leadfield.system import build_system

    def run(count: int) -> Mapping[str, float]:
        mesh, sigma = boxes[count]
        electrodes = electrodes_on(mesh, mesh.facet_names)
        system = build_system(Space(mesh, order), sigma, electrodes)
        solution = solve_electrodes(system, TOLERANCE)[2]
        return {"residual": float(solution.residuals.max()), "iterations": solution.iterations}

    boxes = {count: box_with_contacts(count) for count in (8, steps)}
    run(8)
    return lambda: run(steps)
