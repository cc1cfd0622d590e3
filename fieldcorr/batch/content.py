"""What a batch puts into its store besides r: lead field, mesh, and where they came from."""

import json
from collections.abc import Mapping
from typing import Any

from fieldcorr.batch.cache import versions
from fieldcorr.batch.embed import shares
from fieldcorr.leadfield import LeadField
from fieldcorr.model import Model
from fieldcorr.store import Options


def settings(model: Model, options: Options) -> dict[str, object]:
    """Return what was chosen: measure, drive, region, solver, rules, neighbourhoods."""
    content = model.content()
    stimulator = content["stimulator"]
    return {
        **({} if stimulator is None else {"stimulator": stimulator}),
        "model": model.name,
        "device": model.device.name,
        "measure": content["measure"],
        "drive": {"mode": model.drive.mode, "fractions": shares(model)},
        "contacts": content["contacts"],
        "boundary": model.boundary.outer,
        "region": content["region"],
        "solver": content["solver"],
        "configurations": content["configurations"],
        "neighbourhoods": {"threshold": options.threshold, "top_k": options.top_k},
    }


def texts(
    model: Model,
    options: Options,
    field: LeadField,
    *,
    meshes: Mapping[str, str],
    identities: Mapping[str, float],
    estimate: Mapping[str, object] | None,
    sweep: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """Return the datasets of /provenance that are known before the tiles.

    ``meshes`` are hashes by role, ``identities`` the relative defects of physical identities,
    ``sweep`` what the settings say about samples.
    """
    hashes = {"model": model.hash, "geometry": model.geometry_hash}
    hashes |= {f"mesh {role}": value for role, value in meshes.items()}
    records = {
        "device": model.device.model_dump(mode="json"),
        "origin": {"hashes": hashes, "versions": versions()},
        "settings": settings(model, options) | ({} if sweep is None else {"sweep": sweep}),
        "solver": {
            "residuals": field.residuals.tolist(),
            "iterations": field.iterations,
            "identities": dict(identities),
        },
        "error_estimate": estimate,
    }
    encoded = {f"/provenance/{k}": json.dumps(v, sort_keys=True) for k, v in records.items()}
    return {"/provenance/model": model.text, **encoded}


def lead_field_values(model: Model, field: LeadField, *, slim: bool) -> dict[str, Any]:
    """Return the datasets of /contacts, /leadfield and /mesh."""
    kind = model.measure.kind
    values = {
        "/contacts/name": field.contact_names,
        "/contacts/position": field.contact_positions,
        "/contacts/area": field.contact_areas,
        "/leadfield/points": field.points,
        "/leadfield/weight": field.weight,
        "/leadfield/potential": field.potential,
        "/leadfield/gram": field.gram_of("potential" if kind == "magnitude" else kind),
        "/leadfield/admittance": field.admittance,
    }
    if slim:
        return values
    return {
        **values,
        "/leadfield/nodal": field.nodal,
        "/mesh/points": field.mesh.points,
        "/mesh/cells": field.mesh.cells,
        "/mesh/tags": field.mesh.cell_tags,
        "/mesh/tissues": field.mesh.tissues,
    }


def companion_values(model: Model, field: LeadField | None) -> dict[str, object]:
    """Return what error bars of single pairs need; nothing without a companion, or for |E|."""
    if field is None or model.measure.kind == "magnitude":
        return {}
    return {
        "/leadfield/companion_gram": field.gram_of(model.measure.kind),
        "/leadfield/companion_admittance": field.admittance,
    }
