"""One quiet use of gmsh, set up so that the same geometry always gives the same mesh."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

import numpy as np

from fieldcorr.errors import MeshError, MissingExtraError, missing_extra
from fieldcorr.mesh.data import Floats, Ints

_OPTIONS = {
    "General.Terminal": 0,
    "General.NumThreads": 1,  # more threads would give another mesh at every run
    "Mesh.RandomSeed": 1,
    "Mesh.Algorithm": 6,
    "Mesh.Algorithm3D": 10,  # HXT
    "Mesh.OptimizeThreshold": 0.3,
    "Mesh.MeshSizeExtendFromBoundary": 0,
    "Mesh.MeshSizeFromPoints": 0,
    "Mesh.MeshSizeFromCurvature": 0,
}


@contextmanager
def gmsh_session(name: str) -> Iterator[ModuleType]:
    """Start gmsh with a fresh model, hand it out, end it; its errors become :class:`MeshError`."""
    gmsh = _import_gmsh()
    if gmsh.isInitialized():
        raise MeshError("gmsh is already in use in this process; finish that session first")
    gmsh.initialize(readConfigFiles=False, interruptible=False)
    try:
        for option, value in _OPTIONS.items():
            gmsh.option.setNumber(option, value)
        gmsh.model.add(name)
        yield gmsh
    except Exception as error:
        if type(error) is not Exception:  # gmsh raises plain Exception
            raise
        raise MeshError(
            f"{name}: gmsh could not build the mesh ({error}); smaller sizes may help"
        ) from None
    finally:
        gmsh.finalize()


def add_formula(gmsh: ModuleType, formula: str) -> int:
    """Add a size field given by a formula of x, y, z; return its tag."""
    fields = gmsh.model.mesh.field
    size = fields.add("MathEval")
    fields.setString(size, "F", formula)
    return int(size)


def add_limit(gmsh: ModuleType, surfaces: Iterable[int], size: float) -> int:
    """Add a size field that holds on some surfaces only; return its tag."""
    fields = gmsh.model.mesh.field
    limit = fields.add("Restrict")
    fields.setNumber(limit, "InField", add_formula(gmsh, repr(size)))
    fields.setNumbers(limit, "SurfacesList", list(surfaces))
    return int(limit)


def set_smallest(gmsh: ModuleType, sizes: Iterable[int]) -> None:
    """Let the smallest of some size fields decide."""
    fields = gmsh.model.mesh.field
    least = fields.add("Min")
    fields.setNumbers(least, "FieldsList", list(sizes))
    fields.setAsBackgroundMesh(least)


def add_rims(gmsh: ModuleType, curves: Sequence[int], rim: float, growth: float) -> int:
    """Add the size field rim + growth x distance from the curves; return its tag.

    Distances are measured to samples of the curves, spaced below the rim size.
    """
    fields = gmsh.model.mesh.field
    longest = max(_curve_length(gmsh, curve) for curve in curves)
    distance = fields.add("Distance")
    fields.setNumbers(distance, "CurvesList", curves)
    fields.setNumber(distance, "Sampling", int(np.ceil(2 * longest / rim)) + 2)
    return add_formula(gmsh, f"{rim!r}+{growth!r}*F{distance}")


class Generated:
    """The mesh of gmsh's current model: all nodes (P, 3), numbered from 0, and elements of them."""

    def __init__(self, gmsh: ModuleType) -> None:
        self._mesh = gmsh.model.mesh
        tags, coordinates, _ = self._mesh.getNodes()
        self.points: Floats = coordinates.reshape(-1, 3)
        self._number: Ints = np.full(int(tags.max()) + 1, -1, dtype=np.int32)
        self._number[tags.astype(np.int64)] = np.arange(len(tags), dtype=np.int32)

    def elements(self, dimension: int, entities: Iterable[int]) -> Ints:
        """Return the simplices (N, dimension + 1) of the given entities."""
        kind = {2: 2, 3: 4}[dimension]
        rows = [
            self._mesh.getElementsByType(kind, entity)[1].reshape(-1, dimension + 1)
            for entity in entities
        ]
        joined = np.concatenate(rows) if rows else np.zeros((0, dimension + 1))
        if not len(joined):
            raise MeshError("gmsh left a volume or a surface without elements")
        return self._number[joined.astype(np.int64)]

    def images(self, surfaces: Iterable[int]) -> Ints:
        """Return for every node the one on the tied ``surfaces`` that copies it, or -1, (P,)."""
        image = np.full(len(self.points), -1, dtype=np.int32)
        for surface in surfaces:
            _, copies, masters, _ = self._mesh.getPeriodicNodes(2, surface)
            image[self._number[masters.astype(np.int64)]] = self._number[copies.astype(np.int64)]
        return image


def prism_cells(facets: Ints, image: Ints) -> Ints:
    """Cut the prisms between facets (F, 3) and their images into tetrahedra, (3 F, 4).

    With the vertices of each facet in ascending order a < b < c and their images A, B, C the cells
    are abcC, abBC and aABC: neighbours cut their common side along the same diagonal.
    """
    a, b, c = np.sort(facets, axis=1).T
    rows = [(a, b, c, image[c]), (a, b, image[b], image[c]), (a, image[a], image[b], image[c])]
    return np.concatenate([np.stack(row, axis=1) for row in rows])


def _curve_length(gmsh: ModuleType, curve: int) -> float:
    low, high = gmsh.model.getParametrizationBounds(1, curve)
    steps = np.linspace(low[0], high[0], 33)
    points = np.reshape(gmsh.model.getValue(1, curve, steps), (-1, 3))
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())


def _import_gmsh() -> ModuleType:
    try:
        return import_module("gmsh")
    except ImportError as error:
        raise missing_extra("building a mesh", "gmsh", "mesh") from error
    except OSError as error:  # the wheel links libraries of the desktop
        raise MissingExtraError(
            f"gmsh is installed but cannot be loaded ({error}); it needs the system libraries "
            "libGLU, libGL, libXft, libXcursor, libXinerama and libXrender"
        ) from None
