"""The changes that committed records make to the image: a subscriber gets one `Delta` per batch, after all of it was
applied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from coordinator.cluster.configs.resource import ConfigResource
from coordinator.cluster.topics.topic import PartitionRegistration, Topic


class TopicCreated(NamedTuple):
    """A new topic, whose configs and then partitions follow."""

    topic: Topic


class TopicDeleted(NamedTuple):
    """A topic that is gone, with its configs; its partitions are as they last were."""

    topic: Topic


class PartitionCreated(NamedTuple):
    """A new partition of a topic."""

    topic: Topic
    partition_index: int
    partition: PartitionRegistration


class PartitionChanged(NamedTuple):
    """A partition's leader, in-sync replicas, replicas or directories changed."""

    topic: Topic
    partition_index: int
    before: PartitionRegistration
    after: PartitionRegistration


class ConfigChanged(NamedTuple):
    """A config of a resource was set, or removed where `value` is None."""

    resource: ConfigResource
    name: str
    value: str | None


class FeatureChanged(NamedTuple):
    """A feature was finalized at a level; 0 turns it off."""

    name: str
    level: int


class BrokerChanged(NamedTuple):
    """A broker was registered, changed or unregistered."""

    broker_id: int


class KeptChanged(NamedTuple):
    """A record of another room (ACLs, SCRAM credentials, quotas, delegation tokens) was set or removed."""

    key: tuple[object, ...]


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | ConfigChanged
    | FeatureChanged
    | BrokerChanged
    | KeptChanged
)


class Delta(NamedTuple):
    """The changes that one committed batch made, in the order of its records. A topic in it is as it is by now."""

    offset: int
    """Of the batch's last record."""
    epoch: int
    changes: Sequence[Change]


Subscriber = Callable[[Delta], None]


def by_change(note: Callable[[Change], None]) -> Subscriber:
    """A subscriber that takes a delta's changes one by one."""

    def noted(delta: Delta) -> None:
        for change in delta.changes:
            note(change)

    return noted
