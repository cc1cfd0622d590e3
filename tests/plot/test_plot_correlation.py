"""Pictures of r: what is shown is r, in an order that is one; counts are counts."""

import base64
import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from fieldcorr import plot
from fieldcorr.correlation.order import ordered
from fieldcorr.errors import ConfigurationError, CorrelationError
from fieldcorr.plot.correlation_view import groups, neighbourhood_sizes, principal_axes
from fieldcorr.store import Store


def first_axes(figure: Figure) -> Any:
    return figure.axes[0]


def two_blocks() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return r of two groups that alternate: even rows belong together, odd rows too."""
    side = np.arange(12) % 2
    near = 0.9 - 0.02 * np.abs(np.arange(12)[:, None] - np.arange(12))
    r = np.where(side[:, None] == side, near, -near)
    np.fill_diagonal(r, 1.0)
    return np.asarray(r)


@pytest.mark.parametrize("order", ["hierarchical", "spectral"])
def test_orders_bring_blocks_together(order: str) -> None:
    turned = ordered(two_blocks(), order)
    assert sorted(turned) == list(range(12))
    assert np.count_nonzero(np.diff(turned % 2)) == 1


def test_spectral_order_finds_a_line() -> None:
    place = np.random.default_rng(2).permutation(30)
    r = np.exp(-np.abs(place[:, None] - place) / 10.0)
    along = place[ordered(r, "spectral")]
    assert list(along) in (list(range(30)), list(range(29, -1, -1)))


def test_stored_order_is_kept() -> None:
    np.testing.assert_array_equal(ordered(two_blocks(), "stored"), np.arange(12))


def test_unknown_orders_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="order 'random' is not one of hierarchical"):
        plot.heat_map(two_blocks(), order="random")


def test_heat_map_shows_r(store: Store) -> None:
    figure = plot.heat_map(store, order="hierarchical")
    ax = first_axes(figure)
    (image,) = ax.images
    shown = np.asarray(image.get_array())
    r = np.stack([store.row(k) for k in range(len(store))])
    turned = ordered(r.astype(np.float64), "hierarchical")
    np.testing.assert_allclose(shown, r[np.ix_(turned, turned)])
    assert image.get_clim() == (-1.0, 1.0)
    assert ax.get_title() == "r of 240 configurations"


def test_heat_map_of_a_part_says_so(store: Store) -> None:
    figure = plot.heat_map(store, most=50, order="stored")
    assert "50 of 240" in first_axes(figure).get_title()
    chosen = plot.heat_map(store, rows=[3, 1], order="stored")
    shown = np.asarray(first_axes(chosen).images[0].get_array())
    np.testing.assert_allclose(shown, [[1.0, store.row(3)[1]], [store.row(3)[1], 1.0]])


def test_distribution_counts_all_pairs_but_the_diagonal(store: Store) -> None:
    ax = first_axes(plot.correlations(store, bins=20))
    (stairs,) = ax.patches
    values, edges, _ = stairs.get_data()
    assert values.sum() == pytest.approx(100.0)
    r = np.stack([store.row(k) for k in range(len(store))])
    pairs = r[~np.eye(len(r), dtype=bool)]
    np.testing.assert_allclose(values, 100 * np.histogram(pairs, edges)[0] / pairs.size)
    # Every configuration has its mirror in the set, so r and -r come equally often.
    np.testing.assert_allclose(values[1:-1], values[-2:0:-1], atol=0.02)


def test_neighbourhood_sizes_leave_out_the_configuration_itself(store: Store) -> None:
    r = np.stack([store.row(k) for k in range(len(store))])
    sizes = neighbourhood_sizes(r, [0.0, 0.9])
    for row in (0, 77):
        indices, values = store.neighbours(row)
        assert sizes[row, 0] == len(indices)
        assert sizes[row, 1] == np.count_nonzero(values > 0.9)


def test_neighbourhood_curves_end_at_all(store: Store) -> None:
    ax = first_axes(plot.neighbourhoods(store, levels=(0.0, 0.9)))
    for line in ax.lines:
        x, y = line.get_data()
        assert y[-1] == pytest.approx(100.0)
        assert (np.diff(x) >= 0).all()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "r > 0: median 119" in names


def test_principal_axes_are_orthogonal_and_ordered(store: Store) -> None:
    everything, share = principal_axes(store.embedding, (0, 1))
    assert everything[:, 0] @ everything[:, 1] == pytest.approx(0.0, abs=1e-9)
    assert share[0] >= share[1]
    rest = principal_axes(store.embedding, (2, 3))[1]
    assert share[1] >= rest[0]
    assert (np.linalg.norm(everything, axis=1) <= 1 + 1e-12).all()


def test_embedding_is_coloured_by_r(store: Store) -> None:
    row = store.index_of("1- 7+")
    figure = plot.embedding(store, reference="1- 7+", marked=[5])
    ax = first_axes(figure)
    points = ax.collections[0]
    np.testing.assert_allclose(points.get_array(), store.row(row), atol=1e-6)
    assert points.get_clim() == (-1.0, 1.0)
    assert {text.get_text() for text in ax.texts} == {"1- 7+", store.texts[5]}
    mirror = store.index_of("1+ 7-")
    flat = np.asarray(points.get_offsets())
    np.testing.assert_allclose(flat[mirror], -flat[row], atol=1e-9)


def test_many_marked_points_are_ringed_without_names(store: Store) -> None:
    ax = first_axes(plot.embedding(store, marked=np.arange(20)))
    assert len(ax.collections) == 21
    assert not any(text.get_text() for text in ax.texts)


def test_plain_arrays_will_do() -> None:
    z = np.eye(4)[:, :3]
    z[3] = z[0]
    assert (
        first_axes(plot.embedding(z, reference=2)).get_title() == "4 configurations by their fields"
    )
    assert first_axes(plot.correlations(two_blocks())).get_title().endswith("12 configurations")


def test_wrong_shapes_are_named() -> None:
    with pytest.raises(CorrelationError, match="shape \\(3, 2\\)"):
        plot.heat_map(np.zeros((3, 2)))
    with pytest.raises(CorrelationError, match="only a store knows texts"):
        plot.embedding(np.eye(3), reference="0- 5+")
    with pytest.raises(CorrelationError, match="rank 3 only"):
        plot.embedding(np.eye(3), axes=(0, 3))


def test_groups_are_named_by_a_member(store: Store) -> None:
    ax = plot.heat_map(store).axes[0]
    names = [label.get_text() for label in ax.get_yticklabels() if label.get_text()]
    assert names
    for name in names:
        text, size = name.rsplit(" (", 1)
        assert text in store.texts
        assert int(size.rstrip(")")) > 0


def test_groups_are_runs_of_the_hierarchical_order(store: Store) -> None:
    r = np.stack([store.row(k) for k in range(len(store))]).astype(float)
    run = groups(r)[ordered(r, "hierarchical")]
    assert np.count_nonzero(np.diff(run)) == len(np.unique(run)) - 1 == 7


def test_axes_say_what_they_mean(store: Store) -> None:
    ax = plot.embedding(store).axes[0]
    assert "cathodes rostral" in ax.get_xlabel()
    assert "cathodes caudal" in ax.get_xlabel()
    low = ax.get_xlabel().splitlines()[1].split("\u2190")[0].strip()
    flat, _ = principal_axes(np.asarray(store.embedding), (0, 1))
    lowest = str(store.texts[int(flat[:, 0].argmin())])
    signs = {word[-1]: int(word[:-1]) for word in lowest.split()}
    height = store.contact_positions[:, 2]
    is_rostral = height[signs["-"]] > height[signs["+"]]
    assert low == ("cathodes rostral" if is_rostral else "cathodes caudal")


def test_names_of_marked_points_do_not_cover_each_other(store: Store) -> None:
    near, _ = store.nearest(store.index_of("5- 7+"), 4)
    figure = plot.embedding(store, marked=[int(k) for k in near])
    figure.draw_without_rendering()
    ax = figure.axes[0]
    # Of the letters: a line to the point belongs to an annotation's own extent.
    boxes = [Text.get_window_extent(text) for text in ax.texts if text.get_text()]
    assert len(boxes) == 4
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_hover_map_names_every_point(store: Store) -> None:
    svg = plot.hover_map(store, reference="5- 7+")._repr_html_()
    root = ElementTree.fromstring(svg)
    titles = [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}title")][1:]
    assert [title.split(",")[0] for title in titles] == list(store.texts)
    assert "5- 7+, r = 1.000" in titles


def test_hover_heat_map_knows_every_pair(store: Store) -> None:
    svg = plot.hover_heat_map(store, most=30)._repr_html_()
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    found = re.search(r"data=(\{.*?\}),n=", svg)
    assert found is not None
    data = json.loads(found[1])
    rows = [store.index_of(name) for name in data["names"]]
    r = np.stack([store.row(row)[rows] for row in rows])
    low = np.frombuffer(base64.b64decode(data["r"]), np.uint8)[: len(rows) * (len(rows) + 1) // 2]
    np.testing.assert_allclose(low / 100.0 - 1.0, r[np.tril_indices(len(rows))], atol=0.00501)


def test_hover_heat_map_takes_a_matrix() -> None:
    assert '"names": ["' in plot.hover_heat_map(two_blocks()).svg
