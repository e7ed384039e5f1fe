"""Fetch without objects: a flexible request (version 12 and later) outside sessions, walked in place.

So librdkafka and most other clients ask. The way through handlers/fetch.py makes dozens of objects per request, which
costs half as much as it does to send a megabyte. Reading changes nothing, so what turns out to be unusual (an error, an
open or aborted transaction, bytes that are not in memory) can be left to the general way wherever it is found.
Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

import struct
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.replica.partition import NO_EPOCH, READ_COMMITTED
from broker.waiting import wait_for_bytes
from protocol.errors import KafkaError
from protocol.primitives import ONE_BYTE, uvarint
from protocol.records.batch import LOG_OVERHEAD
from protocol.types import Buffer
from storage.segment_file import EMPTY

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.replica.partition import Partition

FIRST_VERSION: Final = 12
FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_WITHOUT_REPLICA_ID: Final = 15
UUID_BYTES: Final = 16

REQUEST: Final = struct.Struct(">iiiBiiB")
"""Longest wait, least and most bytes, isolation level, session id and epoch, count of topics."""
REPLICA_ID: Final = struct.Struct(">i")
PARTITION: Final = struct.Struct(">iiqiqiB")
"""Partition, leader epoch, offset, last fetched epoch, log start offset, most bytes, no tags."""
NO_TAGS: Final = 0
NONE_FORGOTTEN: Final = 1
"""An empty array."""
HEAD: Final = struct.Struct(">iixihiB")
"""Size, correlation id, no tags; throttle time, no error, no session, count of topics."""
HEAD_AFTER_SIZE: Final = HEAD.size - 4
ANSWER: Final = struct.Struct(">ihqqqBi")
"""Partition, no error, high watermark, last stable offset, log start offset, aborted transactions, no other replica."""
BATCH_LENGTH: Final = struct.Struct(">8xi")

MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
NO_SESSION: Final = 0, -1
CONSUMER: Final = -1
NULL: Final = 0
NONE_ABORTED: Final = 1
"""Aborted transactions: nothing for who reads all, an empty list for who reads what is committed."""
NO_REPLICA: Final = -1
END: Final = bytes(1)
"""No tags."""


class Target(NamedTuple):
    """A partition of the request: where from, and how much."""

    partition: Partition
    offset: int
    max_bytes: int


class Asked(NamedTuple):
    """A request."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    committed_only: bool
    topics: list[tuple[bytes, list[Target]]]
    """By topic: its name or id as the frame has it."""

    @property
    def partitions(self) -> list[Partition]:
        return [target.partition for _, targets in self.topics for target in targets]

    @property
    def ends(self) -> list[int]:
        """Where the logs end now."""
        return [partition.log.log_end_offset for partition in self.partitions]

    @property
    def has_to_wait(self) -> bool:
        """Whether there is nothing to read: known without an answer, which a consumer that keeps up would have made
        for each record only to be thrown away."""
        if self.min_bytes <= 0 or self.max_wait_ms <= 0:
            return False
        for _, targets in self.topics:
            for partition, offset, _ in targets:
                log = partition.log
                if offset != log.log_end_offset or log.first_unstable_offset is not None:
                    return False
        return True


def fetch(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, front: bytes, position: int
) -> list[Buffer] | Coroutine[Any, Any, list[Buffer] | None] | None:
    """The answer to the request whose body is at `position`."""
    asked = parse(broker, version, frame, position)
    if asked is None:
        return None
    size_bytes = 0
    if not asked.has_to_wait:
        found = gather(asked, correlation_id)
        if found is None:
            return None
        buffers, size_bytes = found
        if size_bytes >= asked.min_bytes or asked.max_wait_ms <= 0:
            return buffers
    return fetch_later(broker, version, correlation_id, bytes(frame), position, asked, size_bytes, asked.ends)


async def fetch_later(
    broker: Broker,
    version: int,
    correlation_id: int,
    frame: bytes,
    position: int,
    asked: Asked,
    size_bytes: int,
    ends: list[int],
) -> list[Buffer] | None:
    """Waits, unless an append has come between the first look and this coroutine's first step; then reads the request
    anew whenever it looks: partitions come and go meanwhile."""
    now_ms, kept = broker.clock.monotonic_ms, memoryview(frame)
    left_ms = asked.max_wait_ms
    deadline_ms = now_ms() + left_ms
    changed = ends != asked.ends
    while True:
        if not changed:
            missing_bytes = asked.min_bytes - size_bytes
            await wait_for_bytes(asked.partitions, missing_bytes, left_ms / 1000, committed_only=asked.committed_only)
        changed = False
        anew = parse(broker, version, kept, position)
        found = gather(anew, correlation_id) if anew is not None else None
        if anew is None or found is None:
            return None
        asked, (buffers, size_bytes) = anew, found
        left_ms = deadline_ms - now_ms()
        if size_bytes >= asked.min_bytes or left_ms <= 0:
            return buffers


def parse(broker: Broker, version: int, frame: memoryview, position: int) -> Asked | None:
    """What is asked for; None is the unusual."""
    try:
        return _parse(broker, version, frame, position)
    except (IndexError, KeyError, struct.error):
        return None


def _parse(broker: Broker, version: int, frame: memoryview, position: int) -> Asked | None:
    if version < FIRST_WITHOUT_REPLICA_ID:
        if REPLICA_ID.unpack_from(frame, position)[0] != CONSUMER:
            return None
        position += REPLICA_ID.size
    max_wait_ms, min_bytes, max_bytes, isolation_level, session, epoch, topic_count = REQUEST.unpack_from(
        frame, position
    )
    if (session, epoch) != NO_SESSION or isolation_level > READ_COMMITTED or not 1 < topic_count <= MOST:
        return None
    position += REQUEST.size
    by_key, topics, seen = broker.replicas.by_key, [], set()
    for _ in range(topic_count - 1):
        start = position
        position += UUID_BYTES if version >= FIRST_TOPIC_ID_VERSION else frame[position]
        key = bytes(frame[start:position])
        partitions = by_key[key]
        partition_count = frame[position]
        position += 1
        if not 1 < partition_count <= MOST or key in seen:
            return None
        seen.add(key)
        targets: list[Target] = []
        for _ in range(partition_count - 1):
            index, leader_epoch, offset, last_epoch, _, partition_bytes, tags = PARTITION.unpack_from(frame, position)
            partition = partitions[index]
            known = leader_epoch in (NO_EPOCH, partition.leader_epoch)
            if not known or last_epoch != NO_EPOCH or tags != NO_TAGS:
                return None
            targets.append(Target(partition, offset, partition_bytes))
            position += PARTITION.size
        if frame[position] != NO_TAGS or len({target.partition for target in targets}) != len(targets):
            return None
        position += 1
        topics.append((key, targets))
    if frame[position] != NONE_FORGOTTEN:
        return None
    position += 1
    position += frame[position]  # the rack's name, behind its length
    if position + 1 != len(frame) or frame[position] != NO_TAGS:
        return None
    most_bytes = min(max_bytes, broker.config.fetch_max_bytes)
    return Asked(max_wait_ms, min_bytes, most_bytes, isolation_level == READ_COMMITTED, topics)


def gather(asked: Asked, correlation_id: int) -> tuple[list[Buffer], int] | None:
    """The answer as it would be now, and the bytes of records in it; None is the unusual."""
    size_bytes = 0
    front: list[Buffer] = [END]
    parts: list[Buffer] = []
    aborted = NONE_ABORTED if asked.committed_only else NULL
    left = max(asked.max_bytes, 0)
    for key, targets in asked.topics:
        front += (key, ONE_BYTE[len(targets) + 1])
        for partition, offset, max_bytes in targets:
            records = read(partition, offset, min(max_bytes, left), asked.committed_only, is_first=not size_bytes)
            if records is None:
                return None
            size = len(records)
            size_bytes += size
            left = max(left - size, 0)
            log = partition.log
            end = log.log_end_offset
            front.append(
                ANSWER.pack(partition.name.partition, 0, end, end, log.log_start_offset, aborted, NO_REPLICA)
                + uvarint(size + 1)
            )
            if size:
                parts += (b"".join(front), records)
                front = []
            front.append(END)
        front.append(END)
    front.append(END)
    parts.append(b"".join(front))
    length = sum(map(len, parts)) + HEAD_AFTER_SIZE - 1
    parts[0] = HEAD.pack(length, correlation_id, 0, 0, 0, len(asked.topics) + 1) + parts[0][1:]
    return parts, size_bytes


def read(
    partition: Partition, offset: int, max_bytes: int, committed_only: bool, *, is_first: bool
) -> memoryview | None:
    """Batches from the offset on; None where there is anything else to say, or something to wait for."""
    log = partition.log
    end = log.log_end_offset
    if not log.log_start_offset <= offset <= end or log.first_unstable_offset is not None:
        return None
    if offset == end:
        return EMPTY
    try:
        if max_bytes and log.cold_read(offset, max_bytes) is not None:
            return None
        if committed_only and any(not segment.txn_index.is_empty for segment in log.segments.since(offset)):
            return None
        result = log.read(offset, max_bytes, min_one=is_first)
    except (KafkaError, OSError):
        return None
    if not result.size_bytes:
        return EMPTY
    (records,) = result.parts
    return records if is_first or not is_cut(records) else EMPTY


def is_cut(records: memoryview) -> bool:
    """Whether not even the first batch is whole."""
    return len(records) < LOG_OVERHEAD or len(records) < LOG_OVERHEAD + BATCH_LENGTH.unpack_from(records)[0]
