"""A field on a grid in one of the three section planes."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements import Located
from fieldcorr.elements.section import PLANES, Plane
from fieldcorr.errors import ConfigurationError
from fieldcorr.plot.volume import Shown

MARGIN_M = 7e-3
"""What is shown around cord and contacts."""
STEP_M = 2e-4
"""Distance of the points at which a section is sampled."""

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Section:
    """A field on a grid in a plane that lies ``at`` m along its normal.

    ``across`` (n,) and ``up`` (m,) are the grid's coordinates in m, ``where`` its points by rows.
    """

    what: Shown
    plane: Plane
    at: float
    across: FloatArray
    up: FloatArray
    where: Located

    @cached_property
    def potential(self) -> FloatArray:
        """Potential (m, n) V, zero where ``what.volume.zero`` says; NaN outside the tissue."""
        return self._on_grid(self.what.field.potential(self.where))

    @cached_property
    def field(self) -> FloatArray:
        """Electric field (m, n, 3) V/m; NaN outside the tissue."""
        return self._on_grid(self.what.field.electric_field(self.where))

    @property
    def magnitude(self) -> FloatArray:
        """|E|, (m, n) V/m."""
        size: FloatArray = np.linalg.norm(self.field, axis=-1)
        return size

    @property
    def tissue(self) -> NDArray[np.int64]:
        """Tissue numbers (m, n); -1 outside."""
        tags = self.what.volume.space.mesh.cell_tags[self.where.cell]
        return self._on_grid(np.where(self.where.inside, tags, -1))

    def _on_grid(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(len(self.up), len(self.across), *values.shape[1:])


def sample_section(
    what: Shown, plane: str, at: float | None, *, step: float, margin: float
) -> Section:
    """Lay a grid into the plane of that name, ``at`` m or where :func:`default_places` says.

    ``step`` is that of the grid, ``margin`` what is shown around cord and contacts, m.
    """
    if plane not in PLANES:
        raise ConfigurationError(f"plane {plane!r} is not one of {', '.join(PLANES)}")
    chosen = PLANES[plane]
    place = default_places(what)[plane] if at is None else at
    low, high = _window(what, margin)
    across, up = (
        np.linspace(low[d], high[d], 1 + max(2, round((high[d] - low[d]) / step)))
        for d in (chosen.across, chosen.up)
    )
    grid = chosen.points(across, up, place)
    where = what.volume.space.locate_in_plane(grid, axis=chosen.normal, at=place)
    return Section(what, chosen, place, across, up, where)


def default_places(what: Shown) -> Mapping[str, float]:
    """Return where planes lie by default.

    Axial and sagittal planes go through the contacts that carry most of the current, the coronal
    one through the middle of the compared region.
    """
    middle = float(what.volume.mean(what.volume.points.T)[1])
    return {"axial": _busiest(what, 2), "sagittal": _busiest(what, 0), "coronal": middle}


def _busiest(what: Shown, axis: int) -> float:
    """Return the coordinate of a contact at which a plane cuts the most current."""
    contacts = what.layout.on_array
    current = np.abs(what.currents[contacts])
    low, high = (end(what.layout.corners[contacts, :, axis], axis=1) for end in (np.min, np.max))
    places = what.layout.centres[contacts, axis]
    is_cut = (low <= places[:, None]) & (places[:, None] <= high)
    # Of planes that cut the same, the one through the strongest contact.
    score = (is_cut * current).sum(axis=1) + 1e-3 * current
    return float(places[int(score.argmax())])


def _window(what: Shown, margin: float) -> tuple[FloatArray, FloatArray]:
    """Return the corners of the box that is shown: contacts and cord with a margin, m."""
    contacts = what.layout.corners[what.layout.on_array].reshape(-1, 3)
    cord = what.volume.points.copy()
    cord[:, 2] = contacts[:, 2].mean()  # along the cord the contacts decide
    both = np.concatenate([contacts, cord])
    return both.min(axis=0) - margin, both.max(axis=0) + margin
