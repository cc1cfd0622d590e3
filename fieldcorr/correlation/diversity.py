"""How much r tells apart: how many directions the fields differ in, and left from right."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import configuration_ids

BLOCK_ROWS = 65536
MIRROR_SHARE = 0.25
"""Contacts are mirrors if they lie within this share of the least contact distance of it."""


@dataclass(frozen=True)
class Diversity:
    """What r tells apart.

    ``dimension`` is the participation ratio of the embedding's principal values: the number of
    directions, were they all of one size. ``mirrors`` is how many configurations lie on the left
    alone and have a mirror on the right, ``mirror_median`` and ``mirror_least`` what r is between
    the two; None where there is none.
    """

    dimension: float
    mirrors: int
    mirror_median: float | None
    mirror_least: float | None


def diversity(
    embedding: NDArray[np.float64], polarity: NDArray[np.int8], positions: NDArray[np.float64]
) -> Diversity:
    """Return how many directions the fields differ in, and r of left-right mirrors.

    ``embedding`` (K, R) and ``polarity`` (K, E) are of configurations in canonical order,
    ``positions`` (E, 3) of the contacts.
    """
    r = mirror_correlations(embedding, polarity, positions)
    dimension = participation_ratio(embedding)
    if not r.size:
        return Diversity(dimension, 0, None, None)
    return Diversity(dimension, int(r.size), float(np.median(r)), float(r.min()))


def participation_ratio(embedding: NDArray[np.float64]) -> float:
    """Return (sum of values)^2 / sum of squared values, of the values of Z'Z for rows Z (K, R)."""
    total = np.zeros((embedding.shape[1],) * 2)
    for start in range(0, len(embedding), BLOCK_ROWS):
        part = embedding[start : start + BLOCK_ROWS]
        total += part.T @ part
    return float(np.trace(total) ** 2 / np.sum(total**2))


def mirror_correlations(
    embedding: NDArray[np.float64], polarity: NDArray[np.int8], positions: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return r of each configuration on the left alone with its mirror on the right.

    Others say little: a bipole across the cord is its own mirror with the signs exchanged.
    """
    partner = mirrored_contacts(positions)
    if partner is None:
        return np.empty(0)
    left = positions[:, 0]
    is_left = np.flatnonzero(~np.any(polarity[:, left <= left[partner]], axis=1))
    ids = configuration_ids(polarity)
    mirrored = configuration_ids(polarity[np.ix_(is_left, partner)])
    row = np.minimum(np.searchsorted(ids, mirrored), len(ids) - 1)
    is_there = ids[row] == mirrored
    r: NDArray[np.float64] = np.einsum(
        "ij,ij->i", embedding[is_left[is_there]], embedding[row[is_there]]
    )
    return r


def mirrored_contacts(positions: NDArray[np.float64]) -> NDArray[np.int64] | None:
    """Return the contact (E,) at the mirror place of each, None if one has none.

    The mirror is the sagittal plane through the middle of the contacts (E, 3).
    """
    if len(positions) < 2:
        return None
    middle = (positions[:, 0].min() + positions[:, 0].max()) / 2
    image = positions * [-1.0, 1.0, 1.0] + [2.0 * middle, 0.0, 0.0]
    apart = np.linalg.norm(image[:, None] - positions, axis=2)
    least = np.linalg.norm(positions[:, None] - positions, axis=2)
    limit = MIRROR_SHARE * least[~np.eye(len(positions), dtype=bool)].min()
    if apart.min(axis=1).max() > limit:
        return None
    return np.asarray(apart.argmin(axis=1), dtype=np.int64)
