"""How large elements are, and how they are drawn out along the cord.

What flows in: the table ``[mesh.sizes]`` and where the array lies. What flows out: a map between
model coordinates and the coordinates gmsh works in, and size formulas in gmsh's language.

All compartments are cylinders along z, and far from the array the field changes slowly along z. So
gmsh works in a space whose z axis is compressed away from the array: elements with even sides there
are up to ``end_stretch`` times longer than wide in the model, at a third of the number.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats

SIZE_KEYS = ("rim_mm", "growth", "cord_mm", "end_mm", "far_mm")
_TRANSITION_MM = 15.0  # over which the stretch rises to its end value, in compressed z
_END_GROWTH = 0.15  # of the size along the cord, from cord_mm towards end_mm


@dataclass(frozen=True)
class MeshSizes:
    """Edge lengths in mm that the builder aims at.

    Attributes
    ----------
    rim_mm
        At the rims of the contacts.
    growth
        Growth of the edge length per unit of distance from a rim.
    cord_mm
        In cord, CSF and dura around the array.
    end_mm
        In the same tissues far from the array, across the cord.
    far_mm
        At the surface of the torso.
    stretch, end_stretch
        Length over width of the elements, near the array and at the ends of the model.
    """

    rim_mm: float = 0.05
    growth: float = 0.4
    cord_mm: float = 1.0
    end_mm: float = 2.0
    far_mm: float = 30.0
    stretch: float = 1.0
    end_stretch: float = 3.0

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            if not (np.isfinite(value) and value > 0):
                raise MeshError(f"mesh sizes: {key} = {value:g} must be above 0")
        if self.end_stretch < self.stretch:
            raise MeshError(
                f"mesh sizes: end_stretch = {self.end_stretch:g} is below stretch = "
                f"{self.stretch:g}"
            )

    @classmethod
    def of(cls, table: Any, **changes: float) -> "MeshSizes":
        """Return the sizes of a model's table ``[mesh.sizes]``, with some of them changed."""
        if isinstance(table, cls):
            return replace(table, **changes)
        return replace(cls(**{key: getattr(table, key) for key in SIZE_KEYS}), **changes)


@dataclass(frozen=True)
class Stretch:
    """The map between z of the model and the compressed z of the mesh generator, in mm.

    Around ``centre_mm`` the slope dz/dzeta is ``near`` up to ``reach_mm``; it rises linearly to
    ``far`` over 15 mm of zeta and stays.
    """

    centre_mm: float
    reach_mm: float
    near: float
    far: float

    def to_model(self, zeta: NDArray[np.float64]) -> Floats:
        """Return z of the model for compressed coordinates (N,)."""
        outside = np.maximum(np.abs(zeta) - self.reach_mm / self.near, 0.0)
        rise = np.minimum(outside, _TRANSITION_MM)
        extra = rise**2 / (2 * _TRANSITION_MM) + (outside - rise)
        z = self.near * np.abs(zeta) + (self.far - self.near) * extra
        result: Floats = self.centre_mm + np.sign(zeta) * z
        return result

    def to_generator(self, z_mm: float) -> float:
        """Return the compressed coordinate of ``z_mm``, by bisection on the monotone map."""
        low, high = sorted((0.0, (z_mm - self.centre_mm) / self.near))
        for _ in range(100):
            middle = (low + high) / 2
            if float(self.to_model(np.array([middle]))[0]) < z_mm:
                low = middle
            else:
                high = middle
        return (low + high) / 2


def bulk_size_formula(
    sizes: MeshSizes, *, reach: float, half_width: float, half_depth: float, torso_mm: float
) -> str:
    """Return the size away from the rims as a formula of x, y, z in gmsh's language.

    With s the size on the axis, which grows from ``cord_mm`` at ``|z| = reach`` to ``end_mm``, and
    rho the distance from the dura's ellipse:  h = min(s + g max(rho, 0), far_mm), where g makes h
    reach ``far_mm`` at the torso's surface.
    """
    mean = float(np.sqrt(half_width * half_depth))
    slope = max(sizes.far_mm - sizes.cord_mm, 0.0) / max(torso_mm - mean, 1e-9)
    along = f"({sizes.cord_mm!r}+{_END_GROWTH}*{_positive(f'(Fabs(z)-{reach!r})')})"
    axis = _smaller(along, repr(max(sizes.end_mm, sizes.cord_mm)))
    level = f"Sqrt((x/{half_width!r})^2+(y/{half_depth!r})^2)"
    grown = f"({axis}+{min(slope, sizes.growth)!r}*{_positive(f'({mean!r}*({level}-1))')})"
    return _smaller(grown, repr(max(sizes.far_mm, sizes.cord_mm)))


def _positive(term: str) -> str:
    return f"(({term}+Fabs({term}))/2)"


def _smaller(a: str, b: str) -> str:
    return f"(({a}+{b}-Fabs({a}-{b}))/2)"
