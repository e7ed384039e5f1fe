"""Committed offsets of a shard's groups, and pending offsets of transactions.

Pending offsets are stored by producer id until the transaction's marker comes. A marker never overwrites an offset that
was committed after the pending one, even after compaction: each offset has its position in the order of records.
Source: OffsetMetadataManager (KIP-98, KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coordinator.group.records import NO_PRODUCER_ID, NO_TIMESTAMP, EndTransaction
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.tuples import new_tuple
from protocol.types import NO_UUID, TopicPartition, Uuid


class Offset(NamedTuple):
    """The next offset to read of a partition, with its metadata."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: Uuid = NO_UUID
    order: int = 0
    """The position in the order of records."""

    def is_of(self, topic_id: Uuid) -> bool:
        """True if it belongs to the topic with this id, or if either id is unknown: a topic that is created again
        starts without offsets."""
        return self.topic_id in (topic_id, NO_UUID) or topic_id == NO_UUID


ByTopic = dict[str, dict[int, Offset]]
NO_OFFSETS: ByTopic = {}


class Offsets:
    """Offsets by group, topic and partition; only `apply` and `end_transaction` change them."""

    def __init__(self) -> None:
        self._committed: dict[str, ByTopic] = {}
        self._pending: dict[int, dict[str, ByTopic]] = {}
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        """The partitions with pending offsets and their producers, by group."""
        self._order = 0

    def get(self, group_id: str, topic: str, partition: int) -> Offset | None:
        return self._committed.get(group_id, NO_OFFSETS).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> ByTopic:
        """Returns all committed offsets of a group; the caller must not change them."""
        return self._committed.get(group_id, NO_OFFSETS)

    def groups(self) -> Iterator[str]:
        """Returns the groups with committed or pending offsets."""
        return iter({*self._committed, *self._open})

    def pending(self, group_id: str) -> Iterator[TopicPartition]:
        """Returns the partitions with pending offsets."""
        return iter(self._open.get(group_id, ()))

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """True if a pending offset makes the partition's offset unstable (KIP-447)."""
        of_group = self._open.get(group_id)
        return of_group is not None and (topic, partition) in of_group

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._open

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Applies an OffsetCommit record."""
        group_id, topic, partition = key.group, key.topic, key.partition
        self._order += 1
        if value is None:
            _remove(self._committed, group_id, topic, partition)
            self._forget_pending(group_id, TopicPartition(topic, partition))
            return
        offset = new_tuple(
            Offset,
            (
                value.offset,
                value.leader_epoch,
                value.metadata,
                value.commit_timestamp,
                value.expire_timestamp,
                value.topic_id,
                self._order,
            ),
        )
        if producer_id == NO_PRODUCER_ID:
            self._committed.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset
            return
        pending = self._pending.setdefault(producer_id, {})
        pending.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset
        self._open.setdefault(group_id, {}).setdefault(TopicPartition(topic, partition), set()).add(producer_id)

    def end_transaction(self, marker: EndTransaction) -> None:
        """Commits the producer's pending offsets, unless there are newer ones, or drops them."""
        for group_id, topics in self._pending.pop(marker.producer_id, {}).items():
            for topic, partitions in topics.items():
                for partition, offset in partitions.items():
                    self._close(group_id, TopicPartition(topic, partition), marker.producer_id)
                    if marker.committed:
                        self._put_if_newer(group_id, topic, partition, offset)

    def _put_if_newer(self, group_id: str, topic: str, partition: int, offset: Offset) -> None:
        partitions = self._committed.setdefault(group_id, {}).setdefault(topic, {})
        current = partitions.get(partition)
        if current is None or current.order < offset.order:
            partitions[partition] = offset

    def _forget_pending(self, group_id: str, name: TopicPartition) -> None:
        for producer_id in tuple(self._open.get(group_id, {}).get(name, ())):
            pending = self._pending[producer_id]
            _remove(pending, group_id, *name)
            if not pending:
                del self._pending[producer_id]
            self._close(group_id, name, producer_id)

    def _close(self, group_id: str, name: TopicPartition, producer_id: int) -> None:
        of_group = self._open[group_id]
        of_group[name].discard(producer_id)
        if not of_group[name]:
            del of_group[name]
        if not of_group:
            del self._open[group_id]


def _remove(by_group: dict[str, ByTopic], group_id: str, topic: str, partition: int) -> None:
    """Removes an offset, and dicts that become empty."""
    topics = by_group.get(group_id, {})
    partitions = topics.get(topic, {})
    if partitions.pop(partition, None) is None:
        return
    if not partitions:
        del topics[topic]
    if not topics:
        del by_group[group_id]
