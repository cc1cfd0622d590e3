"""Closed forms on the shipped meshes: every target of the accuracy table."""

import pytest

from fieldcorr.verification.cases import (
    cylinder_case,
    disc_case,
    impedance_case,
    shipped_mesh,
    slab_case,
    sphere_case,
)
from fieldcorr.verification.report import Finding
from fieldcorr.verification.suite import ORDER_STEPS, order_findings


def assert_met(findings: list[Finding]) -> None:
    assert any(finding.target is not None for finding in findings)
    for finding in findings:
        assert finding.is_met, finding.cells()


@pytest.mark.parametrize("order", [1, 2])
def test_convergence_orders(order: int) -> None:
    assert_met(order_findings(order, ORDER_STEPS[order]))


def test_layered_anisotropic_slab() -> None:
    assert_met(slab_case(2, target=1e-3))


def test_four_layer_sphere() -> None:
    mesh = shipped_mesh("sphere")
    findings = sphere_case(mesh, "sphere", 2, target=5e-4)
    assert_met(findings)
    assert findings[0].dofs <= 60_000


def test_layered_anisotropic_cylinder_needs_the_volume_correction() -> None:
    right = cylinder_case(shipped_mesh("cylinder"), "cylinder", 2, target=1e-3)
    assert_met(right)
    lean = cylinder_case(shipped_mesh("cylinder-uncorrected"), "uncorrected", 2)
    assert lean[0].dofs == right[0].dofs
    assert lean[0].reached > 3.0 * right[0].reached


def test_equipotential_disc() -> None:
    assert_met(disc_case(shipped_mesh("disc"), "disc", 2, target=5e-3))


@pytest.mark.parametrize("order", [1, 2])
def test_contact_impedance_slab(order: int) -> None:
    assert_met(impedance_case(order, target=1e-6))
