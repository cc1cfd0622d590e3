"""The field that a picture shows: whose currents, and the whole volume for pyvista.

Pictures are drawn from a lead field and from a store alike. Fields are linear in the currents, so a
difference of two configurations is the field of the difference of their currents. pyvista is
imported only when it is used; ParaView reads the same from ``fieldcorr export``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from fieldcorr.drive import contact_currents
from fieldcorr.elements import NodalField, Space, Volume
from fieldcorr.errors import ConfigurationError, missing_extra
from fieldcorr.export.vtk import vtk_cells
from fieldcorr.layout import ArrayLayout, layout_of
from fieldcorr.notebook.units import quantity
from fieldcorr.plot.array_view import Configuration, polarity_of, text_of
from fieldcorr.progress import say_first_use

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

VTK_TETRA, VTK_QUADRATIC_TETRA = 10, 24
"""Numbers that VTK gives to tetrahedra of order 1 and 2."""

Drive = Literal["voltage", "current"]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Shown:
    """What a picture shows: the field of contact currents (E,) A in a volume.

    ``signs`` (E,) are those of the contacts, ``title`` the configuration's name with the amplitude,
    ``note`` what a reader of the signs must know.
    """

    volume: Volume
    layout: ArrayLayout
    currents: FloatArray
    signs: NDArray[np.int8]
    field: NodalField
    title: str
    note: str = ""


def volume_of(source: "LeadField | Store") -> Volume:
    """Return the lead fields in the whole body, of a lead field or of a store."""
    holder = getattr(source, "fields", source)
    if not hasattr(holder, "volume"):
        raise ConfigurationError(
            f"a {type(source).__name__} has no fields: a lead field or a store is needed"
        )
    volume: Volume = holder.volume
    return volume


def shown(
    source: "LeadField | Store",
    configuration: Configuration,
    *,
    minus: Configuration | None = None,
    drive: Drive | None = None,
    amplitude: float = 1.0,
) -> Shown:
    """Return the field of a configuration, or of its difference with the one ``minus``.

    Configurations are texts, polarities, or rows of a store. The amplitude is in V between the
    electrodes or A in total; without ``drive`` a store has its own, a lead field "voltage".
    """
    volume = volume_of(source)  # refuses what has no fields, before anything else fails
    say_first_use()
    mode = drive or _own_drive(source)
    currents = _currents(source, configuration, drive)
    signs = polarity_of(source, configuration)
    title, remark = text_of(source, configuration), ""
    if minus is not None:
        currents = currents - _currents(source, minus, drive)
        signs = np.sign(signs - polarity_of(source, minus)).astype(np.int8)
        title = f"{title}  minus  {text_of(source, minus)}"
        remark = "signs are those of the difference: a cathode that is subtracted shows as +"
    unit = "V" if mode == "voltage" else "A"
    title = f"{title} at {quantity(amplitude, unit)}"
    currents = amplitude * currents
    field = volume.of_currents(currents)
    return Shown(volume, layout_of(source), currents, signs, field, title, remark)


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


def volume_grid(
    source: "LeadField | Store",
    configurations: Sequence[Configuration],
    *,
    drive: Drive | None = None,
    amplitude: float = 1.0,
) -> Any:
    """Return the volume as a ``pyvista.UnstructuredGrid``, in m.

    Point data are named like "potential 0- 5+ (V)", cell data "tissue" holds the tissue numbers.
    The field data "tissues" holds their names, and "zero of the potential" what the potential is
    measured from: the mean over the compared region, or the ground. ``grid.threshold(...)``,
    ``grid.slice(...)`` and ``grid.contour(...)`` do the rest.

    Parameters
    ----------
    source
        A lead field, or a store that is not slim.
    configurations
        Texts, polarities, or rows of a store.
    drive, amplitude
        As for :func:`fieldcorr.plot.sections`.

    Raises
    ------
    MissingExtraError
        pyvista is not installed.
    """
    pyvista = import_pyvista()
    if isinstance(configurations, str):
        raise ConfigurationError(
            f"configurations: a list of them is needed, not {configurations!r}"
        )
    volume = volume_of(source)
    space = volume.space
    grid = to_grid(pyvista, space)
    for configuration in configurations:
        what = shown(source, configuration, drive=drive, amplitude=amplitude)
        grid.point_data[f"potential {text_of(source, configuration)} (V)"] = what.field.values
    grid.field_data["zero of the potential"] = [volume.zero]
    return grid


def import_pyvista() -> Any:
    """Import pyvista, or say how to get it."""
    try:
        import pyvista
    except ImportError as error:
        raise missing_extra("a 3-D picture", "pyvista", "plot3d") from error
    return pyvista


def to_grid(pyvista: Any, space: Space) -> Any:
    """Return a mesh as a ``pyvista.UnstructuredGrid``, in m, with tissue numbers and names."""
    cells = vtk_cells(space.cell_dofs)
    kind = VTK_TETRA if space.order == 1 else VTK_QUADRATIC_TETRA
    padded = np.column_stack([np.full(len(cells), cells.shape[1]), cells]).ravel()
    kinds = np.full(len(cells), kind, dtype=np.uint8)
    grid = pyvista.UnstructuredGrid(padded, kinds, space.points)
    grid.cell_data["tissue"] = space.mesh.cell_tags
    grid.field_data["tissues"] = list(space.mesh.tissues)
    return grid
