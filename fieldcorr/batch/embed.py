"""From lead fields to currents and unit vectors, as the model asks, and how accurate r is.

The discretisation error is estimated by doing the same with the lead fields of coarser
discretisations; a few configurations are solved directly, to check the algebra from lead fields to
currents.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.cache import Cache, key_of
from fieldcorr.batch.fields import physics
from fieldcorr.configurations.text import format_configuration
from fieldcorr.correlation.embedding import embedding_from_gram, embedding_from_samples
from fieldcorr.correlation.tiles import correlation_rows, pack_embedding
from fieldcorr.drive import contact_currents
from fieldcorr.errors import ConfigurationError
from fieldcorr.leadfield import LeadField, solve_configurations
from fieldcorr.model import Model
from fieldcorr.stimulation import LIMITS, Stimulation, Stimulator, device_areas_cm2

MOST_CONFIGURATIONS = 4096
"""More configurations than this are represented by an evenly spread part of them."""

BLOCK = 256

SAMPLES = 2
"""Configurations that a batch solves directly, with elements of order 1."""

STATEMENT = (
    "Estimates the discretisation error of r alone: the companion mesh (all sizes about doubled) "
    "predicts largest value and 99th percentile within a factor of about 3; order 1 against order "
    "2 on the same mesh is a bound that is 2 to 20 times too large. Single pairs have error bars "
    "of their own (Store.r_error). It does not see the error of the anatomy, of the "
    "conductivities, of the contact model, nor that of the finite domain."
)

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


def within_limits(model: Model, polarity: Signs, field: LeadField) -> Signs:
    """Return the configurations whose contacts stay within the limits of the rules, if any."""
    limits = {key: value for key in LIMITS if (value := getattr(model.rules, key)) is not None}
    if model.stimulator is None or not limits:
        return polarity
    names, device = field.contact_names, model.device.model_dump(mode="json")
    stimulation = Stimulation(
        Stimulator.read(model.stimulator.model_dump(mode="json"), limits),
        tuple(names),
        device_areas_cm2(device, names),
    )
    kept = stimulation.within_limits(polarity, drive_currents(model, polarity, field))
    if not kept.any():
        said = ", ".join(f"{key} = {value:g}" for key, value in limits.items())
        raise ConfigurationError(
            f"the rules leave no configuration: {said} removed the last {len(polarity)}; what has "
            "no measured impedance is not within them"
        )
    return polarity[kept]


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


def spread(count: int) -> NDArray[np.int64]:
    """Return the rows that represent ``count`` configurations."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_CONFIGURATIONS)).astype(np.int64))


def compare(one: Floats, other: Floats) -> dict[str, float]:
    """Return max, p99 and median of |r_one - r_other| over the pairs i < j of two embeddings."""
    total = len(one)
    first, second = pack_embedding(one), pack_embedding(other)
    differences = np.empty(total * (total - 1) // 2, dtype=np.float32)
    end = 0
    for start in range(0, total, BLOCK):
        stop = min(start + BLOCK, total)
        delta = np.abs(correlation_rows(first, start, stop) - correlation_rows(second, start, stop))
        for row in range(start, stop):
            differences[end : end + total - row - 1] = delta[row - start, row + 1 :]
            end += total - row - 1
    if not differences.size:
        return {"max": 0.0, "p99": 0.0, "median": 0.0}
    places = [differences.size // 2, int(np.ceil(0.99 * (differences.size - 1)))]
    ordered = np.partition(differences, [*places, differences.size - 1])
    median, p99 = (float(ordered[place]) for place in places)
    return {"max": float(ordered[-1]), "p99": p99, "median": median}


def summary(
    embedding: Floats, *, companion: Floats | None, order_one: Floats | None
) -> dict[str, Any]:
    """Return the record of the estimate from the rows (k, R) of :func:`spread`.

    ``companion`` has the same configurations on the companion mesh, ``order_one`` with elements of
    order 1 on the same mesh; each is None where there is no such thing.
    """
    return {
        "companion": None if companion is None else compare(embedding, companion),
        "order_one": None if order_one is None else compare(embedding, order_one),
        "configurations": len(embedding),
        "statement": STATEMENT,
    }


def direct_defect(
    model: Model, field: LeadField, polarity: Signs, cache: Cache
) -> dict[str, float]:
    """Solve SAMPLES of the configurations (K, E) directly, on the mesh and order of a lead field.

    Returns {"direct solve": relative difference of the currents}, empty unless a voltage drives
    contacts that have one: other currents are given. What was solved is kept beside the field.
    """
    if model.drive.mode != "voltage" or model.contacts.model == "uniform-current":
        return {}
    places = (np.arange(SAMPLES) + 0.5) * len(polarity) / SAMPLES
    chosen = polarity[np.unique(places.astype(np.int64))]
    key = key_of({**physics(model, field.mesh, field.order), "configurations": chosen.tolist()})
    stored = cache.load(key)
    if stored is None:
        solved = solve_configurations(model, field.mesh, chosen, order=field.order)
        stored = {"currents": solved.currents}
        cache.save(key, stored)
    direct = np.asarray(stored["currents"], dtype=np.float64)
    derived = drive_currents(model, chosen, field)
    return {"direct solve": float(np.abs(direct - derived).max() / np.abs(direct).max())}
