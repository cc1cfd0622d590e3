"""Finite elements: assembly, multigrid and the block solver.

What flows in: a mesh, conductivities, boundary data. What flows out: sparse matrices and solutions
with a checked residual. Nothing here knows of spines, contacts or files.
"""

from fieldcorr.fem.assembly import Pattern, geometry_tensors, stiffness_matrix

__all__ = ["Pattern", "geometry_tensors", "stiffness_matrix"]
