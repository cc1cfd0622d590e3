"""The model as a whole: every table of a model file, the device, and what follows from them.

The attributes of :class:`Model` mirror the keys of the file. Checks that need more than one table
are made here; their messages begin with the key that is wrong.
"""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fieldcorr.errors import ConfigurationError
from fieldcorr.model._base import Name, Table, WholeNumber
from fieldcorr.model.device import Device
from fieldcorr.model.geometry import Geometry
from fieldcorr.model.mistakes import did_you_mean, nearest
from fieldcorr.model.placement import Placement, place
from fieldcorr.model.rules import Rules
from fieldcorr.model.tables import (
    REQUIRED_TISSUES,
    ArrayTable,
    BoundaryTable,
    ContactsTable,
    DriveTable,
    MeasureTable,
    MeshTable,
    RegionTable,
    SolverTable,
    StimulatorTable,
    Tissue,
)

FloatArray = NDArray[np.float64]


class ModelFile(Table):
    """The keys of a model file."""

    format: Annotated[Literal[1], WholeNumber]
    """Version of the file format."""
    name: Name
    description: str = ""
    geometry: Geometry
    array: ArrayTable
    tissues: Annotated[dict[Name, Tissue], Field(min_length=1)]
    contacts: ContactsTable = ContactsTable()
    boundary: BoundaryTable = BoundaryTable()
    drive: DriveTable = DriveTable()
    stimulator: StimulatorTable | None = None
    region: RegionTable = RegionTable()
    measure: MeasureTable = MeasureTable()
    solver: SolverTable = SolverTable()
    mesh: MeshTable = MeshTable()
    configurations: Rules = Rules()


class Model(ModelFile):
    """A model file together with its device; make one with :func:`fieldcorr.load_model`."""

    device: Device
    """The electrode array that ``array.device`` names."""
    text: str = Field(repr=False)
    """The exact text of the model file."""
    path: Path

    def __repr__(self) -> str:
        return f"Model(name={self.name!r}, device={self.device.name!r})"

    @property
    def rules(self) -> Rules:
        """The validated table ``[configurations]``."""
        return self.configurations

    @cached_property
    def placement(self) -> Placement:
        """Where the paddle lies: rotation, face centre and corners in model axes."""
        return place(self.geometry, self.array, self.device)

    @property
    def contact_positions_m(self) -> FloatArray:
        """Centres (E, 3) of the paddle's contacts on its face, in model axes, m."""
        return self.placement.to_model_m(self.device.positions_m)

    @property
    def electrode_names(self) -> tuple[str, ...]:
        """Names of all electrodes: the paddle's contacts, then "case" where it is one."""
        case = ("case",) if self.boundary.outer == "case" else ()
        return self.device.contact_names + case

    @property
    def electrode_positions_m(self) -> FloatArray:
        """Centres of all electrodes in model axes, m, in the order of ``electrode_names``."""
        if self.boundary.outer != "case":
            return self.contact_positions_m
        return np.vstack([self.contact_positions_m, self.case_position_m])

    @property
    def case_position_m(self) -> FloatArray:
        """Centre (3,) of the case patch on the torso's surface, m."""
        torso, case = self.geometry.torso, self.boundary.case
        angle = np.deg2rad(case.angle_degree)
        left = torso.radius_mm * np.sin(angle)
        dorsal = torso.offset_dorsal_mm + torso.radius_mm * np.cos(angle)
        return 1e-3 * np.array([left, dorsal, case.offset_rostral_mm])

    @property
    def window_centre_m(self) -> float:
        """Rostral coordinate of the window's centre: the array's centre, m."""
        return 1e-3 * self.array.offset_rostral_mm

    @property
    def hash(self) -> str:
        """sha256 of what the model says, device included; comments and layout do not count."""
        return _digest(self.content())

    @property
    def geometry_hash(self) -> str:
        """sha256 of what a mesh is made from: shapes, array, device and mesh sizes."""
        return _digest({**self._shapes(), "sizes": self.mesh.sizes.model_dump()})

    @property
    def shape_hash(self) -> str:
        """sha256 of the shapes alone, the same for a fine and a coarse mesh."""
        return _digest(self._shapes())

    def _repr_html_(self) -> str:
        from fieldcorr.notebook.cards import model_card

        return model_card(self)

    def content(self) -> dict[str, Any]:
        """Return every value of the model, device included, with defaults filled in."""
        return self.model_dump(mode="json", exclude={"text", "path"})

    def replace(self, changes: Mapping[str, object]) -> "Model":
        """Return a model with changed values, validated anew.

        ``changes`` are values by dotted key of the model file, such as ``{"geometry.cord.width_mm":
        9.0}``; ``array.device`` may name another device file. An unknown key, or a model that
        cannot be, is a ModelError.
        """
        from fieldcorr.model.load import changed_model

        return changed_model(self, changes)

    def _shapes(self) -> dict[str, object]:
        notes = {"source", "nominal"}
        return {
            "geometry": {
                name: getattr(self.geometry, name).model_dump(exclude=notes)
                for name in Geometry.model_fields
            },
            "array": self.array.model_dump(exclude={*notes, "device"}),
            "device": self.device.model_dump(include={"paddle", "contact", "contacts"}),
            "case": self.boundary.case.model_dump(exclude=notes),
        }

    @model_validator(mode="after")
    def _consistent(self) -> "Model":
        _check_tissues(self)
        _ = self.placement
        _check_extents(self)
        _check_contact_names(self)
        _check_listed_configurations(self)
        _check_stimulator(self)
        return self


def _check_tissues(model: Model) -> None:
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


def _check_extents(model: Model) -> None:
    """Refuse a window or a case patch that the torso is too small for."""
    torso, case, window = model.geometry.torso, model.boundary.case, model.region
    beyond = f"reaches out of geometry.torso.length_mm = {torso.length_mm:g}"
    reach = abs(model.array.offset_rostral_mm) + window.window_half_length_mm
    if reach > torso.length_mm / 2:
        raise ValueError(
            f"region.window_half_length_mm = {window.window_half_length_mm:g}: the window around "
            f"the array {beyond}"
        )
    if abs(case.offset_rostral_mm) + case.height_mm / 2 >= torso.length_mm / 2:
        raise ValueError(
            f"boundary.case: a patch of height_mm = {case.height_mm:g} at offset_rostral_mm = "
            f"{case.offset_rostral_mm:g} {beyond}"
        )
    if case.width_mm >= np.pi * torso.radius_mm:
        raise ValueError(
            f"boundary.case.width_mm = {case.width_mm:g} is more than half of the torso's "
            f"circumference (geometry.torso.radius_mm = {torso.radius_mm:g})"
        )


def _check_contact_names(model: Model) -> None:
    names = model.electrode_names
    named = [("drive.fractions", name) for name in model.drive.fractions]
    for key in ("excluded", "off", "on"):
        named += [(f"configurations.{key}", name) for name in getattr(model.rules, key)]
    for key, name in named:
        if name not in names:
            raise ValueError(f'{key}: "{name}" is not a contact; contacts are {", ".join(names)}')


def _check_listed_configurations(model: Model) -> None:
    if not model.rules.include and not model.rules.exclude:
        return
    from fieldcorr.configurations.text import parse_configuration

    for key in ("include", "exclude"):
        for text in getattr(model.rules, key):
            try:
                parse_configuration(text, model.electrode_names)
            except ConfigurationError as error:
                raise ValueError(f"configurations.{key}: {error}") from error


def _check_stimulator(model: Model) -> None:
    from fieldcorr.stimulation import LIMITS, check_impedances

    given = [key for key in LIMITS if getattr(model.rules, key) is not None]
    stimulator = model.stimulator
    if stimulator is None:
        if given:
            raise ValueError(f"configurations.{given[0]}: needs the table [stimulator]")
        return
    try:
        check_impedances(stimulator.impedance_ohm, model.electrode_names)
    except ConfigurationError as error:
        raise ValueError(f"stimulator.impedance_ohm: {error}") from error
    if given and stimulator.control == "voltage" and not stimulator.impedance_ohm:
        raise ValueError(
            f"configurations.{given[0]}: needs a measured impedance in stimulator.impedance_ohm, "
            'or control = "current"'
        )


def _digest(content: Mapping[str, object]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
