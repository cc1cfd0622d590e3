"""From polarities to contact currents: what the stimulator does.

An off contact carries no net current but is still metal: it floats at the potential that the field
gives it. The case, where it is an electrode, is one more contact. Mirrored polarities give exactly
mirrored currents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fieldcorr.configurations.text import checked_polarity, format_configuration
from fieldcorr.drive import _kernels as kernels
from fieldcorr.errors import DriveError

MODES = ("voltage", "current")

_ASYMMETRY = 1e-6  # of the largest admittance: what a solver's tolerance leaves
_SINGULAR = 1e-13  # of the largest admittance


def contact_currents(
    polarity: ArrayLike,
    admittance: ArrayLike,
    *,
    mode: str = "voltage",
    fractions: ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> NDArray[np.float64]:
    """Return the contact currents of each configuration for a unit drive.

    Parameters
    ----------
    polarity : array_like, shape (K, E)
        -1 cathode, 0 off, +1 anode; at least one of each sign per row.
    admittance : array_like, shape (E, E)
        Y, S: contact currents are Y V for contact potentials V. Symmetric. Rows that sum to zero,
        to 1e-6 of the largest entry, mean an insulated body and are made to do so exactly.
    mode : str
        "voltage": all anodes are one node, all cathodes another, 1 V between them.
        "current": 1 A in total, split by ``fractions``.
    fractions : array_like, shape (E,), optional
        Positive share of each contact in the current of its group, in the mode "current"; equal
        shares by default. Only ratios within a group matter.
    names : sequence of str, optional
        Names of the contacts, for error messages.

    Returns
    -------
    ndarray, shape (K, E), float64
        A, positive out of the contact into the tissue; exactly 0 for off contacts.

    Notes
    -----
    With V_a the potentials of active contacts, ``V_off = -Y_oo^-1 Y_oa V_a`` and I = Y V. Where the
    body is not insulated, the common potential is the one at which the currents sum to zero. What
    the currents of a row still sum to is rounding, 1e-16 of them, and is taken off its active
    contacts in equal parts.

    Raises
    ------
    DriveError
        If a row has no anode or no cathode, or if its floating contacts are not determined.
    """
    rows = np.ascontiguousarray(checked_polarity(polarity, None, ndim=2))
    labels = [str(e) for e in range(rows.shape[1])] if names is None else list(names)
    _check_both_signs(rows, labels)
    if mode == "current":
        return _split(rows, fractions)
    if mode != "voltage":
        raise DriveError(f"drive mode {mode!r}: must be one of {', '.join(MODES)}")
    if fractions is not None:
        raise DriveError("fractions belong to the drive mode 'current', not to 'voltage'")
    return _voltage(rows, _checked_admittance(admittance, rows.shape[1]), labels)


def _voltage(
    rows: NDArray[np.int8], y: NDArray[np.float64], labels: list[str]
) -> NDArray[np.float64]:
    """Return the currents for 1 V between the nodes."""
    size = len(y)
    scale = float(np.abs(y).max())
    insulated = _is_insulated(y)
    if insulated:
        y = _insulated(y)
    current = np.empty(rows.shape)
    scratch = np.empty((size, size + 2)), np.empty((size, 2))
    bad = kernels.voltage_currents(rows, y, int(insulated), _SINGULAR * scale, *scratch, current)
    if bad >= 0:
        raise DriveError(
            f"configuration {format_configuration(rows[bad], labels)!r}: the potentials of its off "
            "contacts are not determined by the admittance matrix"
        )
    return current


def closed_admittance(admittance: ArrayLike, size: int) -> NDArray[np.float64]:
    """Return the admittance (E, E) of the contacts in a body that no current leaves otherwise.

    In a grounded body the common potential is such that nothing flows to the boundary: with
    s = Y 1, Y - s s' / sum(s) gives the same currents, and its rows sum to zero.
    """
    y = _checked_admittance(admittance, size)
    if _is_insulated(y):
        return _insulated(y)
    leak = y.sum(axis=1)
    return np.asarray(y - leak[:, None] * leak / leak.sum())


def _is_insulated(y: NDArray[np.float64]) -> bool:
    return bool(np.abs(y.sum(axis=1)).max() <= _ASYMMETRY * np.abs(y).max())


def _insulated(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make rows and columns sum to zero."""
    y = y - y.mean(axis=1)[:, None]
    y = y - y.mean(axis=0)[None, :]
    return np.asarray((y + y.T) / 2)


def _split(rows: NDArray[np.int8], fractions: ArrayLike | None) -> NDArray[np.float64]:
    """Return 1 A split among the contacts of each group."""
    size = rows.shape[1]
    share = np.ones(size) if fractions is None else _numbers("fractions", fractions)
    if share.shape != (size,) or not (np.isfinite(share).all() and (share > 0).all()):
        raise DriveError(f"fractions must be {size} positive numbers, one per contact")
    current = np.empty(rows.shape)
    kernels.split_currents(rows, share, current)
    return current


def _numbers(what: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return a copy of the values as an array; anything but an array of numbers is an error."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DriveError(f"{what}: must be numbers, not {values!r:.60}") from error


def _check_both_signs(rows: NDArray[np.int8], labels: list[str]) -> None:
    for sign, what in ((1, "anode"), (-1, "cathode")):
        missing = ~(rows == sign).any(axis=1)
        if missing.any():
            row = int(np.argmax(missing))
            raise DriveError(
                f"configuration {format_configuration(rows[row], labels)!r} (row {row}) "
                f"has no {what}: its current has no return"
            )


def _checked_admittance(admittance: ArrayLike, size: int) -> NDArray[np.float64]:
    y = _numbers("admittance", admittance)
    if y.shape != (size, size):
        raise DriveError(f"the admittance matrix has shape {y.shape}, expected ({size}, {size})")
    if not np.isfinite(y).all():
        raise DriveError("the admittance matrix is not finite")
    scale = np.abs(y).max()
    if not scale > 0 or np.abs(y - y.T).max() > _ASYMMETRY * scale:
        raise DriveError("the admittance matrix is zero or not symmetric")
    return np.asarray((y + y.T) / 2)


def bipole_impedances(admittance: ArrayLike) -> NDArray[np.float64]:
    """Return (E, E) ohm: the resistance between every two contacts while all others float.

    With Z the inverse of the admittance on currents that sum to zero it is Z_aa + Z_bb - 2 Z_ab.
    """
    inverse = np.linalg.pinv(np.asarray(admittance, dtype=np.float64), hermitian=True)
    own = np.diag(inverse)
    return np.asarray(own[:, None] + own[None, :] - 2.0 * inverse)
