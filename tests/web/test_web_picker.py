"""The picker of a notebook: its value in Python, its picture in a browser."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from fieldcorr.errors import ConfigurationError
from fieldcorr.store import Store

# What anywidget hands to a module, with the messages that would go to Python kept in a list.
MODEL = """([data, value]) => {
  const listeners = [];
  window.sent = [];
  window.model = {
    values: { data, value },
    get: (name) => model.values[name],
    set: (name, value) => { model.values[name] = value; },
    save_changes: () => sent.push(model.values.value),
    on: (_, act) => listeners.push(act),
    off: (_, act) => listeners.splice(listeners.indexOf(act), 1),
    fromPython: (value) => { model.values.value = value; listeners.forEach((act) => act()); },
  };
}"""


@pytest.fixture(scope="module")
def picker(store: Store) -> Any:
    from fieldcorr import notebook

    return notebook.Picker(store, "5- 7+")


def test_the_value_is_a_configuration(picker: Any) -> None:
    seen: list[str] = []
    picker.observe(lambda change: seen.append(change["new"]), "value")
    picker.value = "11+ 0-"
    assert picker.value == "0- 11+"
    assert picker.polarity.sum() == 0
    with pytest.raises(ConfigurationError, match="unknown contact '99'"):
        picker.value = "99+"
    assert (picker.value, seen) == ("0- 11+", ["0- 11+"])


def test_it_is_drawn_and_pressed(picker: Any, open_page: Callable[..., Any]) -> None:
    page = open_page(color_scheme="dark")
    page.evaluate(MODEL, [json.loads(json.dumps(picker.data)), "5- 7+"])
    page.add_style_tag(content=picker._css)
    place = "document.body.appendChild(document.createElement('div'))"
    start = f"\nexport {{}};\nawait render({{ model, el: {place} }}); window.drawn = true;"
    esm = picker._esm.replace("export default { render };", start)
    page.add_script_tag(type="module", content=esm)
    page.wait_for_function("window.drawn")
    page.locator("button[aria-label='contact 6: off']").click()
    assert page.evaluate("sent") == ["5- 6- 7+"]
    page.evaluate("model.fromPython('0- 11+')")
    assert page.get_by_label("Configuration", exact=True).input_value() == "0- 11+"
    blank = "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, 99, 99).data).size"
    assert page.locator("canvas.section").first.evaluate(blank) > 9
    # On the white page of a notebook its light letters stand on a ground of their own.
    ground = "e => getComputedStyle(e).backgroundColor"
    assert page.locator(".widget").evaluate(ground) == "rgb(26, 32, 38)"
