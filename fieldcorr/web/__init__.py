"""Pages: one set of plain ES modules for the report, the session page and the notebook's picker.

The modules and the style lie beside this file. A page computes what it shows from the small
matrices of a store (:mod:`fieldcorr.web.data`); nothing is fetched from elsewhere.
"""
