"""What a configuration is called: a text for people, an integer for files.

A polarity is -1 for a cathode, 0 for off and +1 for an anode. The text lists the active contacts in
contact order, ``"0- 5+ 11+"``; the id is a ternary code in which contact e has the weight 3^e and
the digit 0 off, 1 anode, 2 cathode. Both are one-to-one and do not depend on rules or row order.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.errors import ConfigurationError

ALL_OFF = "off"
"""Text of the configuration in which no contact is active."""

MAX_CONTACTS = 39
"""Largest number of contacts whose ternary code fits into int64."""

_SIGNS = {"+": 1, "-": -1}


def parse_configuration(text: str, names: Sequence[str]) -> NDArray[np.int8]:
    """Read the text form of a configuration of contacts ``names`` (E) into a polarity (E,).

    The words may come in any order: ``"11+ 0- 5+"``.

    Raises
    ------
    ConfigurationError
        If a contact is unknown, named twice, or has no sign, or if no contact is named.
    """
    polarity = np.zeros(len(names), dtype=np.int8)
    if text.strip() == ALL_OFF:
        return polarity
    tokens = text.replace("\u2212", "-").split()  # pictures print a minus, not a hyphen
    if not tokens:
        raise ConfigurationError(
            f"configuration {text!r} names no contact (all off is {ALL_OFF!r})"
        )
    position = {name: e for e, name in enumerate(names)}
    for token in tokens:
        contact, sign = _split_token(token, text, position)
        if polarity[contact]:
            raise ConfigurationError(
                f"configuration {text!r} names contact {names[contact]!r} twice"
            )
        polarity[contact] = sign
    return polarity


def _split_token(token: str, text: str, position: dict[str, int]) -> tuple[int, int]:
    """Return contact number and sign of one word such as ``"11+"``."""
    name, sign = token[:-1], token[-1]
    if sign not in _SIGNS:
        raise ConfigurationError(
            f"configuration {text!r}: {token!r} does not end in + (anode) or - (cathode)"
        )
    if name not in position:
        raise ConfigurationError(
            f"configuration {text!r}: unknown contact {name!r}; "
            f"the contacts are {', '.join(position)}"
        )
    return position[name], _SIGNS[sign]


def format_configuration(polarity: ArrayLike, names: Sequence[str]) -> str:
    """Write the text form of a polarity (E,), the inverse of :func:`parse_configuration`.

    It is such as ``"0- 5+ 11+"``, or ``"off"`` when no contact is active.
    """
    row = checked_polarity(polarity, len(names), ndim=1)
    words = [f"{names[e]}{'+' if sign > 0 else '-'}" for e, sign in enumerate(row.tolist()) if sign]
    return " ".join(words) or ALL_OFF


def configuration_ids(polarity: ArrayLike) -> NDArray[np.int64]:
    """Return the ternary code (K,) of each row of a polarity (K, E).

    id_k = sum_e d_ke 3^e with d = 0 off, 1 anode, 2 cathode: polarity modulo 3.
    """
    rows = checked_polarity(polarity, None, ndim=2)
    if not 0 < rows.shape[1] <= MAX_CONTACTS:
        raise ConfigurationError(
            f"{rows.shape[1]} contacts: ids are defined for 1 to {MAX_CONTACTS} contacts"
        )
    ids = np.zeros(rows.shape[0], dtype=np.int64)
    for e, column in enumerate(rows.T):  # by contact, so that no (K, E) of int64 is made
        ids += np.mod(column, 3).astype(np.int64) * 3**e
    return ids


def polarities(ids: NDArray[np.integer], n_contacts: int) -> NDArray[np.int8]:
    """Return the polarities (K, E) of ternary codes (K,); a code that has none gives all off."""
    digits = ids[:, None] // 3 ** np.arange(n_contacts, dtype=np.int64) % 3
    known = (ids >= 0) & (ids < 3**n_contacts)
    return np.where(digits == 2, -1, digits * known[:, None]).astype(np.int8)


def checked_polarity(polarity: ArrayLike, n_contacts: int | None, *, ndim: int) -> NDArray[np.int8]:
    """Return ``polarity`` as int8, or say what is wrong with its shape or values."""
    rows = np.asarray(polarity)
    if rows.ndim != ndim or (n_contacts is not None and rows.shape[-1] != n_contacts):
        wanted = "E" if n_contacts is None else n_contacts
        raise ConfigurationError(
            f"polarity has shape {rows.shape}, expected ({'K, ' if ndim == 2 else ''}{wanted})"
        )
    if rows.size and (rows.dtype.kind not in "iu" or rows.max() > 1 or rows.min() < -1):
        raise ConfigurationError("polarity must hold the integers -1, 0 and +1 only")
    return rows.astype(np.int8, copy=False)
