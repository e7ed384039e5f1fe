"""The topology of a streams group, as its members describe it and its record stores it.

Source: Kafka's StreamsTopology and StreamsGroupTopologyValue (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from protocol.coordinator_records import streams_group as records
from protocol.coordinator_records.streams_group import StreamsGroupTopologyValue
from protocol.errors import ErrorCode, KafkaError
from protocol.java_hash import hash_map_order
from protocol.messages import streams_group_describe as describe
from protocol.messages import streams_group_heartbeat as heartbeat


class InternalTopicInfo(NamedTuple):
    """A repartition topic or a changelog topic. 0 partitions, or a replication factor of 0, let the broker decide."""

    name: str
    partitions: int = 0
    replication_factor: int = 0
    configs: tuple[tuple[str, str], ...] = ()

    def described(self) -> describe.TopicInfo:
        """Returns the topic for StreamsGroupDescribe."""
        return describe.TopicInfo(
            name=self.name,
            partitions=self.partitions,
            replication_factor=self.replication_factor,
            topic_configs=[describe.KeyValue(key=key, value=value) for key, value in self.configs],
        )


class CopartitionGroup(NamedTuple):
    """Topics that need equal partition counts, as indexes into the lists of a subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_sources: tuple[int, ...] = ()


class Subtopology(NamedTuple):
    """A connected part of a topology. Each partition number of its source topics is a task."""

    subtopology_id: str
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    changelogs: tuple[InternalTopicInfo, ...] = ()
    repartition_sinks: tuple[str, ...] = ()
    repartition_sources: tuple[InternalTopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()

    @property
    def inputs(self) -> Iterator[str]:
        """All topics that its tasks read."""
        yield from self.source_topics
        for topic in self.repartition_sources:
            yield topic.name

    def copartitioned(self) -> Iterator[frozenset[str]]:
        """Yields the names of the topics in each copartition group."""
        for group in self.copartition_groups:
            yield frozenset(
                [self.source_topics[index] for index in group.source_topics]
                + [self.repartition_sources[index].name for index in group.repartition_sources]
            )


class Topology(NamedTuple):
    """A topology, with its subtopologies by id in the order of the member's request."""

    epoch: int
    subtopologies: Mapping[str, Subtopology]

    @staticmethod
    def from_request(topology: heartbeat.Topology) -> Topology:
        """Returns the topology of a joining member. Raises STREAMS_INVALID_TOPOLOGY, STREAMS_INVALID_TOPOLOGY_EPOCH."""
        if topology.epoch < 0:
            raise KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH, "Topology epoch must be non-negative.")
        check_unique("subtopology", (subtopology.subtopology_id for subtopology in topology.subtopologies))
        read = _read(topology)
        read.check()
        return read

    @staticmethod
    def from_record(value: StreamsGroupTopologyValue) -> Topology:
        """Returns the topology of a record."""
        return _read(value)

    def check(self) -> None:
        """Raises STREAMS_INVALID_TOPOLOGY if no broker can ever use the topology."""
        for subtopology in self.subtopologies.values():
            _check_internal_topics("changelog topic", subtopology.changelogs)
            _check_internal_topics("repartition source topic", subtopology.repartition_sources)
            for group in subtopology.copartition_groups:
                _check_indexes(subtopology, group.source_topics, len(subtopology.source_topics))
                _check_indexes(subtopology, group.repartition_sources, len(subtopology.repartition_sources))

    def ordered(self) -> list[Subtopology]:
        """Returns the subtopologies in the order of Kafka's HashMap, on which partition counts and texts depend."""
        return [self.subtopologies[subtopology_id] for subtopology_id in hash_map_order(self.subtopologies)]

    def required_topics(self) -> list[str]:
        """Returns the topics that its tasks read or restore state from, each once. The group's hash covers them."""
        return list(
            dict.fromkeys(
                name
                for subtopology in self.ordered()
                for names in (subtopology.inputs, (topic.name for topic in subtopology.changelogs))
                for name in names
            )
        )

    def record(self) -> StreamsGroupTopologyValue:
        """Returns the value of the topology's record."""
        return StreamsGroupTopologyValue(
            epoch=self.epoch, subtopologies=list(map(_written, self.subtopologies.values()))
        )

    def described(self) -> describe.Topology:
        """Returns the topology for StreamsGroupDescribe, as the member described it."""
        return describe.Topology(
            epoch=self.epoch,
            subtopologies=[
                describe.Subtopology(
                    subtopology_id=subtopology_id,
                    source_topics=sorted(subtopology.source_topics),
                    repartition_sink_topics=sorted(subtopology.repartition_sinks),
                    state_changelog_topics=described_topics(subtopology.changelogs),
                    repartition_source_topics=described_topics(subtopology.repartition_sources),
                )
                for subtopology_id, subtopology in sorted(self.subtopologies.items())
            ],
        )


def described_topics(topics: Iterable[InternalTopicInfo]) -> list[describe.TopicInfo]:
    """Returns the topics for StreamsGroupDescribe, ordered by name."""
    return [topic.described() for topic in sorted(topics, key=lambda topic: topic.name)]


def invalid(message: str) -> KafkaError:
    """Returns STREAMS_INVALID_TOPOLOGY with the message."""
    return KafkaError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def check_unique(what: str, names: Iterable[str]) -> None:
    """Raises STREAMS_INVALID_TOPOLOGY if a name is repeated."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise invalid(f"The topology names the {what} {name} more than once.")
        seen.add(name)


def _check_internal_topics(what: str, topics: tuple[InternalTopicInfo, ...]) -> None:
    check_unique(what, (topic.name for topic in topics))
    for topic in topics:
        check_unique(f"config of topic {topic.name}", (key for key, _value in topic.configs))
        if topic.partitions < 0:
            raise invalid(f"The {what} {topic.name} has {topic.partitions} partitions; the number can't be negative.")


def _check_indexes(subtopology: Subtopology, indexes: tuple[int, ...], size: int) -> None:
    for index in indexes:
        if not 0 <= index < size:
            raise invalid(
                f"A copartition group of subtopology {subtopology.subtopology_id} has the index {index} into a list "
                f"of {size} topics."
            )


def _read(topology: heartbeat.Topology | StreamsGroupTopologyValue) -> Topology:
    return Topology(
        topology.epoch,
        {
            subtopology.subtopology_id: Subtopology(
                subtopology_id=subtopology.subtopology_id,
                source_topics=tuple(subtopology.source_topics),
                source_topic_regex=tuple(subtopology.source_topic_regex),
                changelogs=tuple(map(_topic, subtopology.state_changelog_topics)),
                repartition_sinks=tuple(subtopology.repartition_sink_topics),
                repartition_sources=tuple(map(_topic, subtopology.repartition_source_topics)),
                copartition_groups=tuple(
                    CopartitionGroup(
                        tuple(group.source_topics),
                        tuple(group.source_topic_regex),
                        tuple(group.repartition_source_topics),
                    )
                    for group in subtopology.copartition_groups
                ),
            )
            for subtopology in topology.subtopologies
        },
    )


def _topic(topic: heartbeat.TopicInfo | records.TopicInfo) -> InternalTopicInfo:
    configs = tuple((config.key, config.value) for config in topic.topic_configs)
    return InternalTopicInfo(topic.name, topic.partitions, topic.replication_factor, configs)


def _written(subtopology: Subtopology) -> records.Subtopology:
    return records.Subtopology(
        subtopology_id=subtopology.subtopology_id,
        source_topics=list(subtopology.source_topics),
        source_topic_regex=list(subtopology.source_topic_regex),
        state_changelog_topics=list(map(_written_topic, subtopology.changelogs)),
        repartition_sink_topics=list(subtopology.repartition_sinks),
        repartition_source_topics=list(map(_written_topic, subtopology.repartition_sources)),
        copartition_groups=[
            records.CopartitionGroup(
                source_topics=list(group.source_topics),
                source_topic_regex=list(group.source_topic_regex),
                repartition_source_topics=list(group.repartition_sources),
            )
            for group in subtopology.copartition_groups
        ],
    )


def _written_topic(topic: InternalTopicInfo) -> records.TopicInfo:
    return records.TopicInfo(
        name=topic.name,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=[records.TopicConfig(key=key, value=value) for key, value in topic.configs],
    )
