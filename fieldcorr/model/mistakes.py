"""Say in one line what is wrong with a model file: key, value, reason, and what may be meant."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_WORDS = {
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "tuple_type": "must be a list",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": 'must be a name of letters, digits, "_", "." and "-"',
}

# An unknown key comes first: it is often why another one is missing.
_ORDER = {"extra_forbidden": 0, "missing": 2}


def validation_message(error: ValidationError, table: type[BaseModel]) -> str:
    """Return the first mistake in one line, and how many more there are."""
    details = sorted(error.errors(), key=lambda d: _ORDER.get(d["type"], 1))
    message = _one(dict(details[0]), table)
    others = {_key(d["loc"]) for d in details[1:] if not _explained(dict(d), message)}
    return f"{message} (and {len(others)} more)" if others else message


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is spelt most like ``name``, if any is."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean "x"?' for the nearest known name, or an empty string."""
    match = nearest(name, known)
    return f'; did you mean "{match}"?' if match else ""


def _explained(detail: dict[str, Any], message: str) -> bool:
    """Tell whether a missing key is the one that ``message`` suggests already."""
    return detail["type"] == "missing" and message.endswith(f'"{detail["loc"][-1]}"?')


def _one(detail: dict[str, Any], table: type[BaseModel]) -> str:
    location = detail["loc"]
    key = _key(location)
    if detail["type"] == "extra_forbidden":
        parent = _table_at(table, location[:-1])
        known = parent.model_fields if parent else ()
        return f"{key}: unknown key{did_you_mean(str(location[-1]), known)}"
    if detail["type"] == "value_error":
        return _joined(key, str(detail["ctx"]["error"]), _table_at(table, location))
    if detail["type"] == "missing":
        return f"{key}: missing"
    return f"{key} = {_shown(detail['input'])}: {_reason(detail)}"


def _joined(key: str, reason: str, table: type[BaseModel] | None) -> str:
    """Put the key before the reason; a reason may go on with the key of a field of its own."""
    if not key:
        return reason
    first = re.split(r"[ :]", reason)[0]
    return f"{key}.{reason}" if table and first in table.model_fields else f"{key}: {reason}"


def _reason(detail: dict[str, Any]) -> str:
    if detail["type"] in _WORDS:
        return _WORDS[detail["type"]]
    message = str(detail["msg"]).removeprefix("Input should be ")
    message = message.removeprefix("a valid ")
    return f"must be {message}" if message != str(detail["msg"]) else message


def _key(location: tuple[int | str, ...]) -> str:
    """Return a dotted key; list positions are in brackets, pydantic's own marks are left out."""
    text = ""
    for part in location:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part != "[key]":
            text += f".{_plain(part)}" if text else _plain(part)
    return text


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return _plain(f'"{value}"' if isinstance(value, str) else repr(value))


def _plain(text: str) -> str:
    """Return text as one short printable line."""
    text = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= 60 else text[:57] + "..."


def _table_at(table: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """Follow keys from a table to the table they lead to."""
    current: Any = table
    for part in location:
        current = _step(current, part)
    return current if _is_table(current) else None


def _step(annotation: Any, part: int | str) -> Any:
    """Return what ``part`` leads to: a field of a table, or an element of a dict or tuple."""
    if _is_table(annotation):
        field = annotation.model_fields.get(str(part))
        return field.annotation if field else None
    return next((inner for inner in get_args(annotation) if _is_table(inner)), None)


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
