"""How large elements are, and how they are drawn out along the cord.

All compartments are cylinders along z, and far from the array the field changes slowly along z. So
gmsh works in a space whose z axis is compressed away from the array: elements with even sides there
are up to ``end_stretch`` times longer than wide in the model, at a third of the number.

Where two curved surfaces lie close together, facets must be small enough to stay clear of the
neighbour. A facet of edge h lies up to s = h^2 / (8 R) inside a surface of radius R. The facets of
an outer surface cut towards the inner one at distance g, so s <= g / 2 there; those of the inner
surface retreat at first and come back by 2 s / 3 when volumes are corrected, so s <= 3 g / 2.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fieldcorr.errors import MeshError
from fieldcorr.mesh.data import Floats
from fieldcorr.model import NESTING, Ellipse, SizesTable
from fieldcorr.model.geometry import OUTLINE_POINTS

_TRANSITION_MM = 15.0  # over which the stretch rises to its end value, in compressed z
_END_GROWTH = 0.15  # of the size along the cord, from cord_mm towards end_mm
_OUTER_SHARE = 0.5  # of the gap that a facet of the outer surface may take
_INNER_SHARE = 1.5  # and one of the inner surface, before volumes are corrected


@dataclass(frozen=True)
class MeshSizes:
    """Edge lengths in mm that the builder aims at: those of a model's table ``[mesh.sizes]``.

    ``stretch`` and ``end_stretch`` are length over width of the elements, near the array and at the
    ends of the model.
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
            object.__setattr__(self, key, _checked_size(key, value))
        if self.end_stretch < self.stretch:
            raise MeshError(
                f"mesh sizes: end_stretch = {self.end_stretch:g} is below stretch = "
                f"{self.stretch:g}"
            )

    @classmethod
    def of(cls, table: "MeshSizes | SizesTable", **changes: float) -> "MeshSizes":
        """Return the sizes of a model's table ``[mesh.sizes]``, with some of them changed."""
        values = table.model_dump() if isinstance(table, SizesTable) else asdict(table)
        return cls(**{**values, **changes})


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
        return np.asarray(self.centre_mm + np.sign(zeta) * z)

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


def largest_edges(ellipses: Mapping[str, Ellipse], corners: Floats) -> dict[str, float]:
    """Return name -> largest edge in mm; ``corners`` (N, 2) of the paddle lie inside the canal."""
    outlines = {name: ellipse.outline() for name, ellipse in ellipses.items()}
    limits = dict.fromkeys(ellipses, np.inf)

    def restrict(name: str, others: Floats, share: float) -> None:
        gaps = cdist(outlines[name], others).min(axis=1)
        edge = np.sqrt(8.0 * share * np.min(_radii(ellipses[name]) * gaps))
        limits[name] = min(limits[name], float(edge))

    for outer, inner in NESTING:
        restrict(outer, outlines[inner], _OUTER_SHARE)
        restrict(inner, outlines[outer], _INNER_SHARE)
    restrict("canal", corners, _OUTER_SHARE)
    tied = min(limits["dura"], limits["sac"])
    return {**limits, "dura": tied, "sac": tied}


def _checked_size(key: str, value: object) -> float:
    """Return a size as a float; refuse what is no number above 0."""
    try:
        size = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise MeshError(f"mesh sizes: {key} = {value!r} is not a number") from None
    if not (np.isfinite(size) and size > 0):
        raise MeshError(f"mesh sizes: {key} = {size:g} must be above 0")
    return size


def _positive(term: str) -> str:
    return f"(({term}+Fabs({term}))/2)"


def _smaller(a: str, b: str) -> str:
    return f"(({a}+{b}-Fabs({a}-{b}))/2)"


def _radii(ellipse: Ellipse) -> Floats:
    """Return the radius of curvature (N,) at the points of the outline."""
    angle = np.linspace(0.0, 2.0 * np.pi, OUTLINE_POINTS, endpoint=False)
    a, b = ellipse.half_width, ellipse.half_depth
    return np.asarray(((a * np.sin(angle)) ** 2 + (b * np.cos(angle)) ** 2) ** 1.5 / (a * b))
