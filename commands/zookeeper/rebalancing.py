"""How a group that meets in ZooKeeper rebalances, as decisions over what its members read there. Pure.

A member whose watch has fired gives up the partitions that it owns, computes who owns what, and claims its own part:
each partition by a znode that one member alone can make. Where another still owns one of them it takes its claims
back, and tries again after a pause (rebalance.backoff.ms, rebalance.max.retries).

Source: the consumer rebalancing algorithm of Kafka's documentation, 0.7 to 1.0;
ZookeeperConsumerConnector.rebalance and reflectPartitionOwnershipDecision.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from commands.zookeeper.assignors import Owners, Strategy
from commands.zookeeper.consumers import OldMember, consumer_of
from protocol.types import TopicPartition


class GroupView(NamedTuple):
    """A group as a member reads it when it begins to rebalance."""

    members: Sequence[OldMember]
    partitions: Mapping[str, Sequence[int]]
    """Of each topic."""
    brokers: Collection[str]
    """The ids that are registered."""


class Rebalance(NamedTuple):
    """One member's change of the registry of owners."""

    release: Owners
    """All that it owns."""
    claim: Owners
    """All that falls to it."""

    @property
    def changes_nothing(self) -> bool:
        return self.release == self.claim


def rebalance(consumer_id: str, owners: Mapping[TopicPartition, str], view: GroupView, strategy: Strategy) -> Rebalance:
    """Returns what a member does; without any broker it waits for one, and owns what it has owned. Raises ValueError,
    as OldMember.threads."""
    owned = {one: thread for one, thread in owners.items() if consumer_of(thread) == consumer_id}
    if not view.brokers:
        return Rebalance(owned, owned)
    due = strategy(view.members, view.partitions)
    return Rebalance(owned, {one: thread for one, thread in due.items() if consumer_of(thread) == consumer_id})


def released(owners: Mapping[TopicPartition, str], step: Rebalance) -> Owners:
    """Returns the owners after a member has given up its partitions."""
    return {one: thread for one, thread in owners.items() if one not in step.release}


def claimed(owners: Mapping[TopicPartition, str], step: Rebalance) -> Owners | None:
    """Returns the owners after a member has claimed its partitions, all of them; None where another member owns one,
    and it has to try again."""
    return None if step.claim.keys() & owners.keys() else {**owners, **step.claim}


def unsettled(owners: Mapping[TopicPartition, str], view: GroupView, strategy: Strategy) -> list[str]:
    """Returns the members that do not own their part of the partitions, or own those of another. Raises ValueError, as
    OldMember.threads."""
    ids = sorted({*(one.consumer_id for one in view.members), *map(consumer_of, owners.values())})
    steps = {consumer_id: rebalance(consumer_id, owners, view, strategy) for consumer_id in ids}
    return [consumer_id for consumer_id, step in steps.items() if not step.changes_nothing]
