"""The electrode array: a device file of its own.

A device is a flat insulating paddle with rectangular contacts on the face towards the dura. Paddle
coordinates: left and rostral of the paddle's centre, in the plane of that face.
"""

from itertools import combinations
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from fieldcorr.model._base import Length, Name, Offset, SourcedTable, Table, TomlArray, WholeNumber


class Paddle(Table):
    """Outer size of the insulating body."""

    length_mm: Length
    width_mm: Length
    thickness_mm: Length


class ContactSize(Table):
    """Size of every contact: length along the paddle, width across it."""

    length_mm: Length
    width_mm: Length


class Metal(SourcedTable):
    """What the contacts are made of, and how much of each meets tissue."""

    material: Annotated[str, Field(min_length=1)]
    """Such as "platinum-iridium"."""
    area_mm2: Length | None = None
    """Geometric area of one contact; its length times its width if it is not given."""


class Contact(Table):
    """One contact: its name and its centre in paddle coordinates."""

    name: Name
    left_mm: Offset
    rostral_mm: Offset


class Device(SourcedTable):
    """A paddle array, as read from its device file."""

    format: Annotated[Literal[1], WholeNumber]
    name: Name
    description: str = ""
    paddle: Paddle
    contact: ContactSize
    metal: Metal | None = None
    contacts: Annotated[tuple[Contact, ...], TomlArray, Field(min_length=2, max_length=64)]

    @property
    def contact_names(self) -> tuple[str, ...]:
        """Names of the contacts, in the order of the file."""
        return tuple(contact.name for contact in self.contacts)

    @property
    def positions_m(self) -> NDArray[np.float64]:
        """Contact centres (E, 3) in the paddle frame, m: left, 0 (the face), rostral."""
        return 1e-3 * np.array([[c.left_mm, 0.0, c.rostral_mm] for c in self.contacts])

    @model_validator(mode="after")
    def _contacts_possible(self) -> "Device":
        self._check_names()
        self._check_inside()
        self._check_apart()
        self._check_area()
        return self

    def _check_names(self) -> None:
        for position, name in enumerate(self.contact_names):
            if name in self.contact_names[:position]:
                raise ValueError(f'contacts: the name "{name}" is given twice')
            if name in ("case", "outer"):
                raise ValueError(f'contacts: the name "{name}" is reserved')

    def _check_inside(self) -> None:
        across = (self.paddle.width_mm - self.contact.width_mm) / 2
        along = (self.paddle.length_mm - self.contact.length_mm) / 2
        for c in self.contacts:
            if abs(c.left_mm) >= across or abs(c.rostral_mm) >= along:
                raise ValueError(
                    f'contacts: contact "{c.name}" at left_mm = {c.left_mm:g}, rostral_mm = '
                    f"{c.rostral_mm:g} does not lie inside the paddle "
                    f"({self.paddle.width_mm:g} x {self.paddle.length_mm:g} mm)"
                )

    def _check_area(self) -> None:
        given = None if self.metal is None else self.metal.area_mm2
        flat = self.contact.length_mm * self.contact.width_mm
        if given is not None and given > flat * (1 + 1e-9):
            raise ValueError(
                f"metal.area_mm2 = {given:g} is more than length_mm x width_mm = {flat:g}: charge "
                "density is taken over the geometric area"
            )

    def _check_apart(self) -> None:
        for a, b in combinations(self.contacts, 2):
            near_across = abs(a.left_mm - b.left_mm) <= self.contact.width_mm
            near_along = abs(a.rostral_mm - b.rostral_mm) <= self.contact.length_mm
            if near_across and near_along:
                raise ValueError(f'contacts: contacts "{a.name}" and "{b.name}" overlap')
