"""HTML summaries: well-formed, with the array, and true figures."""

from html.parser import HTMLParser

import numpy as np
import pytest

from fieldcorr.duel import CorrDuel
from fieldcorr.leadfield import LeadField
from fieldcorr.mesh import Mesh
from fieldcorr.mesh.structured import box_mesh
from fieldcorr.model import Model
from fieldcorr.store import Store


class Text(HTMLParser):
    """Collects the text of an HTML fragment and checks that tags are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.words)


def shown(thing: Model | Mesh | LeadField | Store | CorrDuel) -> str:
    html = thing._repr_html_()
    assert html.count("<svg") == 1
    return Text(html).text


def test_model_card(bundled_model: Model) -> None:
    text = shown(bundled_model)
    assert "lumbosacral-565" in text
    assert "white 0.6 / 0.083" in text
    assert bundled_model.hash[:12] in text


def test_mesh_card(tiny_mesh: Mesh) -> None:
    text = shown(tiny_mesh)
    assert f"{tiny_mesh.n_cells:,}".replace(",", "\u2009") in text
    assert "16 of 6 mm\u00b2" in text
    volume = tiny_mesh.volumes()[tiny_mesh.cell_tags == tiny_mesh.tissues.index("grey")].sum()
    assert f"grey {1e6 * volume:.3g} cm\u00b3" in text


def test_mesh_without_contacts_has_no_picture() -> None:
    html = box_mesh(1, 1, 1)._repr_html_()
    assert "<svg" not in html
    assert "medium 1e+03 L" in Text(html).text


def test_lead_field_card(lead_field: LeadField) -> None:
    text = shown(lead_field)
    assert f"{lead_field.iterations} steps" in text
    assert "P2 on" in text


def test_store_card(store: Store) -> None:
    text = shown(store)
    assert "240 of 16 electrodes" in text
    assert "rank 15" in text
    assert "not estimated" in text
    assert store.texts[120] in text


@pytest.mark.parametrize(
    "record",
    [None, [], 3, {"measure": 5, "drive": []}, {"companion": {"max": "much"}}, {"order_one": 1.0}],
)
def test_store_card_of_a_store_with_another_provenance(
    store: Store, record: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "record", lambda *_: record)
    assert "not estimated" in shown(store)


def test_duel_card_names_the_leader(store: Store) -> None:
    engine = CorrDuel(store, horizon=30, seed=1)
    assert "no duel yet" in shown(engine)
    for _ in range(10):
        i, j = engine.ask()
        engine.tell(min(i, j), max(i, j))
    text = shown(engine)
    assert "10 of 30" in text
    assert f"leads: {store.texts[engine.best]}" in text


def test_duel_on_a_plain_matrix_has_no_picture() -> None:
    engine = CorrDuel(np.eye(5), horizon=3)
    assert "<svg" not in engine._repr_html_()
