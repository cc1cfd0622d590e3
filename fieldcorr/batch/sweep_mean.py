"""A store whose r is the mean over the samples of a sweep."""

import json
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.compress import compress_embedding
from fieldcorr.correlation.ensemble import Ensemble, effective_size
from fieldcorr.errors import StoreError
from fieldcorr.model import Model
from fieldcorr.model.load import model_from_text
from fieldcorr.store.sweeps import SweepStore, open_sweep

Floats = NDArray[np.float64]

TOLERANCE = 1e-5
"""Largest change of r for which columns of the mean's embedding are left out."""

_FREE = ("name", "description", "configurations", "mesh", "solver", "stimulator")
"""Tables in which a model may differ from the one that was swept."""


class SweepMean:
    """The circuits of a sweep for a model, and how much each counts.

    The rules may be others than those of the sweep: circuits do not depend on them.
    """

    def __init__(
        self, model: Model, sweep: SweepStore | str | Path, weight: Floats | None = None
    ) -> None:
        self.sweep = sweep if isinstance(sweep, SweepStore) else open_sweep(sweep)
        self.weight = self._checked(weight)
        swept = model_from_text(self.sweep.text("model"), self.sweep.path)
        if _physics(swept) != _physics(model):
            raise StoreError(
                f"{self.sweep.path}: was swept around another model than {model.path}; rules and "
                "meshes alone may differ"
            )

    def _checked(self, weight: Floats | None) -> Floats:
        count = len(self.sweep)
        chosen = np.ones(count) if weight is None else np.array(weight, dtype=np.float64)
        if chosen.shape != (count,) or not (np.isfinite(chosen).all() and (chosen >= 0.0).all()):
            raise StoreError(f"{self.sweep.path}: weight must be {count} numbers, none negative")
        if not chosen.sum() > 0.0:
            raise StoreError(f"{self.sweep.path}: all weights are zero")
        return np.asarray(chosen / chosen.sum())

    def ensemble(self, polarity: NDArray[np.int8]) -> Ensemble:
        """Return the samples for configurations (K, E)."""
        return Ensemble(polarity, self.sweep.circuits, self.weight)

    def embedding(self, polarity: NDArray[np.int8], threads: int | None) -> Floats:
        """Return unit rows (K, R) whose products are the mean of r, to 1e-5."""
        rows = self.ensemble(polarity).mean_embedding()
        return compress_embedding(rows, tolerance=TOLERANCE, threads=threads)

    def values(self) -> dict[str, object]:
        """Return the datasets of /sweep."""
        dumped = partial(json.dumps, sort_keys=True)
        records = self.sweep.records
        return {
            "/sweep/gram": self.sweep.gram,
            "/sweep/admittance": self.sweep.admittance,
            "/sweep/weight": self.weight,
            "/sweep/drive": [dumped(record["drive"]) for record in records],
            "/sweep/values": [dumped(record["values"]) for record in records],
        }

    def record(self) -> dict[str, object]:
        """Return what the settings say about the sweep."""
        return {
            "hash": self.sweep.hash,
            "samples": len(self.sweep),
            "effective_samples": effective_size(self.weight),
            "keys": list(self.sweep.keys),
        }


def _physics(model: Model) -> dict[str, object]:
    return {key: value for key, value in model.content().items() if key not in _FREE}
