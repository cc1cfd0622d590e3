"""Arrays over configurations that are not listed: rows are made when they are asked for."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import StoreError


class LazyRows(Sequence[Any]):
    """Rows 0 ... ``count`` - 1 of an array that is never made as a whole.

    ``make`` turns row numbers (N,) into their values (N, ...). An int gives one row, a slice or an
    array of numbers gives several.
    """

    def __init__(self, count: int, make: Callable[[NDArray[np.int64]], Any]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        """Return the number of rows K."""
        return self._count

    def __getitem__(self, rows: object) -> Any:
        """Make one row, or several."""
        if isinstance(rows, slice):
            return self._make(np.arange(*rows.indices(self._count)))
        numbers = np.asarray(rows)
        if numbers.dtype.kind not in "iu":
            raise IndexError(f"rows are chosen by whole numbers, not by {rows!r:.40}")
        chosen = np.where(numbers < 0, numbers + self._count, numbers)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < self._count):
            raise IndexError(f"row {rows!r:.40} is outside 0..{self._count - 1}")
        found = self._make(np.atleast_1d(chosen))
        return found[0] if numbers.ndim == 0 else found

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(self._count))

    def __array__(self, *_: object, **__: object) -> NDArray[np.generic]:
        """Refuse to become an array: it would take gigabytes that nobody asked for."""
        raise StoreError(f"{self._count:,} rows are not made at once: choose some, as in [:100]")
