"""How far r of all pairs of configurations moves between two discretisations."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from fieldcorr.drive import contact_currents
from study_parts.variants import Result

FloatArray = NDArray[np.float64]
BLOCK = 256  # rows of r compared at a time


@dataclass(frozen=True)
class Spread:
    """Statistics of |delta r|."""

    maximum: float
    p99: float
    median: float


def up_to_three(contacts: int) -> NDArray[np.int8]:
    """Return all polarities (3600 for 16 contacts) with two or three actives of both signs."""
    rows = []
    for active in (2, 3):
        for chosen in combinations(range(contacts), active):
            for signs in product((-1, 1), repeat=active):
                if len(set(signs)) == 2:
                    row = np.zeros(contacts, dtype=np.int8)
                    row[list(chosen)] = signs
                    rows.append(row)
    return np.array(rows)


def embedding(result: Result, polarity: NDArray[np.int8], mode: str) -> FloatArray:
    """Return unit rows (K, E) whose products are r."""
    currents = contact_currents(polarity, result.admittance, mode=mode)
    values, vectors = np.linalg.eigh(result.gram)
    rows = currents @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    return np.asarray(rows / np.linalg.norm(rows, axis=1)[:, None])


def spread(a: Result, b: Result, polarity: NDArray[np.int8], mode: str) -> Spread:
    """Compare r of all pairs of two results."""
    first, second = embedding(a, polarity, mode), embedding(b, polarity, mode)
    off = np.concatenate(list(_differences(first, second)))
    p99, median = np.percentile(off, [99.0, 50.0])
    return Spread(float(off.max()), float(p99), float(median))


def _differences(first: FloatArray, second: FloatArray) -> Iterator[FloatArray]:
    """Yield |delta r| of the pairs above the diagonal, block of rows by block of rows."""
    count = len(first)
    for low in range(0, count, BLOCK):
        high = min(count, low + BLOCK)
        off = np.abs(first[low:high] @ first.T - second[low:high] @ second.T)
        yield off[np.arange(count) > np.arange(low, high)[:, None]]
