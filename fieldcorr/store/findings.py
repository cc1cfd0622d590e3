"""What a check reports.

What flows in: nothing. What flows out: :class:`Finding`.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong: where, and what."""

    where: str
    problem: str

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"
