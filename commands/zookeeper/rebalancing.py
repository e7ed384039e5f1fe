"""The rebalance of a consumer group in ZooKeeper, as decisions over the znodes that its members read. Pure.

A member whose watch has fired releases its partitions, computes the assignment, and claims its own part: each partition
by a znode that only one member can create. If another member still owns a partition, it withdraws its claims and tries
again after a pause (rebalance.backoff.ms, rebalance.max.retries).

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
    """The state of a group that a member reads before it rebalances."""

    members: Sequence[OldMember]
    partitions: Mapping[str, Sequence[int]]
    """The partitions of each topic."""
    brokers: Collection[str]
    """The ids of registered brokers."""


class Rebalance(NamedTuple):
    """One member's change of the owners."""

    release: Owners
    """All partitions that the member owns."""
    claim: Owners
    """All partitions that the strategy assigns to the member."""

    @property
    def changes_nothing(self) -> bool:
        return self.release == self.claim


def rebalance(consumer_id: str, owners: Mapping[TopicPartition, str], view: GroupView, strategy: Strategy) -> Rebalance:
    """Returns a member's change. While no broker is registered it keeps its partitions. Raises ValueError like
    OldMember.threads."""
    owned = {partition: thread for partition, thread in owners.items() if consumer_of(thread) == consumer_id}
    if not view.brokers:
        return Rebalance(owned, owned)
    due = strategy(view.members, view.partitions)
    return Rebalance(
        owned, {partition: thread for partition, thread in due.items() if consumer_of(thread) == consumer_id}
    )


def released(owners: Mapping[TopicPartition, str], step: Rebalance) -> Owners:
    """Returns the owners after a member has released its partitions."""
    return {partition: thread for partition, thread in owners.items() if partition not in step.release}


def claimed(owners: Mapping[TopicPartition, str], step: Rebalance) -> Owners | None:
    """Returns the owners after a member has claimed all its partitions; None if another member owns one of them, so
    that it must try again."""
    return None if step.claim.keys() & owners.keys() else {**owners, **step.claim}


def unsettled(owners: Mapping[TopicPartition, str], view: GroupView, strategy: Strategy) -> list[str]:
    """Returns the members whose partitions differ from their assignment. Raises ValueError like OldMember.threads."""
    ids = sorted({*(member.consumer_id for member in view.members), *map(consumer_of, owners.values())})
    steps = {consumer_id: rebalance(consumer_id, owners, view, strategy) for consumer_id in ids}
    return [consumer_id for consumer_id, step in steps.items() if not step.changes_nothing]
