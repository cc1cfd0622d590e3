"""One line out of a pydantic validation error.

What flows in: a ``ValidationError`` and the table it belongs to. What flows out: the key, the
value and the reason of its first mistake, with a suggestion for a misspelt key.
"""

import types
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from fieldcorr.model.suggest import did_you_mean

_WORDS = {
    "missing": "missing",
    "float_type": "must be a number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "string_type": "must be text",
    "finite_number": "must be a finite number",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "tuple_type": "must be a list",
}


def validation_message(error: ValidationError, table: type[BaseModel]) -> str:
    """Return the first mistake in one line, and how many more there are."""
    # An unknown key comes first: it is often why another one is missing.
    details = sorted(error.errors(), key=lambda d: d["type"] != "extra_forbidden")
    detail = details[0]
    more = len({_key(d["loc"]) for d in details}) - 1
    tail = f" (and {more} more)" if more else ""
    return _one(dict(detail), table) + tail


def _one(detail: dict[str, Any], table: type[BaseModel]) -> str:
    location = detail["loc"]
    key = _key(location)
    if detail["type"] == "extra_forbidden":
        parent = _table_at(table, location[:-1])
        known = parent.model_fields if parent else ()
        return f"{key}: unknown key{did_you_mean(str(location[-1]), known)}"
    if detail["type"] == "value_error":
        reason = str(detail["ctx"]["error"])
        return f"{key}: {reason}" if key else reason
    if detail["type"] == "missing":
        return f"{key}: missing"
    return f"{key} = {_shown(detail['input'])}: {_reason(detail)}"


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
            text += f".{part}" if text else str(part)
    return text


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = f'"{value}"' if isinstance(value, str) else repr(value)
    text = text.encode("unicode_escape").decode("ascii")
    return text if len(text) <= 60 else text[:57] + "..."


def _table_at(table: type[BaseModel], location: tuple[int | str, ...]) -> type[BaseModel] | None:
    """Follow keys from a table to the table they lead to."""
    current: Any = table
    for part in location:
        inner = current if not _is_table(current) else None
        if inner is None:
            field = current.model_fields.get(part)
            current = field.annotation if field else None
        current = _table_in(current)
        if current is None:
            return None
    return current if _is_table(current) else None


def _table_in(annotation: Any) -> Any:
    """Return the table class inside an annotation such as ``dict[str, Tissue]``."""
    if _is_table(annotation):
        return annotation
    if get_origin(annotation) in (dict, tuple, list, Union, types.UnionType) or get_args(
        annotation
    ):
        inner = [found for arg in get_args(annotation) if (found := _table_in(arg))]
        return inner[-1] if inner else None
    return None


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
