"""The compared region: which cells count, and how much.

The model's ``[region]`` chooses cells of the mesh and gives their vertices a window weight: 1
around the array, falling to 0 as a cosine over its last ``taper_mm``. Between vertices the window
is linear, so that weighted integrals of the fields are exact sums over cells.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.errors import ModelError

if TYPE_CHECKING:
    from fieldcorr.mesh import Mesh
    from fieldcorr.model import Model


@dataclass(frozen=True, eq=False)
class ComparedRegion:
    """Cells of the compared region.

    ``cells`` (N,) are their numbers, ``moments`` (N, 4) m3 the cell's volume times the window at
    its vertices, ``points`` (N, 3) m the centroids and ``weight`` (N,) m3 the integrals of the
    window.
    """

    cells: NDArray[np.int64]
    moments: NDArray[np.float64]
    points: NDArray[np.float64]
    weight: NDArray[np.float64]


def window(
    z: NDArray[np.float64], centre: float, half_length: float, taper: float
) -> NDArray[np.float64]:
    """Return the weight at rostral coordinates ``z``, all in m.

    w = 1 for |z - centre| <= half_length - taper, 0 beyond half_length, and
    (1 + cos(pi s)) / 2 between, with s running from 0 to 1 over the taper.
    """
    outside = np.abs(z - centre) - (half_length - taper)
    if taper == 0.0:
        return np.where(outside <= 0.0, 1.0, 0.0)
    s = np.clip(outside / taper, 0.0, 1.0)
    return 0.5 * (1.0 + np.cos(np.pi * s))


def compared_region(model: "Model", mesh: "Mesh") -> ComparedRegion:
    """Find the cells of the compared region and their weights.

    Raises
    ------
    ModelError
        When no cell of the mesh lies in the region.
    """
    tags = [mesh.tissues.index(name) for name in model.region.tissues if name in mesh.tissues]
    candidates = np.flatnonzero(np.isin(mesh.cell_tags, tags))
    corners = mesh.points[mesh.cells[candidates]]
    weights = window(
        corners[:, :, 2],
        model.window_centre_m,
        1e-3 * model.region.window_half_length_mm,
        1e-3 * model.region.taper_mm,
    )
    centroids = corners.mean(axis=1)
    keep = weights.sum(axis=1) > 0.0
    if model.region.half == "dorsal":
        keep &= centroids[:, 1] > 1e-3 * model.geometry.cord_dorsal_mm
    for along, (low, high) in zip(centroids.T, model.region.box_mm or (), strict=False):
        keep &= (along >= 1e-3 * low) & (along <= 1e-3 * high)
    if not keep.any():
        raise ModelError(
            f"{model.path}: [region] holds no cell of the mesh"
            f" (tissues = {', '.join(model.region.tissues)})"
        )
    cells, weights, centroids = candidates[keep], weights[keep], centroids[keep]
    edges = corners[keep][:, 1:] - corners[keep][:, :1]
    volumes = np.abs(np.linalg.det(edges)) / 6.0
    moments = volumes[:, None] * weights
    return ComparedRegion(cells, moments, centroids, moments.mean(axis=1))
