"""Fetch without objects: a flexible request (version 12 and later) outside sessions, walked in place.

So librdkafka and most other clients ask. The way through handlers/fetch.py makes dozens of objects per request, which
costs half as much as it does to send a megabyte. Reading changes nothing, so what turns out to be unusual (an error, an
open or aborted transaction, bytes that are not in memory) can be left to the general way wherever it is found. Integers
are read out of `bytes`, since compiled code does that without a call; so are they written.
Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i16_be, write_i32_be, write_i64_be

from broker.replica.partition import NO_EPOCH, READ_COMMITTED
from broker.waiting import Parked, Waiter
from protocol.connection import JOIN_LIMIT_BYTES
from protocol.errors import KafkaError
from protocol.records.batch import AT_LENGTH, LOG_OVERHEAD
from protocol.types import Buffer
from storage.segment_file import EMPTY

if TYPE_CHECKING:
    from broker.broker import Broker
    from broker.listener import Answer
    from broker.replica.partition import Partition

FIRST_VERSION: Final = 12
FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_WITHOUT_REPLICA_ID: Final = 15
UUID_BYTES: Final = 16

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Larger ones, of two thousand partitions, are left alone."""
SIZE_BYTES: Final = 4
MOST: Final = 0x7F
"""Counts and lengths up to it take one byte; all are one more than what they count (KIP-482)."""
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, most bytes, no tags."""
NO_SESSION: Final = 0
NO_SESSION_EPOCH: Final = -1
CONSUMER: Final = -1
NULL: Final = 0
NONE_ABORTED: Final = 1
"""Aborted transactions: nothing for who reads all, an empty list for who reads what is committed."""
NO_REPLICA: Final = -1


class Target:
    """A partition of the request: where from, and how much."""

    __slots__ = ("index", "max_bytes", "offset", "partition")

    def __init__(self, partition: Partition, index: int, offset: int, max_bytes: int) -> None:
        self.partition = partition
        self.index = index
        self.offset = offset
        self.max_bytes = max_bytes


class Asked:
    """A request."""

    __slots__ = ("committed_only", "max_bytes", "max_wait_ms", "min_bytes", "topics")

    def __init__(self, max_wait_ms: int, min_bytes: int, max_bytes: int, committed_only: bool) -> None:
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.committed_only = committed_only
        self.topics: list[tuple[bytes, list[Target]]] = []
        """By topic: its name or id as the frame has it."""

    @property
    def partitions(self) -> list[Partition]:
        return [target.partition for _, targets in self.topics for target in targets]

    @property
    def has_to_wait(self) -> bool:
        """Whether there is nothing to read: known without an answer, which a consumer that keeps up would have made
        for each record only to be thrown away."""
        if self.min_bytes <= 0 or self.max_wait_ms <= 0:
            return False
        for _, targets in self.topics:
            for target in targets:
                log = target.partition.log
                if target.offset != log.log_end_offset or log.first_unstable_offset is not None:
                    return False
        return True


def fetch(
    broker: Broker, version: int, correlation_id: int, frame: memoryview, front: bytes, position: int
) -> list[Buffer] | ParkedFetch | None:
    """The answer to the request whose body is at `position`."""
    size = len(frame)
    if size > MAX_REQUEST_BYTES:
        return None
    request = front if size <= len(front) else bytes(frame)
    asked = parse(broker, version, request, position)
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
    parked = ParkedFetch(broker, version, correlation_id, request, position, asked, size_bytes)
    parked.watch(asked.partitions)
    broker.timeouts.add(parked, asked.max_wait_ms)
    return parked


class ParkedFetch(Parked):
    """One that waits for bytes. It reads the request anew whenever it looks: partitions come and go meanwhile."""

    __slots__ = ("broker", "correlation_id", "otherwise", "position", "request", "version")

    def __init__(
        self,
        broker: Broker,
        version: int,
        correlation_id: int,
        request: bytes,
        position: int,
        asked: Asked,
        size_bytes: int,
    ) -> None:
        missing_bytes = asked.min_bytes - size_bytes
        super().__init__(asked.max_wait_ms, missing_bytes, committed_only=asked.committed_only)
        self.broker = broker
        self.version = version
        self.correlation_id = correlation_id
        self.request = request
        self.position = position
        self.otherwise: Callable[[memoryview], Answer] | None = None
        """The general way, where it turns out to be unusual."""

    def look(self, *, is_last: bool) -> Answer | Waiter:
        asked = parse(self.broker, self.version, self.request, self.position)
        found = None if asked is None else gather(asked, self.correlation_id)
        if asked is None or found is None:
            return None if self.otherwise is None else self.otherwise(memoryview(self.request))
        buffers, size_bytes = found
        if is_last or size_bytes >= asked.min_bytes:
            return buffers
        self.missing_bytes = asked.min_bytes - size_bytes
        self.watch(asked.partitions)
        return self


def parse(broker: Broker, version: int, request: bytes, position: int) -> Asked | None:
    """What is asked for; None is the unusual."""
    try:
        return _parse(broker, version, request, position)
    except (IndexError, KeyError):
        return None


def _parse(broker: Broker, version: int, request: bytes, at: int) -> Asked | None:
    if version < FIRST_WITHOUT_REPLICA_ID:
        if read_i32_be(request, at) != CONSUMER:
            return None
        at += 4
    isolation_level, topic_count = request[at + 12], request[at + 21]
    in_session = read_i32_be(request, at + 13) != NO_SESSION or read_i32_be(request, at + 17) != NO_SESSION_EPOCH
    if in_session or isolation_level > READ_COMMITTED or not 1 < topic_count <= MOST:
        return None
    max_bytes: int = read_i32_be(request, at + 8)
    max_bytes = min(max_bytes, broker.config.fetch_max_bytes)
    committed_only = isolation_level == READ_COMMITTED
    asked = Asked(read_i32_be(request, at), read_i32_be(request, at + 4), max_bytes, committed_only)
    at += 22
    by_key = broker.replicas.by_key
    for _ in range(topic_count - 1):
        start = at
        at += UUID_BYTES if version >= FIRST_TOPIC_ID_VERSION else request[at]
        key = request[start:at]
        partitions = by_key[key]
        partition_count = request[at]
        at += 1
        if not 1 < partition_count <= MOST:
            return None
        targets: list[Target] = []
        for _ in range(partition_count - 1):
            index: int = read_i32_be(request, at)
            partition = partitions[index]
            leader_epoch: int = read_i32_be(request, at + 4)
            known = leader_epoch == NO_EPOCH or leader_epoch == partition.leader_epoch
            if not known or read_i32_be(request, at + 16) != NO_EPOCH or request[at + 32]:  # tags
                return None
            targets.append(Target(partition, index, read_i64_be(request, at + 8), read_i32_be(request, at + 28)))
            at += PARTITION_BYTES
        if request[at]:  # tags
            return None
        at += 1
        asked.topics.append((key, targets))
    if request[at] != 1:  # forgotten topics
        return None
    at += 1
    at += request[at]  # the rack's name, behind its length
    if at + 1 != len(request) or request[at] or is_repetitive(asked):
        return None
    return asked


def is_repetitive(asked: Asked) -> bool:
    """Whether a partition is named twice."""
    partitions = asked.partitions
    return len(partitions) > 1 and len(set(partitions)) != len(partitions)


def gather(asked: Asked, correlation_id: int) -> tuple[list[Buffer], int] | None:
    """The answer as it would be now, and the bytes of records in it; None is the unusual."""
    size_bytes, left = 0, max(asked.max_bytes, 0)
    aborted = NONE_ABORTED if asked.committed_only else NULL
    head = part = BytesWriter()
    write_i32_be(head, 0)  # the size, once it is known
    write_i32_be(head, correlation_id)
    head.append(0)  # no tags
    write_i32_be(head, 0)  # throttle time
    write_i16_be(head, 0)  # no error
    write_i32_be(head, NO_SESSION)
    head.append(len(asked.topics) + 1)
    rest: list[Buffer] = []
    for key, targets in asked.topics:
        part.write(key)
        part.append(len(targets) + 1)
        for target in targets:
            max_bytes = min(target.max_bytes, left)
            records = read(target.partition, target.offset, max_bytes, asked.committed_only, is_first=not size_bytes)
            if records is None:
                return None
            size = len(records)
            log = target.partition.log
            write_i32_be(part, target.index)
            write_i16_be(part, 0)  # no error
            write_i64_be(part, log.log_end_offset)  # high watermark
            write_i64_be(part, log.log_end_offset)  # last stable offset
            write_i64_be(part, log.log_start_offset)
            part.append(aborted)
            write_i32_be(part, NO_REPLICA)
            write_uvarint(part, size + 1)
            if size:
                size_bytes += size
                left = max(left - size, 0)
                if part is not head:
                    rest.append(part.getvalue())
                rest.append(records)
                part = BytesWriter()
            part.append(0)  # no tags
        part.append(0)
    part.append(0)
    if part is not head:
        rest.append(part.getvalue())
    return finished(head, rest), size_bytes


def finished(head: BytesWriter, rest: list[Buffer]) -> list[Buffer]:
    """The parts of a response with its size in front; small ones come as one."""
    size = len(head) - SIZE_BYTES
    for part in rest:
        size += len(part)
    for n in range(SIZE_BYTES):
        head[n] = size >> 24 - 8 * n & 0xFF
    parts: list[Buffer] = [head.getvalue(), *rest]
    return [b"".join(parts)] if size <= JOIN_LIMIT_BYTES else parts


def write_uvarint(out: BytesWriter, value: int) -> None:
    while value > MOST:
        out.append(value & MOST | 0x80)
        value >>= 7
    out.append(value)


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
        records = log.view(offset, max_bytes, end, min_one=is_first)
    except (KafkaError, OSError):
        return None
    return records if is_first or not is_cut(records) else EMPTY


def is_cut(records: memoryview) -> bool:
    """Whether not even the first batch is whole."""
    if len(records) < LOG_OVERHEAD:
        return True
    length: int = read_i32_be(bytes(records[:LOG_OVERHEAD]), AT_LENGTH)
    return len(records) < LOG_OVERHEAD + length
