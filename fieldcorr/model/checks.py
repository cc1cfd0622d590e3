"""Checks of a model that need more than one of its tables.

What flows in: a model whose tables are sound each. What flows out: nothing, or a ``ValueError``
whose message begins with the key that is wrong.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fieldcorr.model.suggest import did_you_mean, nearest
from fieldcorr.model.tissues import REQUIRED_TISSUES

if TYPE_CHECKING:
    from fieldcorr.model.schema import Model


def check_model(model: "Model") -> None:
    """Check tissues, placement, window, case patch, drive and rules against each other."""
    _check_tissues(model)
    _ = model.placement
    _check_window(model)
    _check_case(model)
    _check_contact_names(model)
    _check_listed_configurations(model)


def _check_tissues(model: "Model") -> None:
    extra = [name for name in model.tissues if name not in REQUIRED_TISSUES]
    for name in REQUIRED_TISSUES:
        if name not in model.tissues:
            found = nearest(name, extra)
            hint = f"; is tissues.{found} meant to be it?" if found else ""
            raise ValueError(f"tissues.{name}: missing{hint}")
    for name in model.region.tissues:
        if name not in model.tissues:
            raise ValueError(
                f'region.tissues: "{name}" is not a tissue of the model'
                f"{did_you_mean(name, model.tissues)}"
            )


def _check_window(model: "Model") -> None:
    reach = abs(model.array.offset_rostral_mm) + model.region.window_half_length_mm
    if reach > model.geometry.torso.length_mm / 2:
        raise ValueError(
            f"region.window_half_length_mm = {model.region.window_half_length_mm:g}: the window "
            f"around the array reaches out of geometry.torso.length_mm = "
            f"{model.geometry.torso.length_mm:g}"
        )


def _check_case(model: "Model") -> None:
    torso, case = model.geometry.torso, model.boundary.case
    if abs(case.offset_rostral_mm) + case.height_mm / 2 >= torso.length_mm / 2:
        raise ValueError(
            f"boundary.case: a patch of height_mm = {case.height_mm:g} at offset_rostral_mm = "
            f"{case.offset_rostral_mm:g} reaches out of geometry.torso.length_mm = "
            f"{torso.length_mm:g}"
        )
    if case.width_mm >= np.pi * torso.radius_mm:
        raise ValueError(
            f"boundary.case.width_mm = {case.width_mm:g} is more than half of the torso's "
            f"circumference (geometry.torso.radius_mm = {torso.radius_mm:g})"
        )


def _check_contact_names(model: "Model") -> None:
    names = model.electrode_names
    for name in model.drive.fractions:
        _check_contact("drive.fractions", name, names)
    for key, name in model.rules.named_contacts():
        _check_contact(f"configurations.{key}", name, names)


def _check_contact(key: str, name: str, names: Iterable[str]) -> None:
    if name not in names:
        raise ValueError(f'{key}: "{name}" is not a contact; contacts are {", ".join(names)}')


def _check_listed_configurations(model: "Model") -> None:
    if not model.rules.include and not model.rules.exclude:
        return
    from fieldcorr.configurations.text import parse_configuration
    from fieldcorr.errors import ConfigurationError

    for key in ("include", "exclude"):
        for text in getattr(model.rules, key):
            try:
                parse_configuration(text, model.electrode_names)
            except ConfigurationError as error:
                raise ValueError(f"configurations.{key}: {error}") from error
