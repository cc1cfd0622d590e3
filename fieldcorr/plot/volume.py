"""Fields in the whole volume, from a lead field or from a store alike.

What flows in: a lead field or a store with nodal lead fields, a configuration. What flows out:
:class:`Volume`, which gives potential, electric field and tissue at any point, and :class:`Shown`,
the contact currents of a configuration or of a difference. Fields are linear in the currents, so a
difference of two configurations is the field of the difference of their currents.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fieldcorr.drive import contact_currents
from fieldcorr.elements import CellLocator, basis_gradients, interpolate
from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.notebook.units import quantity
from fieldcorr.plot.array_view import Configuration, polarity_of, text_of

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

Drive = Literal["voltage", "current"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Located:
    """Cells (N,) of some points, -1 outside, and their barycentric coordinates (N, 4)."""

    cell: NDArray[np.int64]
    barycentric: FloatArray


@dataclass(frozen=True, eq=False)
class Volume:
    """A mesh with its lead fields.

    Attributes
    ----------
    points, cells, tags, tissues
        (P, 3) m, (T, 4), (T,) and the names of the tissues.
    dofs, order
        (T, 4 | 10) nodes of the cells, and the order of the elements.
    lead_field : contact -> (D,) V/A
        Reads one lead field at all nodes.
    region_points, region_weight
        (N, 3) m samples of the compared region, (N,) m3 their weights.
    region_mean
        (E,) V/A mean of each lead field over the region.
    layout : ArrayLayout
    """

    points: FloatArray
    cells: NDArray[np.int32]
    tags: NDArray[np.int32]
    tissues: tuple[str, ...]
    dofs: NDArray[np.int32]
    order: int
    lead_field: Callable[[int], NDArray[np.floating[Any]]]
    region_points: FloatArray
    region_weight: FloatArray
    region_mean: FloatArray
    layout: ArrayLayout

    @property
    def region_centre(self) -> FloatArray:
        """Centre of mass (3,) m of the compared region."""
        centre: FloatArray = self.region_weight @ self.region_points / self.region_weight.sum()
        return centre

    def locate(self, points: FloatArray) -> Located:
        """Find the cells of points (N, 3) m."""
        return Located(*self._locator.locate(points))

    def locate_in_plane(self, points: FloatArray, *, axis: int, at: float) -> Located:
        """Find the cells of points whose coordinate ``axis`` is ``at``.

        Only the cells that the plane meets are searched: points in the void of the paddle, which
        lie in no cell, would else be looked for in all of them.
        """
        along = self.points[:, axis][self.cells]
        met = np.flatnonzero((along.min(axis=1) <= at) & (along.max(axis=1) >= at))
        if not met.size:
            return Located(np.full(len(points), -1, dtype=np.int64), np.zeros((len(points), 4)))
        cell, bary = CellLocator(self.points, self.cells[met]).locate(points)
        return Located(np.where(cell >= 0, met[cell], -1), bary)

    def nodal(self, currents: FloatArray) -> FloatArray:
        """Return the potential (D,) V of contact currents (E,) A; its mean over the region is 0."""
        total = np.full(int(self.dofs.max()) + 1, -float(self.region_mean @ currents))
        for contact in np.flatnonzero(currents):
            total += currents[contact] * self.lead_field(int(contact))
        return total

    def potential(self, currents: FloatArray, where: Located) -> FloatArray:
        """Return the potential (N,) V at located points; NaN outside the tissue."""
        nodal = self.nodal(currents)[None]
        values = interpolate(nodal, self.dofs, where.cell, where.barycentric, self.order)
        return np.asarray(values[0])

    def electric_field(self, currents: FloatArray, where: Located) -> FloatArray:
        """Return E = -grad phi, (N, 3) V/m, at located points; NaN outside the tissue."""
        inside = np.flatnonzero(where.cell >= 0)
        cells = where.cell[inside]
        corners = self.points[self.cells[cells]]
        # Columns of the inverse edge matrix are the gradients of barycentrics 1 to 3; that of the
        # first one follows, because all four sum to 1.
        inverse = np.linalg.inv(corners[:, 1:] - corners[:, :1])
        slopes = np.concatenate([-inverse.sum(axis=2, keepdims=True), inverse], axis=2)
        table = basis_gradients(where.barycentric[inside], self.order)
        by_barycentric = np.einsum("nk,nkl->nl", self.nodal(currents)[self.dofs[cells]], table)
        out = np.full((len(where.cell), 3), np.nan)
        out[inside] = -np.einsum("nl,ndl->nd", by_barycentric, slopes)
        return out

    def tissue_at(self, where: Located) -> NDArray[np.int64]:
        """Return the tissue number (N,) at located points; -1 outside."""
        return np.where(where.cell >= 0, self.tags[where.cell], -1).astype(np.int64)

    @cached_property
    def _locator(self) -> CellLocator:
        return CellLocator(self.points, self.cells)


@dataclass(frozen=True, eq=False)
class Shown:
    """What a picture of a field shows: currents (E,) A, signs of the contacts (E,), a name."""

    currents: FloatArray
    signs: NDArray[np.int8]
    title: str


_volumes: WeakKeyDictionary[Any, Volume] = WeakKeyDictionary()


def volume_of(source: "LeadField | Store") -> Volume:
    """Return the volume of a lead field or of a store; made once for each."""
    if not hasattr(source, "admittance"):
        raise ConfigurationError(
            f"a {type(source).__name__} has no fields: a lead field or a store is needed"
        )
    if source not in _volumes:
        is_store = hasattr(source, "fields")
        _volumes[source] = _of_store(source) if is_store else _of_lead_field(source)
    return _volumes[source]


def shown(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    minus: Configuration | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
) -> Shown:
    """Return the currents of a configuration, or of the difference of two.

    Parameters
    ----------
    source
        A lead field or a store.
    configuration, minus
        Text, polarity, or row of a store. The second one is taken away from the first.
    drive
        "voltage" or "current"; None for the store's own, or "voltage" with a lead field.
    amplitude
        V between the electrodes, or A in total.
    """
    volume_of(source)  # refuses what has no fields, before anything else fails
    mode = drive or _own_drive(source)
    currents = _currents(source, configuration, drive)
    signs = polarity_of(source, configuration)
    title = text_of(source, configuration)
    if minus is not None:
        currents = currents - _currents(source, minus, drive)
        signs = np.sign(signs - polarity_of(source, minus)).astype(np.int8)
        title = f"{title}  minus  {text_of(source, minus)}"
    unit = "V" if mode == "voltage" else "A"
    title = f"{title}  at {quantity(amplitude, unit)}"
    return Shown(amplitude * currents, signs, title)


def _own_drive(source: Any) -> str:
    if hasattr(source, "record"):
        return str(source.record("settings")["drive"]["mode"])
    return "voltage"


def _currents(source: Any, configuration: Configuration, drive: Drive | None) -> FloatArray:
    """Return the currents (E,) A for a unit drive."""
    if drive is None and hasattr(source, "currents_of"):
        return np.asarray(source.currents_of(configuration))
    polarity = polarity_of(source, configuration)
    mode = drive or "voltage"
    return np.asarray(contact_currents(polarity[None], source.admittance, mode=mode)[0])


def _of_lead_field(field: Any) -> Volume:
    mesh = field.mesh
    return Volume(
        points=mesh.points,
        cells=mesh.cells,
        tags=mesh.cell_tags,
        tissues=mesh.tissues,
        dofs=field.space.cell_dofs,
        order=field.order,
        # Bound to the array alone: a reference to the lead field would keep it alive for ever.
        lead_field=field.nodal.__getitem__,
        region_points=field.points,
        region_weight=field.weight,
        region_mean=field.potential @ field.weight / field.weight.sum(),
        layout=layout_of(field),
    )


def _of_store(store: Any) -> Volume:
    fields = store.fields
    weight = store.array("/leadfield/weight")
    return Volume(
        points=fields.points,
        cells=fields.cells,
        tags=fields.tags,
        tissues=fields.tissues,
        dofs=fields.dofs,
        order=fields.order,
        lead_field=store.array("/leadfield/nodal").__getitem__,
        region_points=store.array("/leadfield/points"),
        region_weight=weight,
        region_mean=store.array("/leadfield/potential") @ weight / weight.sum(),
        layout=layout_of(store),
    )
