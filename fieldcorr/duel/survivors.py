"""The ranked set that an engine returns: a frozen table, best first, that iterates as rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Survivor:
    """One arm of the set.

    The confidence interval is estimate +- radius; ``count`` is n_b, the (fractional) number of
    comparisons that the arm has taken part in, directly or through its correlations.
    """

    arm: int
    estimate: float
    count: float
    radius: float


@dataclass(frozen=True, eq=False)
class Survivors:
    """Arms still in the set, best first; every array is (M,). A slice is a smaller table."""

    arm: NDArray[np.int64]
    estimate: NDArray[np.float64]
    count: NDArray[np.float64]
    radius: NDArray[np.float64]

    def __len__(self) -> int:
        return int(self.arm.size)

    def __iter__(self) -> Iterator[Survivor]:
        return (self[rank] for rank in range(len(self)))

    def find(self, arm: int) -> Survivor | None:
        """Return the row of an arm, None if it is not in the set."""
        ranks = np.flatnonzero(self.arm == arm)
        return self[int(ranks[0])] if ranks.size else None

    @overload
    def __getitem__(self, rank: int) -> Survivor: ...

    @overload
    def __getitem__(self, rank: slice) -> "Survivors": ...

    def __getitem__(self, rank: int | slice) -> "Survivor | Survivors":
        """Return the arm at a rank, 0 is the best, or the table of a slice."""
        numbers = self.estimate[rank], self.count[rank], self.radius[rank]
        if isinstance(rank, slice):
            return Survivors(self.arm[rank], *numbers)
        return Survivor(int(self.arm[rank]), *map(float, numbers))

    @classmethod
    def ranked(
        cls,
        active: NDArray[np.bool_],
        estimate: NDArray[np.float64],
        count: NDArray[np.float64],
        radius: NDArray[np.float64],
    ) -> "Survivors":
        """Rank the active arms by estimate, then by count, then by number; arrays (K,)."""
        arm = np.flatnonzero(active)
        return cls.sorted(arm, estimate[arm], count[arm], radius[arm])

    @classmethod
    def sorted(
        cls,
        arm: NDArray[np.int64],
        estimate: NDArray[np.float64],
        count: NDArray[np.float64],
        radius: NDArray[np.float64],
    ) -> "Survivors":
        """Rank some arms by estimate, then by count, then by number; arrays (n,)."""
        order = np.lexsort((arm, -count, -estimate))
        return cls(arm[order], estimate[order], count[order], radius[order])
