"""How close the computed fields are to the truth: ``fieldcorr verify``, and what it is made of.

Closed forms take plain numbers and points in m, and return potentials in V and currents in A:

======================  ===========================================================================
:mod:`~.disc`           equipotential disc (half-space or grounded confocal spheroid), slab with
                        contact impedance
:mod:`~.slab`           N layers of diagonal anisotropy in a box, rectangular contacts
:mod:`~.sphere`         N concentric spheres, electrodes on the surface
:mod:`~.cylinder`       N concentric cylinders, anisotropic along the axis, finite length
======================  ===========================================================================

``cases`` holds the finite-element side against them on the shipped ``meshes``, ``manufactured``
measures orders of convergence, ``peer`` compares with NGSolve on the same mesh, and ``compare`` has
the measures (RDM, lnMAG) and the table.
"""

from fieldcorr.verification.cases import compare_all
from fieldcorr.verification.compare import (
    Comparison,
    lnmag,
    markdown_table,
    norm,
    rdm,
    without_mean,
)
from fieldcorr.verification.cylinder import BlurredPatch, Cylinders, cylinder_potential
from fieldcorr.verification.disc import disc_current, disc_potential, slab_resistance
from fieldcorr.verification.slab import Layer, Rectangle, Slab, slab_potential
from fieldcorr.verification.sphere import BlurredElectrode, Spheres, sphere_potential

__all__ = [
    "BlurredElectrode",
    "BlurredPatch",
    "Comparison",
    "Cylinders",
    "Layer",
    "Rectangle",
    "Slab",
    "Spheres",
    "compare_all",
    "cylinder_potential",
    "disc_current",
    "disc_potential",
    "lnmag",
    "markdown_table",
    "norm",
    "rdm",
    "slab_potential",
    "slab_resistance",
    "sphere_potential",
    "without_mean",
]
