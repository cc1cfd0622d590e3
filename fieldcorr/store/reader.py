"""The store as its consumers see it.

What flows in: the path of a finished store. What flows out: polarities, rows of r, neighbours,
kappa and tau, fields of any configuration. Opening verifies the structure and reads next to
nothing; arrays are read on first use, compared with their recorded digests, and every row of
neighbours is checked before it leaves, so that no compiled kernel ever sees an index that the
file made up. numba and the interpolation are loaded only by the methods that need them.
"""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import ConfigurationError, StoreError
from fieldcorr.store import structure
from fieldcorr.store.file import StoreFile

if TYPE_CHECKING:
    from fieldcorr.correlation.tiles import PackedEmbedding
    from fieldcorr.store.field import FieldReader

_IDENTITY = ("/contacts/name", "/configurations/polarity", "/correlation/embedding")


def open_store(path: str | Path) -> "Store":
    """Open a store for reading; a context manager.

    Any number of processes may read the same store at once. One :class:`Store` may be shared by
    threads; after a fork, open it again.
    """
    return Store(Path(path))


class Store(StoreFile):
    """A finished store, open for reading.

    Parameters
    ----------
    path
        The HDF5 file.

    Notes
    -----
    K is the number of configurations, E of contacts, R the rank of the embedding.
    """

    def __len__(self) -> int:
        """Return the number of configurations K."""
        return self._structure.sizes["K"]

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}: {len(self)} configurations, rank {self.rank})"

    def _repr_html_(self) -> str:
        from fieldcorr.notebook import store_card

        return store_card(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return (open_store, (self.path,))

    # -- what it holds --------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Number of columns R of the embedding."""
        return self._structure.sizes["R"]

    @property
    def has_matrix(self) -> bool:
        """Whether the K x K matrix of r is stored."""
        return "matrix" in self._structure.families

    @property
    def has_fields(self) -> bool:
        """Whether mesh and nodal lead fields are stored (not in a slim store)."""
        return "mesh" in self._structure.families

    @property
    def nnz(self) -> int:
        """Number of stored neighbours, over all rows."""
        return self._structure.sizes["Q"]

    @cached_property
    def hash(self) -> str:
        """Sha256 of what a duel depends on: contacts, configurations and embedding.

        Made from the recorded digests, which are compared with the data when that is read.
        """
        parts = [self._digests.get(name, "") for name in _IDENTITY]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of every axis E."""
        return tuple(self._texts("/contacts/name"))

    @cached_property
    def contact_positions(self) -> NDArray[np.float64]:
        """Centres of the contacts, (E, 3) m."""
        return self._read("/contacts/position")

    @cached_property
    def polarity(self) -> NDArray[np.int8]:
        """(K, E): -1 cathode, 0 off, +1 anode."""
        return self._read("/configurations/polarity")

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """(K,) ternary codes, ascending."""
        return self._read("/configurations/id")

    @cached_property
    def current(self) -> NDArray[np.float64]:
        """(K, E) A that each contact delivers for a unit drive."""
        return self._read("/configurations/current")

    @cached_property
    def embedding(self) -> NDArray[np.float64]:
        """(K, R) unit rows with r_ij = z_i . z_j."""
        return self._read("/correlation/embedding")

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """(E, E) Gram matrix of the lead fields in the compared measure."""
        return self._read("/leadfield/gram")

    @cached_property
    def admittance(self) -> NDArray[np.float64]:
        """(E, E) S."""
        return self._read("/leadfield/admittance")

    # -- configurations ---------------------------------------------------------------------------

    @cached_property
    def texts(self) -> Sequence[str]:
        """Text form of every configuration, such as "0- 5+ 11+"."""
        from fieldcorr.configurations.text import format_configuration

        return [format_configuration(row, self.contact_names) for row in self.polarity]

    def index_of(self, configuration: str | int) -> int:
        """Return the row of a configuration given by its text or by its id."""
        from fieldcorr.configurations.text import configuration_ids, parse_configuration

        wanted = configuration
        if isinstance(wanted, str):
            polarity = parse_configuration(wanted, self.contact_names)
            wanted = int(configuration_ids(polarity[None])[0])
        row = int(np.searchsorted(self.ids, wanted))
        if row == len(self) or self.ids[row] != wanted:
            raise ConfigurationError(f"{self.path}: {configuration!r} is not in this store")
        return row

    # -- correlations -----------------------------------------------------------------------------

    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of configuration i with everyone, (K,)."""
        number = self.checked_row(i)
        row: NDArray[np.float32] = self.rows(number, number + 1)[0]
        return row

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows ``start:stop`` of r, (stop - start, K): from the matrix or the embedding."""
        if self.has_matrix:
            with structure.damage_is_store_error(self.path):
                stored: NDArray[np.float32] = self.dataset("/correlation/matrix")[start:stop]
                return stored
        from fieldcorr.correlation.tiles import correlation_rows

        return correlation_rows(self._packed, start, stop)

    def neighbours(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the neighbours of configuration i, ascending, and their r."""
        return self.neighbour_slice(*self._indptr[self.checked_row(i) : self.checked_row(i) + 2])

    def neighbour_slice(
        self, start: int, stop: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return entries ``start:stop`` of all neighbourhoods, indices checked."""
        with structure.damage_is_store_error(self.path):
            indices: NDArray[np.int64] = self.dataset("/neighbourhoods/indices")[start:stop]
            data: NDArray[np.float32] = self.dataset("/neighbourhoods/data")[start:stop]
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self)):
            raise StoreError(
                f"{self.path}: /neighbourhoods/indices points outside 0..{len(self) - 1}"
            )
        return indices, data

    @property
    def indptr(self) -> NDArray[np.int64]:
        """(K + 1,) row pointers of the neighbourhoods."""
        return self._indptr

    def kappa_tau(self, winner: int, loser: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a duel tells about every configuration: (kappa, tau), each (K,)."""
        from fieldcorr.correlation.update import RowSource

        rows = RowSource(self.row, len(self))  # its scratch space serves one thread
        return rows.kappa_tau(self.checked_row(winner), self.checked_row(loser))

    # -- fields -----------------------------------------------------------------------------------

    def currents_of(self, configuration: int | str | ArrayLike) -> NDArray[np.float64]:
        """Return the currents (E,) A of a configuration: a row, a text, or a polarity vector.

        A configuration that is no row of the store is driven through the stored admittance.
        """
        return self.fields.currents_of(configuration)

    def potential(
        self, configuration: int | str | ArrayLike, points: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the potential (N,) V of a configuration at points (N, 3) m, for a unit drive.

        Zero is the mean over the compared region, as in pictures and exports; with a grounded outer
        boundary the potential is absolute. Interpolated with the finite-element basis; NaN outside
        the tissue.
        """
        return self.fields.field_of(configuration).potential(points)

    def lead_field(self, contact: int) -> NDArray[np.float32]:
        """Return the lead field (D,) V/A of one contact at all nodes."""
        with structure.damage_is_store_error(self.path):
            row: NDArray[np.float32] = self.dataset("/leadfield/nodal")[contact]
        return row

    @cached_property
    def fields(self) -> "FieldReader":
        """Everything that needs the mesh."""
        from fieldcorr.store.field import FieldReader

        return FieldReader(self)

    @cached_property
    def info(self) -> dict[str, Any]:
        """What a person wants to know, as plain values."""
        from fieldcorr.store.info import describe_store

        return describe_store(self)

    @cached_property
    def _packed(self) -> "PackedEmbedding":
        from fieldcorr.correlation.tiles import pack_embedding

        return pack_embedding(self.embedding)

    # -- helpers ----------------------------------------------------------------------------------

    def checked_row(self, i: int) -> int:
        """Return a row number, or say that there is no such row."""
        number = int(i)
        if not 0 <= number < len(self):
            raise ConfigurationError(
                f"{self.path}: no configuration {i}; rows are 0..{len(self) - 1}"
            )
        return number
