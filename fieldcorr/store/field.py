"""Fields of any configuration, from the mesh and nodal lead fields that a store carries.

What flows in: a store that is not slim, a configuration, points. What flows out: potentials. The
potential is linear in the contact currents, so it is the sum of the lead fields of the contacts
that deliver current; nothing is solved again and the finite-element side is not needed.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import configuration_ids, parse_configuration
from fieldcorr.drive import contact_currents
from fieldcorr.elements import CellLocator, cell_dofs, interpolate, node_points
from fieldcorr.errors import ConfigurationError, StoreError

if TYPE_CHECKING:
    from fieldcorr.store.reader import Store


class FieldReader:
    """Fields of a store.

    Parameters
    ----------
    store
        The open store.
    """

    def __init__(self, store: "Store") -> None:
        self._store = store
        self._rows: dict[int, NDArray[np.float32]] = {}

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Vertices of the mesh, (P, 3) m."""
        return self._array("/mesh/points")

    @cached_property
    def cells(self) -> NDArray[np.int32]:
        """Tetrahedra, (T, 4); every vertex number is checked here."""
        cells: NDArray[np.int32] = self._array("/mesh/cells")
        if cells.size and not (cells.min() >= 0 and cells.max() < self.points.shape[0]):
            raise StoreError(f"{self._store.path}: /mesh/cells points outside /mesh/points")
        return cells

    @cached_property
    def tags(self) -> NDArray[np.int32]:
        """Tissue number of each tetrahedron, (T,)."""
        return self._array("/mesh/tags")

    @cached_property
    def tissues(self) -> tuple[str, ...]:
        """Names of the tissues, by number."""
        return tuple(bytes(name).decode() for name in self._array("/mesh/tissues"))

    @property
    def order(self) -> int:
        """Order of the finite elements: 1 when there is one node per vertex, else 2."""
        return 1 if self._n_nodes == self.points.shape[0] else 2

    @cached_property
    def dofs(self) -> NDArray[np.int32]:
        """Nodes of every cell, (T, 4 | 10)."""
        dofs, count = cell_dofs(self.cells, self.points.shape[0], self.order)
        if count != self._n_nodes:
            raise StoreError(
                f"{self._store.path}: /leadfield/nodal has {self._n_nodes} nodes, the mesh {count}"
            )
        return dofs

    @cached_property
    def node_points(self) -> NDArray[np.float64]:
        """Coordinates of the nodes, (D, 3) m: vertices, then edge midpoints."""
        return node_points(self.points, self.cells, self.order)

    def polarity_of(self, configuration: int | str | ArrayLike) -> NDArray[np.int8]:
        """Return the polarity (E,) of a row number, a text or a polarity vector."""
        if isinstance(configuration, str):
            return parse_configuration(configuration, self._store.contact_names)
        if np.ndim(configuration) == 0:
            row = self._store.checked_row(int(np.asarray(configuration)))
            stored: NDArray[np.int8] = self._store.polarity[row]
            return stored
        return _as_polarity(configuration, len(self._store.contact_names))

    def currents_of(self, configuration: int | str | ArrayLike) -> NDArray[np.float64]:
        """Return the contact currents (E,) A for a unit drive."""
        polarity = self.polarity_of(configuration)
        row = self._row_of(polarity)
        if row is not None:
            stored: NDArray[np.float64] = self._store.current[row]
            return stored
        drive = self._store.record("settings")["drive"]
        driven = contact_currents(
            polarity[None],
            self._store.admittance,
            mode=drive["mode"],
            fractions=drive["fractions"],
            names=self._store.contact_names,
        )
        row_of_one: NDArray[np.float64] = driven[0]
        return row_of_one

    def nodal(self, configuration: int | str | ArrayLike) -> NDArray[np.float64]:
        """Return the potential (D,) V at all nodes."""
        currents = self.currents_of(configuration)
        total = np.zeros(self._n_nodes)
        for contact in np.flatnonzero(currents):
            total += currents[contact] * self._lead_field(int(contact))
        return total

    def potential(
        self, configuration: int | str | ArrayLike, points: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the potential (N,) V at points (N, 3) m; NaN outside the tissue."""
        cell, barycentric = self._locator.locate(points)
        values = self.nodal(configuration)[None]
        found: NDArray[np.float64] = interpolate(values, self.dofs, cell, barycentric, self.order)[
            0
        ]
        return found

    def lead_fields(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return all lead fields (E, N) V/A at points (N, 3) m; NaN outside the tissue."""
        cell, barycentric = self._locator.locate(points)
        nodal = self._store.array("/leadfield/nodal")
        return interpolate(nodal, self.dofs, cell, barycentric, self.order)

    @cached_property
    def _locator(self) -> CellLocator:
        return CellLocator(self.points, self.cells)

    @property
    def _n_nodes(self) -> int:
        self._require_fields()
        return self._store.size("D")

    def _lead_field(self, contact: int) -> NDArray[np.float32]:
        """Read one lead field; rows are kept, because neighbours in a session share contacts."""
        if contact not in self._rows:
            self._rows[contact] = self._store.lead_field(contact)
        return self._rows[contact]

    def _row_of(self, polarity: NDArray[np.int8]) -> int | None:
        ids = self._store.ids
        wanted = int(configuration_ids(polarity[None])[0])
        row = int(np.searchsorted(ids, wanted))
        return row if row < ids.size and ids[row] == wanted else None

    def _array(self, name: str) -> NDArray[Any]:
        self._require_fields()
        return self._store.array(name)

    def _require_fields(self) -> None:
        if not self._store.has_fields:
            raise StoreError(
                f"{self._store.path}: a slim store: it has no mesh and no nodal fields"
            )


def _as_polarity(values: ArrayLike, contacts: int) -> NDArray[np.int8]:
    given = np.asarray(values)
    if given.shape != (contacts,) or not np.isin(given, (-1, 0, 1)).all():
        raise ConfigurationError(f"a polarity needs {contacts} values of -1, 0 or 1, not {given}")
    return given.astype(np.int8)
