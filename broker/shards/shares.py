"""The share coordinator of this broker: shards of share partitions on the partitions of `__share_group_state`.

Source: ShareCoordinatorService (KIP-932).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from broker.clock import pause
from broker.config import BrokerConfig
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.shards.environment import Environment
from broker.shards.hosting import Coordinator, InternalTopic, ShardParts, min_insync_replicas
from coordinator.cluster.changes import Delta, PartitionCreated, TopicDeleted
from coordinator.engine.result import Ticket
from coordinator.share.settings import ShareSettings
from protocol.errors import KafkaError
from protocol.lazy import lazy
from protocol.records.compression import Compression
from protocol.types import Uuid

if TYPE_CHECKING:
    from coordinator.share import records, shard
    from coordinator.share.key import ShareKey
    from coordinator.share.records import EncodedShareRecord, ShareRecord, ShareResult
    from coordinator.share.shard import ShareShard
else:  # with the first shard
    records = lazy("coordinator.share.records")
    shard = lazy("coordinator.share.shard")

A = TypeVar("A")
Decide: TypeAlias = "Callable[[ShareShard, Ticket[A], int], ShareResult]"
"""A decision on a share partition: (shard, ticket, now_ms) → Result."""

WRITE_AT_ONCE = -1
"""Value of share.coordinator.append.linger.ms that adapts to the load: here it writes at once, because an
acknowledgement waits for its record, and gathering small records costs more than it saves."""

logger = get_logger(__name__)


def topic_of(environment: Environment) -> InternalTopic:
    """Returns Kafka's options of the topic (ShareCoordinatorService.shareGroupStateTopicConfigs)."""
    return InternalTopic(
        "__share_group_state",
        lambda config: config.share_coordinator_state_topic_num_partitions,
        lambda config: config.share_coordinator_state_topic_replication_factor,
        lambda config: topic_configs(config, len(environment.image.brokers)),
    )


def topic_configs(config: BrokerConfig, brokers: int) -> Mapping[str, str]:
    """Returns Kafka's configs of the topic."""
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "segment.bytes": str(config.share_coordinator_state_topic_segment_bytes),
        "min.insync.replicas": min_insync_replicas(config, config.share_coordinator_state_topic_min_isr, brokers),
        "retention.ms": "-1",
    }


class ShareCoordinator(Coordinator["ShareShard", "ShareRecord"]):
    """The coordinator that persisters and the handlers of share group state call, by share partition."""

    def __init__(self, environment: Environment) -> None:
        lingers = environment.config.share_coordinator_append_linger_ms != WRITE_AT_ONCE
        linger_ms = (lambda: environment.config.share_coordinator_append_linger_ms) if lingers else None
        super().__init__(
            environment,
            topic_of(environment),
            self._make,
            linger_ms,
            lambda _: environment.config.share_coordinator_write_timeout_ms,
        )
        self._indexes: dict[ShareKey, int] = {}
        """Partition of the state topic by share partition; cleared when the state topic changes."""
        self._pruning: asyncio.Task[None] | None = None

    def start(self) -> None:
        super().start()
        self.environment.loader.subscribe(self._topics_changed)
        self._pruning = asyncio.ensure_future(self._prune())

    def stop(self) -> None:
        super().stop()
        if self._pruning is not None:
            self._pruning.cancel()

    def index_of(self, key: ShareKey) -> int:
        """Returns the state topic's partition that has the share partition's state."""
        index = self._indexes.get(key)
        if index is None:
            index = self.partition_of(key.coordinator_key)
            if self.environment.image.topic(self.topic.name) is not None:
                self._indexes[key] = index
        return index

    def submit(self, key: ShareKey, decide: Decide[A]) -> asyncio.Future[A]:
        """Decides a request in the share partition's shard. Returns the answer's future, which is done if it needn't
        wait. Raises KafkaError as clients see it."""
        return self.submit_at(self.index_of(key), decide)

    async def ensure_topic(self, key: ShareKey) -> None:
        """Creates the state topic if it doesn't exist. Raises COORDINATOR_NOT_AVAILABLE."""
        await self.leader_of(key.coordinator_key)

    # Shards

    def _make(self, partition: Partition) -> ShardParts[ShareShard, ShareRecord, EncodedShareRecord]:
        states = shard.ShareShard(self.settings, self.environment.image)
        serde = records.ShareSerde(Compression(self.environment.config.share_coordinator_state_topic_compression_codec))
        return ShardParts(
            states, serde, serde.batches, lambda now_ms: states.activate(now_ms, partition.log_end_offset)
        )

    def settings(self) -> ShareSettings:
        """Returns the broker's options for share group state."""
        config = self.environment.config
        return ShareSettings(
            config.share_coordinator_snapshot_update_records_per_snapshot,
            config.share_coordinator_cold_partition_snapshot_interval_ms,
        )

    # Redundant records.

    async def _prune(self) -> None:
        """Deletes records that newer snapshots have made redundant, at intervals."""
        while True:
            environment = self.environment
            await pause(environment.clock, environment.config.share_coordinator_state_topic_prune_interval_ms)
            for index in list(self.shards):
                try:
                    self.prune(index)
                except Exception:
                    logger.exception("state topic not pruned", partition=index)

    def prune(self, index: int) -> None:
        """Moves a partition's log start up to the oldest snapshot that is still needed."""
        shard, partition = self.shards.get(index), self.environment.replicas.topic(self.topic.name).get(index)
        if shard is None or partition is None or not self.is_active(index):
            return
        before = shard.redundant.before
        if before is not None and before > partition.log_start_offset:
            self.flush(index)
            partition.when_committed(partition.log_end_offset, lambda error: self._cut(partition, before, error))

    def _cut(self, partition: Partition, before: int, error: KafkaError | None) -> None:
        """Moves the log start once all newest snapshots are committed: until then the state is in the snapshots before
        them."""
        try:
            if error is not None:
                raise error
            partition.advance_log_start(before)
        except KafkaError as failure:
            logger.warning("state topic not pruned", partition=str(partition.name), reason=str(failure))

    def _topics_changed(self, delta: Delta) -> None:
        deleted = delta.deleted_topics
        changed = (change for change in delta.changes if isinstance(change, TopicDeleted | PartitionCreated))
        if any(change.topic.name == self.topic.name for change in changed):
            self._indexes.clear()  # deleted, and perhaps created again with another number of partitions
            deleted.pop(self.topic.name, None)
        if deleted:
            self._topics_gone(frozenset(deleted.values()))

    def _topics_gone(self, topic_ids: frozenset[Uuid]) -> None:
        for key in [key for key in self._indexes if key.topic_id in topic_ids]:
            del self._indexes[key]
        for index in list(self.shards):
            self._spawn(self._forget_topics(index, topic_ids))

    async def _forget_topics(self, index: int, topic_ids: frozenset[Uuid]) -> None:
        shard = self.shards.get(index)
        if shard is None or not any(key.topic_id in topic_ids for key in shard.states):
            return
        try:
            await self.submit_at(index, lambda owner, ticket, now_ms: owner.topics_deleted(topic_ids, ticket, now_ms))
        except KafkaError as error:
            logger.warning("states of deleted topics were not deleted", partition=index, reason=str(error))
