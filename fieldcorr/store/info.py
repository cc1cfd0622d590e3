"""What a person wants to know about a store, as plain values in reading order.

The command line prints it, notebooks show it.
"""

from typing import Any

import numpy as np

from fieldcorr.store.reader import Store

LEVELS = (0.0, 0.3, 0.5, 0.9)
"""Values of r above which neighbours are counted."""

SAMPLED_ROWS = 256


def describe_store(store: Store) -> dict[str, Any]:
    """Return the facts of a store by name."""
    settings, solver = store.record("settings"), store.record("solver")
    return {
        "path": str(store.path),
        "size_bytes": store.path.stat().st_size,
        "format": store.format,
        "hash": store.hash,
        "model": settings["model"],
        "device": settings["device"],
        "contacts": len(store.contact_names),
        "configurations": len(store),
        "rank": store.rank,
        "measure": settings["measure"],
        "drive": settings["drive"],
        "region": settings["region"],
        "matrix": store.has_matrix,
        "fields": store.has_fields,
        "threshold": store.threshold,
        "top_k": store.top_k,
        "neighbours_stored": store.nnz,
        "neighbours_per_row": neighbour_counts(store),
        "solver": settings["solver"],
        "largest_residual": float(np.max(solver["residuals"])),
        "identities": solver["identities"],
        "error_estimate": store.record("error_estimate"),
        **store.record("origin"),
        "run": store.record("run"),
    }


def neighbour_counts(store: Store) -> dict[str, float]:
    """Return the mean number of neighbours above each level, over evenly spread rows."""
    rows = np.unique(np.linspace(0, len(store) - 1, min(len(store), SAMPLED_ROWS)).astype(np.int64))
    totals = np.zeros(len(LEVELS))
    for row in rows:
        r = store.row(int(row))
        # The diagonal is 1, above every level: it is no neighbour.
        totals += [np.count_nonzero(r > level) - 1 for level in LEVELS]
    return {
        f"{level:g}": float(total) for level, total in zip(LEVELS, totals / rows.size, strict=True)
    }
