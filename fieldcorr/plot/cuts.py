"""Cuts of a tetrahedral mesh by planes across an axis.

What flows in: points, cells and tissue tags, or flat outlines, and a plane. What flows out: line
segments: where the plane meets interfaces of tissues, the surface of the body, and contacts. They
are exact cuts of the mesh, not contours of a pixel image.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])


def tissue_outlines(
    points: FloatArray,
    cells: NDArray[np.int32],
    tags: NDArray[np.int32],
    *,
    axis: int,
    at: float,
) -> FloatArray:
    """Return the segments (M, 2, 3) in which a plane cuts the borders of tissues.

    Parameters
    ----------
    points, cells, tags
        (P, 3) m, (T, 4), (T,): the mesh and its tissues. The surface of the mesh is a border too.
    axis, at
        The plane: coordinate ``axis`` equals ``at``, m.
    """
    height = points[:, axis] - at  # a vertex on the plane counts as below it
    above = height[cells] > 0.0
    cut = np.flatnonzero(above.any(axis=1) & ~above.all(axis=1))
    faces = np.sort(cells[cut][:, _FACES].reshape(-1, 3), axis=1)
    owner = np.repeat(tags[cut], 4)
    crossed = (height[faces] > 0.0).any(axis=1) & ~(height[faces] > 0.0).all(axis=1)
    borders = _borders(faces[crossed], owner[crossed])
    return _cut_triangles(points[borders], height[borders])


def outline_cuts(outlines: FloatArray, *, axis: int, at: float) -> list[FloatArray]:
    """Return the cut (2, 3) of each flat convex outline (E, 4, 3); (0, 3) where there is none."""
    cuts = []
    for outline in outlines:
        triangles = outline[[[0, 1, 2], [0, 2, 3]]]
        ends = _cut_triangles(triangles, triangles[..., axis] - at).reshape(-1, 3)
        cuts.append(_farthest_pair(ends))
    return cuts


def _borders(faces: NDArray[np.int32], owner: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the faces (sorted vertices) that two tissues share, or that belong to one cell."""
    order = np.lexsort((faces[:, 2], faces[:, 1], faces[:, 0]))
    faces, owner = faces[order], owner[order]
    same = (faces[1:] == faces[:-1]).all(axis=1)
    first = np.concatenate([[True], ~same])[: len(faces)]
    starts = np.flatnonzero(first)
    last = np.concatenate([starts[1:], [len(faces)]])[: len(starts)] - 1
    is_border = (starts == last) | (owner[starts] != owner[last])
    return np.asarray(faces[starts[is_border]])


def _cut_triangles(triangles: FloatArray, height: NDArray[Any]) -> FloatArray:
    """Return the segments (M, 2, 3) in which crossed triangles (N, 3, 3) meet the plane."""
    above = height > 0.0
    crossed = above.any(axis=1) & ~above.all(axis=1)
    triangles, height, above = triangles[crossed], height[crossed], above[crossed]
    # One vertex lies alone on its side; the segment joins the two edges that leave it.
    lone_above = above.sum(axis=1) == 1
    apex = np.where(lone_above, above.argmax(axis=1), (~above).argmax(axis=1))
    rows = np.arange(len(triangles))
    ends = []
    for step in (1, 2):
        other = (apex + step) % 3
        share = height[rows, apex] / (height[rows, apex] - height[rows, other])
        start, stop = triangles[rows, apex], triangles[rows, other]
        ends.append(start + share[:, None] * (stop - start))
    return np.stack(ends, axis=1)


def _farthest_pair(ends: FloatArray) -> FloatArray:
    """Return the two points farthest apart, (2, 3); nothing of nothing."""
    if not len(ends):
        return ends
    apart = np.linalg.norm(ends[:, None] - ends, axis=2)
    return ends[list(np.unravel_index(int(apart.argmax()), apart.shape))]
