"""What a batch would make, before anything is computed: numbers of configurations and sizes."""

from dataclasses import dataclass

from fieldcorr.configurations.rules import ContactGrid, count
from fieldcorr.errors import ConfigurationError
from fieldcorr.model import Model

MOST_CONFIGURATIONS = 1_000_000
"""More than this are refused: 10^12 pairs take hours, and 3^16 would take years."""

MATRIX_BYTES = 1 << 31
"""The matrix is stored while it is no larger than this: up to 23 170 configurations."""


@dataclass(frozen=True)
class Plan:
    """Sizes of a batch; half of all pairs are taken for neighbours, as with threshold 0."""

    contacts: int  # electrodes E
    space: int  # 3^E, all polarity configurations
    configurations: int  # how many the rules leave, K
    matrix_bytes: int  # of the K x K matrix of r
    matrix: bool  # whether it is stored
    neighbour_bytes: int


def contacts_of(model: Model) -> ContactGrid:
    """Return the electrodes as the rules see them."""
    return ContactGrid(model.electrode_names, model.electrode_positions_m)


def plan_batch(model: Model) -> Plan:
    """Count configurations and estimate sizes."""
    electrodes = len(model.electrode_names)
    total = count(model.rules, contacts_of(model))
    return Plan(
        contacts=electrodes,
        space=3**electrodes,
        configurations=total,
        matrix_bytes=4 * total**2,
        matrix=stores_matrix(total),
        neighbour_bytes=6 * total**2,
    )


def require_feasible(total: int) -> None:
    """Refuse more configurations than all pairs of which can be compared."""
    if total > MOST_CONFIGURATIONS:
        raise ConfigurationError(
            f"the rules leave {total:,} configurations; all pairs are compared, which is possible "
            f"for up to {MOST_CONFIGURATIONS:,}: restrict [configurations] further"
        )


def stores_matrix(total: int) -> bool:
    """Tell whether the matrix of so many configurations is stored."""
    return 4 * total**2 <= MATRIX_BYTES
