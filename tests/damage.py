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
from fieldcorr.model import bundled_folder, bundled_models, load_model
from fieldcorr.stimulation import measured_polarity
from fieldcorr.store.sweeps import open_sweep, write_sweep
from fieldcorr.sweep import Sweep, load_sweep
from fieldcorr.sweep.calibration import Measurement, read_measurements
from tests.duel.killing import MATRIX
from tests.mesh.boxes import layered_box
from tests.store.mutations import (
    Rng,
    append_noise,
    blank_block,
    copy_block,
    flip_bits_of_metadata,
    flip_bytes,
    truncate,
)

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
    """Damage a model file."""
    path = folder / "model.toml"
    text = bundled_models()["lumbosacral-565"].read_text(encoding="utf-8")
    path.write_bytes(damaged_toml(text, np.random.default_rng(seed)))
    return said_in_a_line(lambda: load_model(path))


def damaged_toml(text: str, rng: Rng) -> bytes:
    """Return a text with damage in a line, a value, or bytes of it."""
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
    return damaged(content, rng) if kind in (4, 5) else content


def said_in_a_line(read: Callable[[], object]) -> str:
    """Read something; an error on purpose must be fit for a terminal."""
    try:
        read()
    except FieldcorrError as error:
        if "\n" in str(error) or "\x1b" in str(error):
            raise AssertionError(f"not a line for a terminal: {error!r}") from error
        return "refused"
    return "read"


def attempt_sweep_file(seed: int, folder: Path) -> str:
    """Damage a sweep file."""
    text = (bundled_folder() / "sweeps" / "default.toml").read_text(encoding="utf-8")
    path = folder / "sweep.toml"
    path.write_bytes(damaged_toml(text, np.random.default_rng(seed)))
    return said_in_a_line(lambda: sampled(load_sweep(path)))


def sampled(sweep: Sweep) -> None:
    """Draw a sample, as a run does; a point that cannot be built is an error on purpose."""
    sweep.sample_model(np.full(len(sweep.keys), 0.5))


CONTACTS = tuple("abcd")
MEASURED = [(f"{a}- {b}+", 700.5, 0.04) for a in CONTACTS for b in CONTACTS if a < b]


def attempt_impedances(seed: int, folder: Path) -> str:
    """Damage a table of measured impedances: bytes of it, or a cell."""
    rng, path = np.random.default_rng(seed), folder / "measured.csv"
    cells: list[list[object]] = [["configuration", "ohm", "relative_error"], *map(list, MEASURED)]
    row = cells[rng.integers(len(cells))]
    row[rng.integers(3)] = (*ODD_TEXTS, "\0", "\r", '"', "e", "a")[rng.integers(len(ODD_TEXTS) + 5)]
    content = "".join(",".join(map(str, line)) + "\n" for line in cells).encode()
    path.write_bytes(damaged(content, rng) if rng.integers(2) else content)
    return said_in_a_line(lambda: plausible(read_measurements(path, CONTACTS)))


def plausible(measurements: list[Measurement]) -> None:
    """See that measurements are what the likelihood of a sample can take."""
    for one in measurements:
        row = measured_polarity(one.of, CONTACTS)
        if row is not None and not row.max() > 0 > row.min():
            raise SilentlyWrong(str(one))
        if not (0 < one.ohm < np.inf and 0 < one.relative_error < np.inf):
            raise SilentlyWrong(str(one))


@cache
def _sound_sweep() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.h5"
        write_sweep(path, sweep_values(), run={"seconds": 1.0}, force=False)
        return path.read_bytes()


def sweep_values() -> dict[str, Any]:
    """Return the content of a sweep store of four contacts, three samples and two keys."""
    rng = np.random.default_rng(5)
    gram = np.array([x @ x.T for x in rng.normal(size=(4, 4, 6))])
    wires = -rng.uniform(1e-4, 1e-3, (4, 4, 4))
    admittance = wires + wires.transpose(0, 2, 1)
    for matrix in admittance:
        np.fill_diagonal(matrix, 0.0)
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
    drive = {"mode": "voltage", "fractions": None}
    record = json.dumps({"drive": drive, "values": {"x": 1.0, "y": "all"}, "failures": []})
    law = json.dumps({"distribution": "uniform", "low": 0.0, "high": 1.0})
    origin = {"hashes": {}, "versions": {}, "points_tried": 3, "points_given_up": 0}
    return {
        "/contacts/name": list(CONTACTS),
        "/configurations/polarity": np.array(
            [[-1, 1, 0, 0], [-1, 0, 1, 0], [0, -1, 1, 0], [-1, 1, 0, 1]], dtype=np.int8
        ),
        "/inputs/key": ["x", "y"],
        "/inputs/law": [law, law],
        "/samples/point": rng.random((3, 2)),
        "/samples/gram": gram[:3],
        "/samples/admittance": admittance[:3],
        "/samples/record": [record] * 3,
        "/nominal/gram": gram[3],
        "/nominal/admittance": admittance[3],
        "/nominal/record": record,
        "/provenance/model": "model",
        "/provenance/sweep": "sweep",
        "/provenance/origin": json.dumps(origin),
    }


def attempt_sweep_store(seed: int, folder: Path) -> str:
    """Damage a sweep store; all that it says must be what was written."""
    path = folder / "sweep.h5"
    rng, data = np.random.default_rng(seed), bytearray(_sound_sweep())
    kinds = (*BYTES, flip_bits_of_metadata, copy_block)
    kinds[rng.integers(len(kinds))](data, rng)
    path.write_bytes(_sound_sweep())
    wanted = told(path)
    path.write_bytes(data)

    def read() -> None:
        if told(path) != wanted:
            raise SilentlyWrong("another sweep")

    return said_in_a_line(read)


def attempt_forged_sweep_store(seed: int, folder: Path) -> str:
    """Write a sweep store with a value that no sweep has, digests and all, as a forger would."""
    rng, path, values = np.random.default_rng(seed), folder / "sweep.h5", sweep_values()
    name = list(values)[rng.integers(len(values))]
    if isinstance(values[name], np.ndarray):
        odd = (0, 1, -1, 127, *([np.nan, np.inf, -1e300, 1e-300] if "conf" not in name else []))
        values[name].flat[rng.integers(values[name].size)] = odd[rng.integers(len(odd))]
    else:
        odd_text = str((*ODD_TEXTS, *map(json.dumps, ODD))[rng.integers(len(ODD_TEXTS) + len(ODD))])
        many = isinstance(values[name], list)
        values[name] = [odd_text, *values[name][1:]] if many else odd_text
    write_sweep(path, values, run={}, force=True)
    return said_in_a_line(lambda: told(path))


def told(path: Path) -> bytes:
    """Return all that a sweep store says, and r of it, but for how long it took."""
    sweep = open_sweep(path)
    texts = [sweep.text("model"), sweep.text("sweep"), repr(sweep.origin), repr(sweep.laws)]
    arrays = [sweep.polarity, sweep.points, sweep.gram, sweep.admittance]
    r = [f(k) for f in (sweep.ensemble().mean, sweep.ensemble().spread) for k in range(4)]
    r += [sweep.nominal().mean(0)]
    names = [*texts, repr(sweep.keys), repr(sweep.contact_names), repr(sweep.records)]
    if not all(np.isfinite(values).all() and np.abs(values).max() <= 1.0 + 1e-9 for values in r):
        raise SilentlyWrong("r is none")
    return b"".join(
        [*(np.asarray(a).tobytes() for a in (*arrays, *r)), *(n.encode() for n in names)]
    )


ATTEMPTS: dict[str, Attempt] = {
    "mesh files": attempt_mesh,
    "cache entries": attempt_cache,
    "journals": attempt_journal,
    "forged journals": attempt_forged_journal,
    "model files": attempt_model,
    "sweep files": attempt_sweep_file,
    "sweep stores": attempt_sweep_store,
    "forged sweep stores": attempt_forged_sweep_store,
    "tables of impedances": attempt_impedances,
}
