"""Committed offsets of a shard's groups: the table, pending ones of transactions, and what its records do to it.

Pending offsets are kept by producer id until its transaction's marker comes. A marker never overwrites an offset that
was committed after the pending one, whatever compaction has left of the log: each knows its place in the order.
Source: OffsetMetadataManager (KIP-98, KIP-447).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator.group.records import NO_PRODUCER_ID, NO_TIMESTAMP, EndTransaction
from protocol.coordinator_records.offsets import OffsetCommitKey, OffsetCommitValue
from protocol.types import NO_UUID, TopicPartition, Uuid

_new: Final = tuple.__new__  # a NamedTuple's own constructor costs three times as much


class Offset(NamedTuple):
    """The next offset to read of a partition, and what was said with it."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_TIMESTAMP
    topic_id: Uuid = NO_UUID
    order: int = 0
    """Grows from record to record."""

    def is_of(self, topic_id: Uuid) -> bool:
        """Whether it is of the topic with this id, as far as both are known: one made anew starts without offsets."""
        return self.topic_id in (topic_id, NO_UUID) or topic_id == NO_UUID


ByTopic = dict[str, dict[int, Offset]]
NO_OFFSETS: ByTopic = {}


class Offsets:
    """Offsets by group, topic and partition; `apply` and `end_transaction` are the only writers."""

    def __init__(self) -> None:
        self._committed: dict[str, ByTopic] = {}
        self._pending: dict[int, dict[str, ByTopic]] = {}
        self._open: dict[str, dict[TopicPartition, set[int]]] = {}
        """For each group, the partitions with pending offsets, and the producers of these."""
        self._order = 0

    def get(self, group_id: str, topic: str, partition: int) -> Offset | None:
        return self._committed.get(group_id, NO_OFFSETS).get(topic, {}).get(partition)

    def of_group(self, group_id: str) -> ByTopic:
        """All committed offsets of a group, to be read only."""
        return self._committed.get(group_id, NO_OFFSETS)

    def groups(self) -> Iterator[str]:
        """Groups with committed or pending offsets."""
        return iter({*self._committed, *self._open})

    def pending(self, group_id: str) -> Iterator[TopicPartition]:
        """The partitions for which a transaction has offsets that it may yet commit."""
        return iter(self._open.get(group_id, ()))

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether the offset is not stable (KIP-447)."""
        of_group = self._open.get(group_id)
        return of_group is not None and (topic, partition) in of_group

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._open

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int = NO_PRODUCER_ID) -> None:
        """Take one OffsetCommit record in."""
        group_id, topic, partition = key.group, key.topic, key.partition
        self._order += 1
        if value is None:
            _remove(self._committed, group_id, topic, partition)
            self._forget_pending(group_id, TopicPartition(topic, partition))
            return
        offset = _new(
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
        """The producer's pending offsets are committed, unless there are newer ones, or void."""
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
    """Take an offset out, and tables that are empty then."""
    topics = by_group.get(group_id, {})
    partitions = topics.get(topic, {})
    if partitions.pop(partition, None) is None:
        return
    if not partitions:
        del topics[topic]
    if not topics:
        del by_group[group_id]
