"""Load a model, a device or a mesh's path by name or from a file, or change a model's values.

What comes with the package lies in ``meshes/`` of the checkout, or in ``fieldcorr/meshes/`` of an
installed package. Whatever is wrong is a :class:`~fieldcorr.errors.ModelError` of one line.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from fieldcorr.errors import MisfitError, ModelError
from fieldcorr.model._base import Table
from fieldcorr.model._toml import dump_toml, parse_toml, read_text
from fieldcorr.model.device import Device
from fieldcorr.model.geometry import Misfit
from fieldcorr.model.mistakes import did_you_mean, validation_message
from fieldcorr.model.rules import Rules
from fieldcorr.model.schema import Model, ModelFile
from fieldcorr.model.tables import StimulatorTable
from fieldcorr.stimulation import LIMITS

DEFAULT_MODEL = "lumbosacral-565"

T = TypeVar("T", bound=Table)


def bundled_folder() -> Path:
    """Return the folder of the bundled models, devices and meshes."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "meshes"
    return installed if installed.is_dir() else package.parent / "meshes"


def bundled_models() -> dict[str, Path]:
    """Return the bundled model files by name."""
    return {path.stem: path for path in sorted(bundled_folder().glob("*.toml"))}


def bundled_devices() -> dict[str, Path]:
    """Return the bundled device files by name."""
    return {path.stem: path for path in sorted((bundled_folder() / "devices").glob("*.toml"))}


def load_model(path_or_name: str | os.PathLike[str] = DEFAULT_MODEL) -> Model:
    """Read and validate a model file: a path, or the name of a bundled model.

    The attributes of the frozen model mirror the keys of the file. Whatever is wrong is one line, a
    ModelError with the file, the key and the value.
    """
    path = _model_path(path_or_name)
    return model_from_text(read_text(path), path)


def load_device(path_or_name: str | os.PathLike[str], *, folder: Path | None = None) -> Device:
    """Read and validate a device file: a bundled name, or a path relative to ``folder``."""
    path = _device_path(os.fspath(path_or_name), folder or Path())
    return _validated(Device, parse_toml(read_text(path), path), path)


def load_stimulation(path: Path) -> dict[str, Any]:
    """Read the stimulator of a session: a table as in a model, and limits as in its rules."""
    tables = parse_toml(read_text(path), path)
    limits = tables.pop("configurations", {})
    if set(tables) != {"stimulator"} or not set(limits) <= set(LIMITS):
        raise ModelError(
            f"{path}: needs the table [stimulator], and may have [configurations] with "
            f"{', '.join(LIMITS)}"
        )
    table = _validated(StimulatorTable, tables["stimulator"], path)
    rules = _validated(Rules, limits, path)
    return {
        "stimulator": table.model_dump(mode="json"),
        "limits": {key: getattr(rules, key) for key in limits},
    }


def load_impedances(path: Path) -> dict[str, float]:
    """Read the impedances that a file's ``[stimulator]`` has: that of a model or of a session."""
    table = parse_toml(read_text(path), path).get("stimulator")
    if not isinstance(table, dict) or not table.get("impedance_ohm"):
        raise ModelError(f"{path}: has no measured impedances: stimulator.impedance_ohm")
    return dict(_validated(StimulatorTable, table, path).impedance_ohm)


def resolve_mesh(model: Model, which: str = "standard") -> Path:
    """Return the mesh file that a model names as standard, companion or tiny.

    It is looked for beside the model file first, then among the bundled meshes. Anything else
    than the three names is taken as the path of a mesh file.
    """
    if which not in ("standard", "companion", "tiny"):
        return Path(which)
    name = getattr(model.mesh, which)
    if name is None:
        raise ModelError(f"{model.path}: mesh.{which}: the model names no such mesh")
    for folder in (model.path.parent, bundled_folder()):
        if (folder / name).is_file():
            return Path(folder / name)
    raise ModelError(
        f'{model.path}: mesh.{which} = "{name}": no such file; "fieldcorr mesh" builds one'
    )


def changed_model(model: Model, changes: Mapping[str, object]) -> Model:
    """Return ``model`` with values changed by dotted key; see :meth:`Model.replace`."""
    tables = model.model_dump(mode="json", include=set(ModelFile.model_fields), exclude_none=True)
    for key, value in changes.items():
        _set(tables, key, None if value is None else _plain(key, value))
    return model_from_text(dump_toml(tables), model.path)


def _set(tables: dict[str, Any], key: str, value: object) -> None:
    *parents, last = key.split(".")
    table = tables
    for parent in parents:
        table = table.setdefault(parent, {})
        if not isinstance(table, dict):
            raise ModelError(f'the key "{key}" cannot be set: "{parent}" is not a table')
    if value is None:
        table.pop(last, None)
    else:
        table[last] = value


def _plain(key: str, value: object) -> Any:
    """Return a value as TOML has it: numpy's numbers and arrays become Python's."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(key, item) for item in value]
    if isinstance(value, Mapping):
        return {str(name): _plain(key, item) for name, item in value.items()}
    raise ModelError(f"{key} = {value!r}: must be a number, a text, a list or a table")


def model_from_text(text: str, path: Path) -> Model:
    """Return the model of a file's text; ``path`` is where a device file is looked for."""
    file = _validated(ModelFile, parse_toml(text, path), path)
    try:
        device = load_device(file.array.device, folder=path.parent)
    except ModelError as error:
        raise ModelError(f'{path}: array.device = "{file.array.device}": {error}') from error
    values = {name: getattr(file, name) for name in ModelFile.model_fields}
    return _validated(Model, {**values, "device": device, "text": text, "path": path}, path)


def _validated(kind: type[T], values: Mapping[str, object], path: Path) -> T:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        message = f"{path}: {validation_message(error, kind)}"
        reasons = (detail.get("ctx", {}).get("error") for detail in error.errors())
        misfit = next((reason for reason in reasons if isinstance(reason, Misfit)), None)
        if misfit is None:
            raise ModelError(message) from None
        parts = {name: getattr(misfit, name) for name in ("geometry", "array", "device")}
        raise MisfitError(message, **parts) from None


def _model_path(path_or_name: str | os.PathLike[str]) -> Path:
    known = bundled_models()
    if isinstance(path_or_name, str) and path_or_name in known:
        return known[path_or_name]
    path = Path(path_or_name)
    if _is_plain_name(os.fspath(path_or_name)) and not path.exists():
        raise ModelError(
            f'"{path_or_name}": neither a file nor a bundled model'
            f"{did_you_mean(str(path_or_name), known)} (bundled: {', '.join(known)})"
        )
    return path


def _device_path(name: str, folder: Path) -> Path:
    known = bundled_devices()
    if name in known:
        return known[name]
    if _is_plain_name(name):
        raise ModelError(
            f"no such bundled device{did_you_mean(name, known)} (bundled: {', '.join(known)}; "
            f"a device file of your own ends in .toml)"
        )
    return folder / name


def _is_plain_name(name: str) -> bool:
    return not name.endswith(".toml") and os.sep not in name and "/" not in name
