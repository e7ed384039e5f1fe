"""Fetch without objects: a flexible request (version 12 and later) that names all it wants, walked in place.

So librdkafka and most other clients ask; for Java's, whose sessions go on, there is fetch_session. The way through
handlers/fetch.py makes dozens of objects per request, which costs half as much as it does to send a megabyte. Reading
changes nothing, so what turns out to be unusual (an error, an open or aborted transaction, bytes that are not in
memory) can be left to the general way wherever it is found. Integers are read out of `bytes`, since compiled code does
that without a call; so are they written.
Source of the layout: protocol/messages/fetch.py, whose codec is the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be

from broker.fast import fetch_session
from broker.fast.reading import MOST, Bounds, ParkedFetch, begun, finished, write_partition
from broker.replica.plain_read import is_quiet, read
from broker.replica.replica import READ_COMMITTED
from broker.replica.roles import NO_EPOCH
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.exchange.pending import Answer
    from broker.replica.partition import Partition
    from broker.requests.broker import Broker

FIRST_VERSION: Final = 12
FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_WITHOUT_REPLICA_ID: Final = 15
UUID_BYTES: Final = 16

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Larger ones, of two thousand partitions, are left alone."""
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, most bytes, no tags."""
NO_SESSION: Final = 0
NO_SESSION_EPOCH: Final = -1
CONSUMER: Final = -1


class Target:
    """A partition of the request: where from, and how much."""

    __slots__ = ("index", "max_bytes", "offset", "partition")

    def __init__(self, partition: Partition, index: int, offset: int, max_bytes: int) -> None:
        self.partition = partition
        self.index = index
        self.offset = offset
        self.max_bytes = max_bytes


class Asked(Bounds):
    """A request."""

    __slots__ = ("topics",)

    def __init__(self, broker: Broker, request: bytes, at: int) -> None:
        super().__init__(broker, request, at)
        self.topics: list[tuple[bytes, list[Target]]] = []
        """By topic: its name or id as the frame has it."""

    @property
    def partitions(self) -> list[Partition]:
        return [target.partition for _, targets in self.topics for target in targets]

    @property
    def has_to_wait(self) -> bool:
        if not self.may_wait:
            return False
        for _, targets in self.topics:
            for target in targets:
                if not is_quiet(target.partition, target.offset):
                    return False
        return True


def fetch(
    broker: Broker, context: Context, frame: memoryview, front: bytes, position: int
) -> list[Buffer] | ParkedFetch | None:
    """The answer to the request whose body is at `position`."""
    size, version = len(frame), context.version
    if size > MAX_REQUEST_BYTES:
        return None
    request = front if size <= len(front) else bytes(frame)
    try:
        if version < FIRST_WITHOUT_REPLICA_ID:
            if read_i32_be(request, position) != CONSUMER:
                return None
            position += 4
        if read_i32_be(request, position + 13) != NO_SESSION:
            return fetch_session.fetch(broker, context, request, position)
    except IndexError:
        return None
    asked = parse(broker, version, request, position)
    if asked is None:
        return None
    size_bytes = 0
    if not asked.has_to_wait:
        found = gather(asked, context.correlation_id)
        if found is None:
            return None
        buffers, size_bytes = found
        if size_bytes >= asked.min_bytes or asked.max_wait_ms <= 0:
            return buffers
    parked = ParkedWhole(broker, context, request, position, asked, size_bytes)
    parked.wait(asked.partitions)
    return parked


class ParkedWhole(ParkedFetch):
    """One that names all that it wants, and reads that anew whenever it looks."""

    __slots__ = ("position",)

    def __init__(
        self, broker: Broker, context: Context, request: bytes, position: int, asked: Asked, size_bytes: int
    ) -> None:
        super().__init__(broker, context, request, asked, size_bytes)
        self.position = position

    def look(self, *, is_last: bool) -> Answer:
        asked = parse(self.broker, self.context.version, self.request, self.position)
        found = None if asked is None else gather(asked, self.context.correlation_id)
        if asked is None or found is None:
            return self.leave()
        buffers, size_bytes = found
        if is_last or size_bytes >= asked.min_bytes:
            return buffers
        self.missing_bytes = asked.min_bytes - size_bytes
        self.watch(asked.partitions)
        return self


def parse(broker: Broker, version: int, request: bytes, at: int) -> Asked | None:
    """What is asked for; None is the unusual."""
    try:
        return _parse(broker, version, request, at)
    except (IndexError, KeyError):
        return None


def _parse(broker: Broker, version: int, request: bytes, at: int) -> Asked | None:
    topic_count = request[at + 21]
    is_whole = read_i32_be(request, at + 13) == NO_SESSION and read_i32_be(request, at + 17) == NO_SESSION_EPOCH
    if not is_whole or request[at + 12] > READ_COMMITTED or not 1 < topic_count <= MOST:
        return None
    asked = Asked(broker, request, at)
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
    size_bytes, left = 0, asked.max_bytes
    head = part = begun(correlation_id, NO_SESSION)
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
            write_partition(part, target.index, target.partition, asked.committed_only, size)
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
