"""What a mesh consists of, in figures.

What flows in: a sound mesh. What flows out: counts, volumes, areas and quality.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fieldcorr.mesh.data import Floats, Ints, Mesh
from fieldcorr.mesh.quality import Quality, measure_quality


@dataclass(frozen=True)
class MeshReport:
    """Figures of a mesh.

    Attributes
    ----------
    n_points, n_cells : int
    size : 3 floats, m
        Extent along x, y, z.
    tissues : name -> (cells, volume in m3)
    facets : name -> (facets, area in m2)
    quality : Quality
    """

    n_points: int
    n_cells: int
    size: tuple[float, float, float]
    tissues: Mapping[str, tuple[int, float]]
    facets: Mapping[str, tuple[int, float]]
    quality: Quality


def make_report(mesh: Mesh) -> MeshReport:
    """Return the figures of a mesh."""
    x, y, z = (float(extent) for extent in np.ptp(mesh.points, axis=0))
    return MeshReport(
        n_points=mesh.n_points,
        n_cells=mesh.n_cells,
        size=(x, y, z),
        tissues=_by_name(mesh.tissues, mesh.cell_tags, mesh.volumes()),
        facets=_by_name(mesh.facet_names, mesh.facet_tags, mesh.facet_areas()),
        quality=measure_quality(mesh),
    )


def _by_name(names: tuple[str, ...], tags: Ints, amounts: Floats) -> dict[str, tuple[int, float]]:
    counts = np.bincount(tags, minlength=len(names))
    sums = np.bincount(tags, amounts, minlength=len(names))
    return {name: (int(counts[k]), float(sums[k])) for k, name in enumerate(names)}
