"""Potential and electric field anywhere in a mesh, from values at its nodes.

The potential of an insulated body is defined up to a constant. Everything that evaluates the
potential of a configuration (lead field, store, pictures, exports) takes it from :class:`Volume`,
whose zero is the mean over the compared region, as fields are compared; where the outer boundary is
grounded the potential is absolute, and zero is the ground. Lead fields themselves, in V/A, are kept
as they were solved: for currents that sum to zero the difference is a constant.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.elements.locate import Located
from fieldcorr.elements.nodes import basis
from fieldcorr.elements.space import Space

MEAN_IS_ZERO = "mean over the compared region"
GROUND_IS_ZERO = "grounded outer boundary"

GROUNDED_SHARE = 1e-3
"""A body is grounded when equal contact voltages drive more than this share of the largest entry
of Y: an insulated one has 1e-9, the solver's rounding, a grounded torso of 150 mm radius 0.6."""

FIBRE_STEP_M = 1e-3
"""Step of the second difference along the cord: the internodal distance of a 10 um fibre."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodalField:
    """A potential (D,) V, or several (E, D), given at the nodes of a space."""

    space: Space
    values: NDArray[np.floating]

    def potential(self, where: Located | ArrayLike) -> Floats:
        """Return the potential, (N,) or (E, N) V, at points (N, 3) m; NaN outside the mesh."""
        place = self._located(where)
        return self._combine(place, basis(place.barycentric[place.inside], self.space.order))

    def electric_field(self, where: Located | ArrayLike) -> Floats:
        """Return E = -grad phi, (N, 3) or (E, N, 3) V/m, at points (N, 3) m; NaN outside."""
        place = self._located(where)
        inside = place.inside
        slopes = self.space.gradients(place.cell[inside], place.barycentric[inside])
        return -self._combine(place, slopes)

    def activating(self, points: ArrayLike) -> Floats:
        """Return (phi(z + h) - 2 phi(z) + phi(z - h)) / h^2, (N,) or (E, N) V/m2, h = 1 mm.

        The activating function of a fibre along z, at points (N, 3) m; NaN where one is outside.
        """
        shift = np.array([0.0, 0.0, FIBRE_STEP_M])
        ahead, here, behind = (
            self.potential(np.asarray(points) + s * shift) for s in (1.0, 0.0, -1.0)
        )
        return (ahead - 2.0 * here + behind) / FIBRE_STEP_M**2

    def _located(self, where: Located | ArrayLike) -> Located:
        return where if isinstance(where, Located) else self.space.locate(where)

    def _combine(self, place: Located, table: Floats) -> Floats:
        """Sum nodal values times a table (n, nodes of a cell, ...) at the n points inside."""
        nodes = self.space.cell_dofs[place.cell[place.inside]]
        rows = self.values.reshape(-1, self.values.shape[-1])
        out = np.full((len(rows), place.cell.size, *table.shape[2:]), np.nan)
        for found, values in zip(out, rows, strict=True):
            found[place.inside] = np.einsum("nk,nk...->n...", values[nodes], table)
        return out.reshape(*self.values.shape[:-1], *out.shape[1:])


@dataclass(frozen=True, eq=False)
class Volume:
    """The lead fields of an array in the whole body, and with them the field of any currents.

    ``lead_field(contact)`` gives one lead field (D,) V/A at all nodes of ``space``. The compared
    region has samples ``points`` (N, 3) m with ``weight`` (N,) m3 and lead fields ``potential``
    (E, N) V/A. ``admittance`` (E, E) S tells whether the body is grounded.
    """

    space: Space
    lead_field: Callable[[int], NDArray[np.floating]]
    points: Floats
    weight: Floats
    potential: Floats
    admittance: Floats

    @cached_property
    def zero(self) -> str:
        """Where the potential of a configuration is zero, in words."""
        common = np.abs(self.admittance.sum(axis=1)).max()
        is_grounded = common > GROUNDED_SHARE * np.abs(self.admittance).max()
        return GROUND_IS_ZERO if is_grounded else MEAN_IS_ZERO

    def mean(self, values: Floats) -> Floats:
        """Return the weighted mean (...) of samples (..., N) over the compared region."""
        mean: Floats = values @ self.weight / self.weight.sum()
        return mean

    def of_currents(self, currents: Floats) -> NodalField:
        """Return the field of contact currents (E,) A that sum to zero."""
        shift = self.mean(self.potential) @ currents if self.zero == MEAN_IS_ZERO else 0.0
        total = np.full(self.space.n_dofs, -float(shift))
        for contact in np.flatnonzero(currents):
            total += currents[contact] * self.lead_field(int(contact))
        return NodalField(self.space, total)
