"""Lead fields for a batch, solved or taken from the cache.

The mesh is checked when it is first solved on; a cached field belongs to the very same mesh and
physics.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.batch.cache import Cache, key_of
from fieldcorr.elements import Space
from fieldcorr.leadfield import LeadField, compared_region, compute_lead_field
from fieldcorr.mesh import Mesh, check_mesh_of_model
from fieldcorr.model import Model

SHARES = {"assemble": (0.0, 0.3), "solve": (0.3, 0.95), "identities": (0.95, 0.98)}
"""Where the solver's stages lie within the whole, roughly by time."""


def lead_field(
    model: Model,
    mesh: Mesh,
    *,
    name: str,
    cache: Cache,
    order: int | None = None,
    threads: int | None = None,
    report: Callable[[float], None] = lambda done: None,
) -> LeadField:
    """Return the lead field of a model on a mesh, from the cache if it is there.

    ``name`` is what messages call the mesh; ``report`` is called with the share that is done. The
    rest is as for :func:`fieldcorr.leadfield.compute_lead_field`.
    """
    chosen = model.solver.order if order is None else order
    key = key_of(physics(model, mesh, chosen))
    stored = cache.load(key)
    if stored is None:
        check_mesh_of_model(model, mesh, name=name)

        def follow(stage: str, share: float) -> None:
            start, stop = SHARES.get(stage, (0.98, 1.0))
            report(start + (stop - start) * share)

        solved = compute_lead_field(model, mesh, order=chosen, threads=threads, progress=follow)
        cache.save(key, _arrays(solved))
        return solved
    report(1.0)
    return _from_arrays(model, mesh, chosen, stored)


def physics(model: Model, mesh: Mesh, order: int) -> dict[str, object]:
    """Return everything that the nodal lead fields and the admittance depend on.

    The shapes and the device are among them because the mesh is checked against these only when it
    is solved on.
    """
    return {
        "mesh": mesh.hash,
        "shapes": model.shape_hash,
        "tissues": {name: t.principal_S_per_m for name, t in sorted(model.tissues.items())},
        "contacts": model.contacts.model_dump(mode="json"),
        "electrodes": list(model.electrode_names),
        "outer": model.boundary.outer,
        "order": order,
        "tolerance": model.solver.tolerance,
    }


def _arrays(solved: LeadField) -> dict[str, NDArray[np.generic]]:
    return {
        "names": np.array(solved.contact_names),
        "positions": solved.contact_positions,
        "areas": solved.contact_areas,
        "admittance": solved.admittance,
        "nodal": solved.nodal,
        "residuals": solved.residuals,
        "iterations": np.array(solved.iterations),
        "identity_names": np.array(list(solved.identities)),
        "identity_values": np.array(list(solved.identities.values())),
    }


def _from_arrays(
    model: Model, mesh: Mesh, order: int, stored: Mapping[str, NDArray[Any]]
) -> LeadField:
    values = stored["identity_values"].tolist()
    return LeadField(
        tuple(stored["names"].tolist()),
        stored["positions"],
        stored["areas"],
        stored["admittance"],
        stored["nodal"],
        Space(mesh, order),
        compared_region(model, mesh),
        stored["residuals"],
        int(stored["iterations"]),
        dict(zip(stored["identity_names"].tolist(), values, strict=True)),
        {},
    )
