"""The store as its consumers see it.

Opening verifies the structure and reads next to nothing; arrays are read on first use and compared
with their recorded digests. Rows of r and neighbourhoods are read in parts, which have no digest of
their own: every one is checked for what it must be (r_ii = 1, |r| <= 1, neighbours ascending and
above the threshold) before it leaves, so that a lost or blank chunk is an error and no compiled
kernel ever sees an index that the file made up. numba and the interpolation are loaded only by the
methods that need them.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from itertools import pairwise
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.correlation.numbers import real_number, whole_number
from fieldcorr.errors import ConfigurationError, StoreError
from fieldcorr.store.file import StoreFile
from fieldcorr.store.layout import RECORDS
from fieldcorr.store.lazy import LazyRows

if TYPE_CHECKING:
    from fieldcorr.configurations.space import ProductSpace
    from fieldcorr.correlation.ensemble import Ensemble
    from fieldcorr.correlation.error_bars import ErrorBars
    from fieldcorr.correlation.sources import CorrelationSource
    from fieldcorr.correlation.tiles import PackedEmbedding
    from fieldcorr.correlation.whole import WholeSource
    from fieldcorr.store.field import FieldReader

LEVELS = (0.0, 0.3, 0.5, 0.9)
"""Values of r above which ``info`` counts neighbours, in so many rows:"""

SAMPLED_ROWS = 256
WHOLE_ROWS = 4
"""... of configurations that are not listed."""

_IDENTITY = ("/contacts/name", "/configurations/polarity", "/correlation/embedding")
_SWEEP_IDENTITY = ("/sweep/gram", "/sweep/admittance", "/sweep/weight", "/sweep/drive")
_WHOLE_IDENTITY = (
    "/contacts/name",
    "/space/allowed",
    "/space/limits",
    "/leadfield/gram",
    "/leadfield/admittance",
)


def open_store(path: str | Path) -> "Store":
    """Open a store for reading; a context manager.

    Any number of processes may read the same store at once. One :class:`Store` may be shared by
    threads; after a fork, open it again.
    """
    return Store(Path(path))


class Store(StoreFile):
    """A finished store, open for reading: K configurations of E contacts, embedding of rank R."""

    def __len__(self) -> int:
        """Return the number of configurations K."""
        return len(self.space) if self.is_whole else self.size("K")

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}: {len(self)} configurations, rank {self.rank})"

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import store_card

        return store_card(self)

    def __reduce__(self) -> tuple[object, ...]:
        return (open_store, (self.path,))

    # -- what it holds --------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether configurations are defined by rules and not listed: r is computed when asked."""
        return "space" in self.families

    @cached_property
    def rank(self) -> int:
        """Number of columns R of the embedding, or of the one that a listed space would have."""
        if not self.is_whole:
            return self.size("R")
        rank: int = np.linalg.matrix_rank(self.gram - self.gram.mean(axis=0), tol=1e-14)
        return rank

    @property
    def has_matrix(self) -> bool:
        """Whether the K x K matrix of r is stored."""
        return "matrix" in self.families

    @property
    def has_fields(self) -> bool:
        """Whether mesh and nodal lead fields are stored (not in a slim store)."""
        return "mesh" in self.families

    @property
    def has_sweep(self) -> bool:
        """Whether r is the mean over the samples of a sweep, which are stored too."""
        return "sweep" in self.families

    @property
    def nnz(self) -> int:
        """Number of stored neighbours, over all rows."""
        return 0 if self.is_whole else self.size("Q")

    @cached_property
    def hash(self) -> str:
        """Sha256 of what a duel depends on: contacts, configurations, embedding and samples.

        Made from the recorded digests, which are compared with the data when that is read. Where
        configurations are not listed: contacts, space, matrices of the contacts, drive.
        """
        names: tuple[str, ...] = _WHOLE_IDENTITY if self.is_whole else _IDENTITY
        names += _SWEEP_IDENTITY if self.has_sweep else ()
        parts = [self.digests.get(name, "") for name in names]
        if self.is_whole:
            parts.append(json.dumps(self.record("settings")["drive"], sort_keys=True))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    @cached_property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of every axis E."""
        return tuple(self._texts("/contacts/name"))

    @cached_property
    def contact_positions(self) -> NDArray[np.float64]:
        """Centres of the contacts, (E, 3) m."""
        return self.array("/contacts/position")

    @cached_property
    def polarity(self) -> Any:
        """(K, E): -1 cathode, 0 off, +1 anode; lazy rows where configurations are not listed."""
        if self.is_whole:
            return LazyRows(len(self), self.space.polarity)
        return self.array("/configurations/polarity")

    @cached_property
    def ids(self) -> Any:
        """(K,) ternary codes, ascending; lazy as :attr:`polarity`."""
        if self.is_whole:
            from fieldcorr.configurations.text import configuration_ids

            return LazyRows(len(self), lambda rows: configuration_ids(self.space.polarity(rows)))
        return self.array("/configurations/id")

    @cached_property
    def current(self) -> Any:
        """(K, E) A that each contact delivers for a unit drive; lazy as :attr:`polarity`."""
        if self.is_whole:
            circuit = self.source.whole.circuit
            return LazyRows(len(self), lambda rows: circuit.currents(self.space.polarity(rows)))
        return self.array("/configurations/current")

    @cached_property
    def embedding(self) -> NDArray[np.float64]:
        """(K, R) unit rows with r_ij = z_i . z_j; none where configurations are not listed."""
        if self.is_whole:
            raise StoreError(
                f"{self.path}: {len(self):,} configurations are defined by rules: there is no "
                "embedding of them; ask for row, nearest, neighbours(top=) or kappa_tau"
            )
        return self.array("/correlation/embedding")

    @cached_property
    def space(self) -> "ProductSpace":
        """The configurations, where they are defined by rules and not listed."""
        from fieldcorr.configurations.space import checked_space

        return checked_space(self.array("/space/allowed"), self.array("/space/limits"), self.path)

    @cached_property
    def source(self) -> "WholeSource":
        """Where r comes from if configurations are not listed; tables are built at first use."""
        from fieldcorr.correlation.whole import Circuit, Whole, WholeSource

        settings = self.record("settings")
        if settings["measure"]["kind"] == "magnitude":
            raise StoreError(f"{self.path}: |E| has no Gram matrix that could define r")
        drive = settings["drive"]
        circuit = Circuit(self.gram, self.admittance, drive["mode"], drive["fractions"])
        return WholeSource(Whole(self.space, circuit), store=self)

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """(E, E) Gram matrix of the lead fields in the compared measure."""
        return self.array("/leadfield/gram")

    @cached_property
    def admittance(self) -> NDArray[np.float64]:
        """(E, E) S."""
        return self.array("/leadfield/admittance")

    @cached_property
    def impedances(self) -> NDArray[np.float64]:
        """(E, E) ohm between every two contacts while all others float.

        At the rims of the contacts the admittance of a mesh is too large by an error that halves
        with the sizes there. Where there is a companion mesh, of doubled sizes, its part is taken
        away: 2 Y - Y of the companion.
        """
        from fieldcorr.drive import bipole_impedances

        admittance = self.admittance
        if "companion" in self.families:
            admittance = 2.0 * admittance - self.array("/leadfield/companion_admittance")
        return bipole_impedances(admittance)

    def _bipole_range(self) -> list[float]:
        """Return the least and the largest impedance of two contacts, ohm."""
        pairs = self.impedances[np.triu_indices(len(self.contact_names), 1)]
        return [float(pairs.min()), float(pairs.max())]

    @cached_property
    def ensemble(self) -> "Ensemble":
        """The samples of the sweep that r is the mean of."""
        from fieldcorr.correlation.ensemble import Ensemble
        from fieldcorr.correlation.whole import Circuit

        if not self.has_sweep:
            raise StoreError(
                f"{self.path}: has no samples of what is not known exactly: "
                '"fieldcorr precompute --sweep" makes a store that has'
            )
        texts = self._texts("/sweep/drive")
        form = RECORDS["settings"]["drive"]
        drives = [self.parsed(text, "/sweep/drive", form) for text in texts]
        gram, admittance = (self.array(f"/sweep/{name}") for name in ("gram", "admittance"))
        parts = zip(gram, admittance, drives, strict=True)
        circuits = [Circuit(g, y, **drive) for g, y, drive in parts]
        return Ensemble(self.polarity, circuits, self._sample_weights())

    def _sample_weights(self) -> NDArray[np.float64]:
        weight = self.array("/sweep/weight")
        if not ((weight >= 0.0).all() and abs(float(weight.sum()) - 1.0) < 1e-9):
            raise StoreError(f"{self.path}: /sweep/weight is not positive with a sum of 1")
        return weight

    @cached_property
    def _error_bars(self) -> "ErrorBars":
        from fieldcorr.correlation.ensemble import Ensemble
        from fieldcorr.correlation.error_bars import ErrorBars
        from fieldcorr.correlation.whole import Circuit

        if "companion" not in self.families:
            raise StoreError(
                f"{self.path}: has no error bars of r: it was made without a companion mesh, "
                "without an estimate, for the measure |E|, or by a version that kept none"
            )
        if self.is_whole:
            raise StoreError(f"{self.path}: error bars of r need configurations that are listed")
        drive = self.record("settings")["drive"]
        companion = (self.array(f"/leadfield/companion_{n}") for n in ("gram", "admittance"))
        circuits = [Circuit(*pair, **drive) for pair in ((self.gram, self.admittance), companion)]
        return ErrorBars(*Ensemble(self.polarity, circuits, np.full(2, 0.5)).embeddings)

    # -- configurations ---------------------------------------------------------------------------

    @cached_property
    def texts(self) -> Sequence[str]:
        """Text form of every configuration, such as "0- 5+ 11+"; lazy as :attr:`polarity`."""
        from fieldcorr.configurations.text import format_configuration

        def make(rows: NDArray[np.int64]) -> list[str]:
            return [format_configuration(row, self.contact_names) for row in self.polarity[rows]]

        return LazyRows(len(self), make) if self.is_whole else make(np.arange(len(self)))

    def index_of(self, configuration: str | int) -> int:
        """Return the row of a configuration given by its text; a row number stays what it is."""
        if not isinstance(configuration, str):
            return self.checked_row(configuration)
        from fieldcorr.configurations.text import parse_configuration

        row = self.row_of_polarity(parse_configuration(configuration, self.contact_names))
        if row < 0:
            raise ConfigurationError(f"{self.path}: {configuration!r} is not in this store")
        return row

    def row_of_polarity(self, polarity: NDArray[np.int8]) -> int:
        """Return the row of a polarity (E,), -1 if there is none."""
        if self.is_whole:
            return int(self.space.rows(polarity[None])[0])
        from fieldcorr.configurations.text import configuration_ids

        row = int(np.searchsorted(self.ids, code := configuration_ids(polarity[None])[0]))
        return row if row < len(self) and self.ids[row] == code else -1

    def rows_of_ids(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return the rows (N,) of configurations given by their ternary codes (N,)."""
        codes = np.atleast_1d(np.asarray(ids))
        if self.is_whole:
            from fieldcorr.configurations.text import polarities

            rows = self.space.rows(polarities(codes, len(self.contact_names)))
            absent = codes[rows < 0]
        else:
            rows = np.minimum(np.searchsorted(self.ids, codes), len(self) - 1)
            absent = codes[self.ids[rows] != codes]
        if absent.size:
            raise ConfigurationError(f"{self.path}: id {absent[0]} is not in this store")
        return rows

    # -- correlations -----------------------------------------------------------------------------

    def row(self, i: int) -> NDArray[np.float32]:
        """Return r of configuration i with everyone, (K,)."""
        number = self.checked_row(i)
        row: NDArray[np.float32] = self.rows(number, number + 1)[0]
        return row

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return rows ``start:stop`` of r, (stop - start, K): from the matrix or the embedding."""
        first, last = self._checked_range(start, stop)
        if self.is_whole:
            return self.source.rows(range(first, last))
        if not self.has_matrix:
            from fieldcorr.correlation.tiles import correlation_rows

            return correlation_rows(self._packed, first, last)
        r: NDArray[np.float32] = self.part("/correlation/matrix", slice(first, last))
        own = np.arange(last - first)
        # What is no number compares as False.
        if r.size and not (
            r.min() >= -1.0 and r.max() <= 1.0 and (r[own, first + own] == 1.0).all()
        ):
            raise StoreError(
                f"{self.path}: damaged: rows {first} to {last - 1} of /correlation/matrix are not "
                "within [-1, 1] with 1 on the diagonal"
            )
        return r

    def r_error(self, i: int) -> NDArray[np.float32]:
        """Return the discretisation error bars of r of configuration i with everyone, (K,).

        They say how far the mesh may have moved r of the model as it is, and nothing about what is
        not known of the patient: that is :meth:`r_spread`.
        """
        return self._error_bars.row(self.checked_row(i)).astype(np.float32)

    def r_spread(self, i: int) -> NDArray[np.float32]:
        """Return the standard deviation of r of configuration i over the sweep's samples, (K,)."""
        return self.ensemble.spread(self.checked_row(i)).astype(np.float32)

    def neighbours(
        self, i: int, *, top: int | None = None, sure: float | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the neighbours of configuration i, ascending, and their r.

        Those that are stored; where configurations are not listed, all with r > 0. With ``top``
        only so many, those of largest r. With ``sure`` only those whose r is above the store's
        threshold with at least that probability, over the samples of the store's sweep.
        """
        indices, r = self._neighbours(self.checked_row(i), top)
        if sure is None:
            return indices, r
        share = real_number(sure, f"{self.path}: sure", ConfigurationError)
        if not 0.0 <= share <= 1.0:
            raise ConfigurationError(f"{self.path}: sure = {share:g}: must be between 0 and 1")
        kept = self.ensemble.above(i, self.threshold)[indices] >= share - 1e-12
        return indices[kept], r[kept]

    def _neighbours(
        self, number: int, top: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        if not self.is_whole:
            indices, r = self.neighbour_rows(number, number + 1)
        elif top is None:
            r = self.row(number)
            r[number] = 0.0
            indices = np.flatnonzero(r > 0.0)
            r = r[indices]
        else:
            indices, r = self.nearest(number, top)
            indices, r = indices[r > 0.0], r[r > 0.0]
        if top is None:
            return indices, r
        best = np.argsort(-r, kind="stable")[:top]
        ascending = best[np.argsort(indices[best])]
        return indices[ascending], r[ascending]

    def neighbour_rows(
        self, start: int, stop: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the neighbours of rows ``start:stop`` and their r, row after row."""
        first, last = self._checked_range(start, stop)
        entries = slice(int(self.indptr[first]), int(self.indptr[last]))
        indices: NDArray[np.int64] = self.part("/neighbourhoods/indices", entries)
        r: NDArray[np.float32] = self.part("/neighbourhoods/data", entries)
        pointers = self.indptr[first : last + 1] - entries.start
        for row, (begin, end) in enumerate(pairwise(pointers.tolist()), start=first):
            self._verify_neighbours(row, indices[begin:end], r[begin:end])
        return indices, r

    def _verify_neighbours(
        self, row: int, indices: NDArray[np.int64], r: NDArray[np.float32]
    ) -> None:
        """Refuse neighbours of a row that no batch could have written."""
        if not indices.size:
            return
        place, problem = int(indices.searchsorted(row)), ""
        in_range = indices[0] >= 0 and indices[-1] < len(self)
        ascending = in_range and (indices[1:] > indices[:-1]).all()
        if not ascending or row in indices[place : place + 1]:
            problem = (
                f"/neighbourhoods/indices does not ascend in 0..{len(self) - 1}, without itself"
            )
        elif not (r.min() > self.threshold and r.max() <= 1.0):
            problem = f"/neighbourhoods/data is not above {self.threshold:g} and at most 1"
        if problem:
            raise StoreError(f"{self.path}: damaged: {problem} in row {row}")

    def nearest(
        self, configuration: int | str, n: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the n rows of largest r with a configuration, itself left out, best first, and r.

        A row number or a text, which need not be a row of the store. Of equal r the lower row
        comes first.
        """
        from fieldcorr.configurations.text import parse_configuration

        count = whole_number(n, f"{self.path}: nearest", ConfigurationError)
        if not isinstance(configuration, str):
            number = self.checked_row(configuration)
        else:
            polarity = parse_configuration(configuration, self.contact_names)
            number = self.row_of_polarity(polarity)
            if self.is_whole and number < 0:
                return self.source.whole.nearest(polarity, count)
        if self.is_whole:
            return self.source.nearest(number, count)
        r = self.row(number) if number >= 0 else self._r_of(configuration)
        order = np.argsort(-r, kind="stable")
        best = order[order != number][:count]
        return best, r[best]

    def _r_of(self, configuration: int | str) -> NDArray[np.float32]:
        """Return r of every row with a configuration that is none of them, from the Gram matrix."""
        if self.record("settings")["measure"]["kind"] == "magnitude":
            raise ConfigurationError(f"{self.path}: r of |E| is known for the rows of a store only")
        if self.has_sweep:
            from fieldcorr.configurations.text import parse_configuration

            polarity = parse_configuration(str(configuration), self.contact_names)
            rows = self.ensemble.rows_of(polarity)
            return np.asarray(self.ensemble.weight @ rows, dtype=np.float32)
        current = self.currents_of(configuration)
        every, lead = self.current, self.gram @ current
        norms = np.sqrt(np.einsum("ke,ef,kf->k", every, self.gram, every) * (current @ lead))
        return np.asarray(np.clip(every @ lead / norms, -1.0, 1.0), dtype=np.float32)

    def kappa_tau(self, winner: int, loser: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a duel tells about every configuration: (kappa, tau), each (K,)."""
        from fieldcorr.correlation.sources import RowSource

        rows: CorrelationSource = self.source if self.is_whole else RowSource(self.row, len(self))
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
        number = self._checked(contact, len(self.contact_names), "contact")
        row: NDArray[np.float32] = self.part("/leadfield/nodal", slice(number, number + 1))[0]
        return row

    @cached_property
    def fields(self) -> "FieldReader":
        """Everything that needs the mesh."""
        from fieldcorr.store.field import FieldReader

        return FieldReader(self)

    @cached_property
    def info(self) -> dict[str, Any]:
        """Return a summary of the store as plain values."""
        settings, solver = self.record("settings"), self.record("solver")
        return {
            "path": str(self.path),
            "size_bytes": self.path.stat().st_size,
            "format": self.format,
            "hash": self.hash,
            "model": settings["model"],
            "device": settings["device"],
            "contacts": len(self.contact_names),
            "configurations": len(self),
            "rank": self.rank,
            "measure": settings["measure"],
            "drive": settings["drive"],
            "region": settings["region"],
            "sweep": settings.get("sweep"),
            "bipole_ohm": self._bipole_range(),
            "matrix": self.has_matrix,
            "fields": self.has_fields,
            "table_bytes": self.source.whole.table_bytes if self.is_whole else 0,
            "threshold": self.threshold,
            "top_k": self.top_k,
            "neighbours_stored": self.nnz,
            "neighbours_per_row": self._neighbour_counts(),
            "diversity": None if self.is_whole else self._diversity(),
            "solver": settings["solver"],
            "largest_residual": float(np.max(solver["residuals"])),
            "identities": solver["identities"],
            "error_estimate": self.record("error_estimate"),
            **self.record("origin"),
            "run": self.record("run"),
        }

    def _diversity(self) -> dict[str, float | None]:
        from fieldcorr.correlation.diversity import diversity

        arrays = np.asarray(self.embedding), np.asarray(self.polarity)
        return asdict(diversity(*arrays, self.contact_positions))

    def _neighbour_counts(self) -> dict[str, float]:
        """Return the mean number of neighbours above each level, over evenly spread rows."""
        count = WHOLE_ROWS if self.is_whole else min(len(self), SAMPLED_ROWS)
        rows = np.unique(np.linspace(0, len(self) - 1, count).astype(np.int64))
        totals = np.zeros(len(LEVELS))
        for row in rows:
            r = self.row(int(row))
            # The diagonal is 1, above every level: it is no neighbour.
            totals += [np.count_nonzero(r > level) - 1 for level in LEVELS]
        return {
            f"{level:g}": float(total)
            for level, total in zip(LEVELS, totals / rows.size, strict=True)
        }

    @cached_property
    def _packed(self) -> "PackedEmbedding":
        from fieldcorr.correlation.tiles import pack_embedding

        return pack_embedding(self.embedding)

    # -- helpers ----------------------------------------------------------------------------------

    def checked_row(self, i: int) -> int:
        """Return a row number, or say that there is no such row."""
        return self._checked(i, len(self), "configuration")

    def _checked_range(self, start: int, stop: int) -> tuple[int, int]:
        first, last = (self._checked(edge, len(self) + 1, "row") for edge in (start, stop))
        if first > last:
            raise ConfigurationError(f"{self.path}: no rows {start} to {stop}: they end first")
        return first, last

    def _checked(self, value: int, count: int, what: str) -> int:
        """Return a whole number from 0 to ``count`` - 1, of whatever type."""
        try:
            number = index(value)
        except TypeError:
            number = -1
        if not 0 <= number < count:
            raise ConfigurationError(
                f"{self.path}: no {what} {value}; they are numbered 0 to {count - 1}"
            )
        return number
