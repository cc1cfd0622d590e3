"""Fields in three dimensions, for pyvista.

What flows in: a lead field or a store, configurations. What flows out: a pyvista grid of the
whole volume with potentials at its nodes and the tissue of its cells. pyvista is imported
here only when it is used; ParaView reads the same from ``fieldcorr export``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fieldcorr.elements import node_points
from fieldcorr.errors import ConfigurationError, MissingExtraError
from fieldcorr.export import vtk_cells
from fieldcorr.plot.array_view import Configuration, text_of
from fieldcorr.plot.volume import Drive, shown, volume_of

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.store import Store

VTK_TETRA, VTK_QUADRATIC_TETRA = 10, 24
"""Numbers that VTK gives to tetrahedra of order 1 and 2."""


def volume_grid(
    source: "LeadField | Store",
    configurations: Sequence[Configuration],
    *,
    drive: Drive | None = None,
    amplitude: float = 1.0,
) -> Any:
    """Return the volume as a ``pyvista.UnstructuredGrid``, in m.

    Point data are named like "potential 0- 5+ (V)", cell data "tissue" holds the tissue numbers and
    the field data "tissues" their names. ``grid.threshold(...)``, ``grid.slice(...)`` and
    ``grid.contour(...)`` do the rest.

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
    try:
        import pyvista
    except ImportError as error:
        raise MissingExtraError(
            "3-D pictures need pyvista: install fieldcorr[plot3d], or pyvista itself"
        ) from error
    if isinstance(configurations, str):
        raise ConfigurationError(
            f"configurations: a list of them is needed, not {configurations!r}"
        )
    volume = volume_of(source)
    cells = vtk_cells(volume.dofs)
    kind = VTK_TETRA if volume.order == 1 else VTK_QUADRATIC_TETRA
    padded = np.column_stack([np.full(len(cells), cells.shape[1]), cells]).ravel()
    nodes = node_points(volume.points, volume.cells, volume.order)
    grid = pyvista.UnstructuredGrid(padded, np.full(len(cells), kind, dtype=np.uint8), nodes)
    for configuration in configurations:
        what = shown(source, configuration, drive=drive, amplitude=amplitude)
        name = f"potential {text_of(source, configuration)} (V)"
        grid.point_data[name] = volume.nodal(what.currents)
    grid.cell_data["tissue"] = volume.tags
    grid.field_data["tissues"] = list(volume.tissues)
    return grid
