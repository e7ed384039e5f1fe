"""Proposed changes of in-sync replicas: queued, requested, answered.

A state machine without time or sockets: changes and answers go in; AlterPartition requests, and the outcome for each
partition, come out.

Source: kafka.server.DefaultAlterPartitionManager and kafka.cluster.Partition.submitAlterPartition (KIP-497, KIP-841,
KIP-903).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

from coordinator.replication.isr import Isr
from coordinator.replication.roles import Leading, Role
from protocol.errors import ErrorCode, error_code
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from protocol.types import TopicPartition, Uuid

NOT_APPLIED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
"""Errors with which the controller says that the partition epoch is current and the change was not made: the old ISR is
still in force.
"""

SUPERSEDED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
"""Errors with which the controller says that the partition has changed. An earlier copy of the request may have made
the change, so the change stays pending until the metadata arrives.
"""


class InSyncReplica(NamedTuple):
    """A replica of a proposed ISR, and the epoch of its broker; -1 if that is unknown."""

    broker_id: int
    broker_epoch: int


class IsrChange(NamedTuple):
    """The ISR that a leader proposes for a partition, and the partition epoch that it knows."""

    name: TopicPartition
    topic_id: Uuid
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[InSyncReplica, ...]
    expands: bool = False
    """True if a follower joins, False if a follower leaves."""

    @property
    def broker_ids(self) -> frozenset[int]:
        """The proposed ISR."""
        return frozenset(replica.broker_id for replica in self.replicas)


class CommittedIsr(NamedTuple):
    """The ISR that the controller has committed."""

    leader_epoch: int
    partition_epoch: int
    isr: frozenset[int]


Verdict: TypeAlias = CommittedIsr | ErrorCode


def proposed_change(name: TopicPartition, topic_id: Uuid, role: Leading, isr: Isr, broker_epoch: int) -> IsrChange:
    """Returns the change with which this leader, in this epoch of its broker, proposes `isr.proposed`. A follower that
    hasn't fetched yet has no broker epoch. If its broker registers again, the controller removes it from the ISR;
    that raises the partition epoch, so the controller rejects the change.
    """
    replicas = tuple(
        InSyncReplica(
            broker_id, broker_epoch if broker_id == role.leader_id else role.followers[broker_id].broker_epoch
        )
        for broker_id in sorted(isr.proposed)
    )
    return IsrChange(
        name, topic_id, role.epoch, role.partition_epoch, replicas, expands=len(isr.proposed) > len(isr.committed)
    )


def is_pending(role: Role, change: IsrChange) -> bool:
    """True if the leader still waits for this change: neither the metadata nor an answer has replaced it."""
    return (
        isinstance(role, Leading)
        and not role.isr.is_settled
        and role.epoch == change.leader_epoch
        and role.partition_epoch == change.partition_epoch
        and role.isr.proposed == change.broker_ids
    )


def decided(role: Leading, change: IsrChange, verdict: Verdict) -> Leading:
    """Returns the role after the controller's verdict on the change; the same role if the leader must wait for the
    metadata, or retry.
    """
    if isinstance(verdict, ErrorCode):
        return role.with_isr(role.isr.rolled_back()) if verdict in NOT_APPLIED else role
    if verdict.leader_epoch != role.epoch or verdict.partition_epoch < role.partition_epoch:
        return role  # the verdict is outdated: the metadata has the rest
    return role.with_isr(Isr(verdict.isr), verdict.partition_epoch)


def is_worth_a_retry(verdict: Verdict) -> bool:
    """True for an error that says nothing about the change itself, so that a retry of the same change may succeed."""
    return isinstance(verdict, ErrorCode) and verdict not in NOT_APPLIED and verdict not in SUPERSEDED


class IsrChanges:
    """The changes of one broker: at most one for each partition, and at most one request in flight."""

    def __init__(self, broker_id: int) -> None:
        self._broker_id = broker_id
        self._queue: dict[TopicPartition, IsrChange] = {}
        """The change of each partition by name, until it is answered."""
        self._in_flight: tuple[IsrChange, ...] = ()

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, change: IsrChange) -> bool:
        """Queues a change. Returns False, and changes nothing, if a change of its partition isn't answered yet."""
        return self._queue.setdefault(change.name, change) is change

    def next_request(self, broker_epoch: int, is_pending: Callable[[IsrChange], bool]) -> AlterPartitionRequest | None:
        """Returns the request for all changes that are still pending, and drops the others; None if no change is
        left."""
        assert not self._in_flight, "one request at a time"
        self._queue = {change.name: change for change in self._queue.values() if is_pending(change)}
        if not self._queue:
            return None
        self._in_flight = tuple(self._queue.values())
        return alter_partition_request(self._broker_id, broker_epoch, self._in_flight)

    def failed(self) -> None:
        """Ends a request whose outcome is unknown; its changes stay for the next request. If a controller has already
        made a change, it rejects the retry by its partition epoch.
        """
        self._in_flight = ()

    def answered(self, response: AlterPartitionResponse) -> list[tuple[IsrChange, Verdict]]:
        """Returns the decided changes of the request, and removes them from the queue. A change that is missing in the
        response stays for the next request."""
        in_flight, self._in_flight = self._in_flight, ()
        verdicts = dict(verdicts_of(response))
        decisions = [
            (change, verdict)
            for change in in_flight
            if (verdict := verdicts.get((change.topic_id, change.name.partition))) is not None
        ]
        for change, _ in decisions:
            del self._queue[change.name]
        return decisions


def alter_partition_request(broker_id: int, broker_epoch: int, changes: tuple[IsrChange, ...]) -> AlterPartitionRequest:
    """Returns the request for changes of different partitions, in every version from 2 on: 3 has the brokers' epochs
    (KIP-903)."""
    topics: dict[Uuid, TopicData] = {}
    for change in changes:
        topic = topics.setdefault(change.topic_id, TopicData(topic_id=change.topic_id, partitions=[]))
        partition = PartitionData(
            partition_index=change.name.partition,
            leader_epoch=change.leader_epoch,
            new_isr=[replica.broker_id for replica in change.replicas],
            new_isr_with_epochs=[
                BrokerState(broker_id=replica.broker_id, broker_epoch=replica.broker_epoch)
                for replica in change.replicas
            ],
            partition_epoch=change.partition_epoch,
        )
        topic.partitions.append(partition)
    return AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=list(topics.values()))


def verdicts_of(response: AlterPartitionResponse) -> Iterator[tuple[tuple[Uuid, int], Verdict]]:
    """Yields the verdict on each partition, by topic id and index."""
    for topic in response.topics:
        for partition in topic.partitions:
            code = error_code(partition.error_code)
            key = (topic.topic_id, partition.partition_index)
            yield key, code or CommittedIsr(partition.leader_epoch, partition.partition_epoch, frozenset(partition.isr))
