"""A topology with the partition counts of its topics: the tasks that it has, and the internal topics that are missing.

Source: Kafka's InternalTopicManager and ConfiguredTopology (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Final, NamedTuple

from coordinator.cluster.topics import names
from coordinator.group.streams.partition_counts import Counts, PartitionCounts, decide, tasks_of
from coordinator.group.streams.status import GroupStatus, MisconfiguredError, StatusCode
from coordinator.group.streams.topology import InternalTopicInfo, Subtopology, Topology, described_topics
from protocol.java_hash import hash_map_order
from protocol.messages import streams_group_describe as describe
from protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig

LISTED: Final = 3
"""Number of topics that a status names; it counts the others."""

DEFAULT_REPLICATION: Final = -1
"""The replication factor, in CreateTopics, that stands for the broker's default."""


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose topics have partition counts; none of its internal topics has 0 partitions."""

    task_count: int
    source_topics: frozenset[str] = frozenset()
    repartition_sources: Mapping[str, InternalTopicInfo] = {}
    repartition_sinks: frozenset[str] = frozenset()
    changelogs: Mapping[str, InternalTopicInfo] = {}

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)

    @property
    def inputs(self) -> frozenset[str]:
        """All topics that its tasks read."""
        return self.source_topics.union(self.repartition_sources)


class ConfiguredTopology(NamedTuple):
    """The result of `configure`."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None = None
    """The subtopologies, ordered by id; None if their partition counts can't be decided."""
    missing: Mapping[str, CreatableTopic] = {}
    """The internal topics to create, by name."""
    problem: GroupStatus | None = None
    """The reason why no tasks can be assigned."""

    @property
    def is_ready(self) -> bool:
        """True if all topics exist with the right numbers of partitions, so that tasks can be assigned."""
        return self.problem is None

    def described(self) -> describe.Topology:
        """Returns the topology for StreamsGroupDescribe."""
        return describe.Topology(
            epoch=self.epoch,
            subtopologies=[
                describe.Subtopology(
                    subtopology_id=subtopology_id,
                    source_topics=sorted(subtopology.source_topics),
                    repartition_sink_topics=sorted(subtopology.repartition_sinks),
                    state_changelog_topics=described_topics(subtopology.changelogs.values()),
                    repartition_source_topics=described_topics(subtopology.repartition_sources.values()),
                )
                for subtopology_id, subtopology in (self.subtopologies or {}).items()
            ],
        )


def configure(topology: Topology, topics: Counts) -> ConfiguredTopology:
    """Returns the topology with its partition counts; `topics` has the count of every existing topic of
    `topology.required_topics()`. Raises STREAMS_INVALID_TOPOLOGY, INVALID_TOPIC_EXCEPTION."""
    topology.check()
    try:
        _check_sources(topology, topics)
        counts = decide(topology.ordered(), topics)
        subtopologies = {
            subtopology_id: _configured(subtopology, counts)
            for subtopology_id, subtopology in sorted(topology.subtopologies.items())
        }
        missing = _missing(subtopologies.values(), topology, topics)
    except MisconfiguredError as error:
        return ConfiguredTopology(topology.epoch, problem=error.status)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        problem = GroupStatus(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _check_sources(topology: Topology, topics: Counts) -> None:
    sources = {name for subtopology in topology.subtopologies.values() for name in subtopology.source_topics}
    missing = sorted(sources.difference(topics))
    if missing:
        raise MisconfiguredError(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {_summary(missing)} are missing.")


def _configured(subtopology: Subtopology, counts: PartitionCounts) -> ConfiguredSubtopology:
    return ConfiguredSubtopology(
        task_count=tasks_of(subtopology, counts),
        source_topics=frozenset(subtopology.source_topics),
        repartition_sources=_internal(subtopology.repartition_sources, counts),
        repartition_sinks=frozenset(subtopology.repartition_sinks),
        changelogs=_internal(subtopology.changelogs, counts),
    )


def _internal(topics: Iterable[InternalTopicInfo], counts: PartitionCounts) -> dict[str, InternalTopicInfo]:
    configured: dict[str, InternalTopicInfo] = {}
    for topic in topics:
        names.validate(topic.name)
        configured[topic.name] = topic._replace(partitions=topic.partitions or counts.decided[topic.name])
    return configured


def _missing(
    subtopologies: Iterable[ConfiguredSubtopology], topology: Topology, topics: Counts
) -> dict[str, CreatableTopic]:
    """Returns the internal topics to create, in the order of Kafka's HashMap, which the status shows."""
    expected: dict[str, InternalTopicInfo] = {}
    for subtopology in subtopologies:
        expected |= subtopology.repartition_sources
        expected |= subtopology.changelogs
    if any(topics[name] != topic.partitions for name, topic in expected.items() if name in topics):
        for name in hash_map_order(topology.required_topics()):
            if name in expected and name in topics and topics[name] != expected[name].partitions:
                raise MisconfiguredError(
                    StatusCode.INCORRECTLY_PARTITIONED_TOPICS,
                    f"Existing topic {name} has different number of partitions: expected {expected[name].partitions}, "
                    f"found {topics[name]}",
                )
    if all(name in topics for name in expected):
        return {}
    return {name: _creatable(expected[name]) for name in hash_map_order(expected) if name not in topics}


def _creatable(topic: InternalTopicInfo) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.partitions,
        replication_factor=topic.replication_factor or DEFAULT_REPLICATION,
        assignments=[],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in topic.configs],
    )


def _summary(topics: Collection[str]) -> str:
    others = len(topics) - LISTED
    return ", ".join(islice(topics, LISTED)) + (f" and {others} additional topics" if others > 0 else "")
