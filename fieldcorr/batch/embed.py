"""From lead fields to currents and unit vectors, as the model asks for.

The estimate of the error of r does the same with the lead fields of coarser discretisations.
"""

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import format_configuration
from fieldcorr.correlation.embedding import embedding_from_gram, embedding_from_samples
from fieldcorr.drive import contact_currents
from fieldcorr.leadfield import LeadField
from fieldcorr.model import Model

Floats = NDArray[np.float64]
Signs = NDArray[np.int8]


def shares(model: Model) -> list[float] | None:
    """Return the share of every contact in the current of its group; None for equal shares."""
    given = model.drive.fractions
    return [float(given.get(name, 1.0)) for name in model.electrode_names] if given else None


def drive_currents(model: Model, polarity: Signs, field: LeadField) -> Floats:
    """Return the current (K, E) A that each contact delivers for a unit drive."""
    return contact_currents(
        polarity,
        field.admittance,
        mode=model.drive.mode,
        fractions=shares(model),
        names=field.contact_names,
    )


def embed(model: Model, polarity: Signs, current: Floats, field: LeadField) -> Floats:
    """Return the unit rows (K, R) of configurations in the model's measure."""

    def label(row: int) -> str:
        return format_configuration(polarity[row], field.contact_names)

    measure = model.measure
    if measure.kind != "magnitude":
        return embedding_from_gram(current, field.gram_of(measure.kind), labels=label)
    return embedding_from_samples(
        current,
        field.field,
        field.weight,
        count=measure.samples,
        seed=measure.seed,
        points=field.points,
        labels=label,
    ).embedding
