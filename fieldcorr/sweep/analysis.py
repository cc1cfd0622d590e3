"""What a sweep says: how far r moves, which neighbours stay, which input matters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldcorr.correlation.ensemble import Ensemble, average, deviation, nearest_marks
from fieldcorr.store.sweeps import SweepStore

Floats = NDArray[np.float64]

ROWS = 64
"""Configurations that stand for all in summaries, evenly spread."""

NEAREST = 10


@dataclass(frozen=True)
class Summary:
    """How far r moves over the samples, from some rows with everyone."""

    spread_rms: float  # of the standard deviation of r
    spread_p99: float
    spread_max: float
    from_nominal_rms: float  # of r of a sample less r of the model as it is
    from_nominal_p99: float
    from_nominal_max: float
    mean_from_nominal_max: float  # of the mean of r less r of the model as it is
    kept_mean: float  # share of the ten nearest of the model as it is that are so in a sample
    kept_least: float  # in the sample that keeps fewest


def chosen_rows(count: int, most: int = ROWS) -> NDArray[np.int64]:
    """Return evenly spread rows that stand for ``count`` configurations."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def summarise(sweep: SweepStore, *, weight: Floats | None = None) -> Summary:
    """Return how far r moves and how many neighbours stay."""
    samples, nominal = sweep.ensemble(weight), sweep.nominal()
    spreads, moved, means, kept = [], [], [], []
    for row in chosen_rows(len(sweep.polarity)):
        r, own = samples.rows(int(row)), nominal.rows(int(row))
        others = np.arange(r.shape[1]) != row
        spreads.append(deviation(r, samples.weight)[others])
        moved.append(np.abs(r - own)[:, others])
        means.append(np.abs(average(r, samples.weight) - own[0])[others])
        kept.append(shares_kept(r, own, int(row)))
    spread, away = np.concatenate(spreads), np.concatenate(moved, axis=1)
    kept_by_sample = np.mean(kept, axis=0)
    return Summary(
        *_three(spread),
        *_three(away[samples.weight > 0.0].ravel()),
        float(np.concatenate(means).max()),
        float(average(kept_by_sample, samples.weight)),
        float(kept_by_sample[samples.weight > 0.0].min()),
    )


def _three(values: Floats) -> tuple[float, float, float]:
    return (
        float(np.sqrt(np.mean(values**2))),
        float(np.quantile(values, 0.99)),
        float(values.max()),
    )


def shares_kept(r: Floats, nominal: Floats, i: int, n: int = NEAREST) -> Floats:
    """Return the share (M,) of the n nearest by ``nominal`` (1, K) that are so by r (M, K)."""
    before, now = nearest_marks(nominal, i, n), nearest_marks(r, i, n)
    return np.asarray((before & now).sum(axis=1) / before.sum())


def variance_shares(sweep: SweepStore, *, weight: Floats | None = None) -> dict[str, float]:
    """Return the share of the variance of r that each varied key explains alone, and the "rest".

    r of many pairs is fitted by a sum of terms, one linear in the place within each distribution,
    or one per value of a list; a key's share is the variance of its term, less what chance gives,
    over the whole variance, both summed over pairs. First-order shares only: the rest is
    curvature, interaction, and chance.
    """
    samples = sweep.ensemble(weight)
    blocks = _terms(sweep)
    design = np.hstack([np.ones((len(sweep), 1)), *blocks])
    root = np.sqrt(samples.weight)[:, None]
    inverse = np.linalg.pinv(root * design)
    degrees = max(len(sweep) - design.shape[1], 1)
    explained, total = np.zeros(len(blocks)), 0.0
    for row in chosen_rows(len(sweep.polarity)):
        r = np.delete(samples.rows(int(row)), row, axis=1)
        fit = inverse @ (root * r)
        left = root * (r - design @ fit)
        noise = (left**2).sum(axis=0) * len(sweep) / degrees  # variance of one sample about the fit
        total += float(((r - average(r, samples.weight)) ** 2 * samples.weight[:, None]).sum())
        start = 1
        for k, block in enumerate(blocks):
            part = slice(start, start := start + block.shape[1])
            centred = block - average(block, samples.weight)
            term = centred @ fit[part]
            chance = (samples.weight[:, None] * (centred @ inverse[part]) ** 2).sum() / len(sweep)
            own = (term**2 * samples.weight[:, None]).sum(axis=0) - chance * noise
            explained[k] += own.sum()
    shares = np.maximum(explained, 0.0) / total if total > 0.0 else explained
    named = dict(zip(sweep.keys, shares.tolist(), strict=True))
    ordered = dict(sorted(named.items(), key=lambda item: -item[1]))
    return {**ordered, "rest": max(0.0, 1.0 - float(shares.sum()))}


def _terms(sweep: SweepStore) -> list[Floats]:
    """Return for each key the columns (M, c) that r is fitted by."""
    out = []
    for column, (point, law) in enumerate(zip(sweep.points.T, sweep.laws, strict=True)):
        if law["distribution"] != "values":
            out.append(point[:, None])
            continue
        count = len(law["values"])
        place = np.minimum((sweep.points[:, column] * count).astype(np.int64), count - 1)
        out.append(np.eye(count)[place][:, 1:])
    return out


def trusted_neighbours(
    samples: Ensemble, rows: Sequence[int], *, sure: float = 0.9, n: int = NEAREST
) -> Floats:
    """Return for each of ``rows`` how many are among its n nearest at least that probably."""
    found = [(samples.among_nearest(int(row), n) >= sure - 1e-12).sum() for row in rows]
    return np.array(found, dtype=np.float64)
