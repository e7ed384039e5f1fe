"""Mutations of frames: fields of a request changed by the schema, and bytes changed at random."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any, Final

from protocol.schema import Field, fields_of
from tests.fuzz.drawing import Draw

MOST_CHANGES: Final = 4

RENAMED: Final = frozenset({
    "topic", "topic_name", "topic_id", "topic_names", "subscribed_topic_names", "group_id", "group_ids", "groups_names",
    "member_id", "generation_id", "member_epoch", "generation_id_or_member_epoch", "transactional_id", "producer_id",
    "producer_epoch", "transactional_ids", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "records",
    "v3_and_below_transactional_id", "coordinator_keys", "session_id", "resource_name",
})  # fmt: skip
"""The fields with which a recorded request names objects of an earlier world."""


def settle(request: Any, version: int, draw: Draw) -> None:
    """Makes a recorded request name objects of the present world."""
    for owner, field in places(request, version):
        is_topic = field.name == "name" and "opic" in type(owner).__name__
        is_group = field.name == "groups" and field.kind.items is not None and field.kind.items.name == "string"
        value = getattr(owner, field.name)
        if value is None or not (field.name in RENAMED or is_topic or is_group):
            continue
        if field.kind.items is not None:
            setattr(owner, field.name, [draw.value(type(owner), field.name, field.kind.items, version) for _ in value])
        else:
            setattr(owner, field.name, draw.value(type(owner), field.name, field.kind, version))


def change(request: Any, version: int, draw: Draw) -> None:
    """Changes a few fields: to another value, an extreme, null or empty; repeats or swaps entries."""
    for _ in range(draw.rng.randint(1, MOST_CHANGES)):
        all_places = places(request, version)
        if not all_places:
            return
        owner, field = draw.rng.choice(all_places)
        value = getattr(owner, field.name)
        if field.kind.items is not None and value and draw.rng.random() < 0.6:
            setattr(owner, field.name, draw.rng.choice(OF_LISTS)(draw.rng, value))
        elif field.kind.items is None and field.kind.struct is None and draw.rng.random() < 0.5:
            setattr(owner, field.name, draw.extreme(field.name, field.kind))
        else:
            setattr(owner, field.name, draw.field(type(owner), field, version))


def places(value: Any, version: int) -> list[tuple[Any, Field]]:
    """Returns every field of a request and of its parts, with the object that has it."""
    fields: list[tuple[Any, Field]] = []
    for field in fields_of(type(value)):
        if version not in field.wire.versions:
            continue
        fields.append((value, field))
        inner = getattr(value, field.name)
        for item in inner if isinstance(inner, list) else (inner,):
            if hasattr(item, "__wire__"):
                fields += places(item, version)
    return fields


Lists = Callable[[random.Random, list[Any]], list[Any]]
OF_LISTS: Final[tuple[Lists, ...]] = (
    lambda rng, items: [],
    lambda rng, items: [*items, rng.choice(items)],
    lambda rng, items: items[::-1],
    lambda rng, items: items * rng.choice((2, 3, 50, 300)) if len(items) < 10 else items,
    lambda rng, items: items[: rng.randrange(len(items) + 1)],
    lambda rng, items: rng.sample(items, len(items)),
)


# Bytes.


def flip(rng: random.Random, data: bytearray) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(rng: random.Random, data: bytearray) -> None:
    data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))


def cut(rng: random.Random, data: bytearray) -> None:
    del data[rng.randrange(len(data)) :]


def cut_out(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    del data[start : start + rng.randint(1, 8)]


def insert(rng: random.Random, data: bytearray) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.choice((b"\x00", b"\xff", b"\xff\xff\xff\xff", b"\x80" * 5, rng.randbytes(rng.randint(1, 16))))


def double(rng: random.Random, data: bytearray) -> None:
    start = rng.randrange(len(data))
    data[start:start] = data[start : start + rng.randint(1, 40)]


def length(rng: random.Random, data: bytearray) -> None:
    """Changes a length or count of two or four bytes."""
    layout = rng.choice((">h", ">i"))
    if len(data) > 14:
        at = rng.randrange(8, len(data) - 4)
        struct.pack_into(layout, data, at, rng.choice((-1, -2, 0, 1, 0x7FFF, -0x8000)))


def long_varint(rng: random.Random, data: bytearray) -> None:
    """Encodes a compact length in more bytes than needed, or without an end."""
    at = rng.randrange(len(data))
    byte = data[at]
    data[at : at + 1] = rng.choice((
        bytes((byte | 0x80, 0)), bytes((byte | 0x80, 0x80, 0x80, 0x80, 0)), b"\x80" * 12, b"\xff\xff\xff\xff\x0f",
    ))  # fmt: skip


OF_BYTES: Final = (flip, flip, overwrite, overwrite, cut, cut_out, insert, double, length, long_varint)


def garble(rng: random.Random, data: bytes) -> bytes:
    """Returns the frame with some changed bytes, mostly after the fields that identify the request."""
    head, body = data[:8], bytearray(data[8:])
    if rng.random() < 0.03:
        head, body = b"", bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        if body:
            rng.choice(OF_BYTES)(rng, body)
    return head + bytes(body)
