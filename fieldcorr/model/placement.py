"""Where the paddle lies in the canal, in closed form.

The paddle is a box that is turned (yaw, about y), tilted (pitch, about x) and shifted, then lowered
along y until its least distance from the dura is the gap asked for. All compartments are cylinders
along z, so the distance is that of the box's outline in the x-y plane from the dura's ellipse.
"""

from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from fieldcorr.model.device import Device, Paddle
from fieldcorr.model.geometry import Ellipse, Geometry, Misfit, nearest_that_fits
from fieldcorr.model.tables import ArrayTable

FloatArray = NDArray[np.float64]

LEAST_GAP_MM = 0.1
"""No smaller gap is proposed: the mesh between paddle and dura would be very fine."""


@dataclass(frozen=True, eq=False)
class Placement:
    """The paddle frame in model axes.

    The columns of ``rotation`` (3, 3) are the paddle's left, dorsal and rostral axes, ``centre_mm``
    (3,) is the centre of the face towards the dura, ``corners_mm`` (8, 3) are all corners.
    """

    rotation: FloatArray
    centre_mm: FloatArray
    corners_mm: FloatArray

    def to_model_m(self, points_m: FloatArray) -> FloatArray:
        """Map points (..., 3) from the paddle frame to model axes, m."""
        return np.asarray(points_m @ self.rotation.T + 1e-3 * self.centre_mm)


@dataclass(frozen=True, eq=False)
class Clearance:
    """A least distance in a cross-section: ``distance_mm`` from ``start`` (2,) to ``end`` (2,).

    Below 0 the paddle reaches beyond what it should keep away from.
    """

    distance_mm: float
    start: FloatArray
    end: FloatArray


def place(geometry: Geometry, array: ArrayTable, device: Device) -> Placement:
    """Lay the paddle on the dura; a ValueError that names the key says that it does not fit."""
    placement = lay(geometry, array, device)
    if not np.isfinite(placement.centre_mm[1]):
        raise ValueError(
            f"array.offset_left_mm = {array.offset_left_mm:g}: the paddle lies beside the dural sac"
        )
    _check_inside(placement, geometry, array, device)
    return placement


def lay(geometry: Geometry, array: ArrayTable, device: Device) -> Placement:
    """Lay the paddle on the dura, whether it fits the canal or not.

    Its dorsal coordinate is -inf where it lies beside the dural sac.
    """
    rotation = _rotation(np.deg2rad(array.yaw_degree), np.deg2rad(array.pitch_degree))
    corners = _box(device.paddle) @ rotation.T
    shifted = corners[:, :2] + [array.offset_left_mm, 0.0]
    height = _resting_height(shifted, geometry.ellipses()["dura"], array.gap_to_dura_mm)
    centre = np.array([array.offset_left_mm, height, array.offset_rostral_mm])
    return Placement(rotation, centre, corners + centre)


def to_bone(placement: Placement, geometry: Geometry) -> Clearance:
    """Return the least distance of the paddle from the canal's wall."""
    # The canal is convex: no point of the paddle is nearer to its wall than a corner.
    corners = placement.corners_mm[:, :2]
    distance, wall = geometry.canal.ellipse().nearest(corners)
    least = int(distance.argmin())
    return Clearance(float(distance[least]), corners[least], wall[least])


def to_dura(placement: Placement, geometry: Geometry) -> Clearance:
    """Return the least distance of the paddle from the dura, by its outline's nearest point."""
    share = np.linspace(0.0, 1.0, 81)[:, None]
    pairs = combinations(placement.corners_mm[:, :2], 2)
    points = np.concatenate([share * a + (1.0 - share) * b for a, b in pairs])
    distance, dura = geometry.ellipses()["dura"].nearest(points)
    least = int(np.argmax(distance))  # outside the dura distances are below 0
    return Clearance(-float(distance[least]), points[least], dura[least])


def _rotation(yaw: float, pitch: float) -> FloatArray:
    """Return R_y(yaw) R_x(pitch); positive pitch turns the rostral end ventrally."""
    cy, sy, cp, sp = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch)
    about_y = np.array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    about_x = np.array([[1.0, 0.0, 0.0], [0.0, cp, -sp], [0.0, sp, cp]])
    return np.asarray(about_y @ about_x)


def _box(paddle: Paddle) -> FloatArray:
    """Return the corners (8, 3) in the paddle frame; the face towards the dura is y = 0."""
    width, length = paddle.width_mm / 2, paddle.length_mm / 2
    return np.array(list(product((-width, width), (0.0, paddle.thickness_mm), (-length, length))))


def _resting_height(corners: FloatArray, dura: Ellipse, gap: float) -> float:
    """Return the shift along y at which the hull of ``corners`` is ``gap`` from the dura.

    The dura widened by the gap has the upper outline Y(x), which is concave. Over each segment
    y = c + m x between two corners, Y(x) - y is largest at an end or where the outline has slope m.
    Segments inside the hull lie above its lower edge and never decide.
    """
    heights = [_outline_height(x, dura, gap) - y for x, y in corners]
    for (x0, y0), (x1, y1) in combinations(corners, 2):
        if abs(x1 - x0) < 1e-12:
            continue
        slope = (y1 - y0) / (x1 - x0)
        x, y = _normal_point(np.arctan2(1.0, -slope), dura, gap)
        if min(x0, x1) < x < max(x0, x1):
            heights.append(y - (y0 + slope * (x - x0)))
    return float(max(heights))


def _outline_height(x: float, dura: Ellipse, gap: float) -> float:
    """Return Y(x) of the widened outline by bisection on its slope; -inf outside its width."""
    if abs(x - dura.left) >= dura.half_width + gap:
        return -np.inf
    # x falls as the angle of the normal grows from 0 (left) to pi (right).
    low, high = 0.0, np.pi
    for _ in range(60):
        middle = (low + high) / 2
        if _normal_point(middle, dura, gap)[0] > x:
            low = middle
        else:
            high = middle
    return _normal_point(low, dura, gap)[1]


def _normal_point(angle: float, dura: Ellipse, gap: float) -> tuple[float, float]:
    """Return the point of the widened outline whose normal points to ``angle``."""
    normal = np.array([np.cos(angle), np.sin(angle)])
    half = np.array([dura.half_width, dura.half_depth])
    x, y = half**2 * normal / np.linalg.norm(half * normal) + gap * normal
    return dura.left + float(x), dura.dorsal + float(y)


def _check_inside(
    placement: Placement, geometry: Geometry, array: ArrayTable, device: Device
) -> None:
    corners = placement.corners_mm
    level = _canal_level(placement, geometry)
    worst = int(np.argmax(level))
    if level[worst] >= 1.0:
        x, y, z = corners[worst]
        beyond = -to_bone(placement, geometry).distance_mm
        raise Misfit(
            f"array: the paddle hits bone: its corner at left {x:.2f}, dorsal {y:.2f}, rostral "
            f"{z:.2f} mm is {max(beyond, 0.0):.2f} mm outside geometry.canal "
            f"({geometry.canal.width_mm:g} x {geometry.canal.depth_mm:g} mm)"
            f"{_mends(geometry, array, device)}",
            geometry,
            array,
            device,
        )

    if np.max(np.abs(corners[:, 2])) >= geometry.torso.length_mm / 2:
        raise ValueError(
            f"array.offset_rostral_mm = {array.offset_rostral_mm:g}: the paddle reaches out of "
            f"geometry.torso.length_mm = {geometry.torso.length_mm:g}"
        )


def _canal_level(placement: Placement, geometry: Geometry) -> FloatArray:
    """Return the canal's level (8,) at the corners: below 1 inside, NaN or inf nowhere."""
    # The canal is convex: the paddle lies inside when its corners do.
    return geometry.canal.ellipse().level(placement.corners_mm[:, :2])


def _mends(geometry: Geometry, array: ArrayTable, device: Device) -> str:
    """Name the values, each alone, with which the paddle would fit."""
    found = []
    for key in ("gap_to_dura_mm", "offset_left_mm", "yaw_degree", "pitch_degree"):
        now = getattr(array, key)

        def moved_fits(value: float, key: str = key) -> bool:
            moved = lay(geometry, array.model_copy(update={key: value}), device)
            return bool(np.all(_canal_level(moved, geometry) < 1.0))

        limit = min(now, LEAST_GAP_MM) if key == "gap_to_dura_mm" else 0.0
        value = nearest_that_fits(moved_fits, now, limit) if now != limit else None
        if value is not None:
            found.append(f"array.{key} = {value:g}")

    def wider_fits(depth: float) -> bool:
        wide = geometry.changed("canal", "depth_mm", depth)
        return bool(np.all(_canal_level(lay(wide, array, device), wide) < 1.0))

    depth = nearest_that_fits(wider_fits, geometry.canal.depth_mm, 3.0 * geometry.canal.depth_mm)
    if depth is not None:
        found.append(f"geometry.canal.depth_mm = {depth:g}")
    return f"; {' or '.join(found)} would make it fit" if found else ""
