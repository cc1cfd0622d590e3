"""Delivered currents against a solve of that very boundary-value problem.

What flows in: a lead field, configurations. What flows out: the largest relative difference between
the currents that the admittance gives and those of direct finite-element solves.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.embed import drive_currents
from fieldcorr.leadfield import LeadField, solve_configurations
from fieldcorr.model import Model

SAMPLES = 2
"""Configurations that a batch solves directly, with elements of order 1."""


def direct_defect(
    model: Model, field: LeadField, polarity: NDArray[np.int8], *, samples: int = SAMPLES
) -> dict[str, float]:
    """Solve a few configurations directly and compare.

    Parameters
    ----------
    model
        Only a voltage drive on contacts that have a voltage is compared: other currents are given.
    field
        Lead field; the direct solves use its mesh and order.
    polarity
        (K, E) configurations; an evenly spread part of them is solved.
    samples
        How many.

    Returns
    -------
    {"direct solve": relative difference}, empty when there is nothing to compare.
    """
    if model.drive.mode != "voltage" or model.contacts.model == "uniform-current":
        return {}
    places = (np.arange(samples) + 0.5) * len(polarity) / samples
    chosen = polarity[np.unique(places.astype(np.int64))]
    direct = solve_configurations(model, field.mesh, chosen, order=field.order).currents
    derived = drive_currents(model, chosen, field)
    return {"direct solve": float(np.abs(direct - derived).max() / np.abs(direct).max())}
