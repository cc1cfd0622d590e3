"""Correlations to test with: sound ones, indefinite ones, duplicates and mirrors."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

seeds = st.integers(0, 2**32 - 1)


@st.composite
def embeddings(draw: st.DrawFn, *, least: int = 2, most: int = 40) -> NDArray[np.float64]:
    """Make unit rows, some of them duplicates or mirror images of others."""
    rng = np.random.default_rng(draw(seeds))
    count, rank = draw(st.integers(least, most)), draw(st.integers(1, 17))
    z = rng.standard_normal((count, rank)) * draw(st.sampled_from([1.0, 0.5])) ** np.arange(rank)
    z /= np.linalg.norm(z, axis=1)[:, None]
    for _ in range(draw(st.integers(0, 3))):
        source, target = rng.integers(count, size=2)
        z[target] = draw(st.sampled_from([-1.0, 1.0])) * z[source]
    return z


@st.composite
def symmetric_matrices(draw: st.DrawFn, *, most: int = 30) -> NDArray[np.float64]:
    """Make a symmetric matrix with ones on the diagonal, otherwise anything in [-1, 1]."""
    rng = np.random.default_rng(draw(seeds))
    count = draw(st.integers(2, most))
    half = np.triu(rng.uniform(-1, 1, (count, count)), 1)
    special = np.triu(rng.random((count, count)) < draw(st.sampled_from([0.0, 0.3])), 1)
    values = np.array([-1.0, 1.0, 1.0 + 1e-15, 0.0, 1e-9, 0.01])
    half[special] = rng.choice(values, np.count_nonzero(special))
    return half + half.T + np.eye(count)


@st.composite
def duels(draw: st.DrawFn, count: int) -> tuple[int, int]:
    """Choose two different arms."""
    winner = draw(st.integers(0, count - 1))
    loser = draw(st.integers(0, count - 2))
    return winner, loser + (loser >= winner)
