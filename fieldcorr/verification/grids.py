"""Graded grid lines for box meshes.

What flows in: the positions where lines must lie and the step wanted there. What flows out: one
ascending array of positions per axis.
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


def graded_line(
    stops: tuple[float, ...],
    fine: dict[float, float],
    *,
    growth: float = 0.5,
    coarse: float = np.inf,
) -> FloatArray:
    """Return grid lines through every stop, with steps min(fine + growth * distance, coarse).

    Between two stops the lines are spaced evenly in the integral of 1 / step, so that the steps
    follow the wish and the last one fits.

    Parameters
    ----------
    stops : ascending tuple of float
        Where lines must lie, the two ends included.
    fine : position -> step
        The steps wanted at some positions.
    growth, coarse : float
        Growth of the step with the distance to a fine position; largest step.
    """
    where = np.array(list(fine))
    wish = np.array(list(fine.values()))
    lines = [np.array(stops[:1])]
    for low, high in pairwise(stops):
        t = np.linspace(low, high, 2001)
        step = np.minimum((wish + growth * np.abs(t[:, None] - where)).min(axis=1), coarse)
        passed = np.concatenate(
            [[0.0], np.cumsum(np.diff(t) * 0.5 * (1 / step[1:] + 1 / step[:-1]))]
        )
        count = max(1, round(float(passed[-1])))
        lines.append(np.interp(np.linspace(0.0, passed[-1], count + 1)[1:], passed, t))
        lines[-1][-1] = high
    return np.concatenate(lines)
