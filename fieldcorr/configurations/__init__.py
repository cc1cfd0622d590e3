"""Polarity configurations: what they are called, and which of them a clinic wants.

What flows in: contact names and declarative rules. What flows out: int8 polarity rows in canonical
order. :mod:`~fieldcorr.configurations.text` (names, ids) is imported everywhere and needs only
NumPy; :mod:`~fieldcorr.configurations.rules` (which rows) is used by the batch.
"""
