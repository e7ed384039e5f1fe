"""The inputs that old tools write as znodes, as values, and the controller requests for them. Pure.

Source: kafka.admin.AdminUtils, ReassignPartitionsCommand, PreferredReplicaLeaderElectionCommand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from coordinator.cluster.configs.resource import ResourceType
from coordinator.cluster.image import Image
from programs.zookeeper import znodes
from programs.zookeeper.znodes import Entity
from protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from protocol.messages.delete_topics import DeleteTopicsRequest
from protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from protocol.types import TopicPartition

TIMEOUT_MS = 30_000
SET, DELETE = 0, 1
PREFERRED = 0
CHOSEN_BY_ASSIGNMENT = -1
CONFIG_TYPES = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER}
"""The kinds of entities whose configs can be changed by znodes."""


class NewTopic(NamedTuple):
    """A topic whose znode a tool has created."""

    name: str
    assignment: Mapping[int, Sequence[int]]
    configs: Mapping[str, str]

    def request(self) -> CreateTopicsRequest:
        assignments = [
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
            for index, replicas in sorted(self.assignment.items())
        ]
        topic = CreatableTopic(
            name=self.name,
            num_partitions=CHOSEN_BY_ASSIGNMENT,
            replication_factor=CHOSEN_BY_ASSIGNMENT,
            assignments=assignments,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in self.configs.items()],
        )
        return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


class MorePartitions(NamedTuple):
    """Partitions that a tool has added to a topic's znode."""

    name: str
    before: int
    added: Mapping[int, Sequence[int]]

    def request(self) -> CreatePartitionsRequest:
        assignments = [
            CreatePartitionsAssignment(broker_ids=list(replicas)) for _, replicas in sorted(self.added.items())
        ]
        count = self.before + len(self.added)
        topic = CreatePartitionsTopic(name=self.name, count=count, assignments=assignments)
        return CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS, validate_only=False)

    @property
    def continues(self) -> bool:
        """True if the added partitions follow the existing ones without a gap."""
        return sorted(self.added) == list(range(self.before, self.before + len(self.added)))


class DeletedByTool(NamedTuple):
    """A topic that a tool asks to delete."""

    name: str

    def request(self) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topic_names=[self.name], timeout_ms=TIMEOUT_MS)


class Reassignment(NamedTuple):
    """The target replicas of partitions."""

    targets: Mapping[tuple[str, int], Sequence[int]]


class PreferredElection(NamedTuple):
    """Partitions whose preferred leaders are to be elected."""

    partitions: Sequence[tuple[str, int]]

    def request(self) -> ElectLeadersRequest:
        topics = [
            TopicPartitions(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(self.partitions).items()
        ]
        return ElectLeadersRequest(election_type=PREFERRED, topic_partitions=topics, timeout_ms=TIMEOUT_MS)


class ConfigInput(NamedTuple):
    """All configs that a tool has written for an entity."""

    entity: Entity
    configs: Mapping[str, str]
    version: int
    """The version of the znode with the configs."""

    def request(self, before: Mapping[str, str]) -> IncrementalAlterConfigsRequest | None:
        """Returns the request that makes the changes; None if there are none."""
        changed = [(name, SET, value) for name, value in self.configs.items() if before.get(name) != value]
        gone = [(name, DELETE, None) for name in before if name not in self.configs]
        if not changed and not gone:
            return None
        resource = AlterConfigsResource(
            resource_type=CONFIG_TYPES[self.entity.kind],
            resource_name=self.resource_name,
            configs=[
                AlterableConfig(name=name, config_operation=operation, value=value)
                for name, operation, value in (*changed, *gone)
            ],
        )
        return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)

    def without(self, names: Collection[str]) -> ConfigInput:
        """Returns the input without some of its configs."""
        return self._replace(configs={name: value for name, value in self.configs.items() if name not in names})

    @property
    def resource_name(self) -> str:
        return "" if self.entity.name == znodes.DEFAULT_ENTITY else self.entity.name


class Bad(NamedTuple):
    """A znode whose input can't be carried out."""

    path: str
    reason: str
    remove: bool = True


Input = NewTopic | MorePartitions | DeletedByTool | Reassignment | PreferredElection | ConfigInput | Bad


class MovesProgress(NamedTuple):
    """The progress of a reassignment."""

    begin: dict[tuple[str, int], Sequence[int]]
    """Moves to request from the controller."""
    unknown: list[tuple[str, int]]
    """Partitions that don't exist."""
    remaining: dict[tuple[str, int], Sequence[int]]
    """Moves that are neither complete nor impossible."""

    def request(self) -> AlterPartitionReassignmentsRequest:
        topics: dict[str, list[ReassignablePartition]] = {}
        for (topic, index), replicas in self.begin.items():
            partition = ReassignablePartition(partition_index=index, replicas=list(replicas))
            topics.setdefault(topic, []).append(partition)
        return AlterPartitionReassignmentsRequest(
            timeout_ms=TIMEOUT_MS,
            topics=[ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
        )


def progress(image: Image, targets: Mapping[tuple[str, int], Sequence[int]]) -> MovesProgress:
    """Returns the progress of the image towards the target replicas."""
    moves = MovesProgress({}, [], {})
    for (topic, index), replicas in targets.items():
        partition = image.partition(TopicPartition(topic, index))
        if partition is None:
            moves.unknown.append((topic, index))
            continue
        target = [broker for broker in partition.replicas if broker not in partition.removing_replicas]
        is_there = target == list(replicas)
        if is_there and not partition.reassigning:
            continue
        moves.remaining[topic, index] = replicas
        if not is_there:
            moves.begin[topic, index] = replicas
    return moves


def _by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in dict.fromkeys(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics
