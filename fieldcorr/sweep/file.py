"""The sweep file: which keys of a model are varied, how, and how often."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from fieldcorr.errors import ModelError
from fieldcorr.mesh import MeshSizes
from fieldcorr.model import DEFAULT_MODEL, Model, SizesTable, bundled_folder, load_model
from fieldcorr.model._base import Length, Table, WholeNumber
from fieldcorr.model._toml import parse_toml, read_text
from fieldcorr.model.mistakes import did_you_mean, validation_message
from fieldcorr.sweep.distributions import Distribution

DEFAULT_SWEEP = "default"
FIXED = (
    *("format", "name", "description", "mesh", "configurations", "measure.samples", "stimulator"),
)
"""Keys, and tables, of a model that are the same in all samples."""

LATE = ("drive", "region", "measure")
"""Tables of a model that no field depends on: samples that differ there alone are solved once."""


class SweepSizes(Table):
    """Edge lengths of the meshes that samples of other shapes get; those of a companion if none."""

    rim_mm: Length | None = None
    growth: Annotated[float, Field(gt=0, le=2)] | None = None
    cord_mm: Length | None = None
    end_mm: Length | None = None
    far_mm: Length | None = None
    stretch: Annotated[float, Field(ge=1)] | None = None
    end_stretch: Annotated[float, Field(ge=1)] | None = None

    def of(self, table: SizesTable) -> MeshSizes:
        """Return all sizes: the recipe of a companion mesh of the model's own, and what is set.

        A companion has about doubled sizes. Its error of r, about 0.008 at most, is far below
        what sweeps find, and it takes half the time of a standard mesh.
        """
        companion = {
            "rim_mm": 2.0 * table.rim_mm,
            "cord_mm": 2.0 * table.cord_mm,
            "end_mm": 1.5 * table.end_mm,
        }
        return MeshSizes.of(table, **{**companion, **self.model_dump(exclude_none=True)})


class SweepFile(Table):
    """The keys of a sweep file."""

    format: Annotated[Literal[1], WholeNumber]
    model: str = DEFAULT_MODEL
    """A model file, relative to the sweep file, or the name of a bundled model."""
    extends: str | None = None
    """A sweep file, or "default", whose ``set`` and ``vary`` come first."""
    samples: Annotated[int, Field(ge=2, le=100_000)] = 64
    """How many; a grid has as many as its levels make."""
    method: Literal["latin-hypercube", "sobol", "grid"] = "latin-hypercube"
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 1
    mesh: str = "companion"
    """Mesh of the samples that have the model's own shapes: one that the model names, or a file."""
    tolerance: Annotated[float, Field(ge=1e-14, le=1e-4)] = 3e-5
    """Relative residual of the samples' solves: r of the bundled model moves by 1e-4 at most."""
    sizes: SweepSizes = SweepSizes()
    set: dict[str, Any] = Field(default_factory=dict)
    """Values by key of the model that all samples have in place of the model's own."""
    vary: dict[str, Distribution] = Field(default_factory=dict)
    """Distributions by key of the model, such as "tissues.fat.conductivity_S_per_m"."""


class Sweep:
    """A checked sweep file with its model."""

    def __init__(self, file: SweepFile, model: Model, path: Path, text: str) -> None:
        self.file, self.model, self.path, self.text = file, model, path, text
        # What no field depends on comes last: in a grid it changes fastest.
        self.vary = dict(sorted(file.vary.items(), key=lambda item: item[0].split(".")[0] in LATE))
        self.sizes = file.sizes.of(model.mesh.sizes)

    @property
    def keys(self) -> tuple[str, ...]:
        """The varied keys, in the order of every axis D."""
        return tuple(self.vary)

    def content(self) -> dict[str, object]:
        """Return all that decides the samples, as plain values."""
        return {
            "model": self.model.content(),
            "sweep": self.file.model_dump(mode="json", exclude={"model", "extends"}),
        }

    @property
    def hash(self) -> str:
        """sha256 of what the sweep and its model say; comments and layout do not count."""
        return hashlib.sha256(json.dumps(self.content(), sort_keys=True).encode()).hexdigest()

    def changes(self, u: Iterable[float]) -> dict[str, object]:
        """Return the varied values by key at a point u (D,) of the unit cube."""
        return {key: law.at(float(x)) for (key, law), x in zip(self.vary.items(), u, strict=True)}

    def sample_model(self, u: Iterable[float]) -> Model:
        """Return the model at a point u (D,) of the unit cube; a ModelError if it cannot be."""
        return self.model.replace({**self.file.set, **self.changes(u)})


def load_sweep(path_or_name: str | os.PathLike[str] = DEFAULT_SWEEP, **changes: object) -> Sweep:
    """Read and check a sweep file: a path, or "default" for the bundled one.

    ``changes`` replace top-level keys of the file, such as ``samples``. Whatever is wrong is a
    ModelError of one line.
    """
    path = _path(path_or_name)
    text = read_text(path)
    tables = {**_extended(parse_toml(text, path), path), **changes}
    try:
        file = SweepFile.model_validate(tables)
    except ValidationError as error:
        raise ModelError(f"{path}: {validation_message(error, SweepFile)}") from None
    model = load_model(_beside(file.model, path))
    sweep = Sweep(file, model, path, text)
    _check_keys(sweep)
    return sweep


def _path(path_or_name: str | os.PathLike[str]) -> Path:
    if path_or_name == DEFAULT_SWEEP:
        return bundled_folder() / "sweeps" / f"{DEFAULT_SWEEP}.toml"
    return Path(path_or_name)


def _beside(name: str, path: Path) -> str:
    """Return a name as it is, and a path to a file as seen from the sweep file."""
    return str(path.parent / name) if name.endswith(".toml") else name


def _extended(tables: dict[str, Any], path: Path) -> dict[str, Any]:
    """Put ``set`` and ``vary`` of the file that is extended before those of this one."""
    name = tables.get("extends")
    if not isinstance(name, str):
        return tables
    base = _path(_beside(name, path))
    first = parse_toml(read_text(base), base)
    if "extends" in first:
        raise ModelError(f'{path}: extends = "{name}": that file extends another one itself')
    out = dict(tables)
    for key in ("set", "vary"):
        if isinstance(tables.get(key, {}), dict) and isinstance(first.get(key, {}), dict):
            out[key] = {**first.get(key, {}), **tables.get(key, {})}
    return out


def _check_keys(sweep: Sweep) -> None:
    """Refuse keys that may not vary, keys that do not exist, and a sweep of nothing."""
    if not sweep.vary:
        raise ModelError(f"{sweep.path}: vary: nothing is varied")
    for table in ("vary", "set"):
        for key in getattr(sweep.file, table):
            fixed = next((f for f in FIXED if key == f or key.startswith(f"{f}.")), None)
            if fixed:
                raise ModelError(f'{sweep.path}: {table}."{key}": all samples share {fixed}')
    for key in sweep.vary:
        if key in sweep.file.set:
            raise ModelError(f'{sweep.path}: "{key}" is both set and varied')
    for key, law in sweep.vary.items():
        table, tissue = [*key.split("."), ""][:2]
        if table == "tissues" and tissue not in sweep.model.tissues:
            hint = did_you_mean(tissue, sweep.model.tissues)
            raise ModelError(f'{sweep.path}: vary."{key}": no such tissue{hint}')
        middle = {**sweep.file.set, key: law.at(0.5)}
        try:
            changed = sweep.model.replace(middle)
        except ModelError as error:
            if "unknown key" in str(error) or "must be" in str(error):
                raise ModelError(f'{sweep.path}: vary."{key}": {_reason(error, sweep)}') from error
            continue  # that it does not fit is known, and said, when the samples are made
        if changed.electrode_names != sweep.model.electrode_names:
            raise ModelError(f'{sweep.path}: vary."{key}": samples must have the same contacts')
    measure = "measure.kind"
    varied = sweep.vary[measure].values or [] if measure in sweep.vary else []
    if "magnitude" in (sweep.model.measure.kind, sweep.file.set.get(measure), *varied):
        raise ModelError(
            f"{sweep.path}: {measure} = magnitude: |E| is not linear in the currents, so that a "
            "sample of it would be features of every configuration and not one small Gram matrix; "
            "sweep potential, field or activating"
        )


def _reason(error: ModelError, sweep: Sweep) -> str:
    return str(error).removeprefix(f"{sweep.model.path}: ")
