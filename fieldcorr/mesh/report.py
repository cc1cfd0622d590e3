"""What a mesh consists of, for people.

What flows in: a sound mesh. What flows out: counts, volumes, areas and quality, as a frozen object
and as text.
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

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        x, y, z = (1e3 * extent for extent in self.size)
        low, high = self.quality.dihedral_degree
        worst, percentile, median = self.quality.radius_ratio
        short, long = (1e3 * edge for edge in self.quality.edge)
        return [
            f"{self.n_cells} tetrahedra, {self.n_points} nodes, {x:.4g} x {y:.4g} x {z:.4g} mm",
            f"edges {short:.3g} to {long:.3g} mm, dihedral angles {low:.1f} to {high:.1f} degrees, "
            f"radius ratio {worst:.2g} (1 % below {percentile:.2g}, median {median:.2g})",
            *_table("tissue", "cells", "volume mm3", self.tissues, 1e9),
            *_table("facets", "count", "area mm2", self.facets, 1e6),
        ]


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


def _table(
    name: str, count: str, amount: str, rows: Mapping[str, tuple[int, float]], scale: float
) -> list[str]:
    head = [f"{name:<10} {count:>9} {amount:>14}"] if rows else []
    return head + [f"{key:<10} {n:>9} {scale * total:>14.6g}" for key, (n, total) in rows.items()]
