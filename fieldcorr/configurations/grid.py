"""The array as the rules see it: which contacts are neighbours, how far apart, which mirror which.

All of it follows from the positions, however the array lies; the stimulator's case takes no part.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConfigurationError
from fieldcorr.layout import CASE, array_axes


@dataclass(frozen=True, eq=False)
class ContactGrid:
    """The contacts of an array in contact order, with the columns that they form.

    Parameters
    ----------
    names : sequence of str, length E
        Names; ``"case"`` is the stimulator's case.
    positions_m : ndarray, shape (E, 3)
        Centres, m: x to the left, y dorsal, z rostral. The array may be shifted and tilted.
    """

    names: tuple[str, ...]
    positions_m: NDArray[np.float64]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        positions = np.asarray(self.positions_m, dtype=np.float64)
        object.__setattr__(self, "positions_m", positions)
        if positions.shape != (len(self.names), 3):
            raise ConfigurationError(
                f"{len(self.names)} contacts have positions of shape {positions.shape}"
            )
        if not np.isfinite(positions).all():
            raise ConfigurationError("the positions of the contacts must be finite")

    @property
    def size(self) -> int:
        """Number of contacts E, the case included."""
        return len(self.names)

    @cached_property
    def on_array(self) -> NDArray[np.int64]:
        """Numbers of the contacts that are not the case."""
        return np.array([e for e, name in enumerate(self.names) if name != CASE], dtype=np.int64)

    @cached_property
    def distance_m(self) -> NDArray[np.float64]:
        """Distance between the centres of each two contacts, (E, E); 0 for the case."""
        apart = self.positions_m[:, None] - self.positions_m[None, :]
        distance = np.linalg.norm(apart, axis=2)
        outside = [e for e, name in enumerate(self.names) if name == CASE]
        distance[outside] = 0.0
        distance[:, outside] = 0.0
        return np.asarray(distance)

    @cached_property
    def neighbours(self) -> NDArray[np.bool_]:
        """Which contacts are next to each other on the array, (E, E).

        In a column: the next one. In adjacent columns: those not further along the array than half
        a pitch, so the two halfway ones of a shifted column, or the one beside.
        """
        near = np.zeros((self.size, self.size), dtype=np.bool_)
        along = np.zeros(self.size)
        along[self.on_array] = self._plane[1]
        step = np.abs(along[:, None] - along)
        for column in self.columns:
            near[column[:-1], column[1:]] = True
        pitch = step[near].min(initial=np.inf)  # infinite if no column has two contacts
        for pair in pairwise(self.columns):
            near[np.ix_(*pair)] = step[np.ix_(*pair)] <= pitch / 2 + self._tolerance / 4
        return near | near.T

    @cached_property
    def guards(self) -> tuple[tuple[int, int] | None, ...]:
        """For each contact the ones before and after it in its column; None at the ends."""
        found: list[tuple[int, int] | None] = [None] * self.size
        for column in self.columns:
            for before, e, after in zip(column, column[1:], column[2:], strict=False):
                found[e] = before, after
        return tuple(found)

    @cached_property
    def mirror(self) -> NDArray[np.int64]:
        """Number of each contact's mirror image about the array's midline, (E,).

        Raises
        ------
        ConfigurationError
            If a contact has none.
        """
        mirror = np.arange(self.size)
        across, along = self._plane
        middle = (across.max() + across.min()) / 2
        for n, e in enumerate(self.on_array):
            apart = np.hypot(across + across[n] - 2 * middle, along - along[n])
            if apart.min() > self._tolerance:
                raise ConfigurationError(
                    f"symmetric: contact {self.names[e]!r} has no mirror image about the midline"
                )
            mirror[e] = self.on_array[np.argmin(apart)]
        return mirror

    @cached_property
    def _plane(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Coordinates of the array's contacts across and along it, m."""
        return array_axes(self.positions_m[self.on_array])

    @cached_property
    def _tolerance(self) -> float:
        """A quarter of the least distance between two contacts, m."""
        distance = self.distance_m[np.ix_(self.on_array, self.on_array)]
        return float(distance[distance > 0].min(initial=np.inf) / 4)

    @cached_property
    def columns(self) -> list[list[int]]:
        """The contacts of each column from rostral to caudal, columns from right to left."""
        across, along = self._plane
        order = np.argsort(across, kind="stable")
        starts = np.diff(across[order], prepend=across[order[:1]]) > self._tolerance
        number = np.empty(len(order), dtype=np.int64)
        number[order] = np.cumsum(starts)
        rank = np.lexsort((-along, number))
        return [
            [int(self.on_array[n]) for n in rank if number[n] == column]
            for column in np.unique(number)
        ]
