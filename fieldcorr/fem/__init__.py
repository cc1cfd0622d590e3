"""Finite elements: assembly, multigrid and the block solver.

Solutions have a checked residual. Nothing here knows of spines, contacts or files.
"""

from fieldcorr.fem.assembly import Pattern, geometry_tensors, stiffness_matrix

__all__ = ["Pattern", "geometry_tensors", "stiffness_matrix"]
