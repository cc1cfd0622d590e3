"""How a long computation says how far it is: one kind of function for all of them."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the share of it that is done, from 0 to 1."""


def silent(stage: str, done: float) -> None:
    """Report to nobody."""
