"""Damage for every file that the package reads, by seed; stores have their own, more cunning.

``attempt_...(seed, folder)`` damages a sound file and has it read. It returns "refused" or "read",
and raises anything that a user must never see: an error that is not on purpose, or an answer that
differs from the sound file's.
"""

import hashlib
import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fieldcorr.batch.cache import Cache
from fieldcorr.duel import Session, read_session
from fieldcorr.duel.journal import parse_journal
from fieldcorr.errors import FieldcorrError
from fieldcorr.mesh import read_mesh, write_mesh
from fieldcorr.model import bundled_models, load_model
from tests.duel.killing import MATRIX
from tests.mesh.boxes import layered_box
from tests.store.mutations import Rng, append_noise, blank_block, flip_bytes, truncate

Attempt = Callable[[int, Path], str]

BYTES = (flip_bytes, truncate, append_noise, blank_block)

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 3, 10**30, 0.5, -1e308, "", "left", "²", "\0", "x" * 70_000, [], [1, [2]],
    {}, {"a": {}}, [None], [0, 0],
)  # fmt: skip
"""Values that do not belong where they are put."""

ODD_TEXTS = (
    "nan", "-inf", "1e400", "-1", "0", "0x10", "99999999999999999999", "true", '""', '"\\u0000"',
    '"../../etc"', "[]", "[[]]", "{}", "{a = {b = 1}}", "1979-05-27", "'''", "= =", "[", "\x1b[2J",
)  # fmt: skip


class SilentlyWrong(AssertionError):
    """A damaged file was read as something else than was written."""


def damaged(content: bytes, rng: Rng) -> bytes:
    """Return bytes with one kind of accident in them."""
    data = bytearray(content)
    BYTES[rng.integers(len(BYTES))](data, rng)
    return bytes(data)


@cache
def _sound_mesh() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.fcmesh"
        write_mesh(layered_box(), path)
        return path.read_bytes()


def attempt_mesh(seed: int, folder: Path) -> str:
    """Damage a mesh file with a checksum."""
    path = folder / "m.fcmesh"
    path.write_bytes(damaged(_sound_mesh(), np.random.default_rng(seed)))
    try:
        mesh = read_mesh(path)
    except FieldcorrError:
        return "refused"
    if mesh.hash != layered_box().hash:
        raise SilentlyWrong("another mesh")
    return "read"


ARRAYS = {"x": np.arange(2000.0), "names": np.array(["a", "b"])}


def attempt_cache(seed: int, folder: Path) -> str:
    """Damage an entry of the cache."""
    Cache(folder).save("key", ARRAYS)
    path = folder / "key.npz"
    path.write_bytes(damaged(path.read_bytes(), np.random.default_rng(seed)))
    found = Cache(folder).load("key")
    if found is None:
        return "refused"
    if not all(np.array_equal(found[name], values) for name, values in ARRAYS.items()):
        raise SilentlyWrong("other arrays")
    return "read"


@cache
def _sound_journal() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.journal"
        with Session.new(path, MATRIX, horizon=50, seed=4, settings={"delta": 0.5}) as session:
            for answer in ("left", "right", "same", "skip"):
                session.engine.answer(answer)
            session.engine.tell_ranking([1, (2, 3)])
            session.engine.exclude([3], neighbours_above=0.9)
            session.engine.void(2)
            session.engine.force(4, 5)
            session.engine.note({"note": "größer"})
            session.engine.undo()
        return path.read_bytes()


def attempt_journal(seed: int, folder: Path) -> str:
    """Damage a journal; what is read must be the beginning of what was written."""
    data = damaged(_sound_journal(), np.random.default_rng(seed))
    try:
        found = parse_journal(data, folder / "a.journal")
    except FieldcorrError:
        return "refused"
    wanted = parse_journal(_sound_journal(), folder / "a.journal")
    if found.header != wanted.header or found.records != wanted.records[: len(found.records)]:
        raise SilentlyWrong("other records")
    return "read"


def attempt_forged_journal(seed: int, folder: Path) -> str:
    """Change a value of a record and seal all lines again, as a forger would."""
    rng = np.random.default_rng(seed)
    records = [json.loads(line) for line in _sound_journal().splitlines()]
    record = records[rng.integers(len(records))]
    place: Any = record
    while True:
        key = list(place)[rng.integers(len(place))] if isinstance(place, dict) else -1
        if not isinstance(place[key], dict | list) or not place[key] or rng.integers(2):
            break
        place = place[key]
    place[key] = ODD[rng.integers(len(ODD))]
    path = folder / "forged.journal"
    path.write_bytes(sealed(records))
    try:
        read_session(path, MATRIX)
    except FieldcorrError:
        return "refused"
    return "read"


def sealed(records: list[dict[str, Any]]) -> bytes:
    """Return the lines of a journal with checks that fit."""
    data, check = b"", ""
    for record in records:
        body = json.dumps({key: value for key, value in record.items() if key != "check"})
        check = hashlib.sha256((check + body).encode()).hexdigest()[:16]
        data += f'{body[:-1]}, "check": "{check}"}}\n'.encode()
    return data


def attempt_model(seed: int, folder: Path) -> str:
    """Damage a model file: a line, a value, or bytes of it."""
    rng = np.random.default_rng(seed)
    text = bundled_models()["lumbosacral-565"].read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    place, kind = int(rng.integers(len(lines))), rng.integers(6)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(int(rng.integers(len(lines))), lines[place])
    elif kind in (2, 3):
        chosen = [k for k, line in enumerate(lines) if re.match(r"\w+ *=", line)]
        place = chosen[rng.integers(len(chosen))]
        odd = ODD_TEXTS[rng.integers(len(ODD_TEXTS))]
        lines[place] = lines[place].partition("=")[0] + f"= {odd}\n"
    content = "".join(lines).encode()
    path = folder / "model.toml"
    path.write_bytes(damaged(content, rng) if kind in (4, 5) else content)
    try:
        load_model(path)
    except FieldcorrError as error:
        if "\n" in str(error) or "\x1b" in str(error):
            raise AssertionError(f"not a line for a terminal: {error!r}") from error
        return "refused"
    return "read"


ATTEMPTS: dict[str, Attempt] = {
    "mesh files": attempt_mesh,
    "cache entries": attempt_cache,
    "journals": attempt_journal,
    "forged journals": attempt_forged_journal,
    "model files": attempt_model,
}
