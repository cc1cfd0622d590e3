"""What a page knows of a store: a record of plain values and packed arrays.

Gram matrix and resistance are small and give currents, impedance and r of any pattern of the array;
:mod:`fieldcorr.web.sections` adds the lead fields where they are drawn.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.embedding import embedding_from_gram
from fieldcorr.correlation.order import ordered, spread_rows
from fieldcorr.drive import closed_admittance
from fieldcorr.layout import CASE, layout_of
from fieldcorr.stimulation import Stimulation, stimulation_of
from fieldcorr.web.packing import pack_integers
from fieldcorr.web.sections import MM, section_records

if TYPE_CHECKING:
    from fieldcorr.store import Store

MOST_ROWS = 50_000
WHOLE_ROWS = 5_000
"""A page holds no more configurations than this, evenly spread over a larger store, or over
configurations that are not listed, most of which have so many contacts that they take long."""
HEAT_ROWS = 240
HEAT_LEVELS = 127
NEAREST = 8
"""Neighbours kept per configuration where r is not linear, so that a page cannot compute it."""


def page_data(store: "Store", stimulation: Stimulation | None = None) -> dict[str, object]:
    """Return what every page draws from; a session may have a stimulator of its own."""
    settings, layout = store.record("settings"), layout_of(store)
    rows = spread_rows(len(store), WHOLE_ROWS if store.is_whole else MOST_ROWS)
    flat, body = layout.stretched(1.0)  # to scale
    return {
        "model": str(settings["model"]),
        "measure": settings["measure"]["kind"],
        "linear": settings["measure"]["kind"] != "magnitude",
        "drive": settings["drive"],
        "names": list(layout.names),
        "case": CASE if layout.has_case else None,
        "corners": [None if np.isnan(c).any() else (MM * c).tolist() for c in flat],
        "body": None if body is None else (MM * body).tolist(),
        "resistance": resistance(store.admittance).tolist(),
        "gram": store.gram.tolist(),
        "stimulation": stimulation_record(stimulation or stimulation_of(store)),
        "count": len(store),
        "rows": pack_integers(rows),
        "polarity": pack_integers(store.polarity[rows]),
        "nearest": _nearest(store, rows),
        "zero": store.fields.volume.zero if store.has_fields else None,
        "sections": section_records(store),
    }


def resistance(admittance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return contact potentials per current (E, E), ohm, of currents that sum to zero."""
    closed = closed_admittance(admittance, len(admittance))
    return np.asarray(np.linalg.pinv(closed, hermitian=True), dtype=np.float64)


def stimulation_record(stimulation: Stimulation | None) -> dict[str, object] | None:
    """Return a stimulator as plain values; a contact whose area has no end has none."""
    if stimulation is None:
        return None
    areas = [area if np.isfinite(area) else None for area in stimulation.area_cm2.tolist()]
    return {
        **asdict(stimulation.stimulator),
        "unit": stimulation.stimulator.unit,
        "area_cm2": areas,
        "material": stimulation.material,
    }


def heat_data(store: "Store") -> dict[str, object]:
    """Return r of evenly spread configurations, in an order that shows its blocks."""
    rows = spread_rows(len(store), HEAT_ROWS)
    if store.is_whole:  # a row of r would be as long as the store
        unit = embedding_from_gram(store.current[rows], store.gram)
        r = np.clip(np.einsum("ir,jr->ij", unit, unit), -1.0, 1.0)
    else:
        r = np.stack([store.row(int(row))[rows] for row in rows]).astype(np.float64)
    order = ordered(r, "hierarchical")
    return {
        "rows": rows[order].tolist(),
        "r": pack_integers(np.rint(HEAT_LEVELS * r[np.ix_(order, order)])),
        "levels": HEAT_LEVELS,
    }


def _nearest(store: "Store", rows: NDArray[np.int64]) -> dict[str, object] | None:
    """Return the nearest of every row where a page cannot compute r, else None."""
    if store.record("settings")["measure"]["kind"] != "magnitude":
        return None
    found = [store.nearest(int(row), NEAREST) for row in rows]
    return {
        "rows": pack_integers(np.array([row for row, _ in found])),
        "r": pack_integers(np.rint(1e6 * np.array([r for _, r in found]))),
    }
