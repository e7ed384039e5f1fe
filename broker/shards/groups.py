"""The group coordinator of this broker: shards of groups on the partitions of `__consumer_offsets`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from broker.config import BrokerConfig
from broker.logging import get_logger
from broker.replica.partition import Partition
from broker.shards.environment import Environment
from broker.shards.hosting import Coordinator, InternalTopic, ShardParts
from broker.shards.streams_topics import StreamsTopics
from coordinator.cluster.changes import Delta, by_change
from coordinator.cluster.configs.resource import ConfigResource, ResourceType
from coordinator.cluster.formatting import random_uuid
from coordinator.engine.result import Ticket
from coordinator.group.config import GroupConfig
from coordinator.group.settings import GroupSettings
from coordinator.group.subscription_metadata import TopicWatch
from protocol.errors import KafkaError
from protocol.lazy import lazy
from protocol.records.compression import Compression
from protocol.types import Uuid

if TYPE_CHECKING:
    from broker.shards import patterns
    from broker.shards.patterns import PatternMatcher
    from coordinator.group import serde, shard, state
    from coordinator.group.records import AnyRecord, EndTransaction, GroupResult
    from coordinator.group.serde import EncodedRecord
    from coordinator.group.shard import GroupShard
    from coordinator.group.state import GroupState, MatchRequest
else:  # with the first shard
    patterns = lazy("broker.shards.patterns")
    serde = lazy("coordinator.group.serde")
    shard = lazy("coordinator.group.shard")
    state = lazy("coordinator.group.state")

A = TypeVar("A")
X = TypeVar("X")
Y = TypeVar("Y")
Decide: TypeAlias = "Callable[[GroupState, X, Y, Ticket[A], int], GroupResult]"
"""A decision on groups: (state, request, client, ticket, now_ms) → Result."""

logger = get_logger(__name__)


def topic_configs(config: BrokerConfig) -> Mapping[str, str]:
    """Returns Kafka's configs of the topic (GroupCoordinatorService.groupMetadataTopicConfigs)."""
    return {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": str(config.offsets_topic_segment_bytes),
    }


TOPIC = InternalTopic(
    "__consumer_offsets",
    lambda config: config.offsets_topic_num_partitions,
    lambda config: config.offsets_topic_replication_factor,
    topic_configs,
)


class GroupCoordinator(Coordinator["GroupShard", "AnyRecord"]):
    """The coordinator that handlers call: by group id, or for all shards."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(
            environment,
            TOPIC,
            self._make,
            lambda: environment.config.group_coordinator_append_linger_ms,
            lambda _: environment.config.offsets_commit_timeout_ms,
        )
        self._settings: tuple[BrokerConfig, GroupSettings] | None = None
        self._group_configs: dict[str, tuple[BrokerConfig, Mapping[str, str], GroupConfig]] = {}
        self._patterns: PatternMatcher | None = None
        self.streams_topics = StreamsTopics(environment.topics, environment.clock, self._spawn)

    def start(self) -> None:
        image = self.environment.image
        self._watch = TopicWatch(image, self._rack_of, lambda: image.offset)
        self.environment.loader.subscribe(by_change(self._watch.note))
        super().start()
        self.environment.loader.subscribe(self._topics_gone)

    def stop(self) -> None:
        super().stop()
        if self._patterns is not None:
            self._patterns.close()

    def submit(self, group_id: str, decide: Decide[X, Y, A], request: X, client: Y) -> asyncio.Future[A]:
        """Decides a request in the group's shard. Returns the answer's future, which is done if it needn't wait. Raises
        KafkaError as clients see it."""
        return self.submit_in(self.partition_of(group_id), decide, request, client)

    def submit_in(self, index: int, decide: Decide[X, Y, A], request: X, client: Y) -> asyncio.Future[A]:
        """Decides a request about groups of a partition's shard, as `submit` does."""
        return self.submitted(index, partial(decide, self.shard(index).state, request, client))

    def end_transaction(self, index: int, marker: EndTransaction) -> asyncio.Future[None]:
        """Writes a producer's marker, which commits or drops its pending offsets. Raises KafkaError."""
        return self.submit_at(index, lambda shard, ticket, now_ms: shard.end_transaction(marker, ticket, now_ms))

    # Shards.

    def _make(self, partition: Partition) -> ShardParts[GroupShard, AnyRecord, EncodedRecord]:
        groups = shard.GroupShard(
            state.GroupEnvironment(
                settings=self.settings,
                group_config=self.group_config,
                topics=self.environment.image,
                new_uuid=partial(random_uuid, os.urandom),
                note=logger.info,
                match_topics=self._match_topics,
                watch=self._watch,
            )
        )
        records = serde.GroupSerde(lambda: partition.config.max_message_bytes, self._compression)
        return ShardParts(groups, records, records.batches, groups.activate)

    def _compression(self) -> Compression:
        return Compression(self.environment.config.offsets_topic_compression_codec)

    def settings(self) -> GroupSettings:
        """Returns the broker's options for groups; a new object only when they change."""
        config = self.environment.config
        if self._settings is None or self._settings[0] is not config:
            values = {name: getattr(config, name) for name in GroupSettings._fields if name != "max_record_bytes"}
            limit = config.log_config(self.environment.image.topic_configs(TOPIC.name)).max_message_bytes
            self._settings = config, GroupSettings(**values, max_record_bytes=limit)
        return self._settings[1]

    def group_config(self, group_id: str) -> GroupConfig:
        """Returns a group's effective options; a new object only when they change. Groups without options of their own
        share an object. Each share fetch asks several times, and making the object takes 30 µs."""
        config = self.environment.config
        overrides = self.environment.image.configs(ConfigResource(ResourceType.GROUP, group_id))
        kept_as = group_id if overrides else ""
        cached = self._group_configs.get(kept_as)
        if cached is None or cached[0] is not config or cached[1] != overrides:
            cached = self._group_configs[kept_as] = config, dict(overrides), config.group_config(overrides)
        return cached[2]

    def _rack_of(self, broker_id: int) -> str | None:
        broker = self.environment.image.brokers.get(broker_id)
        return None if broker is None else broker.rack

    def _match_topics(self, request: MatchRequest) -> None:
        if self._patterns is None:
            self._patterns = patterns.PatternMatcher(self.environment.clock, self.environment.image, self.submit)
        self._spawn(self._patterns.match(request))

    # Topics that groups read.

    def _topics_gone(self, delta: Delta) -> None:
        deleted = delta.deleted_topics
        deleted.pop(TOPIC.name, None)
        if deleted:
            for index in list(self.shards):
                self._spawn(self._topics_deleted(index, deleted))

    async def _topics_deleted(self, index: int, deleted: Mapping[str, Uuid]) -> None:
        if index not in self.shards:
            return
        try:
            await self.submit_at(index, lambda shard, ticket, now_ms: shard.topics_deleted(deleted, ticket, now_ms))
        except KafkaError as error:
            logger.warning(
                "offsets of deleted topics were not deleted", partition=index, topics=len(deleted), reason=str(error)
            )
