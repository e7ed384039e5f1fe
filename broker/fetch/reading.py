"""Reads the partitions of a fetch once, each up to the remaining bytes of the response's limit.

The first partition with records returns a whole batch, however large; others may end within a batch, which clients
drop. Source: kafka.server.ReplicaManager.readFromLog.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be

from broker.clock import NS_PER_MS
from broker.fetch.checks import checked
from broker.fetch.partition import FetchedPartition
from broker.fetch.request import FIRST_TOPIC_ID_VERSION, FIRST_WHOLE_BATCH_VERSION, FetchingReplica, ParsedFetch
from broker.replica.partition import Partition
from broker.replica.replica import READ_COMMITTED
from broker.replica.replicas import Replicas
from coordinator.replication.roles import NO_EPOCH, Leading
from protocol.errors import KafkaError
from protocol.records.batch import AT_LENGTH, LOG_OVERHEAD
from storage.cold import ColdRead
from storage.segment.file import EMPTY

HELD_MS: Final = 5
"""Maximum time between a follower's rounds because of batching. A follower has all records that are older than this."""

HELD_BYTES: Final = 512 * 1024
"""The bytes that are worth a round."""


class PartitionReads:
    """The outcome of one pass over the partitions of a fetch, and the remaining bytes of the response's limit."""

    __slots__ = ("cold", "has_missing", "is_plain", "is_urgent", "left", "may_grow", "partitions", "size_bytes")

    def __init__(self, partitions: list[FetchedPartition], max_bytes: int) -> None:
        self.partitions = partitions
        self.size_bytes = 0
        """The size of all records that were read."""
        self.left = max_bytes
        self.may_grow = False
        """True if an append to a partition may complete the fetch."""
        self.cold: list[ColdRead] | None = None
        """Reads that would wait for a disk: their partitions are read again after a thread has read ahead."""
        self.is_urgent = False
        """True if a partition has an answer that must not wait."""
        self.has_missing = False
        self.is_plain = True
        """True if all answers consist only of offsets, records and error codes."""

    @property
    def watched(self) -> list[Partition]:
        """The partitions whose appends may complete the fetch."""
        return [partition.replica for partition in self.partitions if partition.replica is not None]

    def note(self, partition: FetchedPartition) -> None:
        """Updates the flags from an answer that may have more than records."""
        self.is_urgent = self.is_urgent or partition.is_urgent
        self.is_plain = self.is_plain and partition.is_plain
        self.has_missing = self.has_missing or partition.is_missing

    def wait_for_disk(self, cold: ColdRead) -> None:
        """Adds a read for a thread to do ahead."""
        if self.cold is None:
            self.cold = []
        self.cold.append(cold)

    def use(self, size_bytes: int) -> None:
        """Subtracts bytes from the response's limit."""
        self.left = max(self.left - size_bytes, 0)

    def hold_ms(self, served_ns: int, now_ns: int) -> int:
        """Returns the milliseconds for which a follower's answer may be held back, so that more records go with it; 0
        if it must be sent now. `served_ns` is the time of its last records.

        A round of replication costs more than its bytes: a fetch, its answer, and two processes that wake up for them.
        So a follower gets the next records a few milliseconds later, unless something waits for their commit: a
        producer with acks=all, a consumer at the log's end, a coordinator.
        """
        left_ns = served_ns + HELD_MS * NS_PER_MS - now_ns
        if left_ns <= 0 or self.size_bytes >= HELD_BYTES:
            return 0
        for fetched in self.partitions:
            if len(fetched.records) and fetched.replica is not None and fetched.replica.is_awaited:
                return 0
        return -(-left_ns // NS_PER_MS)

    def release(self) -> None:
        """Releases the partitions and mapped files: the session, which lives on, must not keep them alive."""
        for partition in self.partitions:
            partition.records = EMPTY
            partition.replica = None


def read_partitions(
    replicas: Replicas, request: ParsedFetch, partitions: list[FetchedPartition], is_warm: bool
) -> PartitionReads:
    """Reads every partition once. `is_warm` is True if a thread has already read ahead the data that would wait for a
    disk."""
    result = PartitionReads(partitions, request.max_bytes)
    read_some(replicas, request, partitions, result, is_warm)
    if request.replica is not None:
        request.replica.is_noted = True
    return result


def read_some(
    replicas: Replicas, request: ParsedFetch, partitions: list[FetchedPartition], result: PartitionReads, is_warm: bool
) -> None:
    """Reads these partitions of the fetch."""
    by_key, denied = replicas.by_key, request.denied
    key: bytes | None = None
    led: dict[int, Partition] | None = None
    for fetched in partitions:
        fetched.clear()
        if fetched.key is not key:
            key = fetched.key
            # `checked` raises the error of a denied topic; the fast paths must not read it.
            led = None if key in denied else by_key.get(key)
        try:
            partition = readable(led, request, fetched) or keeps_up(led, request, fetched)
            if partition is None:
                partition = checked(replicas, request, fetched)
            if partition is not None:
                read_partition(request, partition, fetched, result, is_warm)
                continue
        except KafkaError as error:
            fetched.fail(error)
            if fetched.name is not None:
                replicas.traffic.read_failed(fetched.name.topic, error.code)
        result.note(fetched)


def keeps_up(led: dict[int, Partition] | None, request: ParsedFetch, fetched: FetchedPartition) -> Partition | None:
    """Records a follower's fetch of a partition, if the follower is caught up and had all records at its last fetch
    too, as for most partitions. Returns the partition; None for any other fetch, which is not recorded. `led` has the
    topic's partitions that this broker leads.

    The answer of such a partition has only offsets. `checked` gives the same result for any partition; the tests
    compare both.
    """
    replica = request.replica
    if led is None or replica is None or request.selector is not None or request.version < FIRST_TOPIC_ID_VERSION:
        return None
    partition = led.get(fetched.index)
    if partition is None or not changes_nothing(replica, partition, fetched):
        return None
    if not replica.is_noted:
        if replica.is_stale(partition.rules):
            return None
        role, end = partition.role, partition.log_end_offset
        assert isinstance(role, Leading)
        role.fetched(replica.fetch_of(fetched), end, end, partition.rules)
    fetched.name = partition.name
    return partition


def changes_nothing(replica: FetchingReplica, partition: Partition, fetched: FetchedPartition) -> bool:
    """True if a follower's fetch changes nothing but the follower's time: it is in sync, and has all records, as at its
    last fetch."""
    role, end = partition.role, partition.log_end_offset
    return (
        fetched.fetch_offset == end
        and fetched.current_leader_epoch == partition.leader_epoch
        and (fetched.last_fetched_epoch < 0 or fetched.last_fetched_epoch == partition.last_leader_epoch)
        and isinstance(role, Leading)
        and partition.high_watermark == end  # otherwise another follower blocks the commit, and may be fenced by now
        and role.keeps_up(replica.broker_id, end, fetched.replica_log_start, replica.broker_epoch)
    )


def is_settled(replica: FetchingReplica, partition: Partition, fetched: FetchedPartition) -> bool:
    """True if a follower's fetches of the partition need neither be recorded nor answered until the partition
    changes."""
    return fetched.has_all_of(partition) and changes_nothing(replica, partition, fetched)


def caught_up(replicas: Replicas, request: ParsedFetch, partitions: list[FetchedPartition]) -> list[Partition] | None:
    """Returns the partitions if the fetch has read each to its end, otherwise None. A caught-up consumer waits for each
    record: making the answers of all its partitions before each wait would be wasted work."""
    by_key = replicas.by_key
    ended: list[Partition] = []
    key: bytes | None = None
    led: dict[int, Partition] | None = None
    for fetched in partitions:
        if fetched.key is not key:
            key = fetched.key
            led = by_key.get(key)
        partition = readable(led, request, fetched)
        if partition is None or not partition.ends_at(fetched.fetch_offset):
            return None
        ended.append(partition)
    return ended


def readable(led: dict[int, Partition] | None, request: ParsedFetch, fetched: FetchedPartition) -> Partition | None:
    """Returns the partition if this broker leads it in the client's epoch and no further check is needed; None if it
    needs the checks of checks.py. `led` has the topic's partitions that this broker leads."""
    if led is None or fetched.last_fetched_epoch >= 0 or request.needs_checks:
        return None
    partition = led.get(fetched.index)
    if partition is None:
        return None
    epoch = fetched.current_leader_epoch
    if epoch != NO_EPOCH and epoch != partition.leader_epoch:
        return None
    fetched.name = partition.name
    return partition


def read_partition(
    request: ParsedFetch, partition: Partition, fetched: FetchedPartition, result: PartitionReads, is_warm: bool
) -> None:
    """Reads the partition's offsets and records into `fetched`. Raises OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR."""
    isolation_level = request.isolation_level
    partition.traffic.reads += 1
    partition.update_snapshot(fetched, isolation_level)
    if isolation_level == READ_COMMITTED:
        fetched.aborted = ()
    offset = fetched.fetch_offset
    replica = request.replica
    if replica is not None and partition.log_start_offset <= offset < fetched.end and replica.is_held_back(partition):
        fetched.end = offset  # throttled: as if there were no more records for now
    if offset != fetched.end:  # nothing to read otherwise, as for every caught-up consumer
        max_bytes = min(fetched.max_bytes, result.left)
        if max_bytes > 0 and not is_warm:
            cold = partition.cold_read(offset, max_bytes)
            if cold is not None:
                result.wait_for_disk(cold)
                result.use(max_bytes)
                return
        is_first = not result.size_bytes
        records = partition.read(fetched, offset, max_bytes, is_first)
        if isolation_level == READ_COMMITTED:
            fetched.aborted = partition.aborted_in(offset, records)
            if fetched.aborted:
                result.is_plain = False
        if is_first or request.version < FIRST_WHOLE_BATCH_VERSION or not is_cut(records):
            fetched.records = records
            size_bytes = len(records)
            result.size_bytes += size_bytes
            result.use(size_bytes)
        elif max_bytes > 0:
            fetched.aborted = None  # as in Kafka, which discards an incomplete batch
    fetched.replica = partition
    result.may_grow = True


def is_cut(records: memoryview) -> bool:
    """True if the records end within the first batch."""
    if len(records) < LOG_OVERHEAD:
        return True
    length: int = read_i32_be(bytes(records[:LOG_OVERHEAD]), AT_LENGTH)
    return len(records) < LOG_OVERHEAD + length
