"""Closed forms on the shipped meshes: every target of the accuracy table."""

import pytest

from fieldcorr.verification.cases import CASES, Case, cylinder_case, sphere_case


@pytest.mark.parametrize("case", [c for c in CASES if c.is_judged], ids=lambda case: case.name)
def test_target_is_met(case: Case) -> None:
    comparisons = case.run()
    assert any(comparison.target is not None for comparison in comparisons)
    for comparison in comparisons:
        assert comparison.is_met, comparison.cells()


def test_sphere_is_small() -> None:
    assert sphere_case()[0].dofs <= 60_000


@pytest.mark.slow
def test_cylinder_needs_the_volume_correction() -> None:
    right, lean = cylinder_case("cylinder")[0], cylinder_case("cylinder-uncorrected")[0]
    assert lean.dofs == right.dofs
    assert lean.reached > 3.0 * right.reached
