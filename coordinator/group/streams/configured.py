"""A topology with the partition counts of its topics: the tasks that it has, and the internal topics that are missing.

`configure` decides the counts of the internal topics from the topics that exist. Source: Kafka's InternalTopicManager
and ConfiguredTopology (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from coordinator.group.streams.topology import InternalTopic, Topology, described_topics
from protocol.messages import streams_group_describe as describe
from protocol.messages.create_topics import CreatableTopic
from protocol.messages.streams_group_heartbeat import Status


class StatusCode(IntEnum):
    """The codes of a heartbeat's statuses (StreamsGroupHeartbeatResponse.Status)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6


class TopologyProblem(NamedTuple):
    """The reason why a topology has no tasks yet."""

    code: StatusCode
    detail: str

    def status(self) -> Status:
        """Returns the problem for a heartbeat's response."""
        return Status(status_code=self.code, status_detail=self.detail)


class ConfiguredSubtopology(NamedTuple):
    """A subtopology whose topics have partition counts; none of its internal topics has 0 partitions."""

    task_count: int
    source_topics: frozenset[str] = frozenset()
    repartition_sources: Mapping[str, InternalTopic] = {}
    repartition_sinks: frozenset[str] = frozenset()
    changelogs: Mapping[str, InternalTopic] = {}

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
    problem: TopologyProblem | None = None

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


def configure(topology: Topology, topics: Mapping[str, int]) -> ConfiguredTopology:
    """Returns the topology with the partition counts of `topics`, which has every existing topic of
    `topology.required_topics()`. Raises STREAMS_INVALID_TOPOLOGY, INVALID_TOPIC_EXCEPTION."""
    raise NotImplementedError((topology, topics))
