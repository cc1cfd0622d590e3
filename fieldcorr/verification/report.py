"""One line per verified quantity, and the table they make.

What flows in: :class:`Finding` objects. What flows out: markdown.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one comparison found.

    Attributes
    ----------
    case, mesh, quantity
        Names for the table.
    order, dofs
        Order of the elements and number of nodes.
    reached
        The error, or the convergence order, that was found.
    target
        What it has to reach; None for lines that are there for comparison.
    theory
        For convergence orders: the value that ``reached`` may differ from by ``target``.
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
        """Return the texts of the table's columns."""
        if self.theory is not None:
            target, reached = f"{self.theory:g} ± {self.target:g}", f"{self.reached:.2f}"
        else:
            target = "" if self.target is None else f"{self.target:.0e}"
            reached = f"{self.reached:.1e}"
        mark = "" if self.target is None else ("yes" if self.is_met else "NO")
        dofs = f"{self.dofs:,}".replace(",", " ")
        return self.case, self.mesh, f"P{self.order}", dofs, self.quantity, target, reached, mark


HEAD = ("case", "mesh", "elements", "dofs", "quantity", "target", "reached", "met")


def markdown_table(findings: Iterable[Finding]) -> str:
    """Return the findings as a markdown table."""
    lines = [HEAD, ("---",) * len(HEAD), *(finding.cells() for finding in findings)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
