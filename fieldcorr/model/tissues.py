"""Tissues: a conductivity, scalar or along and across the cord, with its literature source.

What flows in: the tables ``[tissues.<name>]``. What flows out: :class:`Tissue` by name.
"""

from typing import Annotated

from pydantic import Field, model_validator

from fieldcorr.model._base import Real, SourcedTable

# Metals reach 1e7 S/m; a body stays below 10. Larger values are a mistake of units.
Conductivity = Annotated[Real, Field(gt=0, le=100)]

REQUIRED_TISSUES = ("grey", "white", "csf", "dura", "fat", "bone", "muscle")
"""Tissues that the parametric geometry is made of; a mesh of one's own may have more."""


class Tissue(SourcedTable):
    """Conductivity of one tissue: either the scalar key, or both of along and across."""

    conductivity_S_per_m: Conductivity | None = None
    conductivity_along_S_per_m: Conductivity | None = None
    """Along the cord's axis (z)."""
    conductivity_across_S_per_m: Conductivity | None = None
    """Across the cord's axis (x and y)."""
    source: Annotated[str, Field(min_length=1)]

    @property
    def principal_S_per_m(self) -> tuple[float, float, float]:
        """Conductivities along the axes x, y, z; the tensor is their diagonal."""
        if self.conductivity_S_per_m is not None:
            return (self.conductivity_S_per_m,) * 3
        across, along = self.conductivity_across_S_per_m, self.conductivity_along_S_per_m
        # The validator has made sure that both are there.
        return (across or 0.0, across or 0.0, along or 0.0)

    @model_validator(mode="after")
    def _scalar_or_pair(self) -> "Tissue":
        scalar = self.conductivity_S_per_m is not None
        along = self.conductivity_along_S_per_m is not None
        across = self.conductivity_across_S_per_m is not None
        if scalar and (along or across):
            raise ValueError(
                f"conductivity_S_per_m = {self.conductivity_S_per_m:g} excludes "
                "conductivity_along_S_per_m and conductivity_across_S_per_m"
            )
        if not scalar and not (along and across):
            raise ValueError(
                "conductivity is missing: give conductivity_S_per_m, or both of "
                "conductivity_along_S_per_m and conductivity_across_S_per_m"
            )
        return self
