"""Frames are cut from a stream of bytes however it arrives, and bad sizes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.connection import FIRST_BYTES, SIZE, FrameReader, response_frame
from protocol.errors import ProtocolError

LIMIT = 1000


def framed(payload: bytes) -> bytes:
    return SIZE.pack(len(payload)) + payload


def frames_of(stream: bytes, cuts: list[int]) -> list[bytes]:
    """What a reader makes of a stream that arrives in pieces of the given sizes."""
    reader, found, position = FrameReader(LIMIT), [], 0
    sizes = iter(cuts)
    while position < len(stream):
        wanted = next(sizes, len(stream))
        target = reader.target()
        taken = stream[position : position + (wanted if target is None else min(wanted, len(target)))]
        position += len(taken)
        if target is None:
            frames = reader.cut(memoryview(taken))
        else:
            target[: len(taken)] = taken
            frames = reader.filled(len(taken))
        found += map(bytes, frames)
        if reader.error is not None:
            raise reader.error
    return found


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
    reader = FrameReader(100 * FIRST_BYTES)
    assert not reader.cut(memoryview(SIZE.pack(100 * FIRST_BYTES)))
    target = reader.target()
    assert target is not None
    assert len(target) == FIRST_BYTES


@pytest.mark.parametrize("size", [FIRST_BYTES, FIRST_BYTES + 1, 2 * FIRST_BYTES, 5 * FIRST_BYTES + 3])
def test_a_large_frame_gets_room_as_it_comes(size: int) -> None:
    payload = bytes(index % 251 for index in range(1000)) * (size // 1000) + b"x" * (size % 1000)
    reader, stream = FrameReader(size), memoryview(framed(payload) + framed(b"next"))
    assert not reader.cut(stream[:300])
    position, frames = 300, []
    while (target := reader.target()) is not None:
        taken = stream[position : position + len(target)]
        target[:] = taken
        position += len(taken)
        frames += reader.filled(len(taken))
    assert frames == [payload]
    assert reader.cut(stream[position:]) == [b"next"]
