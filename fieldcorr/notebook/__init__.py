"""What objects look like in a notebook: short HTML with the array drawn inline as SVG.

Nothing but the standard library and numpy is needed, so that stores and duels stay light.
``fieldcorr.notebook.Picker``, which needs anywidget, is imported on first use.
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "Picker":
        return import_module("fieldcorr.notebook.picker").Picker
    raise AttributeError(f"module 'fieldcorr.notebook' has no attribute {name!r}")
