"""The small tables of a model file: array, tissues, contacts, boundary, drive, region, mesh ..."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from fieldcorr.model._base import (
    Distance,
    Length,
    Name,
    Offset,
    Real,
    SourcedTable,
    Table,
    TomlArray,
    WholeNumber,
)

# Metals reach 1e7 S/m; a body stays below 10. Larger values are a mistake of units.
Conductivity = Annotated[Real, Field(gt=0, le=100)]
Interval = Annotated[tuple[Offset, Offset], TomlArray]

REQUIRED_TISSUES = ("grey", "white", "csf", "dura", "fat", "bone", "muscle")
"""Tissues that the parametric geometry is made of; a mesh of one's own may have more."""


class ArrayTable(SourcedTable):
    """Where the paddle lies: flat on the dorsal side, ``gap_to_dura_mm`` from the dura."""

    device: Annotated[str, Field(min_length=1)]
    """Name of a bundled device, or path of a device file relative to the model file."""
    offset_left_mm: Offset = 0.0
    offset_rostral_mm: Offset = 0.0
    gap_to_dura_mm: Length
    """Least distance between paddle and outer dura, as the paddle lies (turned and tilted)."""
    yaw_degree: Annotated[Real, Field(ge=-60, le=60)] = 0.0
    """Turn about the dorsal axis; positive moves the rostral end to the patient's left."""
    pitch_degree: Annotated[Real, Field(ge=-30, le=30)] = 0.0
    """Tilt about the left axis; positive moves the rostral end towards the cord."""


class Tissue(SourcedTable):
    """Conductivity of one tissue: either the scalar key, or both of along and across."""

    conductivity_S_per_m: Conductivity | None = None
    conductivity_along_S_per_m: Conductivity | None = None
    """Along the cord's axis (z)."""
    conductivity_across_S_per_m: Conductivity | None = None
    """Across the cord's axis (x and y)."""
    source: Annotated[str, Field(min_length=1)]

    @property
    def principal_S_per_m(self) -> tuple[float, float, float]:
        """Conductivities along the axes x, y, z; the tensor is their diagonal."""
        if self.conductivity_S_per_m is not None:
            return (self.conductivity_S_per_m,) * 3
        across, along = self.conductivity_across_S_per_m, self.conductivity_along_S_per_m
        # The validator has made sure that both are there.
        return (across or 0.0, across or 0.0, along or 0.0)

    @model_validator(mode="after")
    def _scalar_or_pair(self) -> "Tissue":
        scalar = self.conductivity_S_per_m is not None
        along = self.conductivity_along_S_per_m is not None
        across = self.conductivity_across_S_per_m is not None
        if scalar and (along or across):
            raise ValueError(
                f"conductivity_S_per_m = {self.conductivity_S_per_m:g} excludes "
                "conductivity_along_S_per_m and conductivity_across_S_per_m"
            )
        if not scalar and not (along and across):
            raise ValueError(
                "conductivity is missing: give conductivity_S_per_m, or both of "
                "conductivity_along_S_per_m and conductivity_across_S_per_m"
            )
        return self


class ContactsTable(Table):
    """How the contact faces conduct."""

    model: Literal["equipotential", "impedance", "uniform-current"] = "equipotential"
    """Metal that shorts the tissue, a layer between metal and tissue, or a constant density."""
    impedance_ohm_m2: Annotated[Real, Field(ge=0, le=1e3)] = 0.0
    """Of the layer between metal and tissue; needed by, and only by, "impedance"."""

    @model_validator(mode="after")
    def _impedance(self) -> "ContactsTable":
        if self.model == "impedance" and self.impedance_ohm_m2 == 0:
            raise ValueError('model = "impedance" needs impedance_ohm_m2 above 0')
        if self.model != "impedance" and self.impedance_ohm_m2 != 0:
            raise ValueError(
                f"impedance_ohm_m2 = {self.impedance_ohm_m2:g} has no effect with model = "
                f'"{self.model}"; use model = "impedance"'
            )
        return self


class CaseTable(SourcedTable):
    """Patch of the stimulator case on the torso's surface."""

    width_mm: Length = 60.0
    """Arc length around the torso."""
    height_mm: Length = 50.0
    angle_degree: Annotated[Real, Field(ge=-180, le=180)] = 60.0
    """Direction of the centre, from dorsal (0) towards the patient's left (90)."""
    offset_rostral_mm: Offset = -80.0


class BoundaryTable(Table):
    """What happens on the torso's surface."""

    outer: Literal["insulated", "grounded", "case"] = "insulated"
    """No current leaves, the whole surface is at 0 V, or the case is one more electrode."""
    case: CaseTable = CaseTable()


class DriveTable(Table):
    """How the stimulator drives the active contacts."""

    mode: Literal["voltage", "current"] = "voltage"
    """Anodes and cathodes are two nodes 1 V apart, or 1 A flows in total."""
    fractions: dict[str, Annotated[Real, Field(gt=0)]] = Field(default_factory=dict)
    """Share of each named contact among those of its polarity; current mode only."""

    @model_validator(mode="after")
    def _fractions(self) -> "DriveTable":
        if self.fractions and self.mode != "current":
            raise ValueError('fractions need mode = "current"')
        return self


class AmplitudeTable(Table):
    """What the stimulator can be set to, in the unit that the name of the table ends in."""

    largest: Annotated[Real, Field(gt=0, le=1000)]
    """Largest amplitude."""
    least: Annotated[Real, Field(ge=0, le=1000)] = 0.0
    """Least amplitude."""
    step: Annotated[Real, Field(ge=0, le=100)] = 0.0
    """Amplitudes are multiples of it; 0 for any."""
    planned: Annotated[Real, Field(gt=0, le=1000)] | None = None
    """What is to be delivered: configurations that may not have so much are left out where
    `[configurations]` sets limits."""

    @model_validator(mode="after")
    def _ordered(self) -> "AmplitudeTable":
        for key in ("least", "planned"):
            value = getattr(self, key)
            if value is not None and value > self.largest:
                raise ValueError(f"{key} = {value:g} is more than largest = {self.largest:g}")
        return self


class StimulatorTable(SourcedTable):
    """The stimulator: what it controls, its setting, and impedances as measured in the patient."""

    control: Literal["voltage", "current"]
    """What it keeps constant: then `amplitude_V` or `amplitude_mA` is needed."""
    pulse_width_us: Annotated[Real, Field(gt=0, le=100_000)]
    """Of one phase."""
    rate_Hz: Annotated[Real, Field(gt=0, le=100_000)] | None = None
    """Pulses per second."""
    amplitude_V: AmplitudeTable | None = None
    amplitude_mA: AmplitudeTable | None = None
    impedance_ohm: dict[str, Annotated[Real, Field(ge=1, le=1e7)]] = Field(default_factory=dict)
    """Measured, never modelled: of a contact against the case ("3"), or of a bipole or any other
    configuration ("0- 5+"), whose mirror image has the same."""
    split: Literal["worst", "model"] = "worst"
    """Current of several contacts of one polarity: "worst", each may carry all of it; "model",
    they share it as modelled, which is right if each has a source of its own."""

    @model_validator(mode="after")
    def _amplitude(self) -> "StimulatorTable":
        own, other = ("amplitude_V", "amplitude_mA")[:: 1 if self.control == "voltage" else -1]
        if getattr(self, own) is None:
            raise ValueError(f'control = "{self.control}" needs the table {own}')
        if getattr(self, other) is not None:
            raise ValueError(f'{other} has no effect with control = "{self.control}"')
        return self


class RegionTable(Table):
    """Where fields are compared: tissues within a tapered window around the array."""

    tissues: Annotated[tuple[Name, ...], TomlArray, Field(min_length=1)] = ("grey", "white")
    half: Literal["all", "dorsal"] = "all"
    """ "dorsal": the part of the cord dorsal of its centre."""
    window_half_length_mm: Length = 30.0
    """Half length of the window along the cord, centred on the array."""
    taper_mm: Distance = 10.0
    """The weight falls from 1 to 0, as a cosine, over the last ``taper_mm`` of the window."""
    box_mm: Annotated[tuple[Interval, Interval, Interval], TomlArray] | None = None
    """Further restriction in model axes: [[x0, x1], [y0, y1], [z0, z1]]."""

    @model_validator(mode="after")
    def _possible(self) -> "RegionTable":
        if len(set(self.tissues)) != len(self.tissues):
            raise ValueError(f"tissues names a tissue twice: {', '.join(self.tissues)}")
        if self.taper_mm > self.window_half_length_mm:
            raise ValueError(
                f"taper_mm = {self.taper_mm:g} is longer than window_half_length_mm = "
                f"{self.window_half_length_mm:g}"
            )
        for axis, (low, high) in zip("xyz", self.box_mm or (), strict=False):
            if low >= high:
                raise ValueError(f"box_mm: {axis} runs from {low:g} to {high:g}: no extent")
        return self


class MeasureTable(Table):
    """What is compared: the potential, the field, its derivative along the cord, or |E|."""

    kind: Literal["potential", "field", "activating", "magnitude"] = "potential"
    """What r compares. "potential" is the paper's, and tells mainly how far apart cathodes and
    anodes lie along the cord; "field", with all three components, tells left from right;
    "activating" is what drives fibres along the cord; "magnitude" is |E|, whatever its sign."""
    samples: Annotated[int, Field(ge=16, le=10_000_000)] = 4096
    """Points at which the measure "magnitude" is sampled."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    """Chooses the points of "magnitude"."""


class SolverTable(Table):
    """Order of the elements and relative residual of the solver."""

    order: Annotated[Literal[1, 2], WholeNumber] = 2
    """Of the elements; 1 is for comparison."""
    tolerance: Annotated[Real, Field(ge=1e-14, le=1e-2)] = 1e-8
    """Relative residual at which the solver stops."""


class SizesTable(Table):
    """Edge lengths that the mesh builder aims at."""

    rim_mm: Length = 0.05
    """At the rims of the contacts."""
    growth: Annotated[Real, Field(gt=0, le=2)] = 0.4
    """Growth of the edge length per unit of distance from a rim."""
    cord_mm: Length = 1.0
    """In cord, CSF and dura around the array."""
    end_mm: Length = 2.0
    """In the same tissues far from the array."""
    far_mm: Length = 30.0
    """At the torso's surface."""


class MeshTable(Table):
    """Mesh files, looked for beside the model file and among the bundled ones."""

    standard: str | None = None
    """The mesh for results."""
    companion: str | None = None
    """The same geometry with all sizes about doubled, for the error estimate of r."""
    tiny: str | None = None
    """For tests."""
    sizes: SizesTable = SizesTable()
