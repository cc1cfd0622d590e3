"""Pictures of how sure r is show the numbers of the store and of the sweep."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fieldcorr import plot
from fieldcorr.batch import precompute
from fieldcorr.store import Store
from fieldcorr.store.sweeps import SweepStore
from fieldcorr.sweep import load_sweep, run_sweep
from fieldcorr.sweep.analysis import variance_shares
from tests.sweep.conftest import write_sweep_file


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> SweepStore:
    folder = tmp_path_factory.mktemp("sweep")
    return run_sweep(load_sweep(write_sweep_file(folder)), folder / "sweep.h5", cache=folder)


@pytest.fixture(scope="module")
def sure(sweep: SweepStore) -> Iterator[Store]:
    folder = sweep.path.parent
    options: dict[str, Any] = {"mesh": "tiny", "estimate": False, "cache": folder, "sweep": sweep}
    with precompute(folder / "model.toml", folder / "sure.h5", **options) as store:
        yield store


def test_spread_shows_mean_and_quantiles(sure: Store) -> None:
    (ax,) = list[Any](plot.spread(sure, 5, count=7).axes)
    others, r = sure.nearest(5, 7)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), r)
    thin = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(thin.T, sure.ensemble.quantiles(5, [0.05, 0.95])[:, others])
    assert [label.get_text() for label in ax.get_yticklabels()] == [sure.texts[k] for k in others]


def test_inputs_shows_shares_by_size(sweep: SweepStore) -> None:
    (ax,) = list[Any](plot.inputs(sweep).axes)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [100.0 * s for s in variance_shares(sweep).values()])


def test_trust_counts_neighbours_that_stay(sure: Store) -> None:
    figure = plot.trust(sure, most=9)
    shown = np.asarray(figure.axes[0].collections[1].get_array())
    assert shown.shape == (9,)
    near = sure.ensemble.among_nearest(0, 10)
    assert shown[0] == (near >= 0.9 - 1e-12).sum()
