"""What objects look like in a notebook: short HTML with the array drawn inline as SVG.

Nothing but the standard library and numpy is needed, so that stores and duels stay light.
"""

from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.notebook.cards import (
    duel_card,
    lead_field_card,
    mesh_card,
    model_card,
    store_card,
)
from fieldcorr.notebook.svg import array_svg

__all__ = [
    "ArrayLayout",
    "array_svg",
    "duel_card",
    "layout_of",
    "lead_field_card",
    "mesh_card",
    "model_card",
    "store_card",
]
