"""Text attributes, read without HDF5's own code for them.

What flows in: the raw file and the address of an object. What flows out: its text attributes.

HDF5 keeps text of variable length in "global heaps" that carry no checksum, and HDF5 2.0 loops for
ever on a damaged one. A store's reader must not hang on any file, so it reads the few attributes
that it needs itself: object headers of version 2, attribute messages of version 1 to 3, heap
collections, every length checked against the bytes at hand. What it does not understand it does
not find.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAX_HEADER = 1 << 16
MAX_HEAP = 1 << 20
MAX_CHUNKS = 16

ATTRIBUTE, CONTINUATION = 0x0C, 0x10
FIXED_TEXT, VARIABLE = 3, 9


class HeaderError(Exception):
    """Bytes that are not what they should be."""


@dataclass(frozen=True)
class Attribute:
    """One attribute message: name, class of its type, whether it is a scalar, raw value."""

    name: bytes
    kind: int
    is_scalar: bool
    value: bytes


def text_attributes(file: BinaryIO, address: int) -> dict[str, str]:
    """Return the scalar text attributes of the object at an address.

    Raises
    ------
    HeaderError, struct.error, UnicodeDecodeError
        The bytes there are no object header, or a text is damaged.
    """
    found = {}
    for message in _messages(file, address):
        attribute = _attribute(message)
        if attribute is not None and attribute.is_scalar:
            if attribute.kind == FIXED_TEXT:
                found[attribute.name.decode()] = attribute.value.rstrip(b"\0").decode()
            elif attribute.kind == VARIABLE:
                found[attribute.name.decode()] = _heap_text(file, attribute.value).decode()
    return found


def _read(file: BinaryIO, address: int, size: int, limit: int) -> bytes:
    if not (0 <= address < 2**63 and 0 < size <= limit):
        raise HeaderError(f"{size} bytes at {address}")
    file.seek(address)
    data = file.read(size)
    if len(data) != size:
        raise HeaderError("the file ends too early")
    return data


def _messages(file: BinaryIO, address: int) -> Iterator[bytes]:
    """Yield the attribute messages of an object header, continuation blocks included."""
    start = _read(file, address, 6, MAX_HEADER)
    flags = start[5]
    if start[:5] != b"OHDR\x02":
        raise HeaderError("no object header of version 2")
    prefix = 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
    width = 1 << (flags & 3)
    size = int.from_bytes(_read(file, address + prefix, width, 8), "little")
    blocks = [_read(file, address + prefix + width, size, MAX_HEADER)]
    for _ in range(MAX_CHUNKS):
        if not blocks:
            return
        for kind, body in _split(blocks.pop(), flags):
            if kind == CONTINUATION:
                where, length = struct.unpack_from("<QQ", body)
                more = _read(file, where, length, MAX_HEADER)
                if more[:4] != b"OCHK":
                    raise HeaderError("no continuation block")
                blocks.append(more[4:-4])
            elif kind == ATTRIBUTE:
                yield body
    raise HeaderError("too many continuation blocks")


def _split(block: bytes, flags: int) -> Iterator[tuple[int, bytes]]:
    """Yield type and body of every message of a header block."""
    head = 6 if flags & 0x04 else 4
    place = 0
    while place + head <= len(block):
        kind, size = struct.unpack_from("<BH", block, place)
        place += head
        if place + size > len(block):
            raise HeaderError("a message is longer than its block")
        yield kind, block[place : place + size]
        place += size


def _attribute(body: bytes) -> Attribute | None:
    """Take an attribute message apart; None when its type is stored elsewhere."""
    version, flags, name_size, type_size, space_size = struct.unpack_from("<BBHHH", body)
    if version not in (1, 2, 3) or (version > 1 and flags & 3):
        return None
    sizes = [name_size, type_size, space_size]
    padded = [-(-size // 8) * 8 for size in sizes] if version == 1 else sizes
    place = 9 if version == 3 else 8
    parts = []
    for size, step in zip(sizes, padded, strict=True):
        parts.append(body[place : place + size])
        place += step
    name, kind, space = parts
    if len(kind) < 8 or len(space) < 4:
        raise HeaderError("an attribute without type or shape")
    is_null = space[0] == 2 and space[3] == 2
    return Attribute(name.rstrip(b"\0"), kind[0] & 15, space[1] == 0 and not is_null, body[place:])


def _heap_text(file: BinaryIO, reference: bytes) -> bytes:
    """Look a text of variable length up in its heap collection."""
    length, address, index = struct.unpack_from("<IQI", reference)
    head = _read(file, address, 16, MAX_HEAP)
    if head[:5] != b"GCOL\x01":
        raise HeaderError("no heap collection")
    (size,) = struct.unpack_from("<Q", head, 8)
    heap = _read(file, address, size, MAX_HEAP)
    place = 16
    while place + 16 <= len(heap):
        number, _, _, used = struct.unpack_from("<HHIQ", heap, place)
        if number == index and number != 0:
            text = heap[place + 16 : place + 16 + length]
            if used < length or len(text) != length:
                raise HeaderError("a text is longer than its place in the heap")
            return text
        if number == 0:
            break
        place += 16 + -(-used // 8) * 8
    raise HeaderError("a text is not in its heap")
