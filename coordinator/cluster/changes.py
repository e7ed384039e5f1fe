"""The changes that committed records make to the image. Subscribers get one `Delta` per batch, after the whole batch
was applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from coordinator.cluster.configs.resource import ConfigResource
from coordinator.cluster.topics.topic import PartitionRegistration, Topic
from protocol.types import Uuid


class TopicCreated(NamedTuple):
    """A new topic; the changes of its configs and then of its partitions follow."""

    topic: Topic


class TopicDeleted(NamedTuple):
    """A deleted topic, whose configs are deleted too; its partitions are as they were before."""

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
    """A config of a resource was set, or removed if `value` is None."""

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


class AclChanged(NamedTuple):
    """An access control entry was added or removed."""

    entry_id: Uuid


class QuotaChanged(NamedTuple):
    """A quota of an entity was set or removed."""

    entity: tuple[tuple[str, str | None], ...]
    key: str


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | ConfigChanged
    | FeatureChanged
    | BrokerChanged
    | AclChanged
    | QuotaChanged
)


class Delta(NamedTuple):
    """The changes of one committed batch, in the order of its records. The topics in it have their state after the
    batch.
    """

    offset: int
    """The offset of the batch's last record."""
    epoch: int
    changes: Sequence[Change]

    def has(self, kind: type[Change]) -> bool:
        """True if the delta has a change of this kind."""
        return any(isinstance(change, kind) for change in self.changes)

    @property
    def deleted_topics(self) -> dict[str, Uuid]:
        """The deleted topics' ids by name."""
        return {change.topic.name: change.topic.topic_id for change in self.changes if isinstance(change, TopicDeleted)}


Subscriber = Callable[[Delta], None]


def by_change(note: Callable[[Change], None]) -> Subscriber:
    """Returns a subscriber that calls `note` with each change of a delta."""

    def noted(delta: Delta) -> None:
        for change in delta.changes:
            note(change)

    return noted
