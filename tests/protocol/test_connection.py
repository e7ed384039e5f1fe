"""Tests that frames are cut from a stream of bytes in pieces of any size, and that invalid sizes are rejected."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.connection import (
    FIRST_BYTES,
    GROWTH,
    SIZE,
    USUAL_FRAME_BYTES,
    USUAL_GROWTH,
    FrameReader,
    Spares,
    response_frame,
    room,
)
from protocol.errors import ProtocolError

LIMIT = 1000
MIB = 1 << 20


def framed(payload: bytes) -> bytes:
    return SIZE.pack(len(payload)) + payload


def frames_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    """Returns the frames that a reader cuts out of a stream that arrives in pieces of the given sizes."""
    reader, position = FrameReader(LIMIT), 0
    whole: list[bytes] = []
    sizes = iter(cuts)
    while position < len(stream):
        size = next(sizes, len(stream))
        target = reader.target()
        taken = stream[position : position + (size if target is None else min(size, len(target)))]
        position += len(taken)
        if target is None:
            frames = reader.cut(memoryview(taken))
        else:
            target[: len(taken)] = taken
            frames = reader.filled(len(taken))
        if reader.is_full:
            reader.grow()
        whole += map(bytes, frames)
        if reader.error is not None:
            raise reader.error
    return whole


@given(st.lists(st.binary(max_size=60), max_size=8), st.lists(st.integers(1, 40), max_size=60))
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(payloads: list[bytes], cuts: list[int]) -> None:
    assert frames_of(b"".join(map(framed, payloads)), cuts) == payloads


@pytest.mark.parametrize("size", [-1, LIMIT + 1, -(2**31), 2**31 - 1])
def test_a_frame_of_impossible_size_ends_the_stream_and_is_named(size: int) -> None:
    reader = FrameReader(LIMIT)
    assert [bytes(frame) for frame in reader.cut(memoryview(framed(b"good") + SIZE.pack(size) + framed(b"lost")))] == [
        b"good"
    ]
    assert f"{size} bytes" in str(reader.error)


def test_a_size_cut_in_two_is_checked_as_well() -> None:
    with pytest.raises(ProtocolError, match="1001 bytes"):
        frames_of(SIZE.pack(LIMIT + 1), [2, 2])


@pytest.mark.parametrize(("flexible", "head"), [(False, b"\0\0\0\x07\0\0\0\x05"), (True, b"\0\0\0\x08\0\0\0\x05\0")])
def test_a_response_carries_its_size_and_correlation_id(flexible: bool, head: bytes) -> None:
    assert response_frame(5, flexible, [b"ab", memoryview(b"c")]) == [head + b"abc"]


def test_large_parts_are_not_copied() -> None:
    records = memoryview(bytes(100_000))
    assert response_frame(1, False, [b"x", records])[2] is records


def test_what_is_announced_takes_no_room_before_it_comes() -> None:
    reader = FrameReader(100 * MIB)
    assert not reader.cut(memoryview(SIZE.pack(100 * MIB)))
    target = reader.target()
    assert target is not None
    assert len(target) == reader.held_bytes == FIRST_BYTES


@pytest.mark.parametrize("arrived", [1, FIRST_BYTES, 20_000, USUAL_FRAME_BYTES, MIB, 60 * MIB])
def test_room_is_in_proportion_to_what_has_come(arrived: int) -> None:
    size = room(100 * MIB, arrived)
    assert arrived < size <= FIRST_BYTES + USUAL_GROWTH * arrived
    assert size <= max(USUAL_FRAME_BYTES, GROWTH * arrived + FIRST_BYTES)
    assert room(arrived, arrived) == arrived


def test_a_frame_that_fills_its_room_has_none_until_it_grows() -> None:
    reader = FrameReader(MIB)
    assert not reader.cut(memoryview(SIZE.pack(MIB)))
    assert not reader.is_full
    assert not reader.filled(FIRST_BYTES)
    assert (reader.is_full, reader.growth_bytes > 0) == (True, True)
    grown = reader.held_bytes + reader.growth_bytes
    reader.grow()
    assert (reader.is_full, reader.held_bytes) == (False, grown)
    assert reader.held_bytes == grown > FIRST_BYTES


def test_what_is_dropped_takes_no_room() -> None:
    reader = FrameReader(MIB)
    assert not reader.cut(memoryview(SIZE.pack(MIB) + b"begun"))
    reader.drop()
    assert reader.held_bytes == 0
    assert reader.target() is None


@pytest.mark.parametrize("size", [0, 1, FIRST_BYTES, FIRST_BYTES + 1, USUAL_FRAME_BYTES + 1, 5 * USUAL_FRAME_BYTES + 3])
@pytest.mark.parametrize("begun", [1, 3, 4, 304])
def test_a_large_frame_gets_room_as_it_comes(size: int, begun: int) -> None:
    payload = bytes(index % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
    reader, stream = FrameReader(size), memoryview(framed(payload) + framed(b"next"))
    begun = min(begun, len(framed(payload)) - 1)
    assert not reader.cut(stream[:begun])
    position, frames = begun, []
    while (target := reader.target()) is not None:
        taken = stream[position : position + len(target)]
        target[:] = taken
        position += len(taken)
        frames += reader.filled(len(taken))
        if reader.is_full:
            reader.grow()
    assert frames == [payload]
    reader = FrameReader(max(size, 4))
    assert reader.cut(stream[position:]) == [b"next"]


def read_in_pieces(reader: FrameReader, payload: bytes) -> memoryview:
    """Reads a frame whose first piece is cut out of another frame's buffer; returns it."""
    stream = framed(payload)
    assert reader.cut(memoryview(stream[: FIRST_BYTES // 2])) == []
    position = FIRST_BYTES // 2
    while True:
        target = reader.target()
        assert target is not None
        piece = stream[position : position + len(target)]
        target[: len(piece)] = piece
        del target
        position += len(piece)
        for frame in reader.filled(len(piece)):
            return frame
        if reader.is_full:
            reader.grow()


def test_room_that_nobody_looks_at_any_more_serves_for_the_next_frame() -> None:
    reader = FrameReader(MIB, spares=Spares(1))
    first = read_in_pieces(reader, b"a" * 300_000)
    room_of_first = first.obj
    del first
    second = read_in_pieces(reader, b"b" * 200_000)
    assert second.obj is room_of_first
    assert second == b"b" * 200_000
    assert reader.held_bytes == 0


def test_room_that_somebody_looks_at_is_left_alone() -> None:
    reader = FrameReader(MIB, spares=Spares(1))
    view = read_in_pieces(reader, b"a" * 300_000)[100:200]
    second = read_in_pieces(reader, b"b" * 300_000)
    assert view == b"a" * 100
    assert second == b"b" * 300_000
    del view
    third = read_in_pieces(reader, b"c" * 300_000)
    assert third == b"c" * 300_000
    assert second == b"b" * 300_000


@pytest.mark.parametrize(("size", "count", "max_bytes"), [(300_000, 1, 200_000), (FIRST_BYTES, 1, MIB)])
def test_room_that_is_too_large_or_small_to_keep_is_not_kept(size: int, count: int, max_bytes: int) -> None:
    spares = Spares(count, max_bytes)
    read_in_pieces(FrameReader(MIB, spares=spares), b"a" * size)
    assert not len(spares)


def test_what_grows_grows_in_room_of_its_own_up_to_what_is_kept() -> None:
    spares = Spares(1)
    reader = FrameReader(MIB, spares=spares)
    for size in (100_000, 50_000, 400_000, 400_001):
        assert read_in_pieces(reader, bytes([size % 251]) * size) == bytes([size % 251]) * size
    assert len(spares) == 1
    kept = spares.take(300_000)
    assert kept is not None
    assert len(kept) == 400_001
    assert spares.take(200_000) is None, "a frame that waits is counted by its own size"


def test_a_frame_takes_a_kept_buffer_as_it_comes() -> None:
    reader = FrameReader(MIB, spares=Spares(1))
    kept = read_in_pieces(reader, b"a" * 300_000).obj
    assert isinstance(kept, bytearray)
    assert not reader.cut(memoryview(SIZE.pack(300_000) + b"begun"))
    assert reader.held_bytes == FIRST_BYTES + GROWTH * 5
    target = reader.target()
    assert target is not None
    assert target.obj is kept
    reader.filled(len(target))
    del target
    assert reader.is_full
    reader.grow()
    target = reader.target()
    assert target is not None
    assert target.obj is kept
    assert bytes(kept[:5]) == b"begun"


def test_connections_share_the_largest_buffers() -> None:
    spares = Spares(2)
    for size in (200_000, 100_000, 300_000, 50_000):
        read_in_pieces(FrameReader(MIB, spares=spares), bytes(size))
    taken = [spares.take(150_000), spares.take(250_000), spares.take(350_000)]
    assert [None if buffer is None else len(buffer) for buffer in taken] == [200_000, 300_000, None]
    frames = [read_in_pieces(FrameReader(MIB, spares=spares), bytes(150_000)) for _ in range(3)]
    assert len({id(frame.obj) for frame in frames}) == 3, "a buffer in use serves no second frame"
    spares.clear()
    assert not len(spares)
