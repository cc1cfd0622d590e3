"""Ways to damage a store: by accident, by exchange, and by a forger who repairs checksums."""

import struct
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from fieldcorr.store import layout
from tests.store.synthetic import ENTRIES, GROUPS

Rng = np.random.Generator
MASK = 0xFFFFFFFF


def flip_bytes(data: bytearray, rng: Rng) -> None:
    for place in rng.integers(0, len(data), rng.integers(1, 9)):
        data[place] ^= int(rng.integers(1, 256))


def flip_bits_of_metadata(data: bytearray, rng: Rng) -> None:
    """Flip bits next to HDF5's own signatures: headers, indices, heaps, trees."""
    places = signatures(data)
    start = places[int(rng.integers(len(places)))]
    for _ in range(int(rng.integers(1, 4))):
        place = min(len(data) - 1, start + int(rng.integers(0, 96)))
        data[place] ^= 1 << int(rng.integers(8))


def truncate(data: bytearray, rng: Rng) -> None:
    del data[int(rng.integers(0, len(data))) :]


def append_noise(data: bytearray, rng: Rng) -> None:
    data.extend(rng.bytes(int(rng.integers(1, 4096))))


def blank_block(data: bytearray, rng: Rng) -> None:
    start = int(rng.integers(0, len(data)))
    size = int(rng.integers(1, 5000))
    stop = min(len(data), start + size)
    data[start:stop] = bytes([int(rng.choice([0, 255]))]) * (stop - start)


def copy_block(data: bytearray, rng: Rng) -> None:
    size = int(rng.integers(8, 4096))
    source, target = rng.integers(0, len(data) - size, 2)
    data[target : target + size] = data[source : source + size]


def forge_header(data: bytearray, rng: Rng) -> None:
    """Change a field inside an object header and repair its checksum."""
    places = [p for p in signatures(data) if data[p : p + 4] == b"OHDR"]
    start = places[int(rng.integers(len(places)))]
    end = header_end(data, start)
    if end is None:
        return
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.integers(start + 6, end))
        if rng.integers(2):
            data[place] = int(rng.integers(256))
        else:
            data[place] = int(rng.choice([0, 1, 2, 4, 8, 127, 128, 255]))
    struct.pack_into("<I", data, end, lookup3(bytes(data[start:end])))


def forge_size(data: bytearray, rng: Rng) -> None:
    """Replace a stored number by a huge one wherever it stands in a header; repair checksums."""
    places = [p for p in signatures(data) if data[p : p + 4] == b"OHDR"]
    start = places[int(rng.integers(len(places)))]
    end = header_end(data, start)
    if end is None or end - start < 32:
        return
    place = int(rng.integers(start + 6, end - 8))
    huge = [2**31 - 1, 2**32, 2**40, 2**48, 2**62, 2**63]
    struct.pack_into("<Q", data, place, huge[int(rng.integers(len(huge)))])
    struct.pack_into("<I", data, end, lookup3(bytes(data[start:end])))


def forge_index(data: bytearray, rng: Rng) -> None:
    """Change an entry of a chunk index; repair the checksum."""
    places = [p for p in signatures(data) if bytes(data[p : p + 4]) in INDEX_SIZES]
    start = places[int(rng.integers(len(places)))]
    end = start + INDEX_SIZES[bytes(data[start : start + 4])]
    if data[start : start + 4] == b"FADB":
        end = index_block_end(data, start)
    place = int(rng.integers(start + 4, end))
    if rng.integers(2):
        data[place] = int(rng.choice([0, 1, 2, 127, 128, 255, int(rng.integers(256))]))
    else:
        place = min(place, end - 8)
        choices = [0, 1, 2**31 - 1, 2**32, 2**40, 2**62, 2**64 - 1, len(data) - 5]
        struct.pack_into("<Q", data, place, choices[int(rng.integers(len(choices)))])
    struct.pack_into("<I", data, end, lookup3(bytes(data[start:end])))


INDEX_SIZES = {b"FAHD": 24, b"FADB": 0}
"""Bytes before the checksum of the header of a fixed array; its block's size is in its header."""


def index_block_end(data: bytearray, start: int) -> int:
    """Return where the checksum of a fixed array's block stands; its header has its size."""
    header = int.from_bytes(data[start + 6 : start + 14], "little")
    entry_size = int(data[header + 6])
    count = int.from_bytes(data[header + 8 : header + 16], "little")
    return start + 14 + count * entry_size


def signatures(data: bytearray) -> list[int]:
    """Return where HDF5's structures begin."""
    found = [0]
    for mark in (b"OHDR", b"GCOL", b"FRHP", b"FHDB", b"BTHD", b"BTLF", b"FAHD", b"FADB", b"OCHK"):
        place = data.find(mark)
        while place >= 0:
            found.append(place)
            place = data.find(mark, place + 1)
    return sorted(found)


def header_end(data: bytearray, start: int) -> int | None:
    """Return where the checksum of an object header of version 2 stands."""
    flags = data[start + 5]
    place = start + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(data[place : place + width], "little")
    end = place + width + size
    return end if end + 4 <= len(data) else None


def lookup3(key: bytes, initial: int = 0) -> int:
    """Return Bob Jenkins' hash of bytes, HDF5's checksum of metadata."""

    def rot(value: int, count: int) -> int:
        return ((value << count) | (value >> (32 - count))) & MASK

    length = len(key)
    a = b = c = (0xDEADBEEF + length + initial) & MASK
    offset = 0
    while length > 12:
        x, y, z = (int(v) for v in struct.unpack_from("<III", key, offset))
        a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
        for shifts in ((4, 6, 8), (16, 19, 4)):
            a = (a - c) & MASK ^ rot(c, shifts[0])
            c = (c + b) & MASK
            b = (b - a) & MASK ^ rot(a, shifts[1])
            a = (a + c) & MASK
            c = (c - b) & MASK ^ rot(b, shifts[2])
            b = (b + a) & MASK
        offset += 12
        length -= 12
    if not length:
        return c
    x, y, z = (int(v) for v in struct.unpack("<III", key[offset:].ljust(12, b"\0")))
    a, b, c = (a + x) & MASK, (b + y) & MASK, (c + z) & MASK
    for target, other, shift in (
        ("c", "b", 14), ("a", "c", 11), ("b", "a", 25), ("c", "b", 16),
        ("a", "c", 4), ("b", "a", 14), ("c", "b", 24),
    ):  # fmt: skip
        now = {"a": a, "b": b, "c": c}
        now[target] = ((now[target] ^ now[other]) - rot(now[other], shift)) & MASK
        a, b, c = now["a"], now["b"], now["c"]
    return c


def swap_datasets(file: h5py.File, rng: Rng) -> None:
    one, other = (ENTRIES[int(k)].path for k in rng.integers(0, len(ENTRIES), 2))
    if one != other:
        file.move(one, "/aside")
        file.move(other, one)
        file.move("/aside", other)


def retype(file: h5py.File, rng: Rng) -> None:
    entry = ENTRIES[int(rng.integers(len(ENTRIES)))]
    kinds = ["<f8", "<f4", ">f8", "<i8", "<i4", "|i1", "<u8", "S5", "<c16", "?"]
    shape, kind = file[entry.path].shape, str(rng.choice(kinds))
    del file[entry.path]
    made = file.create_dataset(entry.path, shape, kind)
    made.attrs["encoding-type"], made.attrs["encoding-version"] = entry.encoding


def reshape(file: h5py.File, rng: Rng) -> None:
    entry = ENTRIES[int(rng.integers(len(ENTRIES)))]
    old = file[entry.path]
    factor = int(rng.choice([0, 1, 2, 1000, 10**6, 10**8]))
    shape = tuple(max(1, n * factor + int(rng.integers(-1, 2))) for n in old.shape)
    shape = shape[:1] + tuple(min(n, 1000) for n in shape[1:])
    dtype, chunked = old.dtype, bool(rng.integers(2)) and len(shape) > 0
    del file[entry.path]
    chunks = layout.chunk_shape(entry, shape) or tuple(min(n, 4096) for n in shape)
    made = file.create_dataset(
        entry.path, shape, dtype, chunks=chunks if chunked or np.prod(shape) > 10**6 else None
    )
    made.attrs["encoding-type"], made.attrs["encoding-version"] = entry.encoding


def change_numbers(file: h5py.File, rng: Rng) -> None:
    entry = ENTRIES[int(rng.integers(len(ENTRIES)))]
    item = file[entry.path]
    if entry.dtype == layout.TEXT or not item.size:
        return
    place = tuple(int(rng.integers(n)) for n in item.shape)
    choices: list[float] = [0, 1, -1, 2, 127, -128]
    if item.dtype.itemsize > 1:
        choices += [2**30, -(2**30)]
    if item.dtype.kind == "f":
        choices += [np.nan, np.inf, 1e-300]
    item[place] = choices[int(rng.integers(len(choices)))]


def change_attribute(file: h5py.File, rng: Rng) -> None:
    paths = [g.path for g in GROUPS] + [e.path for e in ENTRIES]
    item = file[paths[int(rng.integers(len(paths)))]]
    name = str(rng.choice(list(item.attrs)))
    values = ["", "dict", 3, -1.5, np.arange(3), np.nan, "1.1", "complete"]
    if rng.integers(3):
        item.attrs[name] = values[int(rng.integers(len(values)))]
    else:
        del item.attrs[name]


def drop_member(file: h5py.File, rng: Rng) -> None:
    paths = [g.path for g in GROUPS[1:]] + [e.path for e in ENTRIES]
    del file[paths[int(rng.integers(len(paths)))]]


RAW: tuple[Callable[[bytearray, Rng], None], ...] = (
    flip_bytes,
    flip_bits_of_metadata,
    truncate,
    append_noise,
    blank_block,
    copy_block,
    forge_header,
    forge_size,
    forge_index,
)

THROUGH_HDF5: tuple[Callable[[h5py.File, Rng], None], ...] = (
    swap_datasets,
    retype,
    reshape,
    change_numbers,
    change_attribute,
    drop_member,
)


def mutate(original: bytes, path: Path, seed: int) -> str:
    """Write a damaged copy to ``path``; return the name of the damage."""
    rng = np.random.default_rng(seed)
    kinds = len(RAW) + len(THROUGH_HDF5)
    kind = seed % kinds
    if kind < len(RAW):
        data = bytearray(original)
        RAW[kind](data, rng)
        path.write_bytes(data)
        return RAW[kind].__name__
    path.write_bytes(original)
    change = THROUGH_HDF5[kind - len(RAW)]
    with h5py.File(path, "r+") as file:
        change(file, rng)
    return change.__name__
