"""The parametric anatomy: nested elliptic cylinders along the cord's axis, all lengths in mm.

Model axes: x left, y dorsal, z rostral; the origin is the centre of the dural sac. The ellipses of
a :class:`Geometry` are known to lie inside each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from fieldcorr.model._base import Distance, Length, Offset, SourcedTable, Table

if TYPE_CHECKING:
    from fieldcorr.model.device import Device
    from fieldcorr.model.tables import ArrayTable

FloatArray = NDArray[np.float64]

OUTLINE_POINTS = 720
"""Points at which an outline is looked at: every half degree."""
NESTING = (
    ("torso", "vertebra"),
    ("vertebra", "canal"),
    ("canal", "dura"),
    ("sac", "cord"),
    ("cord", "grey-left"),
    ("cord", "grey-right"),
)
"""Pairs of an outer and an inner outline. Dura and sac cannot touch."""


class Misfit(ValueError):
    """Parts that do not fit into each other, with the parts."""

    def __init__(
        self,
        message: str,
        geometry: "Geometry",
        array: "ArrayTable | None" = None,
        device: "Device | None" = None,
    ) -> None:
        super().__init__(message)
        self.geometry, self.array, self.device = geometry, array, device


@dataclass(frozen=True)
class Ellipse:
    """Cross-section of a compartment, in mm: centre (left, dorsal) and half axes."""

    left: float
    dorsal: float
    half_width: float
    half_depth: float

    def level(self, points: FloatArray) -> FloatArray:
        """Return ``((x - x0) / a)^2 + ((y - y0) / b)^2`` at points (..., 2): below 1 inside."""
        x = (points[..., 0] - self.left) / self.half_width
        y = (points[..., 1] - self.dorsal) / self.half_depth
        return np.asarray(x * x + y * y)

    def outline(self, count: int = OUTLINE_POINTS) -> FloatArray:
        """Return ``count`` points (count, 2) of the outline."""
        angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
        x = self.left + self.half_width * np.cos(angle)
        y = self.dorsal + self.half_depth * np.sin(angle)
        return np.stack([x, y], axis=-1)

    def contains(self, other: "Ellipse") -> bool:
        """Tell whether ``other`` lies strictly inside, at every half degree of its outline."""
        return bool(np.all(self.level(other.outline()) < 1.0))

    def nearest(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the signed distance (n,) of points (n, 2), inside above 0, and where (n, 2)."""
        outline = self.outline(4 * OUTLINE_POINTS)
        apart = np.linalg.norm(points[:, None] - outline, axis=2)
        place = apart.argmin(axis=1)
        sign = np.where(self.level(points) < 1.0, 1.0, -1.0)
        return sign * apart[np.arange(len(points)), place], outline[place]


class Torso(SourcedTable):
    """Circular cylinder of muscle and everything else, far around the spine."""

    radius_mm: Length
    length_mm: Length
    offset_dorsal_mm: Offset = 0.0
    """Centre of the torso, dorsal of the dural sac's centre."""


class Vertebra(SourcedTable):
    """Elliptic column of bone around the canal."""

    width_mm: Length
    depth_mm: Length
    offset_dorsal_mm: Offset = 0.0

    def ellipse(self) -> Ellipse:
        """Return the cross-section."""
        return Ellipse(0.0, self.offset_dorsal_mm, self.width_mm / 2, self.depth_mm / 2)


class Canal(Vertebra):
    """Vertebral canal, filled with epidural fat."""


class Sac(SourcedTable):
    """Inner size of the dural sac, and the dura around it."""

    width_mm: Length
    depth_mm: Length
    dura_thickness_mm: Length


class Cord(SourcedTable):
    """Elliptic cord; its dorsal surface lies ``dorsal_csf_mm`` below the inner dura."""

    width_mm: Length
    depth_mm: Length
    offset_left_mm: Offset = 0.0
    dorsal_csf_mm: Distance


class Grey(SourcedTable):
    """Two elliptic columns of grey matter, left and right of the cord's centre."""

    column_width_mm: Length
    column_depth_mm: Length
    column_offset_mm: Length


class Geometry(Table):
    """The nested compartments; see :meth:`ellipses`."""

    torso: Torso
    vertebra: Vertebra
    canal: Canal
    sac: Sac
    cord: Cord
    grey: Grey

    @property
    def cord_dorsal_mm(self) -> float:
        """Dorsal coordinate of the cord's centre: sac depth / 2 - CSF - cord depth / 2."""
        return self.sac.depth_mm / 2 - self.cord.dorsal_csf_mm - self.cord.depth_mm / 2

    def ellipses(self) -> dict[str, Ellipse]:
        """Return every compartment's cross-section, from the outermost inwards."""
        sac, cord, dura = self.sac, self.cord, self.sac.dura_thickness_mm
        return {
            "torso": Ellipse(
                0.0, self.torso.offset_dorsal_mm, self.torso.radius_mm, self.torso.radius_mm
            ),
            "vertebra": self.vertebra.ellipse(),
            "canal": self.canal.ellipse(),
            "dura": Ellipse(0.0, 0.0, sac.width_mm / 2 + dura, sac.depth_mm / 2 + dura),
            "sac": Ellipse(0.0, 0.0, sac.width_mm / 2, sac.depth_mm / 2),
            "cord": Ellipse(
                cord.offset_left_mm, self.cord_dorsal_mm, cord.width_mm / 2, cord.depth_mm / 2
            ),
            "grey-left": self._column(+1.0),
            "grey-right": self._column(-1.0),
        }

    def _column(self, side: float) -> Ellipse:
        grey = self.grey
        return Ellipse(
            self.cord.offset_left_mm + side * grey.column_offset_mm,
            self.cord_dorsal_mm,
            grey.column_width_mm / 2,
            grey.column_depth_mm / 2,
        )

    @model_validator(mode="after")
    def _nested(self) -> "Geometry":
        ellipses = self.ellipses()
        for outer, inner in NESTING:
            if not ellipses[outer].contains(ellipses[inner]):
                reach = -ellipses[outer].nearest(ellipses[inner].outline())[0].min()
                raise Misfit(
                    f"the {inner} ({_size(ellipses[inner])}) does not lie inside the {outer} "
                    f"({_size(ellipses[outer])}): it reaches {max(reach, 0.0):.2f} mm beyond"
                    f"{self._mend(outer, inner)}",
                    self,
                )
        if self.grey.column_offset_mm <= self.grey.column_width_mm / 2:
            raise ValueError(
                f"the grey columns overlap: grey.column_offset_mm = {self.grey.column_offset_mm:g} "
                f"is not more than half of grey.column_width_mm = {self.grey.column_width_mm:g}"
            )
        return self

    def changed(self, table: str, key: str, value: float) -> "Geometry":
        """Return the geometry with one value changed; whether it is still nested is not checked."""
        inner = getattr(self, table).model_copy(update={key: value})
        return self.model_copy(update={table: inner})

    def _mend(self, outer: str, inner: str) -> str:
        """Name the key of the outer compartment that would hold the inner one, or say nothing."""
        keys = ("radius_mm",) if outer == "torso" else ("width_mm", "depth_mm")
        found = []
        for key in keys:
            now = getattr(getattr(self, outer), key)

            def fits(value: float, key: str = key) -> bool:
                ellipses = self.changed(outer, key, value).ellipses()
                return ellipses[outer].contains(ellipses[inner])

            value = nearest_that_fits(fits, now, 2.0 * now)
            if value is not None:
                found.append((value / now, f"; geometry.{outer}.{key} = {value:g} would hold it"))
        return min(found)[1] if found else f"; geometry.{outer} must be larger both ways"


def nearest_that_fits(fits: Callable[[float], bool], now: float, limit: float) -> float | None:
    """Return the value nearest to ``now``, on the way to ``limit``, that fits; None if none does.

    It is rounded to a tenth, towards ``limit``.
    """
    if not fits(limit):
        return None
    bad, good = now, limit
    while abs(good - bad) > 1e-3:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    rounded = float(np.ceil(10.0 * good) if limit > now else np.floor(10.0 * good)) / 10.0
    return rounded if fits(rounded) else good


def _size(ellipse: Ellipse) -> str:
    return (
        f"{2 * ellipse.half_width:g} x {2 * ellipse.half_depth:g} mm "
        f"at left {ellipse.left:g}, dorsal {ellipse.dorsal:g}"
    )
