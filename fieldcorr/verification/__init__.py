"""Verification: how close the computed fields are to the truth.

What flows in: the shipped verification meshes and the closed forms of :mod:`fieldcorr.analytic`.
What flows out: findings with targets, and the table of the README (``scripts/verify``).

``manufactured`` measures convergence orders, ``cases`` compares with closed forms, ``problem``
holds the loads and samples that both need, ``report`` makes the table. NGSolve as a second code on
the same mesh is compared by ``peer``.
"""

from fieldcorr.verification.report import Finding, markdown_table
from fieldcorr.verification.suite import all_findings

__all__ = ["Finding", "all_findings", "markdown_table"]
