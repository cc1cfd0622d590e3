"""The lead fields of a store in a few sections, for a page that draws any pattern of the array.

An axial section lies at every row of contacts and a sagittal one at every column, at most
:data:`MOST` of each. What a section holds is linear in the contact currents: potential, the three
components of E, and the activating function of a fibre along the cord.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.order import spread_rows
from fieldcorr.elements import Located, NodalField
from fieldcorr.elements.field import MEAN_IS_ZERO
from fieldcorr.elements.section import (
    NAME_ROOM_M,
    PLANES,
    Plane,
    outline_cut,
    roomy_places,
    tissue_outlines,
)
from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.web.packing import pack_grid, pack_integers

if TYPE_CHECKING:
    from fieldcorr.store import Store

STEP_M = 6e-4
MARGIN_M = 4e-3
"""Grid step, and what is shown around cord and contacts."""
REACH_M = 1.5e-2
"""How far from the contacts anything is shown: the compared region may be the whole body."""
MOST = 12
FINER = 4
"""The void of the paddle is drawn on a grid so many times as fine."""
POTENTIAL_BITS, FIELD_BITS, ACTIVATING_BITS = 26, 17, 18
"""Of what single contacts make, the potential is good to 1e-6, the others to 1e-4."""
MICRONS = 1e6
MM = 1e3
APART_M = 5e-4
"""Contacts closer than this along an axis share a section."""

FloatArray = NDArray[np.float64]


def section_records(store: "Store") -> list[dict[str, Any]]:
    """Return every section as a plain record; none for a slim store."""
    if not store.has_fields:
        return []
    layout, volume = layout_of(store), store.fields.volume
    nodal = NodalField(volume.space, store.array("/leadfield/nodal"))
    zero = volume.mean(volume.potential) if volume.zero == MEAN_IS_ZERO else np.zeros(1)
    window = _window(layout, volume.points)
    records = []
    for name in ("axial", "sagittal"):
        plane = PLANES[name]
        for at in section_places(layout.centres[layout.on_array, plane.normal]):
            records.append(_record(layout, nodal, plane, at, window, zero))
    return records


def section_places(coordinates: FloatArray) -> list[float]:
    """Return where sections lie, ascending: the middle of every group of contacts, m."""
    ascending = np.sort(coordinates)
    groups = np.split(ascending, np.flatnonzero(np.diff(ascending) > APART_M) + 1)
    middles = [float(group.mean()) for group in groups]
    return [middles[k] for k in spread_rows(len(middles), MOST)]


def _window(layout: ArrayLayout, cord: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the box that is shown, m: along the cord the contacts decide."""
    contacts = layout.corners[layout.on_array].reshape(-1, 3)
    first, last = contacts.min(axis=0), contacts.max(axis=0)
    beyond = np.array([REACH_M, REACH_M, 0.0])
    low = np.clip(cord.min(axis=0), first - beyond, first) - MARGIN_M
    high = np.clip(cord.max(axis=0), last, last + beyond) + MARGIN_M
    return low, high


def _record(
    layout: ArrayLayout,
    nodal: NodalField,
    plane: Plane,
    at: float,
    window: tuple[FloatArray, FloatArray],
    zero: FloatArray,
) -> dict[str, object]:
    across, up = (
        np.linspace(low, high, 1 + FINER * round((high - low) / STEP_M))
        for low, high in zip(*(plane.flat(corner) for corner in window), strict=True)
    )
    points = plane.points(across, up, at)
    fine = nodal.space.locate_in_plane(points, axis=plane.normal, at=at)
    tags = np.where(fine.inside, nodal.space.mesh.cell_tags[fine.cell], -1)
    tags = tags.reshape(len(up), len(across))
    chosen = np.arange(tags.size).reshape(tags.shape)[::FINER, ::FINER]
    shape, grid = chosen.shape, chosen.ravel()
    where = Located(fine.cell[grid], fine.barycentric[grid])
    potential = (nodal.potential(where) - zero[:, None]).reshape(-1, *shape)
    field = np.moveaxis(nodal.electric_field(where), 2, 1).reshape(-1, *shape)
    activating = np.full(potential.shape, np.nan).reshape(len(potential), -1)
    activating[:, where.inside] = nodal.activating(points[grid[where.inside]])
    return {
        "plane": plane.name,
        "at": MM * at,
        "across": (MM * across[[0, -1]]).tolist(),
        "up": (MM * up[[0, -1]]).tolist(),
        "reversed": plane.reversed,
        "marks": plane.corner_marks,
        "inside": pack_integers(tags >= 0),
        "borders": _borders(nodal, plane, at),
        "contacts": _cut_contacts(layout, plane, at),
        "tissues": [
            [nodal.space.mesh.tissues[tag], float(MM * across[column]), float(MM * up[row])]
            for tag, row, column in roomy_places(tags, NAME_ROOM_M * FINER / STEP_M)
        ],
        "potential": pack_grid(_filled(potential), POTENTIAL_BITS),
        "field": pack_grid(_filled(field), FIELD_BITS),
        "activating": pack_grid(_filled(activating.reshape(potential.shape)), ACTIVATING_BITS),
    }


def _filled(values: FloatArray) -> FloatArray:
    """Return fields (C, m, n) with the nearest value where there is none, so that they compress."""
    from scipy.ndimage import distance_transform_edt

    missing = np.isnan(values[0])
    rows, columns = distance_transform_edt(missing, return_distances=False, return_indices=True)
    return values[:, rows, columns]


def _borders(nodal: NodalField, plane: Plane, at: float) -> dict[str, object]:
    """Return the borders of tissues as segments (M, 4): x, y of both ends in micrometres."""
    lines = plane.flat(tissue_outlines(nodal.space.mesh, axis=plane.normal, at=at))
    return pack_integers(np.rint(MICRONS * lines.reshape(-1, 4)))


def _cut_contacts(layout: ArrayLayout, plane: Plane, at: float) -> list[list[float]]:
    """Return the contacts that the plane cuts, as [contact, x, y, x, y] in mm."""
    found = []
    for contact in layout.on_array:
        ends = plane.flat(outline_cut(layout.corners[contact], axis=plane.normal, at=at))
        if len(ends):
            found.append([int(contact), *np.round(MM * ends.ravel(), 3).tolist()])
    return found
