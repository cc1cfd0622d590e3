"""Polarity configurations: what they are called, and which of them a clinic wants.

:mod:`~fieldcorr.configurations.text` (names, ids) is imported everywhere and needs only NumPy;
:mod:`~fieldcorr.configurations.rules` (which rows) is used by the batch.
"""
