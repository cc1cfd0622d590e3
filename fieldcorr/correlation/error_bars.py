"""The discretisation error of r, pair by pair, from a second, coarser discretisation."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SCALE = 0.55
"""Error of the finer discretisation over its difference from one with sizes about doubled."""

NOISE_SHARE = 0.6
"""How much of the typical difference of two configurations counts for their pair, beside the pair's
own. Both numbers were measured: see "How sure is r" in the documentation."""


@dataclass(frozen=True, eq=False)
class ErrorBars:
    """Error bars of r = Z Z' from the unit rows Y of a coarser discretisation, both (K, R).

    A single difference d_ij = z_i . z_j - y_i . y_j may vanish by chance where the error does not.
    Each pair is therefore given what its two configurations show with everyone besides:
    bar_ij^2 = SCALE^2 (d_ij^2 + NOISE_SHARE^2 (1 - r_ij^2) (e_i^2 + e_j^2)), e_i^2 the mean of
    d_ik^2 over all k. Near r = 1 an error of the fields is of second order in r: hence the factor.
    """

    fine: Floats
    coarse: Floats

    @cached_property
    def typical(self) -> Floats:
        """e_i: root of the mean square over all k of d_ik, (K,)."""
        count = len(self.fine)
        z, y = self.fine, self.coarse
        # sum_k (z_i . z_k - y_i . y_k)^2 through the R x R moments, without K x K differences.
        own, cross, other = (
            np.einsum("kr,ks->rs", a, b) / count for a, b in ((z, z), (z, y), (y, y))
        )
        square = (
            np.einsum("kr,rs,ks->k", z, own, z)
            - 2.0 * np.einsum("kr,rs,ks->k", z, cross, y)
            + np.einsum("kr,rs,ks->k", y, other, y)
        )
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))

    def row(self, i: int) -> Floats:
        """Return the error bars (K,) of r of configuration i with everyone; 0 with itself."""
        r = np.clip(np.einsum("kr,r->k", self.fine, self.fine[i]), -1.0, 1.0)
        shown = r - np.einsum("kr,r->k", self.coarse, self.coarse[i])
        noise = NOISE_SHARE**2 * (1.0 - r**2) * (self.typical[i] ** 2 + self.typical**2)
        bars: Floats = SCALE * np.sqrt(shown**2 + noise)
        bars[i] = 0.0
        return bars
