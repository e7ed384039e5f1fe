"""The two requests for a broker without a control server: CreateTopics and DeleteTopics.

It doesn't use the broker's own codec, because a user's process must not import packages with names such as `protocol`
and `broker`. Apache Kafka has supported the versions since 2.4.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from odradek.testing.errors import BrokerError, RequestRefused

__tracebackhide__ = True

CREATE_TOPICS, DELETE_TOPICS = 19, 20
CREATE_TOPICS_VERSION: Final = 4  # the first with -1 for the broker's defaults (KIP-464)
DELETE_TOPICS_VERSION: Final = 3

TIMEOUT_MS: Final = 30_000
MAX_ANSWER_BYTES: Final = 1 << 20
CORRELATION_ID: Final = 1
CLIENT_ID: Final = "odradek-testing"

NO_ERROR: Final = 0
BROKER_DEFAULT: Final = -1

T = TypeVar("T")


def create_topic(address: str, name: str, partitions: int, replicas: int, configs: Mapping[str, str]) -> None:
    """Creates a topic; -1 partitions or replicas are the broker's default. Raises RequestRefused, BrokerError."""
    pairs = _array(configs.items(), lambda pair: _text(pair[0]) + _text(pair[1]))
    topic = _text(name) + struct.pack(">ih", partitions, replicas) + _array((), bytes) + pairs
    body = _array((topic,), bytes) + struct.pack(">i?", TIMEOUT_MS, False)
    answer = _ask(address, CREATE_TOPICS, CREATE_TOPICS_VERSION, body)
    answer.skip(4)
    for _ in range(answer.count()):
        topic_name, code, message = answer.text(), answer.int16(), answer.text()
        _raise(code, f"topic {topic_name} is not created: {message or 'the broker does not say why'}")


def delete_topic(address: str, name: str) -> None:
    """Deletes a topic. Raises RequestRefused, BrokerError."""
    body = _array((name,), _text) + struct.pack(">i", TIMEOUT_MS)
    answer = _ask(address, DELETE_TOPICS, DELETE_TOPICS_VERSION, body)
    answer.skip(4)
    for _ in range(answer.count()):
        topic_name, code = answer.text(), answer.int16()
        _raise(code, f"topic {topic_name} is not deleted")


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _array(items: Iterable[T], encode: Callable[[T], bytes]) -> bytes:
    encoded = [encode(item) for item in items]
    return struct.pack(">i", len(encoded)) + b"".join(encoded)


def _raise(code: int, message: str) -> None:
    if code != NO_ERROR:
        raise RequestRefused(code, message)


def _ask(address: str, key: int, version: int, body: bytes) -> _Answer:
    frame = struct.pack(">hhi", key, version, CORRELATION_ID) + _text(CLIENT_ID) + body
    host, _, port = address.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_MS / 1000) as connection,
            connection.makefile("rb") as incoming,
        ):
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            head = incoming.read(4)
            size = struct.unpack(">i", head)[0] if len(head) == 4 else -1
            content = incoming.read(size) if 4 <= size <= MAX_ANSWER_BYTES else b""
    except OSError as error:
        raise BrokerError(f"no broker answered at {address}: {error}") from None
    if len(content) < 4 or len(content) != size or struct.unpack_from(">i", content)[0] != CORRELATION_ID:
        raise BrokerError(f"{address} does not answer like a broker with a PLAINTEXT listener")
    return _Answer(content, 4)


class _Answer:
    """Reads the fields of an answer, in order."""

    def __init__(self, content: bytes, position: int) -> None:
        self._content = content
        self._position = position

    def skip(self, count: int) -> None:
        self._position += count

    def _take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._content):
            raise BrokerError("the answer is incomplete")
        taken = self._content[self._position : end]
        self._position = end
        return taken

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def count(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def text(self) -> str | None:
        length = self.int16()
        return None if length < 0 else self._take(length).decode()
