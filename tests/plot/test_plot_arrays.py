"""Pictures of arrays: orientation, labels, signs without colour."""

from io import BytesIO
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Polygon

from fieldcorr import plot
from fieldcorr.errors import ConfigurationError
from fieldcorr.model import Model
from fieldcorr.notebook.svg import STRETCH
from fieldcorr.plot.array_view import FittedText, has_long_names_in_a_column, polarity_of
from fieldcorr.store import Store


def only_axes(figure: Figure) -> Any:
    (ax,) = figure.axes
    return ax


def places(ax: Any) -> dict[str, tuple[float, float]]:
    """Return where texts stand in the picture, in pixels from the lower left corner."""
    ax.figure.draw_without_rendering()
    return {
        text.get_text(): tuple(text.get_transform().transform(text.get_position()))
        for text in ax.texts
    }


def test_left_is_left_and_rostral_is_up(bundled_model: Model) -> None:
    at = places(only_axes(plot.array(bundled_model, "0- 5+ 11+")))
    assert at["L"][0] < at["0\u2212"][0] < at["5+"][0] < at["11+"][0] < at["R"][0]
    assert at["5+"][1] > at["0\u2212"][1] > at["1"][1] > at["10"][1]


def test_contacts_lie_where_the_model_has_them(bundled_model: Model) -> None:
    ax = only_axes(plot.array(bundled_model))
    outlines = [p.get_xy()[:4] for p in ax.patches if isinstance(p, Polygon)][1:]
    wanted = 1e3 * bundled_model.contact_positions_m[:, [0, 2]]
    wanted[:, 0] *= STRETCH  # widths are drawn larger
    np.testing.assert_allclose([o.mean(axis=0) for o in outlines], wanted, atol=1e-9)


def test_cathodes_are_filled_and_anodes_open(bundled_model: Model) -> None:
    ax = only_axes(plot.array(bundled_model, "3- 12+"))
    contacts = [p for p in ax.patches if isinstance(p, Polygon)][1:]
    white = to_rgb("white")
    assert to_rgb(contacts[12].get_facecolor()) == white
    assert sum(to_rgb(contacts[3].get_facecolor())) < 1.5
    assert contacts[3].get_linewidth() > contacts[4].get_linewidth()


@pytest.mark.parametrize("size", [(1.0, 2.0), (3.0, 6.0)])
def test_labels_fit_their_contacts(bundled_model: Model, size: tuple[float, float]) -> None:
    figure = Figure(figsize=size, layout="constrained")
    ax: Any = figure.add_subplot()
    plot.array(bundled_model, "0- 5+ 11+ 12-", ax=ax)
    figure.savefig(BytesIO())
    for text in ax.texts:
        if isinstance(text, FittedText):
            box = np.ptp(ax.transData.transform(text._box), axis=0)
            label = text.get_window_extent()
            assert label.width <= box[0] + 1  # glyphs end on whole pixels
            assert label.height <= box[1] + 1


def test_title_names_the_configuration(bundled_model: Model) -> None:
    assert only_axes(plot.array(bundled_model, "5+ 0-")).get_title() == "0- 5+"
    assert only_axes(plot.array(bundled_model, "5+ 0-", title="x")).get_title() == "x"


def test_the_case_is_drawn_below(bundled_model: Model) -> None:
    model = bundled_model.replace({"boundary.outer": "case"})
    at = places(only_axes(plot.array(model, "7- case+")))
    assert at["case+"][1] < at["10"][1]


def test_an_axes_can_be_given(bundled_model: Model) -> None:
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot.array(bundled_model, "0- 5+", ax=right) is figure
    assert not left.texts
    assert right.texts


def test_arrays_have_one_panel_each(bundled_model: Model) -> None:
    figure = plot.arrays(bundled_model, ["0- 5+", "1- 5+", "2- 5+"], columns=2)
    titles = [ax.get_title() for ax in figure.axes if ax.texts]
    assert titles == ["0- 5+", "1- 5+", "2- 5+"]


def test_a_part_of_a_figure_can_be_filled(bundled_model: Model) -> None:
    figure = Figure()
    parts: Any = figure.subfigures(1, 2)
    part = parts[0]
    assert plot.arrays(bundled_model, ["0- 5+"], figure=part) is figure
    assert len(part.axes) == 1


def test_neighbours_come_by_falling_r(store: Store) -> None:
    row = store.index_of("1- 7+")
    figure = plot.neighbours(store, "1- 7+", count=4)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    r = store.row(row).astype(float)
    r[row] = -2.0
    wanted = np.argsort(-r, kind="stable")[:4]
    assert [title.splitlines()[0] for title in titles] == [
        "1- 7+",
        *(store.texts[k] for k in wanted),
    ]
    shown = [float(title.split("= ")[1]) for title in titles[1:]]
    np.testing.assert_allclose(shown, r[wanted], atol=5.1e-3)


def test_configurations_in_every_form(store: Store) -> None:
    row = store.index_of("1- 7+")
    for form in (row, "7+ 1-", store.polarity[row], np.int64(row)):
        np.testing.assert_array_equal(polarity_of(store, form), store.polarity[row])


def test_rows_need_a_store(bundled_model: Model) -> None:
    with pytest.raises(ConfigurationError, match="only a store has rows"):
        plot.array(bundled_model, 3)


def test_unknown_contacts_are_named(bundled_model: Model) -> None:
    with pytest.raises(ConfigurationError, match="unknown contact '16'"):
        plot.array(bundled_model, "16- 5+")


def test_nothing_to_draw_is_said(bundled_model: Model) -> None:
    with pytest.raises(ConfigurationError, match="no configuration"):
        plot.arrays(bundled_model, [])


def test_long_names_in_a_column_stand_beside_their_contacts() -> None:
    box = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]])
    column = np.stack([box, box, box])
    assert has_long_names_in_a_column(["tip", "ring", "end"], column)
    assert not has_long_names_in_a_column(["0", "1", "10"], column)
    step = np.array([5.0, 0.0])
    side_by_side = np.stack([box, box + step, box + 2 * step])
    assert not has_long_names_in_a_column(["tip", "ring", "end"], side_by_side)
