"""What one session teaches another: the belief of a BayesDuel, as plain values and as a file.

A lesson is a list of pairs of configurations, by name, and for each model of the bank what was
learnt about the difference of their utilities: a normal with precision tau and mean nu / tau.
Together with the prior that is the whole normal form of the posterior; and since it speaks of
configurations, not of features, it can be used on the store of another patient.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.sources import CorrelationSource
from fieldcorr.errors import DuelError, FieldcorrError

FORMAT = "fieldcorr-lesson 1"


@dataclass(frozen=True, eq=False)
class Lesson:
    """A lesson as arrays: arms (N, 2), tau and nu (models, N, 2), log evidence (models,)."""

    arms: NDArray[np.int64]
    sites: NDArray[np.float64]
    evidence: NDArray[np.float64]

    def record(self, source: CorrelationSource, models: Sequence[str]) -> dict[str, object]:
        """Return the lesson as plain values, with the names of the arms."""
        return {
            "format": FORMAT,
            "source": source.fingerprint(),
            "pairs": [[source.label(int(arm)) for arm in pair] for pair in self.arms],
            "evidence": dict(zip(models, _rounded(self.evidence), strict=True)),
            "sites": dict(zip(models, map(_rounded, self.sites), strict=True)),
        }

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], source: CorrelationSource, models: Sequence[str]
    ) -> "Lesson":
        """Read a lesson for the arms of a source; refuse what cannot be carried over to them."""
        try:
            if record["format"] != FORMAT:
                raise DuelError(f"prior: format {record['format']!r} is not {FORMAT!r}")
            if sorted(record["sites"]) != sorted(models):
                known, own = ", ".join(record["sites"]), ", ".join(models)
                raise DuelError(f"prior: it has the models {known}; the features here give {own}")
            arms = [[_arm(text, record, source) for text in pair] for pair in record["pairs"]]
            sites = np.array([record["sites"][model] for model in models], dtype=np.float64)
            evidence = np.array([record["evidence"][model] for model in models], dtype=np.float64)
            pairs = np.array(arms, dtype=np.int64).reshape(-1, 2)
            sites = sites.reshape(len(models), len(pairs), 2)
        except (KeyError, TypeError, ValueError) as error:
            raise DuelError(f"prior: it is no lesson of a session: {error!r}") from error
        sound = np.isfinite(sites).all() and np.isfinite(evidence).all()
        if not sound or (pairs[:, 0] == pairs[:, 1]).any():
            raise DuelError("prior: it holds a number that no session can have learnt")
        return cls(pairs, sites, evidence)


def read_lesson(path: Path) -> dict[str, object]:
    """Read the file that ``fieldcorr duel export --what lesson`` wrote."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DuelError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise DuelError(f"{path}: is not JSON: {error}") from error
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise DuelError(f"{path}: is no lesson of a session ({FORMAT})")
    return record


def _arm(text: object, record: Mapping[str, object], source: CorrelationSource) -> int:
    """Return the arm of a name; numbers are names only within one and the same source."""
    if not isinstance(text, str):
        raise DuelError(f"prior: {text!r} is not the name of a configuration")
    if source.store is not None:
        try:
            return source.store.index_of(text)
        except FieldcorrError as error:
            raise DuelError(f"prior: {error}") from error
    if record["source"] != source.fingerprint():
        raise DuelError("prior: it is of other correlations, whose arms have no names")
    if not 0 <= int(text) < len(source):
        raise DuelError(f"prior: arm {text} is outside 0..{len(source) - 1}")
    return int(text)


def _rounded(values: NDArray[np.float64]) -> Any:
    """Return nested lists of numbers with eight digits: a lesson stands in every journal."""
    if values.ndim:
        return [_rounded(value) for value in values]
    number = float(values)
    return float(f"{number:.8g}") if math.isfinite(number) else number
