"""Which configurations the rules of a model leave: how many, and their polarity rows.

Rules that speak of contacts and numbers alone are counted in closed form; rules about pairs and
groups (adjacency, extent, connectedness, guards, symmetry) by a walk that leaves a branch as soon
as it cannot succeed. Every configuration has at least one anode and one cathode. The case, where
it is an electrode, counts as a contact but takes no part in geometry.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations import _kernels as kernels
from fieldcorr.configurations.constraints import (
    PRESETS,
    Constraints,
    Settings,
    constraints_of,
    settings_of,
)
from fieldcorr.configurations.grid import ContactGrid
from fieldcorr.configurations.space import ProductSpace
from fieldcorr.configurations.text import MAX_CONTACTS, configuration_ids, parse_configuration
from fieldcorr.errors import ConfigurationError
from fieldcorr.stimulation import LIMITS

if TYPE_CHECKING:
    from fieldcorr.model import Rules

__all__ = ["PRESETS", "ContactGrid", "count", "enumerate_configurations", "product_space"]

MOST_STEPS = 4_000_000_000
"""Steps after which a walk gives up: about half a minute; 3^16 configurations take 2e8."""


def count(rules: "Rules", contacts: ContactGrid) -> int:
    """Return how many configurations the rules leave.

    Raises
    ------
    ConfigurationError
        If they leave none, saying which rule removed the last; if they name an unknown contact;
        or if there are too many to count.
    """
    constraints = _constraints(rules, contacts)
    added, removed = _listed(rules, contacts, constraints)
    total = _count(constraints) + len(added) - len(removed)
    if total == 0:
        raise _nothing_left(rules, contacts)
    return total


def enumerate_configurations(rules: "Rules", contacts: ContactGrid) -> NDArray[np.int8]:
    """Return all configurations that the rules leave, raising as :func:`count` does.

    Returns
    -------
    ndarray, shape (K, E), int8
        -1 cathode, 0 off, +1 anode; rows in ascending order of id.
    """
    constraints = _constraints(rules, contacts)
    added, removed = _listed(rules, contacts, constraints)
    rows = np.empty((_count(constraints), contacts.size), dtype=np.int8)
    _walk(constraints, constraints.allowed, rows)
    if added or removed:
        rows = np.concatenate([rows, np.array(added, dtype=np.int8).reshape(-1, contacts.size)])
        ids = configuration_ids(rows)
        order = np.argsort(ids)
        rows = rows[order[~np.isin(ids[order], removed)]]
    if not len(rows):
        raise _nothing_left(rules, contacts)
    return rows


def product_space(rules: "Rules", contacts: ContactGrid) -> ProductSpace:
    """Return the configurations that the rules leave as a space that is not listed.

    Raises
    ------
    ConfigurationError
        If a rule says more than which polarities single contacts may have, and how many of a kind.
    """
    constraints = _constraints(rules, contacts)
    delivered = any(getattr(rules, key) is not None for key in LIMITS)
    if not constraints.only_counts or rules.include or rules.exclude or delivered:
        raise ConfigurationError(
            "so many configurations can be left only by rules about single contacts and about "
            "numbers of contacts, not by adjacent, extent_max_mm, connected, guarded, symmetric, "
            "include or exclude, nor by limits of charge or current"
        )
    return ProductSpace(constraints.allowed, constraints.limits)


def _constraints(rules: "Rules", contacts: ContactGrid) -> Constraints:
    if not 2 <= contacts.size <= MAX_CONTACTS:
        raise ConfigurationError(
            f"{contacts.size} contacts: rules are defined for 2 to {MAX_CONTACTS} contacts"
        )
    return constraints_of(settings_of(rules), contacts)


def _listed(
    rules: "Rules", contacts: ContactGrid, constraints: Constraints
) -> tuple[list[NDArray[np.int8]], list[int]]:
    """Return the rows that ``include`` adds, and the ids of those that ``exclude`` takes away."""
    include = _parse_list("include", rules.include, contacts)
    exclude = _parse_list("exclude", rules.exclude, contacts)
    both = sorted(include.keys() & exclude.keys())
    if both:
        raise ConfigurationError(f"configuration {include[both[0]][0]!r} is in include and exclude")
    added = [row for _, row in include.values() if not _satisfies(constraints, row)]
    removed = [code for code, (_, row) in exclude.items() if _satisfies(constraints, row)]
    return added, removed


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
    return _walk(constraints, constraints.allowed & held) == 1


def _count(constraints: Constraints) -> int:
    """Count the configurations that satisfy the constraints."""
    if constraints.only_counts:
        return ProductSpace(constraints.allowed, constraints.limits).count
    return _walk(constraints, constraints.allowed)


def _walk(
    constraints: Constraints, allowed: NDArray[np.bool_], out: NDArray[np.int8] | None = None
) -> int:
    """Go through all configurations, in ascending order of id: write them to ``out``, count them.

    ``allowed`` (E, 3) takes the place of the constraints' own.
    """
    size = len(allowed)
    # Below depth d are the contacts 0 ... E - 1 - d.
    possible = np.zeros((2, size + 1), dtype=np.int64)
    possible[:, :size] = np.cumsum(allowed[:, 1:], axis=0).T[:, ::-1]
    out = np.empty((0, size), dtype=np.int8) if out is None else out
    pairs = constraints.forbid, constraints.require, constraints.adjacency
    groups = constraints.connected, constraints.body, constraints.can_connect
    # Without a table of the sets that hang together a step takes ten times as long.
    untabled = any(constraints.connected) and not constraints.can_connect.size
    most_steps = MOST_STEPS // 10 if untabled else MOST_STEPS
    limits = constraints.limits
    found = int(kernels.walk(allowed, limits, possible, *pairs, *groups, most_steps, out))
    if found < 0:
        raise ConfigurationError(
            f"the rules leave too many configurations of {size} contacts to count one by one: "
            "set active_max, cathodes_max or anodes_max"
        )
    return found


def _nothing_left(rules: "Rules", contacts: ContactGrid) -> ConfigurationError:
    """Return an error that names the rule after which nothing was left."""
    settings = Settings()
    before = _count(constraints_of(settings, contacts))
    for key, value in asdict(settings_of(rules)).items():
        if value == getattr(settings, key):
            continue
        settings = replace(settings, **{key: value})
        after = _count(constraints_of(settings, contacts))
        if after == 0:
            # As it stands in a model file: JSON but for the sign between key and value.
            shown = json.dumps(value, ensure_ascii=False, separators=(", ", " = "))
            return ConfigurationError(
                f"the rules leave no configuration: {key} = {shown} removed the last {before}"
            )
        before = after
    return ConfigurationError(
        f"the rules leave no configuration: exclude removed the last {before}"
    )
