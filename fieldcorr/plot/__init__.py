"""Pictures for notebooks and papers, made with matplotlib.

Every function returns the figure; those with one panel take an axes (``ax``), those with several a
figure (``figure``) to draw in, or make a new one. Values are in SI units with prefixes; maps of
signed values are centred on zero; the patient's left and rostral are marked.

======================  ==========================================================================
before anything else    :func:`anatomy`
the array               :func:`array`, :func:`arrays`, :func:`neighbours`
fields                  :func:`section`, :func:`sections`, :func:`field_section`,
                        :func:`field_sections`; with pyvista :func:`scene`, :func:`volume_grid`
r                       :func:`heat_map`, :func:`correlations`, :func:`neighbourhoods`,
                        :func:`embedding`; for notebooks :func:`hover_heat_map`, :func:`hover_map`
accuracy                :func:`mesh_study`, :func:`convergence`
how sure r is           :func:`spread`, :func:`inputs`, :func:`trust`
duels                   :func:`regret`, :func:`narrowing`
======================  ==========================================================================
"""

from fieldcorr.plot.anatomy_view import anatomy
from fieldcorr.plot.array_view import array, arrays, neighbours
from fieldcorr.plot.correlation_view import (
    correlations,
    embedding,
    heat_map,
    neighbourhoods,
)
from fieldcorr.plot.duel_view import narrowing, regret
from fieldcorr.plot.hover_view import hover_heat_map, hover_map
from fieldcorr.plot.scene_view import scene
from fieldcorr.plot.section_view import field_section, field_sections, section, sections
from fieldcorr.plot.study_view import convergence, mesh_study
from fieldcorr.plot.sweep_view import inputs, spread, trust
from fieldcorr.plot.volume import volume_grid

__all__ = [
    "anatomy",
    "array",
    "arrays",
    "convergence",
    "correlations",
    "embedding",
    "field_section",
    "field_sections",
    "heat_map",
    "hover_heat_map",
    "hover_map",
    "inputs",
    "mesh_study",
    "narrowing",
    "neighbourhoods",
    "neighbours",
    "regret",
    "scene",
    "section",
    "sections",
    "spread",
    "trust",
    "volume_grid",
]
