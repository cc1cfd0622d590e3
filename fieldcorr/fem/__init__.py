"""Finite elements: Lagrange spaces, assembly, multigrid and the block solver.

Solutions have a checked residual. Nothing here knows of spines, contacts or files.
"""

from fieldcorr.fem.assembly import Pattern, geometry_tensors, stiffness_matrix
from fieldcorr.fem.space import Space

__all__ = ["Pattern", "Space", "geometry_tensors", "stiffness_matrix"]
