"""What the registry says of this broker's partitions, carried out: logs made, led, configured and deleted.

Source: kafka.server.metadata.BrokerMetadataPublisher and ReplicaManager.applyDelta.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from coordinator.cluster import topic
from coordinator.cluster.changes import Change, ConfigChanged, PartitionChanged, PartitionCreated, TopicDeleted
from coordinator.cluster.registry import Registry
from coordinator.cluster.resource import ResourceType
from protocol.types import TopicPartition
from storage.config import LogConfig
from storage.logs import Logs


class Assignments:
    """Subscribed to the registry: turns its changes into what `replicas` and `logs` hold."""

    def __init__(
        self, node_id: int, config: BrokerConfig, registry: Registry, logs: Logs, replicas: Replicas, clock: Clock
    ) -> None:
        self.node_id = node_id
        self.config = config
        self.registry = registry
        self.logs = logs
        self.replicas = replicas
        self.clock = clock

    def take_over(self) -> None:
        """Everything that is assigned as the broker starts; then each change as it comes."""
        for each in self.registry.topics():
            for index, partition in each.partitions.items():
                self.open(each, index, partition)
        self.registry.subscribe(self.changed)

    def changed(self, change: Change) -> None:
        handle = HANDLERS.get(type(change))
        if handle is not None:
            handle(self, change)

    def log_config(self, name: str) -> LogConfig:
        return self.config.log_config(self.registry.topic_configs(name))

    def open(self, owner: topic.Topic, index: int, assigned: topic.Partition) -> None:
        """The log of a partition that has a replica here, made if it is not there."""
        directory = assigned.directory_of(self.node_id)
        if self.node_id not in assigned.replicas:
            return
        name = TopicPartition(owner.name, index)
        log = self.logs.get(name) or self.logs.create(
            name, owner.topic_id, self.log_config(owner.name), directory_id=directory, now_ms=self.clock.now_ms()
        )
        log.update_high_watermark(log.log_end_offset)
        log.assign_leader_epoch(assigned.leader_epoch, log.log_end_offset)
        self.replicas.add(Partition(name, owner.topic_id, log, assigned.leader, assigned.leader_epoch))

    def _created(self, change: PartitionCreated) -> None:
        self.open(change.topic, change.index, change.partition)

    def _partition_changed(self, change: PartitionChanged) -> None:
        partition = self.replicas.topic(change.topic.name).get(change.index)
        if partition is None:
            self.open(change.topic, change.index, change.after)
            return
        partition.leader_id, partition.leader_epoch = change.after.leader, change.after.leader_epoch
        partition.log.assign_leader_epoch(change.after.leader_epoch, partition.log.log_end_offset)
        partition.wake_all()

    def _deleted(self, change: TopicDeleted) -> None:
        for index in change.topic.partitions:
            name = TopicPartition(change.topic.name, index)
            if self.replicas.remove(name) is not None:
                self.logs.delete(name, self.clock.now_ms())

    def _configured(self, change: ConfigChanged) -> None:
        if change.resource.type is not ResourceType.TOPIC:
            return
        config = self.log_config(change.resource.name)
        for partition in self.replicas.topic(change.resource.name).values():
            partition.log.config = config


HANDLERS: dict[type, Callable[[Assignments, Any], None]] = {
    PartitionCreated: Assignments._created,
    PartitionChanged: Assignments._partition_changed,
    TopicDeleted: Assignments._deleted,
    ConfigChanged: Assignments._configured,
}
