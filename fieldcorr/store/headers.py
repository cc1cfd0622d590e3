"""Object headers, read without HDF5's own code.

What flows in: the raw file and the address of an object. What flows out: its text attributes, how a
group keeps its links, how a dataset finds its chunks.

A reader must neither hang nor crash on any file. HDF5 2.0 does: it loops for ever on a damaged
heap of variable-length texts (which has no checksum), and it crashes on forged trees and heaps of
large groups. So the few texts that matter are read here, and what a store never has (large groups,
other chunk indices) is refused before HDF5 looks at it. Understood are object headers of version
2, attribute messages of version 1 to 3, and heap collections, every length checked against the
bytes at hand. What is not understood is not found.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

MAX_HEADER = 1 << 16
MAX_HEAP = 1 << 20
MAX_CHUNKS = 16

LINK_INFO, LAYOUT, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE, ATTRIBUTE_INFO = 2, 8, 12, 16, 17, 21
FIXED_TEXT, VARIABLE = 3, 9
NOWHERE = b"\xff" * 8

SINGLE_CHUNK, FIXED_ARRAY = 1, 3
"""Chunk indices that a store's datasets have."""

Messages = list[tuple[int, bytes]]


class HeaderError(Exception):
    """Bytes that are not what they should be."""


@dataclass(frozen=True)
class Attribute:
    """One attribute message: name, class of its type, whether it is a scalar, raw value."""

    name: bytes
    kind: int
    is_scalar: bool
    value: bytes


def read_messages(file: BinaryIO, address: int) -> Messages:
    """Return type and body of every message of the object header at an address.

    Raises
    ------
    HeaderError, struct.error
        The bytes there are no object header of version 2.
    """
    return list(_messages(file, address))


def text_attributes(file: BinaryIO, messages: Messages) -> dict[str, str]:
    """Return the scalar text attributes of an object."""
    found = {}
    for kind, body in messages:
        attribute = _attribute(body) if kind == ATTRIBUTE else None
        if attribute is not None and attribute.is_scalar:
            if attribute.kind == FIXED_TEXT:
                found[attribute.name.decode()] = attribute.value.rstrip(b"\0").decode()
            elif attribute.kind == VARIABLE:
                found[attribute.name.decode()] = _heap_text(file, attribute.value).decode()
    return found


def is_self_contained(messages: Messages) -> bool:
    """Tell whether links and attributes are all in the header: no tree, no heap behind it."""
    for kind, body in messages:
        if kind == SYMBOL_TABLE:
            return False
        if kind in (LINK_INFO, ATTRIBUTE_INFO):
            # The number of the last creation, where it is kept, stands before the address.
            skip = 2 + (0 if not body[1] & 1 else 8 if kind == LINK_INFO else 2)
            if body[skip : skip + 8] != NOWHERE:
                return False
    return True


def chunk_index(messages: Messages) -> int | None:
    """Return the kind of a dataset's chunk index; None when it is not chunked."""
    for kind, body in messages:
        if kind == LAYOUT:
            version, form = body[0], body[1]
            if form != 2:
                return None
            # Version 4: flags, number of dimensions, bytes per dimension, dimensions, index.
            place = 5 + body[3] * body[4]
            return body[place] if version == 4 and place < len(body) else 0
    return None


def _read(file: BinaryIO, address: int, size: int, limit: int) -> bytes:
    if not (0 <= address < 2**63 and 0 < size <= limit):
        raise HeaderError(f"{size} bytes at {address}")
    file.seek(address)
    data = file.read(size)
    if len(data) != size:
        raise HeaderError("the file ends too early")
    return data


def _messages(file: BinaryIO, address: int) -> Iterator[tuple[int, bytes]]:
    """Yield the messages of an object header, continuation blocks included."""
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
            else:
                yield kind, body
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
