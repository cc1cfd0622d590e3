"""What is not known exactly, as distributions that a sweep file names.

A distribution turns a number u between 0 and 1 into a value, so that evenly spread points of a cube
become evenly spread samples.
"""

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator
from scipy.stats import truncnorm

from fieldcorr.model._base import Real, SourcedTable

Levels = Annotated[int, Field(ge=1, le=1000)]


class Distribution(SourcedTable):
    """A distribution of one key of the model file, with its source.

    ``uniform`` and ``loguniform`` run from ``low`` to ``high``; ``normal`` has ``mean`` and ``sd``
    and is cut off at ``low`` and ``high`` where these are given; ``values`` are equally likely, and
    may be of any type. In a grid, ``levels`` is the number of equally likely values.
    """

    distribution: Literal["uniform", "loguniform", "normal", "values"]
    low: Real | None = None
    high: Real | None = None
    mean: Real | None = None
    sd: Annotated[Real, Field(gt=0)] | None = None
    values: list[Any] | None = Field(default=None, min_length=1)
    levels: Levels = 3

    @model_validator(mode="after")
    def _complete(self) -> "Distribution":
        needed = {
            "uniform": {"low", "high"},
            "loguniform": {"low", "high"},
            "normal": {"mean", "sd"},
            "values": {"values"},
        }[self.distribution]
        allowed = needed | ({"low", "high"} if self.distribution == "normal" else set())
        for key in ("low", "high", "mean", "sd", "values"):
            given = getattr(self, key) is not None
            if key in needed and not given:
                raise ValueError(f"{key} is missing, which {self.distribution} needs")
            if given and key not in allowed:
                raise ValueError(f"{key} has no meaning for {self.distribution}")
        low, high = self.low, self.high
        if low is not None and high is not None and low >= high:
            raise ValueError(f"low = {low:g} is not below high = {high:g}")
        if self.distribution == "loguniform" and (low or 0.0) <= 0.0:
            raise ValueError(f"low = {low:g} is not above 0, which loguniform needs")
        return self

    @property
    def is_continuous(self) -> bool:
        """Whether values are numbers that lie close to each other, not a list."""
        return self.distribution != "values"

    @property
    def count(self) -> int:
        """Number of values in a grid."""
        return self.levels if self.values is None else len(self.values)

    def at(self, u: float) -> Any:
        """Return the value at ``u``, from 0 to below 1: the quantile, or that of the list."""
        if self.values is not None:
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        if self.distribution == "normal":
            return self._normal(u)
        low, high = float(self.low or 0.0), float(self.high or 0.0)
        if self.distribution == "uniform":
            return low + (high - low) * u
        return low * (high / low) ** u

    def _normal(self, u: float) -> float:
        mean, sd = float(self.mean or 0.0), float(self.sd or 1.0)
        low = -np.inf if self.low is None else (self.low - mean) / sd
        high = np.inf if self.high is None else (self.high - mean) / sd
        return float(truncnorm.ppf(u, low, high, loc=mean, scale=sd))
