"""The model file: anatomy, tissues, array, drive, compared region, rules.

A :class:`Model` is frozen; every way a file can be wrong is a
:class:`~fieldcorr.errors.ModelError` of one line that names file, key and value.
"""

from fieldcorr.model.device import Device
from fieldcorr.model.geometry import NESTING, Ellipse, Geometry
from fieldcorr.model.load import (
    DEFAULT_MODEL,
    bundled_devices,
    bundled_folder,
    bundled_models,
    load_device,
    load_model,
    resolve_mesh,
)
from fieldcorr.model.placement import Placement
from fieldcorr.model.rules import Rules
from fieldcorr.model.schema import Model
from fieldcorr.model.tables import REQUIRED_TISSUES, SizesTable, Tissue

__all__ = [
    "DEFAULT_MODEL",
    "NESTING",
    "REQUIRED_TISSUES",
    "Device",
    "Ellipse",
    "Geometry",
    "Model",
    "Placement",
    "Rules",
    "SizesTable",
    "Tissue",
    "bundled_devices",
    "bundled_folder",
    "bundled_models",
    "load_device",
    "load_model",
    "resolve_mesh",
]
