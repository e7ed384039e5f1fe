"""Fetch without messages: a flexible request (version 12 and later), parsed in place.

librdkafka, Java's consumers and most other clients send such requests, in sessions or outside of them. Decoding and
encoding messages costs half as much as sending a megabyte. Integers are read from `bytes`, since compiled code does
that without a call. Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i32_be, read_i64_be

from broker.fetch.fetch import accept, serve
from broker.fetch.fetches import Fetches
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import CONSUMER, ParsedFetch
from broker.replica.replica import READ_COMMITTED

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.requests.broker import Broker

FIRST_VERSION: Final = 12
FIRST_WITHOUT_REPLICA_ID: Final = 15
UUID_BYTES: Final = 16
MAX_ONE_BYTE: Final = 0x7F
"""The largest count or length that takes one byte; each is encoded plus one (KIP-482)."""

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Larger ones, of two thousand partitions, are left to the handler."""
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, max bytes, no tags."""


def fetch(broker: Broker, context: Context, frame: memoryview, front: bytes, position: int) -> object:
    """Serves the request whose body is at `position`; None leaves it to the handler."""
    size = len(frame)
    if size > MAX_REQUEST_BYTES:
        return None
    fetches: Fetches = broker.fetches
    try:
        request = parse(fetches, context, front if size <= len(front) else bytes(frame), position)
    except (IndexError, UnicodeDecodeError):
        return None
    return None if request is None else serve(accept(fetches, context, request))


def parse(fetches: Fetches, context: Context, frame: bytes, at: int) -> ParsedFetch | None:
    """Returns the parsed request. Returns None, or raises IndexError or UnicodeDecodeError, for an unusual one: a
    follower's, one that forgets partitions or has tags, and one that the codec has to refuse."""
    version = context.version
    if version < FIRST_WITHOUT_REPLICA_ID:
        if read_i32_be(frame, at) != CONSUMER:
            return None
        at += 4
    isolation_level = frame[at + 12]
    topic_count = frame[at + 21]
    if isolation_level > READ_COMMITTED or not 1 <= topic_count <= MAX_ONE_BYTE:
        return None
    max_bytes: int = read_i32_be(frame, at + 8)
    named: list[FetchedPartition] = []
    request = ParsedFetch(
        version,
        read_i32_be(frame, at + 4),
        min(max_bytes, fetches.max_bytes),
        read_i32_be(frame, at),
        isolation_level,
        read_i32_be(frame, at + 13),
        read_i32_be(frame, at + 17),
        named,
    )
    at += 22
    for _ in range(topic_count - 1):
        start = at
        at += UUID_BYTES if request.uses_topic_ids else frame[at]
        key = frame[start:at]
        if not request.uses_topic_ids and key not in fetches.replicas.by_key:
            return None
        partition_count = frame[at]
        at += 1
        if not 1 <= partition_count <= MAX_ONE_BYTE:
            return None
        for _ in range(partition_count - 1):
            named.append(
                FetchedPartition(
                    key,
                    read_i32_be(frame, at),
                    read_i64_be(frame, at + 8),
                    read_i32_be(frame, at + 28),
                    read_i32_be(frame, at + 4),
                    read_i32_be(frame, at + 16),
                )
            )
            if frame[at + 32]:  # tags
                return None
            at += PARTITION_BYTES
        if frame[at]:  # tags
            return None
        at += 1
    if frame[at] != 1:  # forgotten topics
        return None
    at += 1
    size = frame[at]  # of the rack's name, plus one
    if size > 1 and fetches.selects_by_rack:
        request.choose_by(fetches.selector(context.listener, frame[at + 1 : at + size].decode()))
    at += size
    return request if at + 1 == len(frame) and not frame[at] else None
