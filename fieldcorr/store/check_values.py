"""What the small arrays of a store must satisfy.

What flows in: an open store whose digests hold. What flows out: findings. Tolerances are those of
float64 arithmetic on numbers of the given size; fields are stored in float32.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import configuration_ids
from fieldcorr.drive import contact_currents
from fieldcorr.store.findings import Finding
from fieldcorr.store.reader import Store

Floats = NDArray[np.float64]

TOLERANCE = 1e-9
"""Relative tolerance of what is recomputed in float64."""

SAMPLED_ROWS = 512
SAMPLED_POINTS = 512


def check_contacts(store: Store) -> Iterator[Finding]:
    """Names are distinct, positions finite."""
    if len(set(store.contact_names)) != len(store.contact_names):
        yield Finding("/contacts/name", "names a contact twice")
    yield from _finite(store, "/contacts/position")


def check_lead_field(store: Store) -> Iterator[Finding]:
    """Look for samples that are not finite, and for an asymmetric or negative Gram matrix."""
    for name in ("points", "weight", "potential"):
        yield from _finite(store, f"/leadfield/{name}")
    if (store.array("/leadfield/weight") < 0).any():
        yield Finding("/leadfield/weight", "has a negative weight")
    yield from _symmetric_positive("/leadfield/gram", store.gram)
    yield from _symmetric_positive("/leadfield/admittance", store.admittance)


def check_configurations(store: Store) -> Iterator[Finding]:
    """Polarities are -1, 0, 1; ids are theirs and ascend."""
    polarity = store.polarity
    if not np.isin(polarity, (-1, 0, 1)).all():
        yield Finding("/configurations/polarity", "has a value other than -1, 0, 1")
        return
    wrong = np.flatnonzero(configuration_ids(polarity) != store.ids)
    if wrong.size:
        yield Finding("/configurations/id", f"row {wrong[0]} is not the code of its polarity")
    if (np.diff(store.ids) <= 0).any():
        yield Finding("/configurations/id", "does not ascend strictly")


def check_currents(store: Store) -> Iterator[Finding]:
    """Currents balance and are those that the admittance gives."""
    current = store.current
    if not np.isfinite(current).all():
        yield Finding("/configurations/current", "has a value that is not finite")
        return
    largest = np.abs(current).max(axis=1)
    settings = store.record("settings")
    unbalanced = np.flatnonzero(np.abs(current.sum(axis=1)) > TOLERANCE * largest)
    if unbalanced.size:
        yield Finding("/configurations/current", f"row {unbalanced[0]} does not sum to zero")
    expected = contact_currents(
        store.polarity,
        store.admittance,
        mode=settings["drive"]["mode"],
        fractions=settings["drive"]["fractions"],
    )
    off = np.flatnonzero(np.abs(expected - current).max(axis=1) > TOLERANCE * largest)
    if off.size:
        yield Finding("/configurations/current", f"row {off[0]} is not what the admittance gives")


def check_embedding(store: Store) -> Iterator[Finding]:
    """Rows are unit vectors whose products are the correlations of the fields."""
    embedding = store.embedding
    if not np.isfinite(embedding).all():
        yield Finding("/correlation/embedding", "has a value that is not finite")
        return
    wrong = np.flatnonzero(np.abs(np.einsum("kr,kr->k", embedding, embedding) - 1.0) > 1e-12)
    if wrong.size:
        yield Finding("/correlation/embedding", f"row {wrong[0]} is not a unit vector")
    if store.record("settings")["measure"]["kind"] == "magnitude":
        return
    rows = _sample(len(store), SAMPLED_ROWS)
    want = _correlation(store.current[rows], store.gram)
    worst = float(np.abs(embedding[rows] @ embedding[rows].T - want).max())
    if not worst <= TOLERANCE:
        yield Finding("/correlation/embedding", f"is {worst:.1e} from the Gram matrix's r")


def check_fields(store: Store) -> Iterator[Finding]:
    """Mesh indices are in range; nodal fields agree with the samples."""
    if not store.has_fields:
        return
    mesh = store.fields.volume.space.mesh
    tags = mesh.cell_tags
    if tags.size and not (tags.min() >= 0 and tags.max() < len(mesh.tissues)):
        yield Finding("/mesh/tags", "names a tissue that is not in /mesh/tissues")
    yield from _finite(store, "/leadfield/nodal")
    yield from _finite(store, "/mesh/points")
    points = store.array("/leadfield/points")
    chosen = _sample(len(points), SAMPLED_POINTS)
    stored = store.array("/leadfield/potential")[:, chosen]
    difference = np.abs(store.fields.lead_fields(points[chosen]) - stored).max()
    # float32 keeps 6e-8 of the largest nodal value, which lies at the contacts.
    if not difference <= 1e-6 * np.abs(store.array("/leadfield/nodal")).max():
        yield Finding("/leadfield/nodal", f"is {difference:.1e} V/A from /leadfield/potential")


def check_provenance(store: Store) -> Iterator[Finding]:
    """Texts are JSON where they should be; the settings agree with the attributes."""
    for name in ("device", "origin", "settings", "solver", "error_estimate", "run"):
        store.record(name)
    settings = store.record("settings")["neighbourhoods"]
    for name, value in (("threshold", store.threshold), ("top_k", store.top_k)):
        if settings[name] != value:
            yield Finding(
                "/neighbourhoods", f"{name} is {value}, the settings say {settings[name]}"
            )
    if not np.isfinite(store.record("solver")["residuals"]).all():
        yield Finding("/provenance/solver", "has a residual that is not finite")


CHECKS: Mapping[str, Callable[[Store], Iterator[Finding]]] = {
    "provenance": check_provenance,
    "contacts": check_contacts,
    "lead field": check_lead_field,
    "configurations": check_configurations,
    "currents": check_currents,
    "embedding": check_embedding,
    "fields": check_fields,
}


def _finite(store: Store, name: str) -> Iterator[Finding]:
    if not np.isfinite(store.array(name)).all():
        yield Finding(name, "has a value that is not finite")


def _symmetric_positive(name: str, matrix: Floats) -> Iterator[Finding]:
    if not np.isfinite(matrix).all():
        yield Finding(name, "has a value that is not finite")
        return
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > TOLERANCE * scale:
        yield Finding(name, "is not symmetric")
    elif np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() < -TOLERANCE * scale:
        yield Finding(name, "has a negative eigenvalue")


def _correlation(current: Floats, gram: Floats) -> Floats:
    """Return r_ij = a_i' G a_j / sqrt(a_i' G a_i  a_j' G a_j)."""
    product: Floats = current @ gram @ current.T
    scale = np.sqrt(np.diag(product))
    return np.asarray(product / np.outer(scale, scale))


def _sample(count: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` evenly spread numbers below ``count``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
