"""Numbers as people give them: Python's, NumPy's, arrays without dimensions.

Whatever is no such number ends in one error that names it.
"""

from operator import index
from typing import Any

import numpy as np

from fieldcorr.errors import FieldcorrError


def real_number(value: object, name: str, error: type[FieldcorrError]) -> float:
    """Return ``value`` as a float, or raise ``error``: None, NaN, truth values, text and lists."""
    number = np.asarray(value)
    if number.ndim or number.dtype.kind not in "iuf" or np.isnan(number):
        raise error(f"{name}: {value!r} is not a number")
    return float(number)


def whole_number(value: Any, name: str, error: type[FieldcorrError], *, least: int = 0) -> int:
    """Return ``value`` as an int of at least ``least``, or raise ``error``."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool | np.bool_) or number < least:
        raise error(f"{name}: {value!r} is not a whole number of at least {least}")
    return number
