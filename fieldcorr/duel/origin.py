"""Which correlations a journal belongs to.

A store is known by its hash, which is taken over the last bit of every number. Computed again on
another machine, or by other versions of the libraries, the same store differs in last bits. A
journal therefore also keeps what defines r: contacts, rules, drive, measure, and the two small
matrices of the lead fields. A store that agrees in all of them is the same one to a duel.
"""

import numpy as np

from fieldcorr.correlation.sources import CorrelationSource

ROUNDING = 1e-6
"""Largest difference of an entry of the Gram matrix or the admittance, as a share of the largest
entry. Kernels for another processor gave 1e-13, the CSF's conductivity changed by 1 % 1e-2 and
5e-4 (the bundled model, companion mesh)."""

_MATRICES = ("gram", "admittance")


def store_record(source: CorrelationSource, name: str) -> dict[str, object]:
    """Return what a journal keeps of the correlations; ``name`` is where the store is."""
    store = source.store
    record = {"hash": source.fingerprint(), "name": name, "arms": len(source), "via": source.via}
    if store is None:
        return record
    if source.via == "neighbours":
        record["neighbourhoods"] = [store.threshold, store.top_k]
    settings = store.record("settings")
    if settings["measure"]["kind"] == "magnitude":
        return record  # does not follow from the two matrices
    if store.is_whole:
        record["space"] = [store.digests.get(f"/space/{name}") for name in ("allowed", "limits")]
    matrices = {name: _shortened(getattr(store, name).tolist()) for name in _MATRICES}
    return record | {
        "contacts": list(store.contact_names),
        "polarity": store.digests.get("/configurations/polarity"),
        "rules": settings.get("configurations"),
        "drive": settings["drive"],
        "measure": settings["measure"],
        **matrices,
    }


def belongs(kept: dict[str, object], source: CorrelationSource) -> bool:
    """Tell whether a journal that keeps this record can go on with these correlations."""
    found = store_record(source, "")
    if kept.get("neighbourhoods") not in (None, found.get("neighbourhoods")):
        return False
    if kept.get("hash") == found["hash"]:
        return True
    return all(
        _agree(kept.get(name), found.get(name)) if name in _MATRICES else kept.get(name) == value
        for name, value in found.items()
        if name not in ("hash", "name")
    ) and all(name in found for name in _MATRICES)


def _shortened(rows: list[list[float]]) -> list[list[float]]:
    """Return numbers with nine digits: the line stays of a length that can be looked at."""
    return [[float(f"{x:.9g}") for x in row] for row in rows]


def _agree(kept: object, found: object) -> bool:
    try:
        one, other = np.asarray(kept, dtype=np.float64), np.asarray(found)
    except (TypeError, ValueError):
        return False
    if one.shape != other.shape:
        return False
    return bool(np.abs(one - other).max() <= ROUNDING * np.abs(other).max())  # false for NaN
