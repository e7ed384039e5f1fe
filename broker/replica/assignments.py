"""Carries out the image's assignments to this broker: creates, leads, configures and deletes logs.

Source: kafka.server.metadata.BrokerMetadataPublisher and ReplicaManager.applyDelta.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.logging import get_logger
from broker.metadata.node import Node
from broker.replica.isr import NO_BROKER_EPOCH, Follower, IsrRules
from broker.replica.moves import Moves
from broker.replica.new_logs import NewLogs
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from broker.replica.roles import next_role
from broker.replica.truncation import once_whole
from coordinator.cluster.brokers.info import ASSUMED_ONLINE
from coordinator.cluster.changes import ConfigChanged, Delta, PartitionChanged, PartitionCreated, TopicDeleted
from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.topics import topic
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid, uuid_to_text
from storage.config import LogConfig
from storage.log import Log
from storage.logs import Logs

log = get_logger("broker.replica")


class Assignments:
    """Subscribed to the image: applies its changes to `replicas` and `logs`."""

    def __init__(
        self,
        replicas: Replicas,
        logs: Logs,
        loader: MetadataLoader,
        node: Node,
        clock: Clock,
        config: LiveConfig,
        *,
        new_logs: NewLogs,
        moves: Moves,
    ) -> None:
        self.replicas = replicas
        self.logs = logs
        self.image = loader.image
        self.new_logs = new_logs
        self._loader = loader
        self._node = node
        self._clock = clock
        self._config = config
        self._moves = moves
        self._leaving: dict[TopicPartition, Partition] = {}
        """Partitions that were deleted while a thread was at their logs."""
        self.rules = IsrRules(self._may_be_in_sync, lambda: config.effective.replica_lag_time_max_ms)

    @property
    def node_id(self) -> int:
        return self._node.node_id

    def take_over(self) -> None:
        """Opens all assigned partitions as the broker starts; then follows each change."""
        self._set_aside_former()
        for owner in self.image.topics():
            for index, partition in owner.partitions.items():
                self.open(owner, index, partition)
        self._set_aside_strays()
        self._configure_broker()
        self._loader.subscribe(self.changed)

    def _set_aside_former(self) -> None:
        """Sets logs aside of topics that were deleted, and made anew under their names, while the broker was down
        (KAFKA-14616)."""
        for former in list(self.logs):
            owner = self.image.topic(former.topic_partition.topic)
            if owner is not None and former.topic_id not in (None, owner.topic_id):
                log.warning("log of a deleted topic set aside", partition=str(former.topic_partition))
                self.logs.set_stray_aside(former.topic_partition)

    def _set_aside_strays(self) -> None:
        """Sets logs aside that the metadata does not know: they stay on disk under another name, and are not served."""
        assigned = {partition.name for partition in self.replicas}
        for name in [one.topic_partition for one in self.logs if one.topic_partition not in assigned]:
            log.warning("stray log set aside", partition=str(name))
            self.logs.set_stray_aside(name)

    def changed(self, delta: Delta) -> None:
        """Carries out the changes of a committed batch."""
        for change in delta.changes:
            handle = HANDLERS.get(type(change))
            if handle is not None:
                handle(self, change)

    def log_config(self, name: str) -> LogConfig:
        return self._config.effective.log_config(self.image.topic_configs(name))

    def open(
        self, owner: topic.Topic, index: int, assigned: topic.PartitionRegistration, *, is_new: bool = False
    ) -> None:
        """Opens the log of a partition that has a replica here, or creates it if it may."""
        if self.node_id not in assigned.replicas:
            return
        name = TopicPartition(owner.name, index)
        try:
            own_log = self._log(name, owner.topic_id, assigned.directory_of(self.node_id), is_new)
        except KafkaError as error:
            log.error("partition is not served", partition=str(name), reason=str(error))
            self.replicas.set_offline(name, owner.topic_id)
            return
        if assigned.directory_of(self.node_id) in ASSUMED_ONLINE:
            self._node.placed(name, own_log.log_dir)
        partition = Partition(name, owner.topic_id, own_log, self.rules)
        self._assign(partition, assigned)
        self.replicas.add(partition)
        self._moves.resume(partition)

    def log_lost(self, name: TopicPartition) -> None:
        """Takes a partition offline whose directory has failed. A replica that was only moving there stays where it
        is."""
        self._moves.forget(name)
        owner = self.image.topic(name.topic)
        if self.logs.get(name) is None and owner is not None:
            self.replicas.set_offline(name, owner.topic_id)

    def open_offline(self) -> None:
        """Tries again to open offline partitions, as when there is room on a disk that was full."""
        for owner in self.image.topics():
            for index, partition in owner.partitions.items():
                if self.replicas.is_offline(TopicPartition(owner.name, index)):
                    self.open(owner, index, partition)

    def _log(self, name: TopicPartition, topic_id: Uuid, directory_id: Uuid | None, is_new: bool) -> Log:
        """Returns the log that is there; else a new one in the directory that the metadata has it in.

        Raises KafkaError: KAFKA_STORAGE_ERROR where it may be in a directory that is not there now, since an empty log
        in its place would be taken for all there ever was (LogManager.getOrCreateLog).
        """
        log_dir = None
        if directory_id is not None and directory_id not in ASSUMED_ONLINE and self.logs.get(name) is None:
            log_dir = self._node.directory_of(directory_id)
            if log_dir is None:
                message = f"it is in log directory {uuid_to_text(directory_id)}, which is none of this broker's now"
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
        elif not is_new and self.logs.get(name) is None and len(self.logs.online_dirs()) < len(self.logs.dirs):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "it may be in a log directory that is offline")
        config = self.log_config(name.topic)
        return self.logs.create(name, topic_id, config, self._clock.now_ms(), log_dir=log_dir)

    def _created(self, change: PartitionCreated) -> None:
        owner, index, partition = change
        if self.node_id in partition.replicas and not self.new_logs.make(owner.name, partial(self._make, owner, index)):
            self.replicas.set_pending(TopicPartition(owner.name, index), owner.topic_id)

    def _make(self, owner: topic.Topic, index: int) -> None:
        """The log of a new partition, as the partition is by now; later, where the log of a deleted one of its name has
        to go first."""
        name = TopicPartition(owner.name, index)
        leaving = self._leaving.get(name)
        if leaving is None:
            self.open(owner, index, owner.partitions[index], is_new=True)
        else:
            self.replicas.set_pending(name, owner.topic_id)
            once_whole(leaving.truncation, partial(self._make_after, owner, index))

    def _make_after(self, owner: topic.Topic, index: int) -> None:
        """The log of a new partition whose name is free now, unless that was deleted meanwhile as well."""
        if self.image.topic(owner.name) is owner and self.replicas.is_absent(TopicPartition(owner.name, index)):
            self._make(owner, index)

    def _partition_changed(self, change: PartitionChanged) -> None:
        owner, index, _, after = change
        partition = self.replicas.topic(owner.name).get(index)
        if partition is None:
            if not self.replicas.is_absent(TopicPartition(owner.name, index)):
                self.open(owner, index, after)
            return
        self._assign(partition, after)

    def _assign(self, partition: Partition, assigned: topic.PartitionRegistration) -> None:
        """Has the partition take over the role that the metadata gives it."""
        now_ms = self._clock.now_ms()
        role = next_role(partition.role, assigned, self.node_id, partition.log_end_offset, now_ms)
        partition.become(role, now_ms)

    def _may_be_in_sync(self, follower: Follower) -> bool:
        """True when the follower's broker lives, stays, and is the one that has registered (KIP-841, KIP-903)."""
        broker = self.image.brokers.get(follower.replica_id)
        is_current = broker is not None and follower.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
        return broker is not None and broker.active and is_current

    def _deleted(self, change: TopicDeleted) -> None:
        self.new_logs.forget(change.topic.name)
        for index in change.topic.partitions:
            name = TopicPartition(change.topic.name, index)
            self._moves.forget(name)
            partition = self.replicas.remove(name)
            if partition is not None:
                self._leaving[name] = partition
                once_whole(partition.truncation, partial(self._delete_log, name))

    def _delete_log(self, name: TopicPartition) -> None:
        del self._leaving[name]
        self.logs.delete(name, self._clock.now_ms())

    def _configured(self, change: ConfigChanged) -> None:
        if change.resource.type is ResourceType.BROKER:
            self._configure_broker()
        if change.resource.type is not ResourceType.TOPIC:
            return
        config = self.log_config(change.resource.name)
        for partition in self.replicas.topic(change.resource.name).values():
            partition.configure(config)

    def _configure_broker(self) -> None:
        """Applies the dynamic options of this broker, and those of all brokers, over the static ones."""
        own = ConfigResource(ResourceType.BROKER, str(self.node_id))
        cluster, broker = self.image.configs(DEFAULT_BROKER), self.image.configs(own)
        self._config.layers = self._config.layers.changed(cluster=dict(cluster), broker=dict(broker))
        for problem in self._config.layers.problems:
            log.warning("dynamic option not used", problem=problem)
        self.logs.verification_enabled = self._config.effective.transaction_partition_verification_enable
        for partition in self.replicas:
            partition.configure(self.log_config(partition.name.topic))
            partition.log.producer_state.verification_enabled = self.logs.verification_enabled


HANDLERS: dict[type, Callable[[Assignments, Any], None]] = {
    PartitionCreated: Assignments._created,
    PartitionChanged: Assignments._partition_changed,
    TopicDeleted: Assignments._deleted,
    ConfigChanged: Assignments._configured,
}
