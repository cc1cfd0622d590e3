"""Correlations of fields: the definition, the embedding, tiles, neighbourhoods, the update rule.

What flows in: contact currents and the Gram matrix of the lead fields (or sampled fields). What
flows out: an embedding Z with unit rows and r = Z Z', float32 row tiles of r, neighbourhoods in CSR
form, and the (kappa, tau) of a duel. Everything is judged against the NumPy definitions in
:mod:`~fieldcorr.correlation.reference`.
"""
