"""Fields of any configuration, from the mesh and nodal lead fields that a store carries.

The potential is linear in the contact currents, so it is the sum of the lead fields of the contacts
that deliver current; nothing is solved again and the finite-element side is not needed.
"""

from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import checked_polarity, parse_configuration
from fieldcorr.drive import contact_currents
from fieldcorr.elements import NodalField, Space, Volume
from fieldcorr.errors import StoreError

if TYPE_CHECKING:
    from fieldcorr.store.reader import Store

FARTHEST_M = 1e6
"""No mesh of a body has a vertex farther out than this."""


@dataclass(frozen=True, eq=False)
class StoredMesh:
    """The mesh of a store, as :class:`fieldcorr.elements.Space` takes it."""

    points: NDArray[np.float64]
    cells: NDArray[np.int32]
    cell_tags: NDArray[np.int32]
    tissues: tuple[str, ...]


class FieldReader:
    """Fields of an open store."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    @cached_property
    def volume(self) -> Volume:
        """The lead fields in the whole body; mesh and samples are checked here."""
        store = self._store
        if not store.has_fields:
            raise StoreError(f"{store.path}: a slim store: it has no mesh and no nodal fields")
        names = ("points", "weight", "potential")
        points, weight, potential = (store.array(f"/leadfield/{name}") for name in names)
        if not 0.0 < weight.sum() < np.inf:
            raise StoreError(f"{store.path}: /leadfield/weight has no mean")
        # Lead fields are kept, because neighbours in a session share contacts.
        lead_field = cache(store.lead_field)
        return Volume(self._space(), lead_field, points, weight, potential, store.admittance)

    def polarity_of(self, configuration: int | str | ArrayLike) -> NDArray[np.int8]:
        """Return the polarity (E,) of a row number, a text or a polarity vector."""
        if isinstance(configuration, str):
            return parse_configuration(configuration, self._store.contact_names)
        if np.ndim(configuration) == 0:
            row = self._store.checked_row(int(np.asarray(configuration)))
            stored: NDArray[np.int8] = self._store.polarity[row]
            return stored
        return checked_polarity(configuration, len(self._store.contact_names), ndim=1)

    def currents_of(self, configuration: int | str | ArrayLike) -> NDArray[np.float64]:
        """Return the contact currents (E,) A for a unit drive."""
        store, polarity = self._store, self.polarity_of(configuration)
        row = store.row_of_polarity(polarity)
        if row >= 0:
            stored: NDArray[np.float64] = store.current[row]
            return stored
        drive = store.record("settings")["drive"]
        driven: NDArray[np.float64] = contact_currents(
            polarity[None],
            store.admittance,
            mode=drive["mode"],
            fractions=drive["fractions"],
            names=store.contact_names,
        )[0]
        return driven

    def field_of(self, configuration: int | str | ArrayLike) -> NodalField:
        """Return potential and electric field of a configuration for a unit drive."""
        return self.volume.of_currents(self.currents_of(configuration))

    def lead_fields(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return all lead fields (E, N) V/A at points (N, 3) m; NaN outside the tissue."""
        nodal = self._store.array("/leadfield/nodal")
        return NodalField(self.volume.space, nodal).potential(points)

    def _space(self) -> Space:
        """Check the mesh, so that no kernel meets an index or a number that the file made up."""
        store = self._store
        points, cells = store.array("/mesh/points"), store.array("/mesh/cells")
        if not (np.abs(points) <= FARTHEST_M).all():
            raise StoreError(f"{store.path}: /mesh/points has a vertex that is nowhere in a body")
        if cells.size and not (cells.min() >= 0 and cells.max() < len(points)):
            raise StoreError(f"{store.path}: /mesh/cells points outside /mesh/points")
        tissues = tuple(bytes(name).decode() for name in store.array("/mesh/tissues"))
        mesh = StoredMesh(points, cells, store.array("/mesh/tags"), tissues)
        nodes = store.size("D")
        space = Space(mesh, 1 if nodes == len(points) else 2)
        if space.n_dofs != nodes:
            raise StoreError(
                f"{store.path}: /leadfield/nodal has {nodes} nodes, the mesh {space.n_dofs}"
            )
        return space
