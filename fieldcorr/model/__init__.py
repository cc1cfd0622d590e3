"""The model file: anatomy, tissues, array, drive, compared region, rules.

What flows in: a TOML file or the name of a bundled model. What flows out: a frozen
:class:`Model`; every way a file can be wrong is a :class:`~fieldcorr.errors.ModelError` of one
line that names file, key and value.
"""

from fieldcorr.model.bundled import bundled_devices, bundled_folder, bundled_models
from fieldcorr.model.device import Device
from fieldcorr.model.geometry import Ellipse, Geometry
from fieldcorr.model.load import DEFAULT_MODEL, load_device, load_model, resolve_mesh
from fieldcorr.model.placement import Placement
from fieldcorr.model.rules import Rules
from fieldcorr.model.schema import Model
from fieldcorr.model.tables import Sizes
from fieldcorr.model.tissues import REQUIRED_TISSUES, Tissue

__all__ = [
    "DEFAULT_MODEL",
    "REQUIRED_TISSUES",
    "Device",
    "Ellipse",
    "Geometry",
    "Model",
    "Placement",
    "Rules",
    "Sizes",
    "Tissue",
    "bundled_devices",
    "bundled_folder",
    "bundled_models",
    "load_device",
    "load_model",
    "resolve_mesh",
]
