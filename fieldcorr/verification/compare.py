"""How far a computed field is from the true one, and the table of what was found.

The shape of a field is judged by RDM, its size by lnMAG. Potentials of an insulated body are known
up to a constant, which :func:`without_mean` removes from both before they are compared.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from fieldcorr.verification._checks import FloatArray


def norm(values: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the weighted L2 norm sqrt(sum_n w_n v_n^2) of samples (N,)."""
    weights = np.ones(len(values)) if weight is None else weight
    return float(np.sqrt(np.sum(weights * values**2)))


def without_mean(values: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Return samples (N,) less their weighted mean."""
    return values - np.average(values, weights=weight)


def rdm(a: FloatArray, b: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the relative difference measure, || a/|a| - b/|b| ||, between 0 and 2.

    ``weight`` (N,) is the volume of each sample (N,); equal volumes when left out.
    """
    return norm(a / norm(a, weight) - b / norm(b, weight), weight)


def lnmag(a: FloatArray, b: FloatArray, weight: FloatArray | None = None) -> float:
    """Return the logarithm of the magnitude ratio, ln(|a| / |b|), of samples (N,)."""
    return float(np.log(norm(a, weight) / norm(b, weight)))


@dataclass(frozen=True)
class Comparison:
    """One figure of the accuracy table: what was reached, and what has to be.

    ``order`` and ``dofs`` are the order of the elements and the number of nodes. ``reached`` is an
    error that has to be at most ``target``, or a convergence order that may differ from ``theory``
    by ``target``; without a target the figure is there for comparison only.
    """

    case: str
    mesh: str
    quantity: str
    order: int
    dofs: int
    reached: float
    target: float | None = None
    theory: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the target is reached; True where there is none."""
        off = self.reached if self.theory is None else self.reached - self.theory
        return self.target is None or abs(off) <= self.target

    def cells(self) -> tuple[str, ...]:
        """Return the texts of the columns of :data:`HEAD`."""
        if self.theory is not None:
            target, reached = f"{self.theory:g} ± {self.target:g}", f"{self.reached:.2f}"
        else:
            target = "" if self.target is None else f"{self.target:.0e}"
            reached = f"{self.reached:.1e}"
        mark = "" if self.target is None else ("yes" if self.is_met else "NO")
        dofs = f"{self.dofs:,}".replace(",", " ")
        return self.case, self.mesh, f"P{self.order}", dofs, self.quantity, target, reached, mark


HEAD = ("case", "mesh", "elements", "dofs", "quantity", "target", "reached", "met")


def markdown_table(comparisons: Iterable[Comparison]) -> str:
    """Return comparisons as a Markdown table."""
    lines = [HEAD, ("---",) * len(HEAD), *(comparison.cells() for comparison in comparisons)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
