"""TOML in and out: bounded reading with exact positions, and a writer for plain tables."""

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fieldcorr.errors import ModelError

LARGEST_FILE = 1_000_000  # bytes; a model file has some thousands


def read_text(path: Path) -> str:
    """Return the text of a model or device file; any failure is a :class:`ModelError`."""
    try:
        if path.is_dir():
            raise ModelError(f"{path}: is a folder, not a model file")
        if not path.is_file():  # never wait on a pipe or a device
            what = "is not a regular file" if path.exists() else "no such file"
            raise ModelError(f"{path}: {what}")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise ModelError(f"{path}: larger than {LARGEST_FILE} bytes, not a model file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise ModelError(f"{path}:{line}: not UTF-8 text (byte 0x{byte:02x})") from error


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """Return the tables of a TOML text; a mistake names file, line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(_syntax_message(str(error), text, path)) from error
    except ValueError as error:
        raise ModelError(f"{path}: not valid TOML: a number is too long") from error
    except RecursionError as error:
        raise ModelError(f"{path}: not valid TOML: nested too deeply") from error


def _syntax_message(message: str, text: str, path: Path) -> str:
    found = re.search(r"\s*\(at line (\d+), column (\d+)\)$", message)
    if found:
        return f"{path}:{found[1]}:{found[2]}: not valid TOML: {message[: found.start()]}"
    lines = text.split("\n")
    message = message.removesuffix(" (at end of document)")
    return f"{path}:{len(lines)}:{len(lines[-1]) + 1}: not valid TOML: {message}"


def dump_toml(tables: Mapping[str, object]) -> str:
    """Return TOML text of nested tables of plain values and lists; None is left out."""
    lines: list[str] = []
    _dump_table(tables, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _dump_table(table: Mapping[str, object], keys: tuple[str, ...], lines: list[str]) -> None:
    values = {k: v for k, v in table.items() if not isinstance(v, Mapping) and v is not None}
    if keys and (values or not table):
        lines += ["", f"[{'.'.join(_key(k) for k in keys)}]"]
    lines += [f"{_key(k)} = {_value(v)}" for k, v in values.items()]
    for key, value in table.items():
        if isinstance(value, Mapping):
            _dump_table(value, (*keys, key), lines)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(k)} = {_value(v)}' for k, v in value.items())} }}"
    return repr(value)
