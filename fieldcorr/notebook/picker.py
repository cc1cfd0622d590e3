"""The picker in a notebook: press contacts of the array, see currents, fields and neighbours."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fieldcorr.configurations.text import format_configuration, parse_configuration
from fieldcorr.errors import missing_extra
from fieldcorr.web.assets import asset, joined_module
from fieldcorr.web.data import page_data

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise missing_extra("the picker", "anywidget", "widget") from error

if TYPE_CHECKING:
    from fieldcorr.store import Store


class Picker(anywidget.AnyWidget):  # type: ignore[misc, no-any-unimported, unused-ignore]
    """Any pattern of the array of a store, pressed with the mouse or set from Python.

    ``picker.value`` is its text, such as "5- 7+"; setting it moves the picker, and
    ``picker.observe(function, "value")`` calls back when it is changed.
    """

    _esm = joined_module("widget")
    # In a notebook the colours belong to the widget, not to the whole document.
    _css = asset("page.css").replace(":root, .fieldcorr", ".fieldcorr")
    data = traitlets.Dict().tag(sync=True)
    value = traitlets.Unicode().tag(sync=True)

    def __init__(self, store: "Store", configuration: str | int = 0) -> None:
        self._names = store.contact_names
        text = configuration if isinstance(configuration, str) else store.texts[configuration]
        super().__init__(data=page_data(store), value=text)

    @property
    def polarity(self) -> NDArray[np.int8]:
        """The pattern (E,): -1 cathode, 0 off, +1 anode."""
        return parse_configuration(self.value, self._names)

    @traitlets.validate("value")  # type: ignore[misc, untyped-decorator, unused-ignore]
    def _checked(self, proposal: Any) -> str:
        """Write a configuration the one way it is written, or say what is wrong with it."""
        names = self._names
        return format_configuration(parse_configuration(proposal["value"], names), names)
