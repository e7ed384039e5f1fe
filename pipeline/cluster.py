"""The metadata that a job needs before it reads or writes: topics, their ids, offsets and configs.

By librdkafka's admin client.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from pipeline.errors import PipelineError, Unreachable
from pipeline.topics import PartitionName, TopicDescription

K = TypeVar("K")
T = TypeVar("T")

REQUEST_TIMEOUT_S = 15
"""Longest wait for an answer: enough for a broker that is starting, and short enough for an operator."""

QUIET = {"log_level": 0}
"""Silences librdkafka's lines on standard error, which would repeat the error message."""


@dataclass(frozen=True)
class Cluster:
    """A cluster by its bootstrap servers; `properties` are librdkafka's, for TLS and SASL. Raises PipelineError."""

    bootstrap: str
    properties: Mapping[str, str] = field(default_factory=dict)

    def client_config(self) -> dict[str, str | int | float | bool]:
        return {"bootstrap.servers": self.bootstrap, **QUIET, **self.properties}

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient(self.client_config(), logger=_silent())

    def topic_names(self) -> list[str]:
        """Returns all topics except internal ones. Raises Unreachable."""
        try:
            metadata = self.admin.list_topics(timeout=REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise self._unreachable(error) from None
        return sorted(name for name in metadata.topics if not name.startswith("__"))

    def topics(self, names: Sequence[str] = (), pattern: str | None = None) -> list[TopicDescription]:
        """Returns the topics with the names, or those whose whole name matches the pattern.

        Raises PipelineError if a topic doesn't exist.
        """
        there = self.topic_names()
        chosen = [name for name in there if pattern and re.fullmatch(pattern, name)] if pattern else list(names)
        if missing := sorted(set(chosen) - set(there)):
            raise PipelineError(f"{self.bootstrap} has no topic {', '.join(missing)}")
        if not chosen:
            raise PipelineError(f"{self.bootstrap} has no topic that matches {pattern!r}")
        descriptions = self._answers(self.admin.describe_topics(TopicCollection(chosen)))
        return [
            TopicDescription(topic.name, str(topic.topic_id), tuple(sorted(p.id for p in topic.partitions)))
            for topic in descriptions
        ]

    def start_offsets(self, partitions: Iterable[PartitionName]) -> dict[PartitionName, int]:
        return self._offsets(partitions, lambda _: OffsetSpec.earliest())

    def end_offsets(self, partitions: Iterable[PartitionName]) -> dict[PartitionName, int]:
        """Returns the last stable offsets, which read-committed consumers reach."""
        return self._offsets(partitions, lambda _: OffsetSpec.latest())

    def offsets_at(self, partitions: Sequence[PartitionName], timestamp_ms: int) -> dict[PartitionName, int]:
        """Returns the first offset at or after a timestamp; the end offset if no record is that late."""
        offsets = self._offsets(partitions, lambda _: OffsetSpec.for_timestamp(timestamp_ms))
        later = [key for key, offset in offsets.items() if offset < 0]
        return {**offsets, **(self.end_offsets(later) if later else {})}

    def configs(self, topic: str) -> dict[str, str]:
        """Returns the configs that were set on the topic itself, without defaults."""
        resource = ConfigResource(ResourceType.TOPIC, topic)
        (entries,) = self._answers(self.admin.describe_configs([resource]))
        own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {
            name: entry.value for name, entry in entries.items() if _source(entry) == own and entry.value is not None
        }

    def create(self, topic: str, partitions: int, configs: Mapping[str, str] | None = None) -> bool:
        """Creates a topic. Returns False if it already exists."""
        new = NewTopic(topic, num_partitions=partitions, replication_factor=-1, config=dict(configs or {}))
        try:
            self._answers(self.admin.create_topics([new]))
        except AlreadyThere:
            return False
        return True

    def grow(self, topic: str, partitions: int) -> None:
        self._answers(self.admin.create_partitions([NewPartitions(topic, partitions)]))

    def set_configs(self, topic: str, configs: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in configs.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        self._answers(self.admin.incremental_alter_configs([resource]))

    def _offsets(
        self, partitions: Iterable[PartitionName], spec: Callable[[PartitionName], OffsetSpec]
    ) -> dict[PartitionName, int]:
        specs = {TopicPartition(*key): spec(key) for key in partitions}
        if not specs:
            return {}
        futures = self.admin.list_offsets(
            specs, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=REQUEST_TIMEOUT_S
        )
        answers = self._answers(futures)
        return {PartitionName(at.topic, at.partition): info.offset for at, info in zip(futures, answers, strict=True)}

    def _answers(self, futures: Mapping[K, Future[T]]) -> list[T]:
        return [self._answer(resource, future) for resource, future in futures.items()]

    def _answer(self, resource: object, future: Future[T]) -> T:
        try:
            return future.result(REQUEST_TIMEOUT_S * 2)
        except KafkaException as error:
            code = error.args[0].code()
            if code in (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT):
                raise self._unreachable(error) from None
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                raise AlreadyThere(str(resource)) from None
            raise PipelineError(f"{self.bootstrap}: {_label(resource)}: {error.args[0].str()}") from None

    def _unreachable(self, error: KafkaException) -> Unreachable:
        return Unreachable(f"no broker answers at {self.bootstrap} within {REQUEST_TIMEOUT_S} s: {error.args[0].str()}")


class AlreadyThere(PipelineError):
    """A topic that should be created exists already."""


def _label(resource: object) -> str:
    return f"{resource.topic}-{resource.partition}" if isinstance(resource, TopicPartition) else str(resource)


def _source(entry: ConfigEntry) -> int:
    return entry.source.value if isinstance(entry.source, ConfigSource) else int(entry.source)


def _silent() -> logging.Logger:
    logger = logging.getLogger("pipeline.librdkafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
