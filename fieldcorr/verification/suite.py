"""Everything that the accuracy table shows, with its targets.

What flows in: nothing. What flows out: findings, one after the other as they are computed.
"""

from collections.abc import Iterator

from fieldcorr.verification.cases import (
    cylinder_case,
    disc_case,
    impedance_case,
    shipped_mesh,
    slab_case,
    sphere_case,
)
from fieldcorr.verification.manufactured import observed_orders, solve_and_compare
from fieldcorr.verification.report import Finding

ORDER_STEPS = {1: (8, 16), 2: (4, 8)}
"""Grid steps per edge between which the convergence orders are measured."""


def order_findings(order: int, steps: tuple[int, int]) -> list[Finding]:
    """Measure the convergence orders of one element order."""
    coarse, fine = (solve_and_compare(order, n) for n in steps)
    figures = zip(("L2", "H1"), observed_orders(coarse, fine), (order + 1, order), strict=True)
    return [
        Finding(
            "manufactured: jump, full tensors",
            f"cubes {steps[0]}³ and {steps[1]}³",
            f"{norm} order",
            order,
            fine.dofs,
            reached,
            0.1,
            float(theory),
        )
        for norm, reached, theory in figures
    ]


def all_findings() -> Iterator[Finding]:
    """Yield every line of the table; P1 and uncorrected meshes are there for comparison."""
    for order, steps in ORDER_STEPS.items():
        yield from order_findings(order, steps)
    yield from slab_case(2, target=1e-3)
    yield from slab_case(1)
    for name in ("sphere", "sphere-uncorrected"):
        yield from sphere_case(
            shipped_mesh(name), name, 2, target=5e-4 if name == "sphere" else None
        )
    for name in ("cylinder", "cylinder-uncorrected"):
        yield from cylinder_case(
            shipped_mesh(name), name, 2, target=1e-3 if name == "cylinder" else None
        )
    yield from disc_case(shipped_mesh("disc"), "disc", 2, target=5e-3)
    yield from disc_case(shipped_mesh("disc"), "disc", 1)
    for order in (1, 2):
        yield from impedance_case(order, target=1e-6)
