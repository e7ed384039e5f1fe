"""Parses a Fetch in place: flexible versions (12 and later).

librdkafka, Java's consumers, followers and most other clients send these versions, in sessions or outside of them.
Decoding and encoding messages costs half as much as sending a megabyte. Integers are read from `bytes`, because
compiled code does that without a call. Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import read_i32_be, read_i64_be

from broker.fetch.fetches import Fetches
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import CONSUMER, FIRST_TOPIC_ID_VERSION, FetchingReplica, ParsedFetch
from broker.replica.replica import READ_COMMITTED, READ_TO_END
from protocol.primitives import MAX_ONE_BYTE, UUID_BYTES

if TYPE_CHECKING:
    from broker.request.context import Context

FIRST_VERSION: Final = 12
FIRST_WITHOUT_REPLICA_ID: Final = 15

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Larger requests, with two thousand partitions, are left to the handler."""
LIMITS_BYTES: Final = 21
"""The fields before the topics: wait, minimum and maximum bytes, isolation level, session and its epoch."""
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, max bytes, no tags."""
REPLICA_STATE_TAG: Final = 1
REPLICA_STATE_BYTES: Final = 13
"""Broker id, broker epoch, no tags (KIP-903)."""
REPLICA_TAG_BYTES: Final = REPLICA_STATE_BYTES + 2
"""REPLICA_STATE_BYTES, and the tag's number and size."""
UNUSUAL: Final = -1


def parse(fetches: Fetches, context: Context, frame: memoryview, front: bytes, position: int) -> ParsedFetch | None:
    """Returns the request whose body is at `position`; None for an unusual request, which the codec decodes or
    rejects."""
    size = len(frame)
    if size > MAX_REQUEST_BYTES:
        return None
    try:
        return parse_body(fetches, context, front if size <= len(front) else bytes(frame), position)
    except (IndexError, UnicodeDecodeError):
        return None


def parse_body(fetches: Fetches, context: Context, frame: bytes, at: int) -> ParsedFetch | None:
    """Returns the parsed request. Returns None, or raises IndexError or UnicodeDecodeError, for an unusual request: a
    follower's from before KIP-903, a request that forgets partitions or has other tags than a follower's, and a request
    that the codec must reject."""
    version = context.version
    if version < FIRST_WITHOUT_REPLICA_ID:
        if read_i32_be(frame, at) != CONSUMER:
            return None
        at += 4
    limits = at
    isolation_level = frame[limits + 12]
    if isolation_level > READ_COMMITTED:
        return None
    named: list[FetchedPartition] = []
    at = parse_topics(fetches, frame, limits + LIMITS_BYTES, version >= FIRST_TOPIC_ID_VERSION, named)
    if at == UNUSUAL or frame[at] != 1 or not frame[at + 1]:  # forgotten topics; a rack that is null
        return None
    at += 1
    rack_at = at + 1
    at += frame[at]  # the length of the rack's name, plus one
    rack = frame[rack_at:at]
    replica: FetchingReplica | None = None
    if frame[at]:  # tags
        replica = parse_replica(fetches, frame, at, version)
        if replica is None:
            return None
        at += REPLICA_TAG_BYTES
    if at + 1 != len(frame):
        return None
    max_bytes: int = read_i32_be(frame, limits + 8)
    request = ParsedFetch(
        version,
        read_i32_be(frame, limits + 4),
        min(max_bytes, fetches.max_bytes),
        read_i32_be(frame, limits),
        isolation_level if replica is None else READ_TO_END,
        read_i32_be(frame, limits + 13),
        read_i32_be(frame, limits + 17),
        named,
        (),
        replica,
    )
    if rack and fetches.selects_by_rack:
        request.choose_by(fetches.selector(context.listener, rack.decode()))
    return request


def parse_topics(fetches: Fetches, frame: bytes, at: int, uses_topic_ids: bool, named: list[FetchedPartition]) -> int:
    """Adds the partitions of the topics, whose count is at `at`, to `named`; returns the position after them, or
    UNUSUAL."""
    topic_count = frame[at]
    if not 1 <= topic_count <= MAX_ONE_BYTE:
        return UNUSUAL
    at += 1
    for _ in range(topic_count - 1):
        start = at
        at += UUID_BYTES if uses_topic_ids else frame[at]
        key = frame[start:at]
        if not uses_topic_ids and key not in fetches.replicas.by_key:
            return UNUSUAL
        partition_count = frame[at]
        at += 1
        if not 1 <= partition_count <= MAX_ONE_BYTE:
            return UNUSUAL
        for _ in range(partition_count - 1):
            named.append(
                FetchedPartition(
                    key,
                    read_i32_be(frame, at),
                    read_i64_be(frame, at + 8),
                    read_i32_be(frame, at + 28),
                    read_i32_be(frame, at + 4),
                    read_i32_be(frame, at + 16),
                    read_i64_be(frame, at + 20),
                )
            )
            if frame[at + 32]:  # tags
                return UNUSUAL
            at += PARTITION_BYTES
        if frame[at]:  # tags
            return UNUSUAL
        at += 1
    return at


def parse_replica(fetches: Fetches, frame: bytes, at: int, version: int) -> FetchingReplica | None:
    """Returns the follower that fetches, from the request's tags, whose count is at `at`; None if the tags are not a
    follower's."""
    if (
        version < FIRST_WITHOUT_REPLICA_ID
        or frame[at] != 1
        or frame[at + 1] != REPLICA_STATE_TAG
        or frame[at + 2] != REPLICA_STATE_BYTES
        or frame[at + REPLICA_TAG_BYTES]
    ):
        return None
    broker_id: int = read_i32_be(frame, at + 3)
    if broker_id < 0:
        return None
    return FetchingReplica(broker_id, read_i64_be(frame, at + 7), fetches.clock.now_ms(), fetches.throttle)
