"""The parametric anatomy: nested elliptic cylinders along the cord's axis, all lengths in mm.

Model axes: x left, y dorsal, z rostral; the origin is the centre of the dural sac. The ellipses of
a :class:`Geometry` are known to lie inside each other.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from fieldcorr.model._base import Distance, Length, Offset, SourcedTable, Table

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
                raise ValueError(
                    f"the {inner} ({_size(ellipses[inner])}) does not lie inside the {outer} "
                    f"({_size(ellipses[outer])})"
                )
        if self.grey.column_offset_mm <= self.grey.column_width_mm / 2:
            raise ValueError(
                f"the grey columns overlap: grey.column_offset_mm = {self.grey.column_offset_mm:g} "
                f"is not more than half of grey.column_width_mm = {self.grey.column_width_mm:g}"
            )
        return self


def _size(ellipse: Ellipse) -> str:
    return (
        f"{2 * ellipse.half_width:g} x {2 * ellipse.half_depth:g} mm "
        f"at left {ellipse.left:g}, dorsal {ellipse.dorsal:g}"
    )
