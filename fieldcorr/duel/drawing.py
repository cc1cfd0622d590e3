"""Electrode arrays as text: two configurations side by side, for a terminal.

Rostral is up and the patient's left is on the left, as seen from behind. An anode stands in square
brackets, a cathode in round ones, so signs differ in shape and need no colour.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fieldcorr.layout import CASE, array_axes

SAME_M = 1e-3
"""Contacts closer than this along an axis stand in one row or column, if none hides another."""


def draw_array(
    polarity: NDArray[np.int8], names: Sequence[str], positions: NDArray[np.float64]
) -> list[str]:
    """Return the array as lines of equal width, a contact called "case" below it.

    ``polarity`` (E,): -1 cathode, 0 off, +1 anode; ``positions`` (E, 3), m: x to
    the patient's left, z rostral.
    """
    paddle = [e for e, name in enumerate(names) if name != CASE]
    left, rostral = array_axes(positions[paddle])
    columns, rows = _places(-left, -rostral)
    width = max(len(names[e]) for e in paddle)
    cells = [[" " * (width + 3)] * (columns.max() + 1) for _ in range(rows.max() + 1)]
    for place, e in enumerate(paddle):
        cells[rows[place]][columns[place]] = _cell(names[e], int(polarity[e]), width)
    lines = [" ".join(row) for row in cells]
    for e, name in enumerate(names):
        if name == CASE:
            lines.append(_cell(name, int(polarity[e]), len(CASE)).center(len(lines[0])))
    return lines


def draw_pair(left: Sequence[str], right: Sequence[str], titles: tuple[str, str]) -> str:
    """Return two drawings side by side under their titles."""
    width = max(len(line) for line in (*left, titles[0])) + 6
    head = [titles[0].ljust(width) + titles[1], ""]
    body = [a.ljust(width) + b for a, b in zip(left, right, strict=True)]
    return "\n".join(line.rstrip() for line in (*head, *body))


def _cell(name: str, sign: int, width: int) -> str:
    text = name.rjust(width)
    return {0: f" {text}  ", 1: f"[{text}+]", -1: f"({text}-)"}[sign]


def _places(
    across: NDArray[np.float64], down: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the column and row (n,) of contacts, no two in the same place."""
    same = SAME_M
    while same > 1e-9:
        columns, rows = _levels(across, same), _levels(down, same)
        if len(set(zip(columns.tolist(), rows.tolist(), strict=True))) == len(across):
            return columns, rows
        same /= 2.0
    return np.zeros(len(across), dtype=np.int64), np.arange(len(across))  # all at one point


def _levels(values: NDArray[np.float64], same: float) -> NDArray[np.int64]:
    """Return the rank of each value among groups whose neighbours are at most ``same`` apart."""
    order = np.argsort(values, kind="stable")
    ranks = np.zeros(len(values), dtype=np.int64)
    ranks[order[1:]] = np.cumsum(np.diff(values[order]) > same)
    return ranks
