"""The reference of model and device files, from the pydantic tables that read them.

The page has every key with its values, its default, and the text below its field.
"""

import inspect
import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

import griffe
from annotated_types import Ge, Gt, Le, Lt
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from fieldcorr.model import Device
from fieldcorr.model.schema import ModelFile

PAGE = "reference/model-file.md"
HEAD = """# Model and device files

TOML, strict: a key that is not in these tables is an error, and so is a value of another type.
Units are in the names of the keys. This page is made from the tables that read the files;
`fieldcorr model FILE` validates one and shows what it says.

"""
SHARED = ("source", "nominal")
SHARED_TEXT = """Tables marked * take two further keys: `source`, text that says where the values
come from, and `nominal` (true or false), which marks values that no citable page was found for.

"""
FAR = 10_000
"""Bounds from here on only catch slips; they say nothing to a reader."""
WORDS = {"str": "text", "float": "number", "int": "whole number", "bool": "true or false"}


def on_files(files: Files, *, config: Any, **_: Any) -> Files:
    """Add the page."""
    content = HEAD + SHARED_TEXT + "\n".join(page())
    files.append(File.generated(config, PAGE, content=content))
    return files


def page() -> Iterator[str]:
    """Yield the lines of both references."""
    yield "## Model file\n"
    yield from tables(ModelFile, "")
    yield "## Device file\n"
    yield from tables(Device, "")


def tables(kind: type[BaseModel], path: str) -> Iterator[str]:
    """Yield one section per table, the outer before the inner."""
    inner = {name: field for name, field in kind.model_fields.items() if table_of(field)}
    plain = {
        name: field
        for name, field in kind.model_fields.items()
        if name not in inner and not (path and name in SHARED)
    }
    if path:
        star = " *" if "source" in kind.model_fields else ""
        yield f"### {heading(path)}{star}\n"
        yield f"{first_paragraph(kind)}\n"
    if plain:
        yield "| key | values | default | meaning |\n|---|---|---|---|"
        yield from (row(kind, name, field) for name, field in plain.items())
        yield ""
    for name, field in inner.items():
        table, many = table_of(field) or (kind, "")
        yield from tables(table, f"{path}.{name}{many}" if path else f"{name}{many}")


def heading(path: str) -> str:
    """Return the line that opens a table in a TOML file."""
    return f"[[{path.removesuffix('[]')}]]" if path.endswith("[]") else f"[{path}]"


def table_of(field: FieldInfo) -> tuple[type[BaseModel], str] | None:
    """Return the table that a key holds, and how many: "" one, ".NAME" by name, "[]" a list."""
    for part in _parts(field.annotation):
        if inspect.isclass(part) and issubclass(part, BaseModel):
            origin = typing.get_origin(_bare(field.annotation))
            return part, ".NAME" if origin is dict else "[]" if origin in (tuple, list) else ""
    return None


def row(kind: type[BaseModel], name: str, field: FieldInfo) -> str:
    """Return the line of one key."""
    default = "required" if field.is_required() else _default(field)
    cells = (f"`{name}`", _values(field), default, field_text(kind, name))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def field_text(kind: type[BaseModel], name: str) -> str:
    """Return the text below a field, wherever in the class's bases it stands."""
    for owner in kind.__mro__:
        member = _source(owner).members.get(name) if owner.__module__.startswith("fieldcorr") else 0
        if member and member.docstring:
            return " ".join(member.docstring.value.split()).replace("``", "`")
    return ""


def first_paragraph(kind: type[BaseModel]) -> str:
    """Return what a table is, from its docstring, without Sphinx roles."""
    text = " ".join(inspect.getdoc(kind).split("\n\n")[0].split())
    return re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")


@cache
def _package() -> Any:
    return griffe.load("fieldcorr.model")


def _source(kind: type) -> Any:
    """Return a class as it stands in its source: pydantic forgets the text below a field."""
    return _package()[f"{kind.__module__.removeprefix('fieldcorr.model.')}.{kind.__name__}"]


def _bare(annotation: Any) -> Any:
    """Return an annotation without its metadata and without None."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _bare(typing.get_args(annotation)[0])
    options = [a for a in typing.get_args(annotation) if a is not type(None)]
    is_optional = type(None) in typing.get_args(annotation) and len(options) == 1
    return _bare(options[0]) if is_optional else annotation


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and everything inside it."""
    bare = _bare(annotation)
    yield bare
    if typing.get_origin(bare) is not Literal:
        for part in typing.get_args(bare):
            yield from _parts(part)


def _values(field: FieldInfo) -> str:
    return _say(field.annotation) + _limits(field.metadata)


def _say(annotation: Any) -> str:
    """Return the kind of a value in words."""
    metadata: tuple[Any, ...] = ()
    if typing.get_origin(annotation) is typing.Annotated:
        annotation, *rest = typing.get_args(annotation)
        metadata = tuple(rest)
    bare = _bare(annotation)
    if bare is not annotation and not metadata:
        return _say(next(a for a in typing.get_args(annotation) if a is not type(None)))
    origin, inside = typing.get_origin(bare), typing.get_args(bare)
    if origin is Literal:
        return ", ".join(f"`{_toml(value)}`" for value in inside)
    if origin is tuple and inside[-1] is ...:
        return f"list of: {_say(inside[0])}"
    if origin is tuple:
        return "[" + ", ".join(_say(part) for part in inside) + "]"
    if origin is dict:
        return f"table of: {_say(inside[1])}"
    return WORDS.get(getattr(bare, "__name__", ""), str(bare)) + _limits(_flat(metadata))


def _flat(metadata: typing.Iterable[Any]) -> list[Any]:
    """Return metadata with that of pydantic's Field taken out of its shell."""
    return [m for item in metadata for m in (getattr(item, "metadata", None) or [item])]


def _limits(metadata: typing.Iterable[Any]) -> str:
    """Return bounds in words; lengths of texts and lists say nothing to a reader."""
    signs = {Gt: ">", Ge: "≥", Lt: "<", Le: "≤"}
    found = [
        f"{sign} {bound:g}"
        for item in metadata
        for kind, sign in signs.items()
        if isinstance(item, kind) and abs(bound := getattr(item, kind.__name__.lower())) < FAR
    ]
    return " " + ", ".join(found) if found else ""


def _default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return "none"
    return f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    """Return a plain value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
    return f'"{value}"' if isinstance(value, str) else str(value)
