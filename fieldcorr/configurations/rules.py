"""Which configurations the rules of a model leave: how many, and their polarity rows.

Rules that speak of contacts and numbers alone are counted in closed form; rules about pairs and
groups (adjacency, extent, connectedness, guards, symmetry) by a walk that leaves a branch as soon
as it cannot succeed. Every configuration has at least one anode and one cathode. The case, where
it is an electrode, counts as a contact but takes no part in geometry.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations import _kernels as kernels
from fieldcorr.configurations.constraints import (
    PRESETS,
    Constraints,
    RulesLike,
    Settings,
    constraints_of,
    settings_of,
)
from fieldcorr.configurations.grid import ContactGrid
from fieldcorr.configurations.text import MAX_CONTACTS, configuration_ids, parse_configuration
from fieldcorr.errors import ConfigurationError

__all__ = [
    "PRESETS",
    "ContactGrid",
    "RulesLike",
    "count",
    "enumerate_configurations",
    "iterate_configurations",
]

BLOCK = 1 << 16
"""Configurations that a walk hands out at once."""

MOST_STEPS = 4_000_000_000
"""Steps after which a walk gives up: about half a minute; 3^16 configurations take 2e8."""


def count(rules: RulesLike, contacts: ContactGrid) -> int:
    """Return how many configurations the rules leave.

    Raises
    ------
    ConfigurationError
        If they leave none, saying which rule removed the last; if they name an unknown contact;
        or if there are too many to count.
    """
    constraints = _constraints(rules, contacts)
    listed = _Listed(rules, contacts, constraints)
    total = _count(constraints) + len(listed.added) - listed.removed
    if total == 0:
        raise _nothing_left(rules, contacts)
    return total


def enumerate_configurations(rules: RulesLike, contacts: ContactGrid) -> NDArray[np.int8]:
    """Return all configurations that the rules leave.

    Returns
    -------
    ndarray, shape (K, E), int8
        -1 cathode, 0 off, +1 anode; rows in ascending order of id.
    """
    rows = np.empty((count(rules, contacts), contacts.size), dtype=np.int8)
    place = 0
    for block in iterate_configurations(rules, contacts):
        rows[place : place + len(block)] = block
        place += len(block)
    return rows


def iterate_configurations(
    rules: RulesLike, contacts: ContactGrid, *, block: int = BLOCK
) -> Iterator[NDArray[np.int8]]:
    """Yield the configurations that the rules leave in blocks of about ``block`` rows, in order."""
    constraints = _constraints(rules, contacts)
    listed = _Listed(rules, contacts, constraints)
    for rows in _walk(constraints, block):
        yield from listed.merge(rows)
    yield from listed.rest()


class _Listed:
    """Configurations that are included and excluded by name."""

    def __init__(self, rules: RulesLike, contacts: ContactGrid, constraints: Constraints) -> None:
        include = _parse_list("include", rules.include, contacts)
        exclude = _parse_list("exclude", rules.exclude, contacts)
        both = sorted(set(include) & set(exclude))
        if both:
            raise ConfigurationError(
                f"configuration {include[both[0]][0]!r} is in include and exclude"
            )
        satisfied = {code for code, (_, row) in exclude.items() if _satisfies(constraints, row)}
        self.added = {
            code: row for code, (_, row) in include.items() if not _satisfies(constraints, row)
        }
        self.removed = len(satisfied)
        self._excluded = np.array(sorted(exclude), dtype=np.int64)
        self._waiting = sorted(self.added)

    def merge(self, rows: NDArray[np.int8]) -> Iterator[NDArray[np.int8]]:
        """Yield a block of rows, with what belongs before its end and without the excluded."""
        ids = configuration_ids(rows)
        early = [code for code in self._waiting if code < ids[-1]]
        self._waiting = self._waiting[len(early) :]
        if early:
            rows = np.concatenate([rows, [self.added[code] for code in early]])
            ids = np.concatenate([ids, early])
            order = np.argsort(ids, kind="stable")
            rows, ids = rows[order], ids[order]
        kept = rows[~np.isin(ids, self._excluded)] if self._excluded.size else rows
        if len(kept):
            yield kept

    def rest(self) -> Iterator[NDArray[np.int8]]:
        """Yield what comes after the last row of all."""
        if self._waiting:
            yield np.array([self.added[code] for code in self._waiting], dtype=np.int8)


def _constraints(rules: RulesLike, contacts: ContactGrid) -> Constraints:
    if not 2 <= contacts.size <= MAX_CONTACTS:
        raise ConfigurationError(
            f"{contacts.size} contacts: rules are defined for 2 to {MAX_CONTACTS} contacts"
        )
    return constraints_of(settings_of(rules), contacts)


def _parse_list(
    key: str, texts: Sequence[str], contacts: ContactGrid
) -> dict[int, tuple[str, NDArray[np.int8]]]:
    """Return the configurations of a list by id, each with its text."""
    found: dict[int, tuple[str, NDArray[np.int8]]] = {}
    for text in texts:
        row = parse_configuration(text, contacts.names)
        if not (row.max() > 0 > row.min()):
            raise ConfigurationError(f"{key}: {text!r} needs an anode and a cathode")
        found[int(configuration_ids(row[None])[0])] = text, row
    return found


def _satisfies(constraints: Constraints, row: NDArray[np.int8]) -> bool:
    """Tell whether one configuration satisfies the constraints."""
    held = np.arange(3) == np.mod(row, 3)[:, None]
    return _count_by_walk(constraints, constraints.allowed & held) == 1


def _count(constraints: Constraints) -> int:
    """Count the configurations that satisfy the constraints."""
    if constraints.only_counts:
        return _count_in_closed_form(constraints)
    return _count_by_walk(constraints, constraints.allowed)


def _count_in_closed_form(constraints: Constraints) -> int:
    """Count by numbers of cathodes and anodes: the product of one polynomial per contact.

    ways[c][a] after some contacts is the number of choices with c cathodes and a anodes. Python
    integers, so 39 contacts do not overflow.
    """
    size = len(constraints.allowed)
    ways = [[0] * (size + 1) for _ in range(size + 1)]
    ways[0][0] = 1
    for off, anode, cathode in constraints.allowed.tolist():
        before = [row[:] for row in ways]
        for c in range(size + 1):
            for a in range(size + 1):
                ways[c][a] = (
                    off * before[c][a]
                    + (anode * before[c][a - 1] if a else 0)
                    + (cathode * before[c - 1][a] if c else 0)
                )
    least_c, most_c, least_a, most_a, least, most = constraints.limits
    return sum(
        ways[c][a]
        for c in range(least_c, min(most_c, size) + 1)
        for a in range(least_a, min(most_a, size) + 1)
        if least <= c + a <= most
    )


def _count_by_walk(constraints: Constraints, allowed: NDArray[np.bool_]) -> int:
    """Count by going through all of them."""
    nothing = np.empty((0, len(allowed)), dtype=np.int8)
    return sum(_steps(constraints, allowed, 2**62, nothing))


def _walk(constraints: Constraints, block: int) -> Iterator[NDArray[np.int8]]:
    """Yield blocks of configurations in ascending order of id."""
    out = np.empty((block, len(constraints.allowed)), dtype=np.int8)
    for found in _steps(constraints, constraints.allowed, block, out):
        if found:
            yield out[:found].copy()


def _steps(
    constraints: Constraints, allowed: NDArray[np.bool_], most_found: int, out: NDArray[np.int8]
) -> Iterator[int]:
    """Run the walk to its end, yielding how many configurations each call of the kernel found."""
    size = len(allowed)
    state = np.zeros((5, size + 1), dtype=np.int64)
    # Below depth d are the contacts 0 ... E - 1 - d.
    possible = np.zeros((2, size + 1), dtype=np.int64)
    possible[:, :size] = np.cumsum(allowed[:, 1:], axis=0).T[:, ::-1]
    limits = np.array(constraints.limits, dtype=np.int64)
    connected = np.array(constraints.connected, dtype=np.int64)
    pairs = constraints.forbid, constraints.require, constraints.adjacency
    while state[0, size] >= 0:
        # fmt: off
        yield kernels.walk(
            allowed, limits, possible, *pairs, connected, constraints.body,
            constraints.can_connect, most_found, MOST_STEPS, state, out,
        )
        # fmt: on
    if state[0, size] == -2:
        raise ConfigurationError(
            f"the rules leave too many configurations of {size} contacts to count one by one: "
            "set active_max, cathodes_max or anodes_max"
        )


def _nothing_left(rules: RulesLike, contacts: ContactGrid) -> ConfigurationError:
    """Return an error that names the rule after which nothing was left."""
    settings = Settings()
    before = _count(constraints_of(settings, contacts))
    for key, value in asdict(settings_of(rules)).items():
        if value == getattr(settings, key):
            continue
        settings = replace(settings, **{key: value})
        after = _count(constraints_of(settings, contacts))
        if after == 0:
            return ConfigurationError(
                f"the rules leave no configuration: {key} = {_show(value)} removed the last "
                f"{before}"
            )
        before = after
    return ConfigurationError(
        f"the rules leave no configuration: exclude removed the last {before}"
    )


def _show(value: object) -> str:
    """Return a value as it stands in a model file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_show(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{k}" = {_show(v)}' for k, v in value.items()) + "}"
    return str(value)
