"""The lead field as an object: potentials per ampere, and what follows from them when asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr._parallel import run_ranges
from fieldcorr.elements import NodalField, Space, Volume
from fieldcorr.elements.field import FIBRE_STEP_M as FIBRE_STEP_M
from fieldcorr.errors import FieldError
from fieldcorr.fem.reference import window_mass_tensor
from fieldcorr.leadfield import _kernels
from fieldcorr.leadfield.region import ComparedRegion

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh

CELL_BLOCK = 1024
"""Cells per partial sum of a Gram matrix; fixed, so that sums do not depend on threads."""

LINEAR_MEASURES = ("potential", "field", "activating")


@dataclass(frozen=True, eq=False)
class LeadField:
    """Potential per ampere of every contact.

    The lead field of contact a belongs to 1 A that enters at contact a and leaves in equal parts
    through all E contacts (with a grounded outer boundary: through the boundary). For any balanced
    currents I the potential is sum_a I_a phi_a.

    Attributes
    ----------
    contact_names, contact_positions, contact_areas
        E names, (E, 3) m, (E,) m2.
    admittance
        (E, E) S, symmetric: currents = admittance @ voltages.
    nodal
        (E, n_dofs) V/A at all nodes of the space.
    residuals, iterations
        (E,) true relative residuals of the solves; conjugate-gradient steps.
    identities
        Relative defects of the structural identities, see ``compute_lead_field``.
    times
        Seconds per stage.
    """

    contact_names: tuple[str, ...]
    contact_positions: NDArray[np.float64]
    contact_areas: NDArray[np.float64]
    admittance: NDArray[np.float64]
    nodal: NDArray[np.float64]
    space: Space
    region: ComparedRegion
    residuals: NDArray[np.float64]
    iterations: int
    identities: Mapping[str, float]
    times: Mapping[str, float]

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import lead_field_card

        return lead_field_card(self)

    @property
    def order(self) -> int:
        """Order of the elements."""
        return self.space.order

    @property
    def mesh(self) -> "Mesh":
        """The mesh that was solved on."""
        return cast("Mesh", self.space.mesh)

    @property
    def points(self) -> NDArray[np.float64]:
        """Sample points (N, 3) m: the centroids of the region's cells."""
        return self.region.points

    @property
    def weight(self) -> NDArray[np.float64]:
        """Volume weights (N,) m3 of the sample points: cell volume times window."""
        return self.region.weight

    @cached_property
    def potential(self) -> NDArray[np.float64]:
        """Lead fields (E, N) V/A at the sample points, as they were solved."""
        return self._field.potential(self.space.centroids(self.region.cells))

    @cached_property
    def field(self) -> NDArray[np.float64]:
        """Electric field E = -grad phi, (E, N, 3) V/m per A, at the sample points."""
        return self._field.electric_field(self.space.centroids(self.region.cells))

    def potential_at(self, points: ArrayLike) -> NDArray[np.float64]:
        """Return the lead fields (E, N) V/A at ``points`` (N, 3) m; NaN outside the mesh."""
        return self._field.potential(points)

    @property
    def _field(self) -> NodalField:
        return NodalField(self.space, self.nodal)

    @cached_property
    def volume(self) -> Volume:
        """The field of any contact currents, in the whole body.

        ``lead_field.volume.of_currents(currents)`` gives potential and electric field anywhere.
        The potential is zero in the mean over the compared region; with a grounded outer boundary
        it is absolute.
        """
        samples = (self.points, self.weight, self.potential)
        return Volume(self.space, self.nodal.__getitem__, *samples, self.admittance)

    @cached_property
    def activating(self) -> NDArray[np.float64]:
        """Second difference along the cord, (E, N) V/m2 per A, at the sample points.

        (phi(z + h) - 2 phi(z) + phi(z - h)) / h^2 with h = FIBRE_STEP_M, the activating function of
        a fibre along z.
        """
        return self._field.activating(self.points)

    @cached_property
    def gram(self) -> NDArray[np.float64]:
        """Gram matrix (E, E) of the mean-removed potentials, with the exact FE mass matrix.

        G_ab = integral w (phi_a - m_a)(phi_b - m_b), m_a = integral w phi_a / integral w.
        """
        dofs = self.space.cell_dofs[self.region.cells]
        # Pack the region's nodes: the kernel then walks through memory once.
        used, packed = np.unique(dofs, return_inverse=True)
        numbers = packed.reshape(dofs.shape).astype(np.int32)
        values = np.ascontiguousarray(self.nodal[:, used].T)
        mass = window_mass_tensor(self.order)
        # Removing the mean first keeps the digits that a difference of large sums would lose.
        shares = np.einsum("nk,kij->ni", self.region.moments, mass)
        values -= np.einsum("ni,nia->a", shares, values[numbers]) / float(self.weight.sum())
        blocks = -(-len(numbers) // CELL_BLOCK)
        partial = np.zeros((blocks, values.shape[1], values.shape[1]))
        moments = np.ascontiguousarray(self.region.moments)
        arrays = values, numbers, moments, mass
        run_ranges(_kernels.weighted_gram, blocks, *arrays, CELL_BLOCK, partial)
        gram: NDArray[np.float64] = partial.sum(axis=0)
        return 0.5 * (gram + gram.T)

    def gram_of(self, measure: str) -> NDArray[np.float64]:
        """Return the Gram matrix (E, E) of a linear measure.

        "potential" uses the exact mass matrix; "field" and "activating" the weighted sum over the
        sample points. The mean is removed from the potential and from each component of the others.
        """
        if measure == "potential":
            return self.gram
        if measure == "field":
            return sum_of_grams(np.moveaxis(self.field, 2, 0), self.weight)
        if measure == "activating":
            return sum_of_grams(self.activating[None], self.weight)
        raise FieldError(f"measure {measure!r}: must be one of {', '.join(LINEAR_MEASURES)}")


def sum_of_grams(samples: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted Gram matrix (E, E) of mean-removed samples (components, E, N)."""
    total = np.zeros((samples.shape[1], samples.shape[1]))
    for component in samples:
        # einsum without BLAS: one fixed order of summation, whatever the number of threads.
        mean = np.einsum("an,n->a", component, weight) / weight.sum()
        centred = component - mean[:, None]
        total += np.einsum("an,bn,n->ab", centred, centred, weight, optimize=False)
    return 0.5 * (total + total.T)
