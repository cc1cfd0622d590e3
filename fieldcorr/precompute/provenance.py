"""Where a store came from, as the texts that it carries.

What flows in: model, meshes, lead field, options. What flows out: the datasets of /provenance, and
the record of the run, which alone differs between two runs of the same batch.
"""

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from fieldcorr import __version__
from fieldcorr.leadfield import LeadField
from fieldcorr.model import Model
from fieldcorr.precompute.embed import shares
from fieldcorr.store import Options

PACKAGES = ("numpy", "scipy", "numba", "h5py", "fenics-basix", "pyamg")


def settings(model: Model, options: Options) -> dict[str, Any]:
    """Return what was chosen: measure, drive, region, solver, rules, neighbourhoods."""
    content = model.content()
    return {
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


def versions() -> dict[str, str]:
    """Return the versions of what computed the store."""
    found = {"fieldcorr": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def texts(
    model: Model,
    options: Options,
    field: LeadField,
    *,
    meshes: Mapping[str, str],
    identities: Mapping[str, float],
    estimate: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return the datasets of /provenance that are known before the tiles.

    Parameters
    ----------
    model, options, field
        What the batch is made of.
    meshes
        Hashes of the meshes by role.
    identities
        Relative defects of physical identities.
    estimate
        Error estimate of r, or None.
    """
    hashes = {
        "model": model.hash,
        "geometry": model.geometry_hash,
        **{f"mesh {role}": value for role, value in meshes.items()},
    }
    records = {
        "device": model.device.model_dump(mode="json"),
        "hashes": hashes,
        "settings": settings(model, options),
        "versions": versions(),
        "identities": dict(identities),
        "error_estimate": estimate,
    }
    encoded = {f"/provenance/{k}": json.dumps(v, sort_keys=True) for k, v in records.items()}
    return {
        "/provenance/model": model.text,
        "/provenance/residuals": field.residuals,
        **encoded,
    }


def run_record(*, threads: int, memory: int, seconds: Mapping[str, float]) -> dict[str, Any]:
    """Return what differs from run to run."""
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "threads": threads,
        "memory_bytes": memory,
        "seconds": {stage: round(value, 3) for stage, value in seconds.items()},
    }
