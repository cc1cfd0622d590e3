"""Correlations of fields: embedding Z with r = Z Z', rows of r, neighbourhoods, the update rule.

Definitions stand in plain NumPy beside the kernels that are judged against them.
"""
