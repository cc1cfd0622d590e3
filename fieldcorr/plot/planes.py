"""The three section planes: what lies across, what lies up, and how they are labelled.

What flows in: the name of a plane. What flows out: :class:`Plane`, which maps points of the model
to the picture and back. Axial sections are seen from caudal and coronal ones from dorsal, so the
patient's left is on the left in both; sagittal ones are seen from the patient's left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConfigurationError

FloatArray = NDArray[np.float64]
AXES = ("left", "dorsal", "rostral")
"""Where the model's x, y and z point to."""
_OPPOSITE = {"left": "right", "dorsal": "ventral", "rostral": "caudal"}


@dataclass(frozen=True)
class Plane:
    """A section plane.

    Attributes
    ----------
    name : str
    normal, across, up : int
        Model axes (0 left, 1 dorsal, 2 rostral): out of the picture, along it and up.
    reversed : bool
        Whether the axis ``across`` grows to the left of the picture.
    seen_from : str
    """

    name: str
    normal: int
    across: int
    up: int
    reversed: bool
    seen_from: str

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
        Plane("axial", normal=2, across=0, up=1, reversed=True, seen_from="caudal"),
        Plane("sagittal", normal=0, across=1, up=2, reversed=False, seen_from="the left"),
        Plane("coronal", normal=1, across=0, up=2, reversed=True, seen_from="dorsal"),
    )
}


def plane_named(name: str) -> Plane:
    """Return a plane by name."""
    if name not in PLANES:
        raise ConfigurationError(f"plane {name!r} is not one of {', '.join(PLANES)}")
    return PLANES[name]
