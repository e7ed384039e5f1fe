"""Applies the image's assignments to this broker: creates, leads, configures and deletes logs.

Source: kafka.server.metadata.BrokerMetadataPublisher and ReplicaManager.applyDelta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from broker.clock import Clock
from broker.config.live import LiveConfig
from broker.logging import get_logger
from broker.metadata.node import Node
from broker.replica.moves import Moves
from broker.replica.new_logs import NewLogs
from broker.replica.partition import Partition
from broker.replica.replicas import Replicas
from broker.replica.truncation import after_truncation
from coordinator.cluster.brokers.info import ASSUMED_ONLINE
from coordinator.cluster.changes import (
    BrokerChanged,
    ConfigChanged,
    Delta,
    PartitionChanged,
    PartitionCreated,
    TopicDeleted,
)
from coordinator.cluster.configs.resource import DEFAULT_BROKER, ConfigResource, ResourceType
from coordinator.cluster.loader import MetadataLoader
from coordinator.cluster.partitions.change import DIRECTORIES_SINCE
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from coordinator.replication.isr import NO_BROKER_EPOCH, Follower, IsrRules
from coordinator.replication.roles import Leading, next_role
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition, Uuid, uuid_to_text
from storage.config import LogConfig
from storage.log import Log
from storage.logs import Logs

logger = get_logger(__name__)


def differs_in_one_character(topic_id: Uuid | None, other: Uuid) -> bool:
    """True if a damaged byte of partition.metadata may explain the difference of two ids: two topics' random ids differ
    in most characters."""
    if topic_id is None:
        return False
    return (
        sum(
            character != original
            for character, original in zip(uuid_to_text(topic_id), uuid_to_text(other), strict=True)
        )
        == 1
    )


class Assignments:
    """Applies the image's changes to `replicas` and `logs`."""

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
        self._deleting: dict[TopicPartition, Partition] = {}
        """Deleted partitions whose logs a thread is still truncating."""
        self.rules = IsrRules(
            self._may_be_in_sync, lambda: config.effective.replica_lag_time_max_ms, self._broker_epoch
        )

    @property
    def node_id(self) -> int:
        return self._node.node_id

    def take_over(self) -> None:
        """Opens all assigned partitions as the broker starts, then applies each change."""
        self._set_aside_former()
        for topic in self.image.topics():
            for index, partition in topic.partitions.items():
                self.open(topic, index, partition)
        self._set_aside_strays()
        for _ in self._configure_broker():
            pass
        self._loader.subscribe(self.changed)

    def _set_aside_former(self) -> None:
        """Sets aside the logs of topics that were deleted, and created again under the same names, while the broker was
        down (KAFKA-14616)."""
        for stored in list(self.logs):
            topic = self.image.topic(stored.topic_partition.topic)
            if topic is not None and differs_in_one_character(stored.topic_id, topic.topic_id):
                logger.warning("a damaged topic id is rewritten", partition=str(stored.topic_partition))
                stored.topic_id = None
            if topic is not None and stored.topic_id not in (None, topic.topic_id):
                logger.warning("log of a deleted topic set aside", partition=str(stored.topic_partition))
                self.logs.set_stray_aside(stored.topic_partition)

    def _set_aside_strays(self) -> None:
        """Sets aside the logs that the metadata does not assign to this broker: renames them, and does not serve
        them.
        """
        assigned = {partition.name for partition in self.replicas}
        for name in [stored.topic_partition for stored in self.logs if stored.topic_partition not in assigned]:
            logger.warning("stray log set aside", partition=str(name))
            self.logs.set_stray_aside(name)

    def changed(self, delta: Delta) -> None:
        """Applies the changes of a committed batch: a few at once, and many in steps, as Kafka's brokers do in another
        thread."""
        self.new_logs.changes.run(self._apply(delta))

    def _apply(self, delta: Delta) -> Iterator[None]:
        """Yields after each partition. A change that fails doesn't prevent the others."""
        configured: set[ConfigResource] = set()
        for change in delta.changes:
            if isinstance(change, ConfigChanged):
                if change.resource in configured:  # the image has all of the resource's changes
                    continue
                configured.add(change.resource)
            handle = HANDLERS.get(type(change))
            if handle is not None:
                try:
                    yield from handle(self, change)
                except Exception as error:
                    self._loader.on_fault(error)

    def log_config(self, name: str) -> LogConfig:
        return self._config.effective.log_config(self.image.topic_configs(name))

    def open(self, topic: Topic, index: int, assigned: PartitionRegistration, *, is_new: bool = False) -> None:
        """Opens the log of a partition that has a replica here, or creates it if that is allowed."""
        if self.node_id not in assigned.replicas:
            return
        name = TopicPartition(topic.name, index)
        directory_id = assigned.directory_of(self.node_id)
        try:
            own_log = self._log(name, topic.topic_id, directory_id, is_new, is_alone=len(assigned.replicas) == 1)
        except KafkaError as error:
            logger.error("partition is not served", partition=str(name), reason=str(error))
            self.replicas.set_offline(name, topic.topic_id)
            return
        has_directories = directory_id is not None or self.image.metadata_version >= DIRECTORIES_SINCE
        if has_directories and self._node.directory_of(directory_id) != own_log.log_dir:
            self._node.placed(name, own_log.log_dir)
        partition = Partition(name, topic.topic_id, own_log, self.rules)
        self._assign(partition, assigned)
        self.replicas.add(partition)
        self._moves.resume(partition)

    def log_lost(self, name: TopicPartition) -> None:
        """Takes a partition offline whose log directory has failed. A replica that was only moving to that directory
        stays where it is."""
        self._moves.forget(name)
        topic = self.image.topic(name.topic)
        if self.logs.get(name) is None and topic is not None:
            self.replicas.set_offline(name, topic.topic_id)

    def open_offline(self) -> None:
        """Retries to open the offline partitions, for example when a full disk has free space again."""
        for topic in self.image.topics():
            for index, partition in topic.partitions.items():
                if self.replicas.is_offline(TopicPartition(topic.name, index)):
                    self.open(topic, index, partition)

    def _log(
        self, name: TopicPartition, topic_id: Uuid, directory_id: Uuid | None, is_new: bool, *, is_alone: bool
    ) -> Log:
        """Returns the partition's log on disk, or a new log in the directory that the metadata assigns to it.

        If the replica's directory was replaced and the node allows it, the replica starts empty, because the broker
        registered with the loss of the directory. The only replica of a partition starts empty only if all directories
        were replaced.

        Raises KafkaError: KAFKA_STORAGE_ERROR if the log may be in an offline directory, because an empty log would
        look as if the partition had never had records (LogManager.getOrCreateLog).
        """
        log_dir = None
        if self.logs.get(name) is None:
            log_dir = self._node.directory_of(directory_id)
            if log_dir is None and not is_new and len(self.logs.online_dirs()) < len(self.logs.dirs):
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "it may be in a log directory that is offline")
            if log_dir is None and directory_id is not None and directory_id not in ASSUMED_ONLINE:
                if not self._node.begins_anew or (is_alone and len(self.logs.dirs) > 1):
                    message = f"it is in log directory {uuid_to_text(directory_id)}, which this broker no longer has"
                    raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)
                logger.warning("a replica whose log directory is gone starts empty", partition=str(name))
        config = self.log_config(name.topic)
        return self.logs.create(name, topic_id, config, self._clock.now_ms(), log_dir=log_dir)

    def _created(self, change: PartitionCreated) -> Iterator[None]:
        name, topic_id = TopicPartition(change.topic.name, change.partition_index), change.topic.topic_id
        has_replica = self.node_id in change.partition.replicas
        if has_replica and not self.new_logs.make(name.topic, partial(self._make, name, topic_id)):
            self.replicas.set_pending(name, topic_id)
        yield

    def _make(self, name: TopicPartition, topic_id: Uuid) -> None:
        """Creates the log of a new partition as it is currently assigned, unless the topic was deleted meanwhile. If
        the log of a deleted partition of the same name must be removed first, creates it later.
        """
        topic, deleted = self.image.topic_by_id(topic_id), self._deleting.get(name)
        if topic is None:
            return
        if deleted is not None:
            self._make_later(name, topic_id, deleted)
        else:
            self.open(topic, name.partition, topic.partitions[name.partition], is_new=True)

    def _make_later(self, name: TopicPartition, topic_id: Uuid, deleted: Partition) -> None:
        self.replicas.set_pending(name, topic_id)
        after_truncation(deleted.truncation, partial(self._make_after, name, topic_id))

    def _make_after(self, name: TopicPartition, topic_id: Uuid) -> None:
        """Creates the log of a new partition after the former log of its name is gone, unless the partition was deleted
        meanwhile.
        """
        if self.replicas.is_absent(name):
            self._make(name, topic_id)

    def _partition_changed(self, change: PartitionChanged) -> Iterator[None]:
        """Applies the newest assignment: a log that was created in a later step already has it, and its leader epoch
        must not decrease. A partition that was deleted meanwhile remains until its deletion is applied.
        """
        topic = self.image.topic_by_id(change.topic.topic_id)
        assigned = None if topic is None else topic.partitions.get(change.partition_index)
        if topic is not None and assigned is not None:
            self._reassign(topic, change.partition_index, assigned)
        yield

    def _reassign(self, topic: Topic, index: int, assigned: PartitionRegistration) -> None:
        partition = self.replicas.topic(topic.name).get(index)
        name = TopicPartition(topic.name, index)
        if self.node_id not in assigned.replicas:
            self._remove(name, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif partition is not None:
            self._assign(partition, assigned)
        elif name in self._deleting:  # it had a replica here until now, whose log isn't deleted yet
            self._make_later(name, topic.topic_id, self._deleting[name])
        elif not self.replicas.is_absent(name):
            self.open(topic, index, assigned)

    def _assign(self, partition: Partition, assigned: PartitionRegistration) -> None:
        """Gives the partition the role that the metadata assigns."""
        now_ms = self._clock.now_ms()
        role = next_role(partition.role, assigned, self.node_id, partition.log_end_offset, now_ms)
        partition.become(role, now_ms)

    def _may_be_in_sync(self, follower: Follower) -> bool:
        """True if the follower's broker is neither fenced nor shutting down, and fetches in the epoch of its
        registration (KIP-841, KIP-903)."""
        broker = self.image.brokers.get(follower.replica_id)
        is_current = broker is not None and follower.broker_epoch in (NO_BROKER_EPOCH, broker.epoch)
        return broker is not None and broker.active and is_current

    def _broker_epoch(self, broker_id: int) -> int:
        """Returns the epoch of a broker's registration; -1 while it is fenced."""
        broker = self.image.brokers.get(broker_id)
        return NO_BROKER_EPOCH if broker is None or broker.fenced else broker.epoch

    def _broker_changed(self, change: BrokerChanged) -> Iterator[None]:
        """Commits records that waited only for a replica whose broker may no longer be in sync. The replica was about
        to join the ISR, so the metadata of its partitions doesn't change, and there may be no later request that
        commits them.
        """
        broker = self.image.brokers.get(change.broker_id)
        if broker is not None and broker.active:
            return
        now_ms = self._clock.now_ms()
        for partition in self.replicas:
            role = partition.role
            holds = isinstance(role, Leading) and change.broker_id in role.followers
            if holds and partition.high_watermark < partition.log_end_offset:
                partition.advance(now_ms)
        yield

    def _deleted(self, change: TopicDeleted) -> Iterator[None]:
        self.new_logs.forget(change.topic.name)
        for index in change.topic.partitions:
            self._remove(TopicPartition(change.topic.name, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            yield

    def _remove(self, name: TopicPartition, code: ErrorCode) -> None:
        """Removes a partition that was deleted, or no longer has a replica here, and deletes its log. Requests that
        wait for it get the error `code`.
        """
        self._moves.forget(name)
        partition = self.replicas.remove(name, code)
        if partition is not None:
            self._deleting[name] = partition
            after_truncation(partition.truncation, partial(self._delete_log, name))

    def _delete_log(self, name: TopicPartition) -> None:
        del self._deleting[name]
        self.logs.delete(name, self._clock.now_ms())

    def _configured(self, change: ConfigChanged) -> Iterator[None]:
        if change.resource.type is ResourceType.BROKER:
            yield from self._configure_broker()
        if change.resource.type is not ResourceType.TOPIC:
            return
        partitions = list(self.replicas.topic(change.resource.name).values())
        if partitions:  # a new topic's logs get its configs when they are created
            config = self.log_config(change.resource.name)
            for partition in partitions:
                partition.configure(config)
                yield

    def _configure_broker(self) -> Iterator[None]:
        """Applies the dynamic options of this broker, and the cluster's defaults, over the static options."""
        own = ConfigResource(ResourceType.BROKER, str(self.node_id))
        cluster, broker = self.image.configs(DEFAULT_BROKER), self.image.configs(own)
        self._config.layers = self._config.layers.changed(cluster=dict(cluster), broker=dict(broker))
        for problem in self._config.layers.problems:
            logger.warning("dynamic option not used", problem=problem)
        self.logs.verification_enabled = self._config.effective.transaction_partition_verification_enable
        for partition in list(self.replicas):
            partition.configure(self.log_config(partition.name.topic))
            partition.log.producer_state.verification_enabled = self.logs.verification_enabled
            yield


HANDLERS: dict[type, Callable[[Assignments, Any], Iterator[None]]] = {
    PartitionCreated: Assignments._created,
    PartitionChanged: Assignments._partition_changed,
    TopicDeleted: Assignments._deleted,
    ConfigChanged: Assignments._configured,
    BrokerChanged: Assignments._broker_changed,
}
