"""A Fetch that goes on with its session (KIP-227), as Java's consumers send them: by topic id, nothing forgotten.

It names the partitions that changed since the last one, mostly those that gave records then; what is wanted of the
others is in the session. Until the answer is certain nothing changes but what the general way would change as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be

from broker.fast.reading import MOST, Bounds, ParkedFetch, begun, finished, write_partition, write_uvarint
from broker.replica.plain_read import is_quiet, read
from broker.replica.replica import READ_COMMITTED
from broker.replica.roles import NO_EPOCH
from protocol.types import Buffer

if TYPE_CHECKING:
    from broker.exchange.context import Context
    from broker.exchange.pending import Answer
    from broker.replica.partition import Partition
    from broker.requests.broker import Broker
    from broker.requests.fetch_sessions import FetchedPartition, FetchSession

FIRST_TOPIC_ID_VERSION: Final = 13
UUID_BYTES: Final = 16
PARTITION_BYTES: Final = 33
"""Partition, leader epoch, offset, last fetched epoch, log start offset, most bytes, no tags."""


class Wanted:
    """A partition of the session: what it should read, what it has for it."""

    __slots__ = ("partition", "records", "wanted")

    def __init__(self, wanted: FetchedPartition, partition: Partition) -> None:
        self.wanted = wanted
        self.partition = partition
        self.records: memoryview | None = None


def fetch(broker: Broker, context: Context, request: bytes, at: int) -> list[Buffer] | ParkedFetch | None:
    """The answer to the request whose limits are at `at`; None is the unusual."""
    session = named_session(broker, context.version, request, at)
    if session is None or not update(session, request, at + 21):
        return None
    found = partitions_of(broker, session)
    if found is None:
        return None
    bounds, size_bytes = Bounds(broker, request, at), 0
    if not (bounds.may_wait and has_to_wait(found)):
        size_bytes = gather(found, bounds)
        if size_bytes < 0:
            return None
    now_ms = broker.clock.now_ms()
    broker.fetch_sessions.find(session.session_id, session.epoch, True, now_ms)
    if size_bytes >= bounds.min_bytes or bounds.max_wait_ms <= 0:
        return answer(session, found, bounds, context.correlation_id)
    parked = ParkedSession(broker, context, request, bounds, size_bytes, session)
    parked.wait([each.partition for each in found])
    return parked


class ParkedSession(ParkedFetch):
    """One that waits for any of its session's partitions."""

    __slots__ = ("epoch", "session")

    def __init__(
        self,
        broker: Broker,
        context: Context,
        request: bytes,
        bounds: Bounds,
        size_bytes: int,
        session: FetchSession,
    ) -> None:
        super().__init__(broker, context, request, bounds, size_bytes)
        self.session = session
        self.epoch = session.epoch

    def look(self, *, is_last: bool) -> Answer:
        session, bounds = self.session, self.bounds
        found = partitions_of(self.broker, session)
        size_bytes = -1 if found is None else gather(found, bounds)
        if found is None or size_bytes < 0:
            if session.epoch == self.epoch:
                session.retreat()  # the general way goes on with it as if the request had just come
            return self.leave()
        if is_last or size_bytes >= bounds.min_bytes:
            return answer(session, found, bounds, self.context.correlation_id)
        self.missing_bytes = bounds.min_bytes - size_bytes
        self.watch([each.partition for each in found])
        return self


def named_session(broker: Broker, version: int, request: bytes, at: int) -> FetchSession | None:
    """The session that the request goes on with."""
    if version < FIRST_TOPIC_ID_VERSION or request[at + 12] > READ_COMMITTED:
        return None
    session = broker.fetch_sessions.sessions.get(read_i32_be(request, at + 13))
    if session is None or session.epoch != read_i32_be(request, at + 17) or not session.uses_topic_ids:
        return None
    return session


def update(session: FetchSession, request: bytes, at: int) -> bool:
    """Takes over what the request names; False, and nothing is changed, if it has anything unusual."""
    changes: list[tuple[FetchedPartition, int]] = []
    topic_count = request[at]
    at += 1
    if not 1 <= topic_count <= MOST:
        return False
    for _ in range(topic_count - 1):
        topic_id = request[at : at + UUID_BYTES]
        at += UUID_BYTES
        partition_count = request[at]
        at += 1
        if not 1 <= partition_count <= MOST:
            return False
        for _ in range(partition_count - 1):
            wanted = session.named(topic_id, read_i32_be(request, at))
            if wanted is None or read_i32_be(request, at + 16) != NO_EPOCH or request[at + 32]:  # tags
                return False
            changes.append((wanted, at))
            at += PARTITION_BYTES
        if request[at]:  # tags
            return False
        at += 1
    if request[at] != 1:  # forgotten topics
        return False
    at += 1
    at += request[at]  # the rack's name, behind its length
    if at + 1 != len(request) or request[at]:
        return False
    for wanted, begin in changes:
        wanted.current_leader_epoch = read_i32_be(request, begin + 4)
        wanted.fetch_offset = read_i64_be(request, begin + 8)
        wanted.last_fetched_epoch = NO_EPOCH
        wanted.log_start_offset = read_i64_be(request, begin + 20)
        wanted.max_bytes = read_i32_be(request, begin + 28)
    return True


def partitions_of(broker: Broker, session: FetchSession) -> list[Wanted] | None:
    """The session's partitions, all of which are here and as the client thinks they are; None if not."""
    by_key = broker.replicas.by_key
    found: list[Wanted] = []
    for wanted in session.partitions.values():
        partitions = by_key.get(wanted.topic_id)
        partition = None if partitions is None else partitions.get(wanted.index)
        if partition is None or wanted.last_fetched_epoch != NO_EPOCH:
            return None
        if wanted.current_leader_epoch != NO_EPOCH and wanted.current_leader_epoch != partition.leader_epoch:
            return None
        found.append(Wanted(wanted, partition))
    return found or None


def has_to_wait(found: list[Wanted]) -> bool:
    """Whether there is nothing to read in any of them."""
    return all(is_quiet(each.partition, each.wanted.fetch_offset) for each in found)


def gather(found: list[Wanted], bounds: Bounds) -> int:
    """Reads them; the bytes of records, -1 for the unusual."""
    size_bytes, left = 0, bounds.max_bytes
    for each in found:
        wanted = each.wanted
        max_bytes = min(wanted.max_bytes, left)
        records = read(each.partition, wanted.fetch_offset, max_bytes, bounds.committed_only, is_first=not size_bytes)
        if records is None:
            return -1
        each.records = records
        size_bytes += len(records)
        left = max(left - len(records), 0)
    return size_bytes


def answer(session: FetchSession, found: list[Wanted], bounds: Bounds, correlation_id: int) -> list[Buffer]:
    """The response: what has records, or other news; its client will know of that."""
    head = part = begun(correlation_id, session.session_id)
    told: list[list[Wanted]] = []
    for each in found:
        partition = each.partition
        if not (each.wanted.changed(partition.high_watermark, partition.log_start_offset) or each.records):
            continue
        if each.records:
            session.served(each.wanted.key)
        if not told or told[-1][0].wanted.topic_id != each.wanted.topic_id:
            told.append([])
        told[-1].append(each)
    rest: list[Buffer] = []
    write_uvarint(head, len(told) + 1)
    for topic in told:
        part.write(topic[0].wanted.topic_id)
        write_uvarint(part, len(topic) + 1)
        for each in topic:
            size = 0 if each.records is None else len(each.records)
            write_partition(part, each.wanted.index, each.partition, bounds.committed_only, size)
            if each.records is not None and size:
                if part is not head:
                    rest.append(part.getvalue())
                rest.append(each.records)
                part = BytesWriter()
            part.append(0)  # no tags
        part.append(0)
    part.append(0)
    if part is not head:
        rest.append(part.getvalue())
    return finished(head, rest)
