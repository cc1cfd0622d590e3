"""What a batch would make, before anything is computed: numbers of configurations and sizes."""

from dataclasses import dataclass

from fieldcorr.configurations.rules import ContactGrid, count, product_space
from fieldcorr.configurations.space import MOST_BLOCKS, ProductSpace
from fieldcorr.correlation.whole import MOST_TABLE_BYTES, table_bytes
from fieldcorr.errors import ConfigurationError
from fieldcorr.model import Model

MOST_LISTED = 1_000_000
"""More configurations than this are not listed, as 10^12 pairs take hours: r is computed from the
rules when it is asked for."""

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
    table_bytes: int  # in memory, to compute r of configurations that are not listed; or 0


def contacts_of(model: Model) -> ContactGrid:
    """Return the electrodes as the rules see them."""
    return ContactGrid(model.electrode_names, model.electrode_positions_m)


def plan_batch(model: Model) -> Plan:
    """Count configurations and estimate sizes."""
    electrodes = len(model.electrode_names)
    total = count(model.rules, contacts_of(model))
    space = unlisted_space(model, total)
    return Plan(
        contacts=electrodes,
        space=3**electrodes,
        configurations=total,
        matrix_bytes=4 * total**2,
        matrix=stores_matrix(total),
        neighbour_bytes=6 * total**2,
        table_bytes=0 if space is None else table_bytes(space, model.drive.mode),
    )


def unlisted_space(model: Model, total: int) -> ProductSpace | None:
    """Return the space of a model whose ``total`` configurations are not listed, else None.

    Raises
    ------
    ConfigurationError
        If they are too many for that too, with the count, the bytes, and what to do.
    """
    if total <= MOST_LISTED:
        return None
    advice = (
        f"at most {MOST_LISTED:,} are listed: set active_max, cathodes_max or anodes_max, "
        "or name excluded contacts"
    )
    if model.measure.kind == "magnitude":
        raise ConfigurationError(
            f"the rules leave {total:,} configurations, but |E| is not linear in the currents: it "
            f"has no Gram matrix from which r could be computed when it is asked for; {advice}"
        )
    try:
        space = product_space(model.rules, contacts_of(model))
    except ConfigurationError as error:
        raise ConfigurationError(f"the rules leave {total:,} configurations; {error}") from error
    need = table_bytes(space, model.drive.mode)
    if need > MOST_TABLE_BYTES or space.blocks > MOST_BLOCKS:
        raise ConfigurationError(
            f"the rules leave {total:,} configurations, for which r would need tables of "
            f"{need:,} bytes in memory, more than {MOST_TABLE_BYTES:,}; {advice}"
        )
    return space


def stores_matrix(total: int) -> bool:
    """Tell whether the matrix of so many configurations is stored."""
    return 4 * total**2 <= MATRIX_BYTES
