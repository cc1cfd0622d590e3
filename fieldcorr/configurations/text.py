"""What a configuration is called: a text for people, an integer for files.

What flows in: polarities (-1 cathode, 0 off, +1 anode) or their names. What flows out: the other
one of the two. The text lists the active contacts in contact order, ``"0- 5+ 11+"``; the id is a
ternary code in which contact e has the weight 3^e and the digit 0 off, 1 anode, 2 cathode. Both
are one-to-one, so neither ever changes meaning when rules or row order do.
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
    """Read the text form of a configuration.

    Parameters
    ----------
    text : str
        Contacts with their signs, separated by spaces, in any order: ``"11+ 0- 5+"``.
    names : sequence of str, length E
        Names of the contacts in contact order.

    Returns
    -------
    ndarray, shape (E,), int8
        -1 cathode, 0 off, +1 anode.

    Raises
    ------
    ConfigurationError
        If a contact is unknown, named twice, or has no sign, or if no contact is named.
    """
    polarity = np.zeros(len(names), dtype=np.int8)
    if text.strip() == ALL_OFF:
        return polarity
    tokens = text.split()
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
    """Write the text form of a configuration, the inverse of :func:`parse_configuration`.

    Parameters
    ----------
    polarity : array_like, shape (E,)
        -1 cathode, 0 off, +1 anode.
    names : sequence of str, length E
        Names of the contacts in contact order.

    Returns
    -------
    str
        Such as ``"0- 5+ 11+"``, or ``"off"`` when no contact is active.
    """
    row = checked_polarity(polarity, len(names), ndim=1)
    words = [f"{names[e]}{'+' if sign > 0 else '-'}" for e, sign in enumerate(row.tolist()) if sign]
    return " ".join(words) or ALL_OFF


def configuration_ids(polarity: ArrayLike) -> NDArray[np.int64]:
    """Return the ternary code of each row.

    Parameters
    ----------
    polarity : array_like, shape (K, E)
        -1 cathode, 0 off, +1 anode.

    Returns
    -------
    ndarray, shape (K,), int64
        id_k = sum_e d_ke 3^e with d = 0 off, 1 anode, 2 cathode: polarity modulo 3.
    """
    rows = checked_polarity(polarity, None, ndim=2)
    _check_contact_count(rows.shape[1])
    ids = np.zeros(rows.shape[0], dtype=np.int64)
    for e in range(rows.shape[1]):
        ids += np.mod(rows[:, e], 3).astype(np.int64) * 3**e
    return ids


def polarity_from_ids(ids: ArrayLike, n_contacts: int) -> NDArray[np.int8]:
    """Return the polarities that belong to ternary codes, the inverse of configuration_ids.

    Parameters
    ----------
    ids : array_like, shape (K,)
        Integers in [0, 3^E).
    n_contacts : int
        E, the number of contacts.

    Returns
    -------
    ndarray, shape (K, E), int8
    """
    _check_contact_count(n_contacts)
    codes = np.asarray(ids)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise ConfigurationError(
            f"ids must be a list of integers, not {codes.dtype} of shape {codes.shape}"
        )
    wrong = np.flatnonzero((codes < 0) | (codes >= 3**n_contacts))
    if wrong.size:
        raise ConfigurationError(
            f"id {int(codes[wrong[0]])} is no configuration of {n_contacts} contacts "
            f"(0 to {3**n_contacts - 1})"
        )
    return _digits(codes.astype(np.int64), n_contacts)


def _digits(codes: NDArray[np.int64], n_contacts: int) -> NDArray[np.int8]:
    """Take ternary codes apart; ``codes`` is used up."""
    polarity = np.empty((codes.size, n_contacts), dtype=np.int8)
    for e in range(n_contacts):
        polarity[:, e] = (codes % 3 + 1) % 3 - 1
        codes //= 3
    return polarity


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


def _check_contact_count(n_contacts: int) -> None:
    if not 0 < n_contacts <= MAX_CONTACTS:
        raise ConfigurationError(
            f"{n_contacts} contacts: ids are defined for 1 to {MAX_CONTACTS} contacts"
        )
