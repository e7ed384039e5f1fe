"""Topics and partitions in the metadata log."""

from __future__ import annotations

from protocol.schema import IMPLICIT, versioned, wire
from protocol.types import int8, int32, uuid


@versioned(2, versions="0", flexible="0+")
class TopicRecord:
    """The creation of a topic."""

    name: str = wire()
    topic_id: uuid = wire()


@versioned(9, versions="0", flexible="0+")
class RemoveTopicRecord:
    """The deletion of a topic and all its partitions."""

    topic_id: uuid = wire()


@versioned(3, versions="0-2", flexible="0+")
class PartitionRecord:
    """The whole state of a partition, at its creation and in snapshots."""

    partition_id: int32 = wire(default=-1)
    topic_id: uuid = wire()
    replicas: list[int32] = wire()
    isr: list[int32] = wire()
    removing_replicas: list[int32] = wire()
    adding_replicas: list[int32] = wire()
    leader: int32 = wire(default=-1)
    leader_recovery_state: int8 = wire(tag=0, default=0)  # KIP-704
    leader_epoch: int32 = wire(default=-1)
    partition_epoch: int32 = wire(default=-1)
    directories: list[uuid] = wire(versions="1+", default=IMPLICIT)  # KIP-858
    eligible_leader_replicas: list[int32] | None = wire(versions="2+", nullable="2+", tag=1, default=None)  # KIP-966
    last_known_elr: list[int32] | None = wire(versions="2+", nullable="2+", tag=2, default=None)  # KIP-966


@versioned(5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """Changes to a partition. Each record increments the partition epoch; a change of the leader, or a shrinking
    in-sync set, also increments the leader epoch."""

    partition_id: int32 = wire(default=-1)
    topic_id: uuid = wire()
    isr: list[int32] | None = wire(nullable="0+", tag=0, default=None)
    leader: int32 = wire(tag=1, default=-2)
    replicas: list[int32] | None = wire(nullable="0+", tag=2, default=None)
    removing_replicas: list[int32] | None = wire(nullable="0+", tag=3, default=None)
    adding_replicas: list[int32] | None = wire(nullable="0+", tag=4, default=None)
    leader_recovery_state: int8 = wire(tag=5, default=-1)  # KIP-704
    directories: list[uuid] | None = wire(versions="1+", nullable="1+", tag=8, default=None)  # KIP-858
    eligible_leader_replicas: list[int32] | None = wire(versions="2+", nullable="2+", tag=6, default=None)  # KIP-966
    last_known_elr: list[int32] | None = wire(versions="2+", nullable="2+", tag=7, default=None)  # KIP-966


@versioned(28, versions="0", flexible="0+")
class ClearElrRecord:
    """The removal of a topic's eligible leader replicas, or of all topics' if the name is empty (KIP-966)."""

    topic_name: str = wire()
