"""The model as a whole: every table of a model file, the device, and what follows from them.

What flows in: tables read from TOML. What flows out: :class:`Model`, whose attributes mirror the
keys of the file. Checks that need more than one table are made here.
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

from fieldcorr.model._base import Name, Table, WholeNumber
from fieldcorr.model.checks import check_model
from fieldcorr.model.device import Device
from fieldcorr.model.geometry import Geometry
from fieldcorr.model.placement import Placement, place
from fieldcorr.model.rules import Rules
from fieldcorr.model.tables import (
    Array,
    Boundary,
    Contacts,
    Drive,
    Measure,
    MeshFiles,
    Region,
    Solver,
)
from fieldcorr.model.tissues import Tissue

FloatArray = NDArray[np.float64]


class ModelFile(Table):
    """The keys of a model file."""

    format: Annotated[Literal[1], WholeNumber]
    """Version of the file format."""
    name: Name
    description: str = ""
    geometry: Geometry
    array: Array
    tissues: Annotated[dict[Name, Tissue], Field(min_length=1)]
    contacts: Contacts = Contacts()
    boundary: Boundary = Boundary()
    drive: Drive = Drive()
    region: Region = Region()
    measure: Measure = Measure()
    solver: Solver = Solver()
    mesh: MeshFiles = MeshFiles()
    configurations: Rules = Rules()


class Model(ModelFile):
    """A model file together with its device; make one with :func:`fieldcorr.load_model`.

    Attributes
    ----------
    device
        The electrode array that ``array.device`` names.
    text
        The exact text of the model file.
    path
        The model file.
    """

    device: Device
    text: str = Field(repr=False)
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
        from fieldcorr.notebook import model_card

        return model_card(self)

    def content(self) -> dict[str, Any]:
        """Return every value of the model, device included, with defaults filled in."""
        return self.model_dump(mode="json", exclude={"text", "path"})

    def replace(self, changes: Mapping[str, Any]) -> "Model":
        """Return a model with changed values, validated anew.

        Parameters
        ----------
        changes
            Values by dotted key of the model file, such as ``{"geometry.cord.width_mm": 9.0}``.
            ``array.device`` may name another device file.

        Raises
        ------
        ModelError
            A key is unknown, or the changed model cannot be.
        """
        from fieldcorr.model.load import changed_model

        return changed_model(self, changes)

    def _shapes(self) -> dict[str, Any]:
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
        check_model(self)
        return self


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
