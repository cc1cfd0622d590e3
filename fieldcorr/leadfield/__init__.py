"""Lead fields: the potential per ampere of every contact, over the compared region and everywhere.

:func:`compute_lead_field` turns a model and a mesh into a :class:`LeadField`: the admittance
matrix, nodal potentials, samples and Gram matrices over the compared region, checked identities.
``numbering`` and ``system`` assemble, ``compute`` solves and checks, ``region`` weights, ``data``
holds the result, ``direct`` solves single configurations as boundary-value problems of their own.
"""

from fieldcorr.leadfield.compute import compute_lead_field, skeleton_of
from fieldcorr.leadfield.data import LeadField
from fieldcorr.leadfield.direct import DirectSolution, solve_configurations
from fieldcorr.leadfield.region import ComparedRegion, compared_region

__all__ = [
    "ComparedRegion",
    "DirectSolution",
    "LeadField",
    "compared_region",
    "compute_lead_field",
    "skeleton_of",
    "solve_configurations",
]
