"""The history of a cluster, and its invariants: those of Jepsen's workload for Kafka, and the guarantees of brokers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from broker.replica.partition import Partition
from coordinator.cluster.image import Image
from coordinator.cluster.record import MetadataBatch
from coordinator.replication.roles import Leading
from protocol.records.batch import iter_batches
from protocol.records.record import read_records
from protocol.types import TopicPartition, Uuid
from tests.simulation.cluster.processes import ClusterLoop

READ_BYTES = 1 << 20


class Breach(Enum):
    """The kinds of violated invariants."""

    LOST = "a record that was acknowledged by all in-sync replicas is lost"
    DIVERGED = "two replicas have different records below their high watermarks"
    BACK = "an offset went back"
    CHANGED = "a consumer read one thing at an offset, and another one was there"
    TWICE = "a record of an idempotent producer is there twice, or out of its order"
    DELIVERED = "a share group got a record that it was done with"
    TWO_LEADERS = "two brokers led a partition in the same epoch"
    ISR = "a replica is in sync that is not assigned"
    AHEAD = "a record is committed that a replica does not have, and that is in sync"
    BEYOND = "a high watermark is beyond the log's end, or before its start"
    HELD = "a leader does not know to be committed what all have that are in sync, or may be soon"
    FAULT = "a fault of ours"
    STUCK = "the cluster did not come to rest"


class Breached(NamedTuple):
    """A violated invariant, and its place."""

    breach: Breach
    what: str

    def __str__(self) -> str:
        return f"{self.breach.value}: {self.what}"


Topical: TypeAlias = tuple[Uuid, TopicPartition]
"""A partition of one topic; another topic may later have the same name."""


def topical(partition: Partition) -> Topical:
    return partition.topic_id, partition.name


class Acknowledged(NamedTuple):
    """A record whose offset was returned to its producer."""

    value: bytes
    for_all: bool


class Entry(NamedTuple):
    """A record in a log."""

    offset: int
    leader_epoch: int
    value: bytes
    producer_id: int
    is_control: bool


class History:
    """The history of a world, which grows while the world runs; `breaches` has the violated invariants."""

    def __init__(self, loop: ClusterLoop) -> None:
        self._loop = loop
        self.breaches: list[Breached] = []
        self.counts: Counter[str] = Counter()
        self.trace: list[tuple[object, ...]] = []
        self.acknowledged: dict[TopicPartition, dict[int, Acknowledged]] = defaultdict(dict)
        self.consumed: dict[TopicPartition, dict[int, bytes]] = defaultdict(dict)
        """The records that consumers read, by offset."""
        self.idempotent: dict[TopicPartition, dict[bytes, list[bytes]]] = defaultdict(dict)
        """The records that idempotent producers have sent, in order, by producer."""
        self.deleted: dict[TopicPartition, int] = {}
        """The offsets below which records were requested to be deleted."""
        self.committed: dict[Topical, dict[int, bytes]] = defaultdict(dict)
        """Batches below any replica's high watermark, by base offset."""
        self.powerless: set[TopicPartition] = set()
        """Partitions whose only replica lost its power: their records are no longer guaranteed."""
        self._checked: dict[tuple[int, Topical], tuple[Partition, int]] = {}
        self._leaders: dict[tuple[Topical, int], int] = {}
        self._image = Image("")

    def breach(self, breach: Breach, what: str) -> None:
        self.breaches.append(Breached(breach, what))

    def note(self, *event: object) -> None:
        """Adds a line to the trace, which is the same for the same seed."""
        self.trace.append((round(self._loop.time(), 6), *event))

    # Metadata

    def note_metadata(self, batch: MetadataBatch) -> None:
        """Records the metadata that the controller has committed."""
        for record in batch.records:
            self._image.apply(record)
        for topic in self._image.topics():
            for index, partition in topic.partitions.items():
                if not set(partition.isr) <= set(partition.replicas):
                    self.breach(Breach.ISR, f"{topic.name}-{index}: {partition}")

    # Clients

    def acked(self, partition: TopicPartition, base_offset: int, values: list[bytes], *, for_all: bool) -> None:
        """Records that a producer has got the offset of its records."""
        self.counts["acknowledged by all" if for_all else "acknowledged by one"] += 1
        for offset, value in enumerate(values, base_offset):
            before = self.acknowledged[partition].get(offset)
            is_other = before is not None and before.for_all and before.value != value
            if for_all and is_other and partition not in self.powerless:
                self.breach(Breach.LOST, f"{partition}: offset {offset} was given to {before!r} and {value!r}")
            if for_all or before is None:
                self.acknowledged[partition][offset] = Acknowledged(value, for_all)

    def saw(self, partition: TopicPartition, offset: int, value: bytes) -> None:
        """Records that a consumer has read a record."""
        self.counts["consumed"] += 1
        before = self.consumed[partition].setdefault(offset, value)
        if before != value:
            self.breach(Breach.CHANGED, f"{partition}: offset {offset} was {before!r}, and is {value!r}")

    # Replicas

    def leads(self, node_id: int, partition: Partition) -> None:
        """Records that a broker believes that it leads a partition."""
        leader = self._leaders.setdefault((topical(partition), partition.leader_epoch), node_id)
        if leader != node_id:
            what = f"{partition.name}: {leader} and {node_id} in epoch {partition.leader_epoch}"
            self.breach(Breach.TWO_LEADERS, what)

    def forget_replicas(self, node_id: int) -> None:
        """Forgets the high watermarks of a broker that has died: they may be lower when it comes back."""
        for key in [key for key in self._checked if key[0] == node_id]:
            del self._checked[key]

    def check(self, replicas: Mapping[int, Iterable[Partition]]) -> None:
        """Checks the replicas of running brokers, by broker."""
        for node_id, partitions in replicas.items():
            for partition in partitions:
                if partition.leads:
                    self.leads(node_id, partition)
                    self.check_held(node_id, partition)
                if partition.truncation is None and not partition.gone:
                    self.check_committed(node_id, partition)

    def check_committed(self, node_id: int, partition: Partition) -> None:
        """Checks a replica whose high watermark may have moved: all replicas have the same records below it."""
        high_watermark, end = partition.high_watermark, partition.log_end_offset
        if partition.name in self.powerless:
            return
        if not partition.log_start_offset <= high_watermark <= end:
            what = f"{partition.log_start_offset} ≤ {high_watermark} ≤ {end}"
            self.breach(Breach.BEYOND, f"broker {node_id}, {partition.name}: {what}")
            return
        key = (node_id, topical(partition))
        replica, checked = self._checked.get(key, (partition, 0))
        if replica is not partition:  # it was moved away, and back
            checked = 0
        if high_watermark < checked:
            self.breach(Breach.BACK, f"broker {node_id}, {partition.name}: high watermark {checked} → {high_watermark}")
        committed = self.committed[topical(partition)]
        for base, batch in batches(partition, max(checked, partition.log_start_offset), high_watermark):
            before = committed.setdefault(base, batch)
            if before != batch:
                self.breach(Breach.DIVERGED, f"broker {node_id}, {partition.name}: offset {base}")
        self._checked[key] = partition, high_watermark

    def check_in_sync(self, node_id: int, partition: Partition, replicas: Mapping[int, Partition]) -> None:
        """Checks a leader that has moved its high watermark: if it still leads, each of `replicas` (by broker) that is
        in sync according to the controller has all records below it."""
        registered = self._image.partition(partition.name)
        if registered is None or (registered.leader, registered.leader_epoch) != (node_id, partition.leader_epoch):
            return
        committed, high_watermark = self.committed[topical(partition)], partition.high_watermark
        for other in registered.isr:
            replica = replicas.get(other)
            if replica is None or replica.truncation is not None or replica.gone:
                continue
            last = next(iter(batches(replica, high_watermark - 1, high_watermark)), None)
            if replica.log_end_offset < high_watermark or (last and committed.get(last[0]) != last[1]):
                what = f"{partition.name}: {high_watermark} in {node_id}, and {other} has {replica.log_end_offset}"
                self.breach(Breach.AHEAD, what)

    def check_held(self, node_id: int, partition: Partition) -> None:
        """Checks that a leader's high watermark is the lowest end of the replicas that are in sync or may still
        join."""
        role, image = partition.role, self._image
        if not isinstance(role, Leading) or len(role.isr.committed) < role.min_isr(
            partition.config.min_insync_replicas
        ):
            return
        may_join = {broker_id for broker_id, broker in image.brokers.items() if broker.active}
        ends = [
            follower.log_end_offset
            for follower in role.followers.values()
            if follower.replica_id in role.isr.maximal | may_join
        ]
        least = min([partition.log_end_offset, *ends])
        if partition.high_watermark < least:
            self.breach(Breach.HELD, f"broker {node_id}, {partition}: {partition.high_watermark} < {least}")

    # At the end

    def check_end(self, replicas: Mapping[int, Iterable[Partition]]) -> None:
        """Checks the end of a run: all replicas are in sync, equal, and complete."""
        self.check(replicas)
        logs: dict[TopicPartition, dict[int, Entry]] = {}
        bytes_of: dict[TopicPartition, tuple[int, dict[int, bytes]]] = {}
        for node_id, partitions in replicas.items():
            for partition in partitions:
                start, end = partition.log_start_offset, partition.log_end_offset
                content = dict(batches(partition, start, end))
                other = bytes_of.setdefault(partition.name, (node_id, content))
                if other[1] != content:
                    self.breach(Breach.DIVERGED, f"{partition.name}: brokers {other[0]} and {node_id} at the end")
                if partition.leads:
                    logs[partition.name] = {entry.offset: entry for entry in entries(partition, start, end)}
        for name, log in logs.items():
            if name not in self.powerless:
                self._check_contents(name, log)

    def _check_contents(self, name: TopicPartition, log: dict[int, Entry]) -> None:
        start = self.deleted.get(name, 0)
        for offset, acked in self.acknowledged[name].items():
            if offset < start:
                continue
            if acked.for_all and (offset not in log or log[offset].value != acked.value):
                self.breach(Breach.LOST, f"{name}: offset {offset}, {acked.value!r}; there is {log.get(offset)}")
        for offset, value in self.consumed[name].items():
            if offset < start:
                continue
            if offset not in log or log[offset].value != value:
                self.breach(Breach.CHANGED, f"{name}: offset {offset}, {value!r} was read; there is {log.get(offset)}")
        values = [entry.value for entry in log.values() if not entry.is_control]
        for producer, sent in self.idempotent[name].items():
            there = [value for value in values if value.startswith(producer)]
            places = {value: place for place, value in enumerate(sent)}
            order = [places[value] for value in there]
            if any(later <= earlier for earlier, later in pairwise(order)):
                self.breach(Breach.TWICE, f"{name}: {there}")


def batches(partition: Partition, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Yields base offset and bytes of the batches from an offset on."""
    while offset < end:
        parts = partition.read_all(offset, READ_BYTES).parts
        if not parts:
            return
        for part in parts:
            for position, header in iter_batches(part):
                if header.base_offset >= end:
                    return
                yield header.base_offset, bytes(part[position : position + header.size_bytes])
                offset = header.next_offset


def entries(partition: Partition, offset: int, end: int) -> Iterator[Entry]:
    """Yields the records from an offset on."""
    for _, data in batches(partition, offset, end):
        for position, header in iter_batches(memoryview(data)):
            for record in read_records(memoryview(data), position, header):
                yield Entry(
                    record.offset, header.partition_leader_epoch, record.value or b"", header.producer_id,
                    header.is_control,
                )  # fmt: skip
