"""The mesh study: how much r moves when one thing about the discretisation changes.

``variants`` lists the changes, ``domain`` wraps a mesh in a larger body without touching it,
``compare`` turns lead fields into statistics of |delta r|, ``frame`` runs everything.
"""
