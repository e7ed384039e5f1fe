"""Compares the short way through an LZ4 frame with the long way: whole, cut, damaged and too large frames."""

from __future__ import annotations

from random import Random

import lz4.frame
import pytest

from protocol.errors import ErrorCode, KafkaError
from protocol.records import lz4 as frames

FRAMES = 2_000
MAGIC = 2


def some_frame(random: Random) -> tuple[bytes, bytes]:
    """Returns some content and its frame, which may be damaged."""
    size = random.choice((0, 1, 10, 1_000, 70_000))
    content = bytes(random.choices(b"abc ", k=size)) if random.random() < 0.7 else random.randbytes(size)
    frame = bytearray(
        lz4.frame.compress(
            content,
            block_size=random.choice((4, 4, 5)),
            block_linked=random.random() < 0.1,
            store_size=random.random() < 0.1,
            content_checksum=random.random() < 0.2,
            block_checksum=random.random() < 0.1,
        )
    )
    for _ in range(random.choice((0, 0, 1, 2))):
        kind = random.random()
        if kind < 0.4 and frame:
            frame[random.randrange(min(len(frame), random.choice((12, 1_000_000))))] = random.randrange(256)
        elif kind < 0.7:
            del frame[random.randrange(len(frame) + 1) :]
        else:
            frame += random.randbytes(random.randrange(20))
    return content, bytes(frame)


def by_pieces(frame: memoryview, max_size: int) -> bytes | ErrorCode:
    content = b""
    try:
        for piece in frames.pieces(frame, MAGIC):
            content += piece
    except KafkaError as error:
        return error.code
    return content if len(content) <= max_size else ErrorCode.CORRUPT_MESSAGE


def whole(frame: memoryview, max_size: int) -> bytes | ErrorCode:
    try:
        return frames.decompress(frame, max_size, MAGIC)
    except KafkaError as error:
        return error.code


@pytest.mark.parametrize("seed", range(4))
def test_a_frame_is_inflated_whole_as_by_pieces(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    at_once: list[int] = []
    in_one = frames._inflated_into

    def noted(data: memoryview, room: int) -> bytes | None:
        at_once.append(room)
        return in_one(data, room)

    monkeypatch.setattr(frames, "_inflated_into", noted)
    contents = []
    for _ in range(FRAMES // 4):
        content, frame = some_frame(random)
        max_size = random.choice((0, max(0, len(content) - 1), len(content), 65_536, 200_000))
        inflated = whole(memoryview(frame), max_size)
        assert inflated == by_pieces(memoryview(frame), max_size)
        contents.append(inflated)
    assert len(at_once) > FRAMES // 40
    assert contents.count(ErrorCode.CORRUPT_MESSAGE) > FRAMES // 20
