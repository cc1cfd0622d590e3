"""The three section planes, and where a plane cuts tissues and contacts.

Axial sections are seen from caudal and coronal ones from dorsal, so the patient's left is on the
left in both; sagittal ones are seen from the patient's left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.elements.space import TissueMesh

FloatArray = NDArray[np.float64]
AXES = ("left", "dorsal", "rostral")
"""Where the model's x, y and z point to."""
NAME_ROOM_M = 6e-4
"""A tissue is named in a section where a point of it is this far from its borders."""
_FACES = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
_OPPOSITE = {"left": "right", "dorsal": "ventral", "rostral": "caudal"}


@dataclass(frozen=True)
class Plane:
    """A section plane.

    ``normal``, ``across`` and ``up`` are the model axes (0 left, 1 dorsal, 2 rostral) out of the
    picture, along it and up; ``reversed`` if ``across`` grows to the left of the picture.
    """

    name: str
    normal: int
    across: int
    up: int
    reversed: bool

    def points(self, across: FloatArray, up: FloatArray, at: float) -> FloatArray:
        """Return the points (len(up) * len(across), 3) m of a grid in the plane, row by row."""
        grid = np.empty((len(up), len(across), 3))
        grid[..., self.normal] = at
        grid[..., self.across] = across[None, :]
        grid[..., self.up] = up[:, None]
        return grid.reshape(-1, 3)

    def flat(self, points: FloatArray) -> FloatArray:
        """Return the picture coordinates (..., 2) of points (..., 3)."""
        return points[..., [self.across, self.up]]

    @property
    def corner_marks(self) -> tuple[str, str]:
        """What lies at the picture's left and right side, as one letter each."""
        low, high = _OPPOSITE[AXES[self.across]], AXES[self.across]
        ends = (high, low) if self.reversed else (low, high)
        return ends[0][0].upper(), ends[1][0].upper()


PLANES = {
    plane.name: plane
    for plane in (
        Plane("axial", normal=2, across=0, up=1, reversed=True),
        Plane("sagittal", normal=0, across=1, up=2, reversed=False),
        Plane("coronal", normal=1, across=0, up=2, reversed=True),
    )
}


def tissue_outlines(mesh: TissueMesh, *, axis: int, at: float) -> FloatArray:
    """Return the segments (M, 2, 3) m in which a plane cuts the borders of tissues.

    The plane is where coordinate ``axis`` is ``at`` m. The surface of the mesh is a border too.
    """
    height = mesh.points[:, axis] - at
    above = height[mesh.cells] > 0.0
    cut = np.flatnonzero(above.any(axis=1) & ~above.all(axis=1))
    faces = np.sort(mesh.cells[cut][:, _FACES].reshape(-1, 3), axis=1)
    # A face inside a tissue has two cells of that tissue, a border at most one on each side.
    owned = np.column_stack([faces, np.repeat(mesh.cell_tags[cut], 4)])
    owned, count = np.unique(owned, axis=0, return_counts=True)
    borders = np.unique(owned[count == 1, :3], axis=0)
    return _cut_polygons(mesh.points[borders], height[borders])


def roomy_places(tags: NDArray[np.int64], room: float) -> Iterator[tuple[int, int, int]]:
    """Yield (tag, row, column) of the place in a grid of tags that is farthest from its border.

    Of places that are equally far, to a step, it is the middle one: a strip is named half-way.
    Tags without a place more than ``room`` steps inside are left out, and negative ones.
    """
    from scipy.ndimage import distance_transform_edt

    for tag in np.unique(tags[tags >= 0]):
        depth = distance_transform_edt(np.pad(tags == tag, 1))[1:-1, 1:-1]
        deepest = np.argwhere(depth >= depth.max() - 1.0)
        row, column = deepest[len(deepest) // 2]
        if depth[row, column] > room:
            yield int(tag), int(row), int(column)


def outline_cut(outline: FloatArray, *, axis: int, at: float) -> FloatArray:
    """Return the cut (2, 3) of a flat convex outline (n, 3), (0, 3) where there is none."""
    return _cut_polygons(outline[None], outline[None, :, axis] - at).reshape(-1, 3)


def _cut_polygons(polygons: FloatArray, height: FloatArray) -> FloatArray:
    """Return the segments (M, 2, 3) in which convex polygons (N, n, 3) meet the plane.

    ``height`` (N, n) is that of the corners above the plane; a corner on it counts as below. So
    none or two of the edges of a polygon cross the plane.
    """
    following, next_height = np.roll(polygons, -1, axis=1), np.roll(height, -1, axis=1)
    crossed = (height > 0.0) != (next_height > 0.0)
    start, stop = polygons[crossed], following[crossed]
    share = height[crossed] / (height[crossed] - next_height[crossed])
    ends: FloatArray = start + share[:, None] * (stop - start)
    return ends.reshape(-1, 2, 3)
