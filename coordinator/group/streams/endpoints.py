"""The partitions whose state interactive queries find at a member's endpoint.

Source: Kafka's EndpointToPartitionsManager (KIP-1071).
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator.group.streams.configured import ConfiguredSubtopology
from coordinator.group.streams.partition_counts import Counts
from coordinator.group.streams.tasks import TaskAssignment, Tasks
from protocol.messages.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition


def endpoint_to_partitions(
    endpoint: Endpoint,
    assigned: TaskAssignment,
    subtopologies: Mapping[str, ConfiguredSubtopology],
    topics: Counts,
) -> EndpointToPartitions:
    """Returns the partitions of a member's tasks. `topics` has the partition counts of the subtopologies' inputs.

    A task of a subtopology or a topic that is gone has no partitions."""
    return EndpointToPartitions(
        user_endpoint=endpoint,
        active_partitions=_partitions(assigned.active, subtopologies, topics),
        standby_partitions=_partitions(assigned.standby | assigned.warmup, subtopologies, topics),
    )


def _partitions(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology], topics: Counts
) -> list[TopicPartition]:
    found: list[TopicPartition] = []
    for subtopology_id, indexes in tasks.partitions.items():
        subtopology = subtopologies.get(subtopology_id)
        for topic in sorted(subtopology.inputs) if subtopology is not None else ():
            count = topics.get(topic, 0)  # an input can have fewer partitions than the subtopology has tasks
            partitions = sorted(index for index in indexes if index < count)
            if partitions:
                found.append(TopicPartition(topic=topic, partitions=partitions))
    return found
