"""How large facets may be where two curved surfaces lie close together.

What flows in: the nested ellipses and the corners of the paddle. What flows out: for every ellipse
the largest edge at which its flat facets stay clear of its neighbours.

A facet of edge h lies up to s = h^2 / (8 R) inside a surface of radius R. The facets of an outer
surface cut towards the inner one at distance g, so s <= g / 2 there; those of the inner surface
retreat at first and come back by 2 s / 3 when volumes are corrected, so s <= 3 g / 2.
"""

from collections.abc import Mapping

import numpy as np

from fieldcorr.mesh.data import Floats
from fieldcorr.model import Ellipse

_OUTER_SHARE = 0.5
_INNER_SHARE = 1.5
_SAMPLES = 720

# Pairs of an outer and an inner outline. Dura and sac are meshed alike and cannot touch.
_NESTING = (
    ("torso", "vertebra"),
    ("vertebra", "canal"),
    ("canal", "dura"),
    ("sac", "cord"),
    ("cord", "grey-left"),
    ("cord", "grey-right"),
)


def largest_edges(ellipses: Mapping[str, Ellipse], corners: Floats) -> dict[str, float]:
    """Return name -> largest edge in mm; ``corners`` (N, 2) of the paddle lie inside the canal."""
    outlines = {name: ellipse.outline(_SAMPLES) for name, ellipse in ellipses.items()}
    limits = dict.fromkeys(ellipses, np.inf)

    def restrict(name: str, others: Floats, share: float) -> None:
        gaps = _distances(outlines[name], others)
        edge = np.sqrt(8.0 * share * np.min(_radii(ellipses[name]) * gaps))
        limits[name] = min(limits[name], float(edge))

    for outer, inner in _NESTING:
        restrict(outer, outlines[inner], _OUTER_SHARE)
        restrict(inner, outlines[outer], _INNER_SHARE)
    restrict("canal", corners, _OUTER_SHARE)
    tied = min(limits["dura"], limits["sac"])
    return {**limits, "dura": tied, "sac": tied}


def _radii(ellipse: Ellipse) -> Floats:
    """Return the radius of curvature (N,) at the points of the outline."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SAMPLES, endpoint=False)
    a, b = ellipse.half_width, ellipse.half_depth
    radii: Floats = ((a * np.sin(angle)) ** 2 + (b * np.cos(angle)) ** 2) ** 1.5 / (a * b)
    return radii


def _distances(points: Floats, others: Floats) -> Floats:
    """Return the distance (N,) of each point to the nearest of the others."""
    offsets = points[:, None, :] - others[None, :, :]
    distances: Floats = np.sqrt(np.einsum("ijk,ijk->ij", offsets, offsets)).min(axis=1)
    return distances
