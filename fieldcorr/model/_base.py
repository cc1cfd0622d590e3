"""What every table of a model file shares: strictness, and the kinds of number.

Tables are frozen and refuse unknown keys, values of the wrong type, and numbers that are not
finite.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Table(BaseModel):
    """A table of a model file: frozen, strict, no unknown keys."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class SourcedTable(Table):
    """A table whose values may name where they come from."""

    source: str = ""
    """Literature source of the values."""
    nominal: bool = False
    """True for values that are widely used but that no citable page gives."""


def _not_a_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(f"must be a whole number, not {str(value).lower()}")  # noqa: TRY004
    return value


# Python takes true for 1, also among the values of a Literal.
WholeNumber = BeforeValidator(_not_a_truth_value)
# TOML arrays arrive as lists; frozen tables hold tuples.
TomlArray = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
# -0.0 and 0.0 are the same model and must have the same hash.
Real = Annotated[float, AfterValidator(lambda value: value + 0.0)]
# 10 m is far beyond any body: larger lengths are a mistake of units.
Length = Annotated[Real, Field(gt=0, le=10_000)]
Distance = Annotated[Real, Field(ge=0, le=10_000)]
Offset = Annotated[Real, Field(ge=-10_000, le=10_000)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
