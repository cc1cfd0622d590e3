"""Pictures for notebooks and papers, made with matplotlib.

What flows in: models, lead fields, stores, experiments and duel engines. What flows out: figures.
Every function returns the figure; those with one panel take an axes (``ax``), those with several a
figure (``figure``) to draw in. Values are in SI units with prefixes; maps of signed values are
centred on zero; the patient's left and rostral are marked.

======================  ==========================================================================
the array               :func:`array`, :func:`arrays`, :func:`neighbours`
fields                  :func:`section`, :func:`sections`, :func:`field_section`,
                        :func:`field_sections`
======================  ==========================================================================
"""

from fieldcorr.plot.array_view import array, arrays, neighbours
from fieldcorr.plot.section_view import field_section, field_sections, section, sections

__all__ = [
    "array",
    "arrays",
    "field_section",
    "field_sections",
    "neighbours",
    "section",
    "sections",
]
