"""What the numbers of a store must satisfy, given that they are those that were written.

Every check yields what is wrong as (where, problem). Tolerances are those of float64 arithmetic on
numbers of the given size; fields and r are stored in float32.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import configuration_ids
from fieldcorr.correlation.tiles import correlation_rows, pack_embedding
from fieldcorr.drive import contact_currents
from fieldcorr.progress import Progress
from fieldcorr.store.blocks import Options, block_rows, bounds, neighbour_block
from fieldcorr.store.layout import RECORDS
from fieldcorr.store.reader import Store

Floats = NDArray[np.float64]
Problems = Iterator[tuple[str, str]]

TOLERANCE = 1e-9
"""Relative tolerance of what is recomputed in float64."""

ROUNDING = 2.0**-23
"""Largest difference of r between processors, which may round differently: one float32 step."""

WHOLE_TOLERANCE = 4 * ROUNDING
"""Of r of configurations that are not listed: their norms are kept in float32 as well."""

SWEEP_TOLERANCE = 1.01e-5
"""Of a mean over samples: its embedding is compressed to 1e-5."""

SWEEP_ROUNDING = 1e-6
"""Relative, of the matrices of samples: they are solved to 1e-5 only, which leaves about 1e-7."""

SAMPLED_ROWS = 512
SWEEP_ROWS = 8
WHOLE_ROWS = 8
SAMPLED_POINTS = 512


def check_contacts(store: Store) -> Problems:
    """Names are distinct, positions finite."""
    if len(set(store.contact_names)) != len(store.contact_names):
        yield "/contacts/name", "names a contact twice"
    yield from _finite(store, "/contacts/position")


def check_lead_field(store: Store) -> Problems:
    """Look for samples that are not finite, and for an asymmetric or negative Gram matrix."""
    for name in ("points", "weight", "potential"):
        yield from _finite(store, f"/leadfield/{name}")
    if (store.array("/leadfield/weight") < 0).any():
        yield "/leadfield/weight", "has a negative weight"
    yield from _symmetric_positive("/leadfield/gram", store.gram)
    yield from _symmetric_positive("/leadfield/admittance", store.admittance)


def check_whole(store: Store) -> Problems:
    """Where configurations are not listed: r of a few rows is what matrices and drive give."""
    rows = _sample(len(store), SAMPLED_ROWS)
    arms = rows[:: max(1, len(rows) // WHOLE_ROWS)]
    want = _correlation(store.current[rows], store.gram)[np.isin(rows, arms)]
    worst = max(
        float(np.abs(store.row(arm)[rows] - r).max()) for arm, r in zip(arms, want, strict=True)
    )
    if not worst <= WHOLE_TOLERANCE:
        yield "/space", f"its r is {worst:.1e} from the Gram matrix's"


def check_configurations(store: Store) -> Problems:
    """Polarities are -1, 0, 1; ids are theirs and ascend."""
    polarity = store.polarity
    if not np.isin(polarity, (-1, 0, 1)).all():
        yield "/configurations/polarity", "has a value other than -1, 0, 1"
        return
    wrong = np.flatnonzero(configuration_ids(polarity) != store.ids)
    if wrong.size:
        yield "/configurations/id", f"row {wrong[0]} is not the code of its polarity"
    if (np.diff(store.ids) <= 0).any():
        yield "/configurations/id", "does not ascend strictly"


def check_currents(store: Store) -> Problems:
    """Currents balance and are those that the admittance gives."""
    current = store.current
    if not np.isfinite(current).all():
        yield "/configurations/current", "has a value that is not finite"
        return
    largest = np.abs(current).max(axis=1)
    settings = store.record("settings")
    unbalanced = np.flatnonzero(np.abs(current.sum(axis=1)) > TOLERANCE * largest)
    if unbalanced.size:
        yield "/configurations/current", f"row {unbalanced[0]} does not sum to zero"
    expected = contact_currents(
        store.polarity,
        store.admittance,
        mode=settings["drive"]["mode"],
        fractions=settings["drive"]["fractions"],
    )
    off = np.flatnonzero(np.abs(expected - current).max(axis=1) > TOLERANCE * largest)
    if off.size:
        yield "/configurations/current", f"row {off[0]} is not what the admittance gives"


def check_embedding(store: Store) -> Problems:
    """Rows are unit vectors whose products are the correlations of the fields."""
    embedding = store.embedding
    if not np.isfinite(embedding).all():
        yield "/correlation/embedding", "has a value that is not finite"
        return
    wrong = np.flatnonzero(np.abs(np.einsum("kr,kr->k", embedding, embedding) - 1.0) > 1e-12)
    if wrong.size:
        yield "/correlation/embedding", f"row {wrong[0]} is not a unit vector"
    rows = _sample(len(store), SAMPLED_ROWS)
    if store.has_sweep:
        yield from _check_mean(store, rows[:: max(1, len(rows) // SWEEP_ROWS)])
        return
    if store.record("settings")["measure"]["kind"] == "magnitude":
        return
    want = _correlation(store.current[rows], store.gram)
    worst = float(np.abs(embedding[rows] @ embedding[rows].T - want).max())
    if not worst <= TOLERANCE:
        yield "/correlation/embedding", f"is {worst:.1e} from the Gram matrix's r"


def _check_mean(store: Store, rows: NDArray[np.int64]) -> Problems:
    """Compare some rows with the mean over the samples, which the embedding was compressed from."""
    embedding = store.embedding
    worst = max(
        float(np.abs(embedding @ embedding[row] - store.ensemble.mean(int(row))).max())
        for row in rows
    )
    if not worst <= SWEEP_TOLERANCE:
        yield "/correlation/embedding", f"is {worst:.1e} from the mean of r over /sweep"


def check_circuits(store: Store) -> Problems:
    """Gram matrices and admittances of companion mesh and samples are symmetric and positive."""
    names = [name for name in ("gram", "admittance") if "companion" in store.families]
    for name in (f"/leadfield/companion_{name}" for name in names):
        yield from _symmetric_positive(name, store.array(name))
    for name in ("/sweep/gram", "/sweep/admittance") if store.has_sweep else ():
        for matrix in store.array(name):
            yield from _symmetric_positive(name, matrix, SWEEP_ROUNDING)


def check_fields(store: Store) -> Problems:
    """Mesh indices are in range; nodal fields agree with the samples."""
    if not store.has_fields:
        return
    mesh = store.fields.volume.space.mesh
    tags = mesh.cell_tags
    if tags.size and not (tags.min() >= 0 and tags.max() < len(mesh.tissues)):
        yield "/mesh/tags", "names a tissue that is not in /mesh/tissues"
    problems = [*_finite(store, "/leadfield/nodal"), *_flat_cells(mesh.points, mesh.cells)]
    yield from problems
    if problems:
        return
    points = store.array("/leadfield/points")
    chosen = _sample(len(points), SAMPLED_POINTS)
    stored = store.array("/leadfield/potential")[:, chosen]
    difference = np.abs(store.fields.lead_fields(points[chosen]) - stored).max()
    # float32 keeps 6e-8 of the largest nodal value, which lies at the contacts.
    if not difference <= 1e-6 * np.abs(store.array("/leadfield/nodal")).max():
        yield "/leadfield/nodal", f"is {difference:.1e} V/A from /leadfield/potential"


def _flat_cells(points: Floats, cells: NDArray[np.int32]) -> Problems:
    """Look for tetrahedra without volume: no point can be located in them."""
    if not (np.isfinite(points).all() and ((cells >= 0) & (cells < len(points))).all()):
        return  # the reader refuses these
    edges = points[cells[:, 1:]] - points[cells[:, :1]]
    volume = np.abs(np.linalg.det(edges))
    longest = np.linalg.norm(edges, axis=2).max(axis=1)
    flat = np.flatnonzero(~(volume > 1e-12 * longest**3))
    if flat.size:
        yield "/mesh/cells", f"cell {flat[0]} has no volume"


def check_provenance(store: Store) -> Problems:
    """Texts are JSON of their form; the settings agree with the attributes."""
    for name in RECORDS:
        store.record(name)
    settings = store.record("settings")["neighbourhoods"]
    for name, value in (("threshold", store.threshold), ("top_k", store.top_k)):
        if settings[name] != value:
            yield "/neighbourhoods", f"{name} is {value}, the settings say {settings[name]}"
    if not np.isfinite(store.record("solver")["residuals"]).all():
        yield "/provenance/solver", "has a residual that is not finite"


EVERY_STORE: Mapping[str, Callable[[Store], Problems]] = {
    "provenance": check_provenance,
    "contacts": check_contacts,
    "lead field": check_lead_field,
    "circuits": check_circuits,
    "fields": check_fields,
}

LISTED: Mapping[str, Callable[[Store], Problems]] = {
    "configurations": check_configurations,
    "currents": check_currents,
    "embedding": check_embedding,
}


def checks_of(store: Store) -> Mapping[str, Callable[[Store], Problems]]:
    """Return the checks that a store has to pass, but for that of its rows."""
    return {**EVERY_STORE, **({"whole space": check_whole} if store.is_whole else LISTED)}


def check_rows(store: Store, memory: int, progress: Progress) -> Problems:
    """Compare r with the embedding, and the neighbourhoods with r, block by block of rows."""
    if store.is_whole:
        return
    total = len(store)
    packed = pack_embedding(store.embedding)
    options = Options(threshold=store.threshold, top_k=store.top_k, matrix=store.has_matrix)
    for start, stop in bounds(total, block_rows(total, memory // 2)):
        rows = correlation_rows(packed, start, stop)
        if store.has_matrix:
            stored = store.part("/correlation/matrix", slice(start, stop))
            yield from _check_matrix(stored, rows, start)
            rows = stored
        yield from _check_neighbours(store, rows, start, stop, options)
        progress("rows", stop / total)


def _check_matrix(stored: NDArray[np.float32], rows: NDArray[np.float32], start: int) -> Problems:
    where = "/correlation/matrix"
    if not (np.abs(stored) <= 1.0).all():
        yield where, f"rows from {start} on have r outside [-1, 1]"
    own = np.arange(len(stored))
    if (stored[own, start + own] != 1.0).any():
        yield where, f"rows from {start} on have a diagonal other than 1"
    wrong = np.argwhere(~(np.abs(stored - rows) <= ROUNDING))
    if wrong.size:
        i, j = wrong[0]
        yield where, f"r({start + i}, {j}) is not what the embedding gives"


def _check_neighbours(
    store: Store, rows: NDArray[np.float32], start: int, stop: int, options: Options
) -> Problems:
    want = neighbour_block(rows, start, options)
    pointers = store.indptr[start : stop + 1]
    wrong = np.flatnonzero(want.counts != np.diff(pointers))
    if wrong.size:
        row = start + int(wrong[0])
        yield "/neighbourhoods/indptr", f"row {row} has not all its neighbours, or too many"
        return
    entries = slice(int(pointers[0]), int(pointers[-1]))
    for name, expected in (("indices", want.indices), ("data", want.data)):
        found = store.part(f"/neighbourhoods/{name}", entries)
        different = np.flatnonzero(~(np.abs(found - expected) <= ROUNDING))
        if different.size:
            entry = entries.start + int(different[0])
            row = int(np.searchsorted(store.indptr, entry, side="right")) - 1
            yield f"/neighbourhoods/{name}", f"row {row} is not what r gives"


def _finite(store: Store, name: str) -> Problems:
    if not np.isfinite(store.array(name)).all():
        yield name, "has a value that is not finite"


def _symmetric_positive(name: str, matrix: Floats, tolerance: float = TOLERANCE) -> Problems:
    if not np.isfinite(matrix).all():
        yield name, "has a value that is not finite"
        return
    scale = np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > tolerance * scale:
        yield name, "is not symmetric"
    elif np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min() < -tolerance * scale:
        yield name, "has a negative eigenvalue"


def _correlation(current: Floats, gram: Floats) -> Floats:
    """Return r_ij = a_i' G a_j / sqrt(a_i' G a_i  a_j' G a_j)."""
    product: Floats = current @ gram @ current.T
    scale = np.sqrt(np.diag(product))
    return np.asarray(product / np.outer(scale, scale))


def _sample(count: int, most: int) -> NDArray[np.int64]:
    """Return at most ``most`` evenly spread numbers below ``count``."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
