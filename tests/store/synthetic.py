"""Small stores with consistent contents and no finite-element solve behind them."""

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import configuration_ids
from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.drive import contact_currents
from fieldcorr.elements import NodalField, Space
from fieldcorr.store import Options, WorkFolder, layout, write_store
from fieldcorr.store.field import StoredMesh

NAMES = ("0", "1", "2", "3", "4", "5")

OTHERS = ("space", "sweep", "companion")
GROUPS = [group for group in layout.GROUPS if group.presence not in OTHERS]
ENTRIES = [entry for entry in layout.ENTRIES if entry.presence not in OTHERS]
"""What a store of listed configurations holds that knows neither companion mesh nor sweep."""


def cube(steps: int = 2) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
    """Return points and cells of a cube of 1 m, each small cube cut into six tetrahedra."""
    axis = np.linspace(0.0, 1.0, steps + 1)
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    number = np.arange(len(points)).reshape(steps + 1, steps + 1, steps + 1)
    cells = []
    for corner in itertools.product(range(steps), repeat=3):
        for path in itertools.permutations(range(3)):
            here = np.array(corner)
            cell = [number[tuple(here)]]
            for step in path:
                here[step] += 1
                cell.append(number[tuple(here)])
            if np.linalg.det(points[cell[1:]] - points[cell[0]]) < 0:
                cell[2], cell[3] = cell[3], cell[2]
            cells.append(cell)
    return points, np.array(cells, dtype=np.int32)


def all_polarities(contacts: int) -> NDArray[np.int8]:
    """Return all polarities with at least one anode and one cathode, by id."""
    every = np.array(list(itertools.product((-1, 0, 1), repeat=contacts)), dtype=np.int8)
    kept = every[(every == 1).any(axis=1) & (every == -1).any(axis=1)]
    return np.asarray(kept[np.argsort(configuration_ids(kept))])


def settings(**changes: Any) -> dict[str, Any]:
    """Return the settings of a synthetic store."""
    return {
        "model": "synthetic",
        "device": "synthetic",
        "measure": {"kind": "potential"},
        "drive": {"mode": "voltage", "fractions": None},
        "boundary": "insulated",
        "region": {},
        "solver": {"order": 2, "tolerance": 1e-8},
        "neighbourhoods": {"threshold": 0.0, "top_k": 0},
        **changes,
    }


def lead_field_values(rng: np.random.Generator, contacts: int, order: int) -> dict[str, Any]:
    """Return mesh, nodal fields, samples, Gram and admittance that fit together."""
    points, cells = cube()
    tags = np.zeros(len(cells), dtype=np.int32)
    space = Space(StoredMesh(points, cells, tags, ("white",)), order)
    nodes = space.points
    nodal = rng.normal(size=(contacts, 4)) @ np.c_[np.ones(len(nodes)), nodes].T
    nodal = (nodal + 0.1 * rng.normal(size=nodal.shape)).astype(np.float32)
    samples = points[cells].mean(axis=1)
    potential = NodalField(space, nodal).potential(samples)
    weight = rng.uniform(0.5, 1.5, len(samples))
    centred = potential - (potential @ weight)[:, None] / weight.sum()
    gram = np.einsum("an,bn,n->ab", centred, centred, weight) + 0.1 * np.eye(contacts)
    coupling = rng.uniform(0.5, 1.0, (contacts, contacts))
    coupling = coupling + coupling.T
    np.fill_diagonal(coupling, 0.0)
    return {
        "/leadfield/points": samples,
        "/leadfield/weight": weight,
        "/leadfield/potential": potential,
        "/leadfield/gram": 0.5 * (gram + gram.T),
        "/leadfield/admittance": np.diag(coupling.sum(axis=1)) - coupling,
        "/leadfield/nodal": nodal,
        "/mesh/points": points,
        "/mesh/cells": cells,
        "/mesh/tags": tags,
        "/mesh/tissues": ["white"],
    }


def values(
    *, contacts: int = 5, order: int = 2, slim: bool = False, count: int | None = None
) -> dict[str, Any]:
    """Return every small dataset of a store of (at most ``count``) configurations."""
    rng = np.random.default_rng(7)
    field = lead_field_values(rng, contacts, order)
    polarity = all_polarities(contacts)[:count]
    current = contact_currents(polarity, field["/leadfield/admittance"])
    if slim:
        field = {k: v for k, v in field.items() if k[:5] != "/mesh" and k[-5:] != "nodal"}
    return {
        "/contacts/name": NAMES[:contacts],
        "/contacts/position": rng.normal(size=(contacts, 3)),
        "/contacts/area": np.full(contacts, 6e-6),
        **field,
        "/configurations/id": configuration_ids(polarity),
        "/configurations/polarity": polarity,
        "/configurations/current": current,
        "/correlation/embedding": embedding_from_gram(current, field["/leadfield/gram"]),
        "/provenance/model": 'name = "synthetic"\n',
        "/provenance/device": "{}",
        "/provenance/origin": json.dumps(
            {"hashes": {"model": "0" * 64, "mesh": "1" * 64}, "versions": {"fieldcorr": "0"}}
        ),
        "/provenance/settings": json.dumps(settings()),
        "/provenance/solver": json.dumps(
            {"residuals": [1e-9] * contacts, "iterations": 9, "identities": {"symmetry": 1e-12}}
        ),
        "/provenance/error_estimate": "null",
    }


def whole_values(**changes: Any) -> dict[str, Any]:
    """Return the values of the synthetic store without its rows."""
    rows = {e.path for e in ENTRIES if e.presence in ("rows", "matrix")}
    kept = {path: value for path, value in values().items() if path not in rows}
    allowed = np.ones((5, 3), dtype=np.int8)
    return {**kept, "/space/allowed": allowed, "/space/limits": [1, 5, 1, 5, 0, 5], **changes}


def make_store(
    path: Path,
    content: dict[str, Any] | None = None,
    *,
    options: Options | None = None,
    force: bool = False,
) -> Path:
    """Write a store and return its path."""
    chosen = options or Options()
    content = dict(content or values())
    record = {"threshold": chosen.threshold, "top_k": chosen.top_k}
    content["/provenance/settings"] = json.dumps(settings(neighbourhoods=record))
    with WorkFolder(path, force=force) as folder:
        write_store(folder, content, options=chosen, run=lambda: {"created": "now"})
    return path


def settled_values() -> dict[str, Any]:
    """Return the values that :func:`make_store` writes by default, settings included."""
    return {**values(), "/provenance/settings": json.dumps(settings())}


def content_hash(path: Path) -> str:
    """Return the sha256 of a file with the record of the run blanked."""
    with h5py.File(path) as file:
        run = file["/provenance/run"]
        offset, size = run.id.get_offset(), run.dtype.itemsize
    data = bytearray(path.read_bytes())
    data[offset : offset + size] = bytes(size)
    return hashlib.sha256(data).hexdigest()
