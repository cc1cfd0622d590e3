"""Small meshes that the tests take apart."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.mesh import Mesh
from fieldcorr.mesh.structured import box_mesh


def layered_box(n: int = 3) -> Mesh:
    """Return a cube of 30 mm: fat above white matter, contacts "0", "1" on top, "outer" below."""
    side = 0.03

    def on_top(centroids: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.isclose(centroids[:, 2], side))

    return box_mesh(
        n,
        n,
        2 * n,
        bounds=((0.0, side), (0.0, side), (0.0, side)),
        tag=lambda centroids: centroids[:, 2] > side / 2,
        tissues=("white", "fat"),
        facets={
            "0": lambda centroids: on_top(centroids) & (centroids[:, 0] < side / n),
            "1": lambda centroids: on_top(centroids) & (centroids[:, 0] > side - side / n),
            "outer": lambda centroids: np.isclose(centroids[:, 2], 0.0),
        },
    )


def joined(first: Mesh, second: Mesh) -> Mesh:
    """Return both meshes in one, without sharing a node; names are those of the first."""
    shift = first.n_points
    return Mesh(
        points=np.concatenate((first.points, second.points)),
        cells=np.concatenate((first.cells, second.cells + shift)),
        cell_tags=np.concatenate((first.cell_tags, second.cell_tags)),
        tissues=first.tissues,
        facets=first.facets,
        facet_tags=first.facet_tags,
        facet_names=first.facet_names,
    )
