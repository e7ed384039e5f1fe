"""Fetch without objects of its message: a flexible request (version 12 and later), walked in place.

So librdkafka, Java's consumers and most other clients ask, in sessions or outside of them. To have the codec make and
encode messages costs half as much as it does to send a megabyte. Integers are read out of `bytes`, since compiled code
does that without a call. Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
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
MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Larger ones, of two thousand partitions, are left alone."""
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, most bytes, no tags."""


def fetch(broker: Broker, context: Context, frame: memoryview, front: bytes, position: int) -> object:
    """What becomes of the request whose body is at `position`; None leaves it alone."""
    size = len(frame)
    if size > MAX_REQUEST_BYTES:
        return None
    fetches: Fetches = broker.fetches
    try:
        request = walk(fetches, context.version, front if size <= len(front) else bytes(frame), position)
    except IndexError:
        return None
    return None if request is None else serve(accept(fetches, context, request))


def walk(fetches: Fetches, version: int, frame: bytes, at: int) -> ParsedFetch | None:
    """What is asked for; None, or IndexError, is the unusual: a follower, partitions that are forgotten, tags, and what
    the codec has to refuse."""
    if version < FIRST_WITHOUT_REPLICA_ID:
        if read_i32_be(frame, at) != CONSUMER:
            return None
        at += 4
    isolation_level = frame[at + 12]
    topic_count = frame[at + 21]
    if isolation_level > READ_COMMITTED or not 1 <= topic_count <= MOST:
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
        if not 1 <= partition_count <= MOST:
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
    at += frame[at]  # the rack's name, behind its length
    return request if at + 1 == len(frame) and not frame[at] else None
