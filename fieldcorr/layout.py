"""The outlines of an array's contacts, read from a model, a mesh, a lead field or a store.

Model axes throughout: x to the patient's left, y dorsal, z rostral, metres.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ConfigurationError

if TYPE_CHECKING:
    from fieldcorr.leadfield import LeadField
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model
    from fieldcorr.store import Store

FloatArray = NDArray[np.float64]

CASE = "case"
"""Name of the stimulator's case where it is an electrode; it lies far from the array."""

_SIGNS = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0], [1.0, -1.0]])
"""Corners of a rectangle, (left, rostral): going round from left rostral."""


@dataclass(frozen=True, eq=False)
class ArrayLayout:
    """Outlines of the contacts."""

    names: tuple[str, ...]
    """The E electrodes in contact order; "case" has no outline."""
    corners: FloatArray
    """Corners (E, 4, 3) m of each contact, going round; NaN for the case."""
    paddle: FloatArray | None = None
    """Corners (4, 3) m of the paddle's face, where known."""

    @property
    def has_case(self) -> bool:
        """Whether the case is an electrode."""
        return CASE in self.names

    @property
    def on_array(self) -> NDArray[np.int64]:
        """Numbers of the electrodes that are contacts of the array."""
        return np.array([e for e, name in enumerate(self.names) if name != CASE], dtype=np.int64)

    @property
    def centres(self) -> FloatArray:
        """Centres (E, 3) m of the contacts; NaN for the case."""
        centres: FloatArray = self.corners.mean(axis=1)
        return centres

    @property
    def turn(self) -> FloatArray:
        """The rotation (2, 2) from the array's own axes to left and rostral, in a coronal view."""
        if self.paddle is not None:
            along = (self.paddle[0] - self.paddle[3])[[0, 2]]
        elif len(self.on_array):
            along = (self.corners[self.on_array[0], 0] - self.corners[self.on_array[0], 3])[[0, 2]]
        else:
            return np.eye(2)
        x, z = along / np.linalg.norm(along)
        return np.array([[z, x], [-x, z]])

    def stretched(self, factor: float) -> tuple[FloatArray, FloatArray | None]:
        """Return outlines of contacts (E, 4, 2) and paddle (4, 2) m, left and rostral, to be drawn.

        Widths across the array are larger by ``factor``, so that names can be read; a turned
        array is stretched in its own axes and stays a rectangle. The paddle is None if unknown, and
        is cut short around the contacts: its margins would take a quarter of a picture.
        """
        centre = self.centres[self.on_array].mean(axis=0)[[0, 2]]
        own = (self.corners[..., [0, 2]] - centre) @ self.turn
        back = np.diag([factor, 1.0]) @ self.turn.T
        body = None
        if self.paddle is not None:
            paddle = (self.paddle[:, [0, 2]] - centre) @ self.turn
            reach = np.abs(own[self.on_array]).max(axis=(0, 1)) * [1.3, 1.06]
            body = np.clip(paddle, -reach, reach) @ back + centre
        return own @ back + centre, body


def layout_of(source: object) -> ArrayLayout:
    """Return the layout of the array that a model, mesh, lead field, store or layout describes.

    Each is recognised by what it offers, so that none of their rooms is imported here.
    """
    if isinstance(source, ArrayLayout):
        return source
    if hasattr(source, "placement"):
        return _of_model(cast("Model", source))
    if hasattr(source, "facet_names"):
        mesh = cast("Mesh", source)
        return _of_mesh(mesh, tuple(n for n in mesh.facet_names if n not in ("outer", CASE)))
    if hasattr(source, "nodal") and hasattr(source, "mesh"):
        field = cast("LeadField", source)
        return _of_mesh(field.mesh, field.contact_names)
    if hasattr(source, "contact_positions") and hasattr(source, "text"):
        return _of_store(cast("Store", source))
    raise ConfigurationError(
        f"a {type(source).__name__} has no array: a model, mesh, lead field or store is needed"
    )


def array_axes(positions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the coordinates (n,) of contacts (n, 3) across the array, to the left, and along it.

    The axes are the principal ones of the positions, named after the body axes they are closest to,
    so a tilted array stands upright; the body axes if the array is about as long as wide. The
    origin is the mean position.
    """
    centred = positions - positions.mean(axis=0)
    spread, axes = np.linalg.eigh(centred.T @ centred)
    along = int(np.argmax(np.abs(axes[2])))
    across = max((a for a in range(3) if a != along), key=lambda a: abs(axes[0, a]))
    if abs(spread[along] - spread[across]) <= 0.05 * spread.max():
        return centred[:, 0], centred[:, 2]
    signs = np.sign(axes[0, across]), np.sign(axes[2, along])
    return centred @ axes[:, across] * signs[0], centred @ axes[:, along] * signs[1]


def rectangles(size: Sequence[float]) -> FloatArray:
    """Return the corners (4, 3) m of a rectangle (length along, width across) in paddle axes."""
    length, width = size
    half = 0.5 * _SIGNS * [width, length]
    return np.stack([half[:, 0], np.zeros(4), half[:, 1]], axis=1)


def _of_model(model: "Model") -> ArrayLayout:
    device, place = model.device, model.placement
    contact = rectangles(_size_m(device.contact.model_dump()))
    corners = place.to_model_m(device.positions_m[:, None] + contact)
    paddle = place.to_model_m(rectangles(_size_m(device.paddle.model_dump())))
    return _with_case(model.electrode_names, corners, paddle)


def _of_mesh(mesh: "Mesh", names: tuple[str, ...]) -> ArrayLayout:
    """Find each contact's corners as the vertices that reach out most along the diagonals.

    True for rectangles that are turned by less than 45 degrees in the coronal plane.
    """
    corners = []
    for name in names:
        if name == CASE:
            continue
        facets = mesh.facets[mesh.facet_tags == mesh.facet_names.index(name)]
        points = mesh.points[np.unique(facets)]
        corners.append(points[np.argmax(points[:, [0, 2]] @ _SIGNS.T, axis=0)])
    return _with_case(names, np.array(corners).reshape(-1, 4, 3), None)


def _of_store(store: "Store") -> ArrayLayout:
    """Fit the device file kept in the store to the contact positions; squares when there is none.

    The turn of the paddle is the rotation that carries the device's contact centres to the stored
    ones (least squares, by singular values).
    """
    names = tuple(store.contact_names)
    positions = store.contact_positions[[n != CASE for n in names]]
    device = _device(store.text("device"), [n for n in names if n != CASE])
    if device is None:
        side = 0.4 * _least_distance(positions)
        return _with_case(names, positions[:, None] + rectangles((side, side)), None)
    own, contact, paddle = device
    rotation = _rotation_between(own, positions)
    shift = positions.mean(axis=0) - own.mean(axis=0) @ rotation.T
    corners = (own[:, None] + contact) @ rotation.T + shift
    return _with_case(names, corners, paddle @ rotation.T + shift)


def _device(text: str, names: Sequence[str]) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Read contact centres (E, 3) and outlines of contact and paddle (4, 3), m; TOML or JSON."""
    try:
        device = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
        by_name = {entry["name"]: entry for entry in device["contacts"]}
        own = [[by_name[n]["left_mm"], 0.0, by_name[n]["rostral_mm"]] for n in names]
        contact, paddle = (rectangles(_size_m(device[key])) for key in ("contact", "paddle"))
    except (ValueError, KeyError, TypeError):
        return None
    return 1e-3 * np.array(own, dtype=np.float64), contact, paddle


def _rotation_between(source: FloatArray, target: FloatArray) -> FloatArray:
    """Return the orthogonal R (3, 3) with target ~ source R' + shift, closest to the identity.

    What R does out of the plane of the contacts is free, and of no account for flat outlines.
    """
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    product = b.T @ a
    # Contacts on a line leave some turns free in their plane too: prefer the identity there.
    product += 1e-9 * max(float(np.abs(product).max()), 1e-12) * np.eye(3)
    u, _, vt = np.linalg.svd(product)
    rotation: FloatArray = u @ vt
    return rotation


def _size_m(table: Mapping[str, Any]) -> tuple[float, float]:
    return 1e-3 * float(table["length_mm"]), 1e-3 * float(table["width_mm"])


def _least_distance(positions: FloatArray) -> float:
    if len(positions) < 2:
        return 1e-3
    apart = np.linalg.norm(positions[:, None] - positions, axis=2)
    return float(apart[~np.eye(len(positions), dtype=bool)].min())


def _with_case(
    names: tuple[str, ...], corners: FloatArray, paddle: FloatArray | None
) -> ArrayLayout:
    every = np.full((len(names), 4, 3), np.nan)
    every[[name != CASE for name in names]] = corners
    return ArrayLayout(names, every, paddle)
