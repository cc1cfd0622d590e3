"""A field on a grid in a section plane.

What flows in: a lead field or a store, the currents that are shown, a plane. What flows out:
:class:`Section` with potential, electric field and tissue at the points of a grid.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.plot.planes import PLANES, Plane, plane_named
from fieldcorr.plot.volume import Located, Shown, Volume, volume_of

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

MARGIN_M = 7e-3
"""What is shown around cord and contacts."""
STEP_M = 2e-4
"""Distance of the points at which a section is sampled."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Section:
    """A field on a grid in a plane.

    Attributes
    ----------
    volume, what
        The fields, and the currents whose field is meant.
    plane, at
        The plane and its place along the normal, m.
    across, up
        (n,), (m,) grid coordinates, m.
    where : Located
        The grid points, row by row.
    """

    volume: Volume
    what: Shown
    plane: Plane
    at: float
    across: FloatArray
    up: FloatArray
    where: Located

    @cached_property
    def potential(self) -> FloatArray:
        """Potential (m, n) V, less its mean over the compared region; NaN outside the tissue."""
        return self._on_grid(self.volume.potential(self.what.currents, self.where))

    @cached_property
    def field(self) -> FloatArray:
        """Electric field (m, n, 3) V/m; NaN outside the tissue."""
        return self._on_grid(self.volume.electric_field(self.what.currents, self.where))

    @property
    def magnitude(self) -> FloatArray:
        """|E|, (m, n) V/m."""
        size: FloatArray = np.linalg.norm(self.field, axis=-1)
        return size

    @property
    def tissue(self) -> NDArray[np.int64]:
        """Tissue numbers (m, n); -1 outside."""
        return self._on_grid(self.volume.tissue_at(self.where))

    def _on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(len(self.up), len(self.across), *values.shape[1:])


def sample_section(
    source: "LeadField | Store",
    what: Shown,
    plane: str,
    *,
    at: float | None = None,
    step: float = STEP_M,
    margin: float = MARGIN_M,
) -> Section:
    """Lay a grid into a plane.

    Parameters
    ----------
    source
        A lead field or a store.
    what
        Currents, from :func:`fieldcorr.plot.volume.shown`.
    plane
        "axial", "sagittal" or "coronal".
    at
        Place of the plane along its normal, m; None for :func:`default_places`.
    step, margin
        Grid step, and what is shown around cord and contacts, m.
    """
    volume, chosen = volume_of(source), plane_named(plane)
    place = default_places(volume, what)[plane] if at is None else at
    low, high = _window(volume, margin)
    across, up = (
        np.linspace(low[d], high[d], 1 + max(2, round((high[d] - low[d]) / step)))
        for d in (chosen.across, chosen.up)
    )
    where = volume.locate_in_plane(chosen.points(across, up, place), axis=chosen.normal, at=place)
    return Section(volume, what, chosen, place, across, up, where)


def default_places(volume: Volume, what: Shown) -> Mapping[str, float]:
    """Return where planes lie by default: in the region's centre and at the strongest contact."""
    centre = volume.region_centre
    on_array = volume.layout.on_array
    strongest = on_array[int(np.argmax(np.abs(what.currents[on_array])))]
    rostral = float(volume.layout.centres[strongest, 2])
    return {"axial": rostral, "sagittal": float(centre[0]), "coronal": float(centre[1])}


def _window(volume: Volume, margin: float) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the box that is shown: contacts and cord with a margin, m."""
    contacts = volume.layout.corners[volume.layout.on_array].reshape(-1, 3)
    cord = volume.region_points.copy()
    cord[:, 2] = contacts[:, 2].mean()  # along the cord the contacts decide
    both = np.concatenate([contacts, cord])
    return both.min(axis=0) - margin, both.max(axis=0) + margin


def sample_all(
    source: "LeadField | Store",
    what: Shown,
    *,
    places: Mapping[str, float] | None,
    step: float,
    margin: float,
) -> list[Section]:
    """Return the axial, the sagittal and the coronal section; ``places`` (m) override defaults."""
    chosen = places or {}
    for name in chosen:
        plane_named(name)
    return [
        sample_section(source, what, name, at=chosen.get(name), step=step, margin=margin)
        for name in PLANES
    ]
