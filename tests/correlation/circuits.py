"""Spaces and circuits of a few contacts, small enough to list and to compute by definition."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from fieldcorr.configurations.space import ProductSpace
from fieldcorr.correlation.whole import Circuit, Whole
from tests.correlation.strategies import seeds


class Case(NamedTuple):
    """A space, its circuit, and every configuration of it by brute force."""

    space: ProductSpace
    circuit: Circuit
    polarity: NDArray[np.int8]

    @property
    def whole(self) -> Whole:
        return Whole(self.space, self.circuit)


def circuit(size: int, seed: int, mode: str = "voltage", *, grounded: bool = False) -> Circuit:
    """Make a network of conductances between all contacts, and lead fields of full rank."""
    rng = np.random.default_rng(seed)
    between = np.triu(rng.uniform(0.1, 1.0, (size, size)), 1)
    between += between.T
    y = np.diag(between.sum(axis=1)) - between
    if grounded:
        y += np.diag(rng.uniform(0.0, 0.5, size))
    fields = rng.standard_normal((size, 2 * size))
    shares = rng.uniform(0.5, 2.0, size) if mode == "current" and seed % 2 else None
    return Circuit(fields @ fields.T, y, mode, shares)


def listed(allowed: NDArray[np.bool_], limits: tuple[int, ...]) -> NDArray[np.int8]:
    """List a space by definition: all 3^E rows in order of id, less what is not allowed."""
    size = len(allowed)
    digits = np.arange(3**size)[:, None] // 3 ** np.arange(size) % 3
    anodes, cathodes = (digits == 1).sum(axis=1), (digits == 2).sum(axis=1)
    kept = allowed[np.arange(size), digits].all(axis=1)
    least_c, most_c, least_a, most_a, least, most = limits
    for number, low, high in (
        (cathodes, least_c, most_c),
        (anodes, least_a, most_a),
        (anodes + cathodes, least, most),
    ):
        kept &= (number >= low) & (number <= high)
    return np.where(digits[kept] == 2, -1, digits[kept]).astype(np.int8)


def everything(size: int, made: Circuit) -> Case:
    """Return all configurations with an anode and a cathode."""
    allowed, limits = np.ones((size, 3), dtype=np.bool_), (1, size, 1, size, 0, size)
    return Case(ProductSpace(allowed, limits), made, listed(allowed, limits))


@st.composite
def cases(draw: st.DrawFn, *, most: int = 7) -> Case:
    """Make a space with forbidden digits and limits, of at least three configurations."""
    size, rng = draw(st.integers(3, most)), np.random.default_rng(draw(seeds))
    allowed = rng.random((size, 3)) < draw(st.sampled_from([1.0, 0.8]))
    allowed[~allowed.any(axis=1), 0] = True
    allowed[:2] = True
    limits = (
        *(1, draw(st.integers(2, size))),
        *(1, draw(st.integers(2, size))),
        *(draw(st.integers(0, 2)), draw(st.integers(3, size))),
    )
    mode = draw(st.sampled_from(["voltage", "current"]))
    made = circuit(size, draw(st.integers(0, 10**6)), mode, grounded=draw(st.booleans()))
    return Case(ProductSpace(allowed, limits), made, listed(allowed, limits))


def definition(case: Case) -> NDArray[np.float64]:
    """Return r (K, K) of all configurations, a' G a over the norms."""
    a = case.circuit.currents(case.polarity)
    c = a @ case.circuit.gram @ a.T
    return np.asarray(c / np.sqrt(np.outer(np.diag(c), np.diag(c))))
