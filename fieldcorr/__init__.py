"""Potential fields of epidural electrode configurations, their correlations, and duels on them.

Names are imported on first use, so that ``import fieldcorr`` costs next to nothing and programs
that only read a store never load the finite-element side.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fieldcorr import errors as errors
    from fieldcorr.batch import precompute as precompute
    from fieldcorr.duel import BayesDuel as BayesDuel
    from fieldcorr.duel import CorrDuel as CorrDuel
    from fieldcorr.leadfield import LeadField as LeadField
    from fieldcorr.leadfield import compute_lead_field as compute_lead_field
    from fieldcorr.mesh import Mesh as Mesh
    from fieldcorr.mesh import build_mesh as build_mesh
    from fieldcorr.mesh import check_mesh as check_mesh
    from fieldcorr.mesh import read_mesh as read_mesh
    from fieldcorr.mesh import write_mesh as write_mesh
    from fieldcorr.model import Model as Model
    from fieldcorr.model import load_model as load_model
    from fieldcorr.model import resolve_mesh as resolve_mesh
    from fieldcorr.store import Store as Store
    from fieldcorr.store import check_store as check_store
    from fieldcorr.store import open_store as open_store

_NAMES = {
    "batch": ("precompute",),
    "duel": ("BayesDuel", "CorrDuel"),
    "leadfield": ("LeadField", "compute_lead_field"),
    "mesh": ("Mesh", "build_mesh", "check_mesh", "read_mesh", "write_mesh"),
    "model": ("Model", "load_model", "resolve_mesh"),
    "store": ("Store", "check_store", "open_store"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = ["__version__", "errors", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("fieldcorr.errors")
    if name not in _HOMES:
        raise AttributeError(f"module 'fieldcorr' has no attribute {name!r}")
    value = getattr(import_module(f"fieldcorr.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
