"""Tests decoders with arbitrary bytes: each returns a value or raises ProtocolError, and uses memory in proportion to
the frame."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from protocol.codec import decode, decoder, encode
from protocol.errors import ProtocolError
from protocol.schema import Field, fields_of, identity
from tests.protocol.messages.samples import Sampler, all_messages, versions_of

TEXTS = ("", "a", "topic-1")
HUGE_COUNTS = {
    False: (b"\x7f\xff\xff\xff", b"\x00\xff\xff\xff"),
    True: (b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\x7f", b"\x80\x80\x80\x80\x80"),
}
"""Counts and lengths that exceed any frame, in classic and in flexible versions."""
BOMBED_BYTES = 96
"""Number of bytes at the start of a small sample in which nearly all of its arrays and strings begin."""

BYTES_PER_BYTE = 64
"""Maximum memory, as Python objects, for each byte of a frame. The worst case is an array of structs with empty arrays,
of 3 bytes each."""
SLACK = 16 * 1024
"""Memory of an error with its message and traceback."""

MESSAGES = [pytest.param(cls, id=cls.__name__) for cls in all_messages()]


def small_samples(cls: type, version: int) -> Iterator[Any]:
    flexible = version in identity(cls).flexible
    for emptiness in (0.0, 0.5, 1.0):
        yield Sampler(f"fuzz {cls.__name__} {version}", emptiness, TEXTS).message(cls, version, flexible=flexible)


def value_or_protocol_error(cls: type, version: int, data: bytes | bytearray | memoryview) -> None:
    try:
        _, end = decode(cls, version, data)
    except ProtocolError:
        return
    assert 0 <= end <= len(data)


@pytest.mark.parametrize("cls", MESSAGES)
def test_every_prefix_of_a_message_is_refused(cls: type) -> None:
    for version in versions_of(cls):
        for value in small_samples(cls, version):
            whole = encode(value, version)
            for size in range(0, len(whole), 1 + len(whole) // 100):
                with pytest.raises(ProtocolError):
                    decode(cls, version, whole[:size])


@pytest.mark.parametrize("cls", MESSAGES)
def test_flipped_bits_give_a_value_or_a_protocol_error(cls: type) -> None:
    random = Random(cls.__name__)
    for version in versions_of(cls):
        for value in small_samples(cls, version):
            data = bytearray(encode(value, version))
            for _ in range(15 if data else 0):
                at = random.randrange(len(data))
                data[at] ^= 1 << random.randrange(8)
                value_or_protocol_error(cls, version, memoryview(data))


@pytest.mark.parametrize("cls", MESSAGES)
def test_random_bytes_give_a_value_or_a_protocol_error(cls: type) -> None:
    random = Random(cls.__name__)
    for version in versions_of(cls):
        for size in (0, 1, 3, 8, 30, 200):
            for data in (random.randbytes(size), bytes(size), b"\x01" * size, b"\xff" * size, b"\x7f" * size):
                value_or_protocol_error(cls, version, data)


def assert_bounded_memory(cls: type, version: int, frames: list[bytes]) -> None:
    """Checks that decoding a frame allocates at most its bound at any time; the decoder itself is compiled before."""
    decoder(cls, version)
    tracemalloc.start()
    try:
        for frame in frames:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            value_or_protocol_error(cls, version, frame)
            assert tracemalloc.get_traced_memory()[1] - before <= BYTES_PER_BYTE * len(frame) + SLACK
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cls", MESSAGES)
def test_a_huge_count_or_length_anywhere_costs_no_memory(cls: type) -> None:
    for version in {versions_of(cls)[0], versions_of(cls)[-1]}:
        whole = encode(next(small_samples(cls, version)), version)
        counts = HUGE_COUNTS[version in identity(cls).flexible]
        places = range(min(len(whole), BOMBED_BYTES))
        bombs = [whole[:at] + count + whole[at + len(count) :] for at in places for count in counts]
        assert_bounded_memory(cls, version, bombs)


def array_paths(cls: type, version: int, path: tuple[Field, ...] = ()) -> Iterator[tuple[Field, ...]]:
    """Yields the path to each array of a message."""
    for field in fields_of(cls):
        if version not in field.wire.versions:
            continue
        inner = field.kind.struct or (field.kind.items.struct if field.kind.items else None)
        if field.kind.items is not None:
            yield (*path, field)
        if inner is not None:
            yield from array_paths(inner, version, (*path, field))


def message_with(cls: type, version: int, path: tuple[Field, ...], count: int, *, flexible: bool) -> Any:
    """Returns an empty message, except for one array, which has `count` of the smallest possible items."""
    sampler = Sampler(cls.__name__, 1.0, TEXTS)
    value = sampler.message(cls, version, flexible=flexible)
    field, rest = path[0], path[1:]
    part = field.kind.items or field.kind
    if rest:
        assert part.struct is not None
        inner = message_with(part.struct, version, rest, count, flexible=flexible)
        setattr(value, field.name, [inner] if field.kind.items else inner)
    else:
        setattr(value, field.name, [sampler.value(part, version, flexible, field.name)] * count)
    return value


@pytest.mark.parametrize("cls", MESSAGES)
def test_an_array_of_the_smallest_items_costs_a_bounded_multiple_of_its_bytes(cls: type) -> None:
    for version in {versions_of(cls)[0], versions_of(cls)[-1]}:
        flexible = version in identity(cls).flexible
        paths = array_paths(cls, version)
        values = [message_with(cls, version, path, 200, flexible=flexible) for path in paths]
        assert_bounded_memory(cls, version, [encode(value, version) for value in values])
