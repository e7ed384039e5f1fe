"""Tests answers of many parts while they are encoded."""

from __future__ import annotations

import pytest

from broker.request.bounded_answer import MAX_ANSWER_BYTES, MAX_UNJOINED, BoundedAnswer
from protocol.api_key import ApiKey
from protocol.connection import SMALL_BYTES
from protocol.errors import ProtocolError
from protocol.types import Buffer

MANY = 100 * MAX_UNJOINED


def test_small_parts_are_joined_as_they_come() -> None:
    parts: list[Buffer] = [b"head"]
    answer = BoundedAnswer(ApiKey.METADATA, 0, parts)
    most = 0
    for number in range(MANY):
        answer.append(b"%d," % number)
        most = max(most, len(parts))
    assert most < 2 * MAX_UNJOINED
    assert b"".join(parts) == b"head" + b"".join(b"%d," % number for number in range(MANY))


def test_large_parts_are_not_copied() -> None:
    parts: list[Buffer] = []
    answer, large = BoundedAnswer(ApiKey.METADATA, 0, parts), bytes(SMALL_BYTES)
    for _ in range(MAX_UNJOINED + 1):
        answer.append(large)
    assert all(part is large for part in parts)


def test_an_answer_has_a_limit() -> None:
    answer = BoundedAnswer(ApiKey.METADATA, 0, [])
    large = bytes(MAX_ANSWER_BYTES // 2)
    answer.append(large)
    answer.append(large)
    with pytest.raises(ProtocolError, match="its answer would exceed 100000000 bytes"):
        answer.append(b"!")
