"""Partitions by broker: the partitions that it leads, the partitions whose ISR it is in, and the partitions for which
it is eligible.

With this index, the cost of a broker's arrival or departure depends on the changed partitions, not on all partitions.

Source: org.apache.kafka.controller.BrokersToIsrs and BrokersToElrs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration, Topic
from protocol.types import Uuid

Places: TypeAlias = "dict[int, dict[Uuid, set[int]]]"
"""Partition indexes, by broker and topic id."""

NOWHERE: dict[Uuid, set[int]] = {}


class PartitionsByBroker:
    """Three indexes of the same partitions. Partitions without a leader are under NO_LEADER."""

    def __init__(self, topics: Iterable[Topic]) -> None:
        self._led: Places = {}
        self._in_sync: Places = {}
        self._eligible: Places = {}
        for topic in topics:
            for index, partition in topic.partitions.items():
                self.replace(topic.topic_id, index, None, partition)

    def replace(
        self, topic_id: Uuid, index: int, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        """Updates the indexes after a partition was created (`before` is None), changed, or deleted (`after` is
        None).
        """
        if before is not None and after is not None and _roles(before) == _roles(after):
            return
        if before is not None:
            _remove(self._led, (before.leader,), topic_id, index)
            _remove(self._in_sync, before.isr, topic_id, index)
            _remove(self._eligible, before.elr, topic_id, index)
        if after is not None:
            _add(self._led, (after.leader,), topic_id, index)
            _add(self._in_sync, after.isr, topic_id, index)
            _add(self._eligible, after.elr, topic_id, index)

    def leads_any(self, broker_id: int) -> bool:
        """True if the broker leads a partition."""
        return broker_id in self._led

    def leaderless(self) -> Iterator[tuple[Uuid, int]]:
        """Yields the partitions without a leader."""
        return _all(self._led.get(NO_LEADER, NOWHERE))

    def in_sync(self, broker_id: int) -> Iterator[tuple[Uuid, int]]:
        """Yields the partitions whose ISR contains the broker."""
        return _all(self._in_sync.get(broker_id, NOWHERE))

    def eligible(self, broker_id: int) -> Iterator[tuple[Uuid, int]]:
        """Yields the partitions that have the broker as an eligible leader replica."""
        return _all(self._eligible.get(broker_id, NOWHERE))


def _roles(partition: PartitionRegistration) -> tuple[object, ...]:
    return partition.leader, partition.isr, partition.elr


def _all(of_broker: dict[Uuid, set[int]]) -> Iterator[tuple[Uuid, int]]:
    for topic_id, indexes in of_broker.items():
        for index in sorted(indexes):
            yield topic_id, index


def _add(places: Places, broker_ids: Iterable[int], topic_id: Uuid, index: int) -> None:
    for broker_id in {*broker_ids}:
        places.setdefault(broker_id, {}).setdefault(topic_id, set()).add(index)


def _remove(places: Places, broker_ids: Iterable[int], topic_id: Uuid, index: int) -> None:
    for broker_id in {*broker_ids}:
        of_broker = places[broker_id]
        indexes = of_broker[topic_id]
        indexes.discard(index)
        if not indexes:
            del of_broker[topic_id]
        if not of_broker:
            del places[broker_id]
