"""Closed-form solutions that the finite-element side is judged against.

What flows in: plain numbers and points in m. What flows out: potentials in V, currents in A. The
folder needs numpy and scipy only and knows nothing of meshes.

======================  ===========================================================================
:mod:`~.point`          point sources: infinite anisotropic medium, two half-spaces
:mod:`~.disc`           equipotential disc (half-space or grounded confocal spheroid), slab with
                        contact impedance
:mod:`~.slab`           N layers of diagonal anisotropy in a box, rectangular contacts
:mod:`~.sphere`         N concentric spheres, electrodes on the surface
:mod:`~.cylinder`       N concentric cylinders, anisotropic along the axis, finite length
:mod:`~.metrics`        RDM and lnMAG
======================  ===========================================================================
"""

from fieldcorr.analytic.cylinder import BlurredPatch, Cylinders, Patch, cylinder_potential
from fieldcorr.analytic.disc import disc_current, disc_potential, slab_resistance
from fieldcorr.analytic.metrics import lnmag, norm, rdm, without_mean
from fieldcorr.analytic.point import anisotropic_point_source, two_half_spaces
from fieldcorr.analytic.slab import Layer, Rectangle, Slab, slab_potential
from fieldcorr.analytic.sphere import BlurredElectrode, CapElectrode, Spheres, sphere_potential

__all__ = [
    "BlurredElectrode",
    "BlurredPatch",
    "CapElectrode",
    "Cylinders",
    "Layer",
    "Patch",
    "Rectangle",
    "Slab",
    "Spheres",
    "anisotropic_point_source",
    "cylinder_potential",
    "disc_current",
    "disc_potential",
    "lnmag",
    "norm",
    "rdm",
    "slab_potential",
    "slab_resistance",
    "sphere_potential",
    "two_half_spaces",
    "without_mean",
]
