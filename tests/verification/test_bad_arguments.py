"""Closed forms refuse what they cannot answer: one line, never NaN, a warning or a traceback."""

from collections.abc import Callable

import numpy as np
import pytest

from fieldcorr.errors import FieldcorrError
from fieldcorr.verification import (
    BlurredElectrode,
    BlurredPatch,
    Cylinders,
    Layer,
    Rectangle,
    Slab,
    Spheres,
    cylinder_potential,
    disc_current,
    disc_potential,
    slab_potential,
    slab_resistance,
    sphere_potential,
)

NAN, INF = float("nan"), float("inf")
INSIDE = np.array([[0.1, 0.1, 0.3]])
SLAB = Slab((1.0, 1.0), (Layer(0.5, (1.0, 1.0, 1.0)), Layer(0.5, (2.0, 2.0, 2.0))))
CONTACTS = (Rectangle((0.1, 0.2), (0.1, 0.2), 1.0), Rectangle((0.5, 0.6), (0.5, 0.6), -1.0))
BALL = Spheres((1.0,), (1.0,))
TUBE = Cylinders((1.0,), 2.0, (1.0,), (1.0,))
POLES = (BlurredElectrode((0, 0, 1), 1.0), BlurredElectrode((0, 0, -1), -1.0))
PATCHES = (BlurredPatch(0.0, 0.2, 1.0), BlurredPatch(1.0, -0.2, -1.0))

POTENTIALS: dict[str, Callable[[object], object]] = {
    "slab": lambda points: slab_potential(points, SLAB, CONTACTS),  # type: ignore[arg-type]
    "sphere": lambda points: sphere_potential(points, BALL, POLES),  # type: ignore[arg-type]
    "cylinder": lambda points: cylinder_potential(points, TUBE, PATCHES),  # type: ignore[arg-type]
    "disc": lambda points: disc_potential(points, 0.1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("form", POTENTIALS)
@pytest.mark.parametrize(
    "points",
    [
        np.array([[0.1, NAN, 0.1]]),
        np.array([[0.1, 0.1, INF]]),
        np.array([0.1, 0.1, 0.1]),
        np.zeros((2, 2)),
        np.zeros((0, 3)),
        None,
        "points",
    ],
    ids=["nan", "infinite", "one point, flat", "two columns", "none at all", "None", "text"],
)
def test_points(form: str, points: object) -> None:
    with pytest.raises(FieldcorrError, match=r"^points: .*$"):
        POTENTIALS[form](points)


def test_points_may_be_a_list() -> None:
    expected = slab_potential(INSIDE, SLAB, CONTACTS)
    assert POTENTIALS["slab"](INSIDE.tolist()) == pytest.approx(expected)


BODIES: dict[str, Callable[[], object]] = {
    "slab size": lambda: Slab((1.0, NAN), SLAB.layers),
    "slab without layers": lambda: Slab((1.0, 1.0), ()),
    "layer conductivity": lambda: Slab((1.0, 1.0), (Layer(1.0, (1.0, -1.0, 1.0)),)),
    "two conductivities": lambda: Slab((1.0, 1.0), (Layer(1.0, (1.0, 1.0)),)),  # type: ignore[arg-type]
    "infinite conductivity": lambda: Slab((1.0, 1.0), (Layer(1.0, (1.0, 1.0, INF)),)),
    "sphere radii": lambda: Spheres((NAN,), (1.0,)),
    "sphere conductivity": lambda: Spheres((1.0,), (NAN,)),
    "None": lambda: Spheres((1.0,), (None,)),  # type: ignore[arg-type]
    "cylinder length": lambda: Cylinders((1.0,), INF, (1.0,), (1.0,)),
    "cylinder conductivity": lambda: Cylinders((1.0,), 1.0, (1.0,), (0.0,)),
    "direction": lambda: BlurredElectrode((0.0, 0.0, 0.0), 1.0),
    "blur": lambda: BlurredElectrode((0.0, 0.0, 1.0), 1.0, blur=1.2),
    "blurred patch": lambda: BlurredPatch(0.0, 0.0, 1.0, around=0.0),
    "patch": lambda: BlurredPatch(0.0, NAN, 1.0),
    "disc radius": lambda: disc_current(-1.0, 1.0),
    "disc conductivity": lambda: disc_current(1.0, NAN),
    "disc voltage": lambda: disc_current(1.0, 1.0, voltage=NAN),
    "disc ground": lambda: disc_current(1.0, 1.0, ground=0.5),
    "disc in points": lambda: disc_potential(INSIDE, NAN),
    "resistance": lambda: slab_resistance(np.ones(2), np.ones(3), 1.0, (0.0, 0.0)),
    "resistance, negative": lambda: slab_resistance(np.ones(1), -np.ones(1), 1.0, (0.0, 0.0)),
    "resistance, impedance": lambda: slab_resistance(np.ones(1), np.ones(1), 1.0, (0.0, -1.0)),
}


@pytest.mark.parametrize("what", BODIES)
def test_bodies_and_electrodes(what: str) -> None:
    with pytest.raises(FieldcorrError, match=r"^[^\n]+$"):
        BODIES[what]()


@pytest.mark.parametrize("current", [NAN, INF, None])
def test_currents(current: float) -> None:
    with pytest.raises(FieldcorrError, match="currents"):
        sphere_potential(INSIDE, BALL, [BlurredElectrode((0, 0, 1), current), POLES[1]])
    with pytest.raises(FieldcorrError, match="currents"):
        cylinder_potential(INSIDE, TUBE, [BlurredPatch(0.0, 0.0, current), PATCHES[1]])
    with pytest.raises(FieldcorrError, match="currents"):
        slab_potential(INSIDE, SLAB, [Rectangle((0.1, 0.2), (0.1, 0.2), current), CONTACTS[1]])


@pytest.mark.parametrize("tolerance", [0.0, NAN, -1.0, 2.0])
def test_tolerance(tolerance: float) -> None:
    with pytest.raises(FieldcorrError, match="tolerance"):
        sphere_potential(INSIDE, BALL, POLES, tolerance=tolerance)


def test_points_and_contacts_lie_on_the_body() -> None:
    with pytest.raises(FieldcorrError, match="leaves the slab"):
        slab_potential(INSIDE, SLAB, [CONTACTS[0], Rectangle((0.9, 1.1), (0.1, 0.2), -1.0)])
    with pytest.raises(FieldcorrError, match="currents"):
        sphere_potential(INSIDE, BALL, [])
    for beyond in ([[0.1, 0.1, 1.5]], [[1.2, 0.1, 0.1]]):
        with pytest.raises(FieldcorrError, match="outside the cylinder"):
            cylinder_potential(np.array(beyond), TUBE, PATCHES)
        with pytest.raises(FieldcorrError, match="outside the slab"):
            slab_potential(np.array(beyond), SLAB, CONTACTS)
    with pytest.raises(FieldcorrError, match="leave the cylinder"):
        cylinder_potential(INSIDE, TUBE, [PATCHES[0], BlurredPatch(1.0, 1.5, -1.0)])
