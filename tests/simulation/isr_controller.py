"""A model of the controller for the ISR of one partition: registrations, elections, AlterPartition.

It decides at once, by the rules of Kafka's ReplicationControlManager; brokers learn its decisions late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from coordinator.cluster.topics.topic import NO_LEADER, PartitionRegistration
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    ResponsePartitionData,
    ResponseTopicData,
)

ANY_EPOCH = -1


class RegisteredBroker(NamedTuple):
    """A broker in the model."""

    epoch: int
    fenced: bool


class ClusterState(NamedTuple):
    """All metadata, as of one record."""

    brokers: dict[int, RegisteredBroker]
    partition: PartitionRegistration


class ControllerModel:
    """Has every state that ever existed, in order."""

    def __init__(self, broker_ids: tuple[int, ...]) -> None:
        self.history = [ClusterState({}, PartitionRegistration(broker_ids, broker_ids, NO_LEADER))]
        self.changed: Callable[[], None] = lambda: None
        self._epochs = 0

    @property
    def state(self) -> ClusterState:
        return self.history[-1]

    def _put(self, **fields: object) -> None:
        self.history.append(self.state._replace(**fields))  # type: ignore[arg-type]
        self.changed()

    def _alter(self, **fields: object) -> None:
        partition = self.state.partition
        changed = partition._replace(partition_epoch=partition.partition_epoch + 1, **fields)  # type: ignore[arg-type]
        if changed.leader != partition.leader:
            changed = changed._replace(leader_epoch=partition.leader_epoch + 1)
        self._put(partition=changed)

    def _is_alive(self, broker_id: int) -> bool:
        broker = self.state.brokers.get(broker_id)
        return broker is not None and not broker.fenced

    def _departed(self, broker_id: int) -> None:
        """Returns the partition after a broker was fenced: it leaves the ISR unless it is the last replica there, and
        no longer leads."""
        partition = self.state.partition
        isr = tuple(other for other in partition.isr if other != broker_id) or partition.isr
        leader = partition.leader
        if leader == broker_id:
            leader = next((other for other in isr if other != broker_id and self._is_alive(other)), NO_LEADER)
        if (isr, leader) != (partition.isr, partition.leader):
            self._alter(isr=isr, leader=leader)

    def register(self, broker_id: int) -> int:
        """Returns the epoch of a broker that has started."""
        self._epochs += 1
        self._put(brokers={**self.state.brokers, broker_id: RegisteredBroker(self._epochs, fenced=True)})
        self._departed(broker_id)
        return self._epochs

    def fence(self, broker_id: int) -> None:
        """Fences a broker whose session has ended."""
        broker = self.state.brokers[broker_id]
        self._put(brokers={**self.state.brokers, broker_id: broker._replace(fenced=True)})
        self._departed(broker_id)

    def unfence(self, broker_id: int) -> None:
        """Unfences a broker that has caught up; it leads if no other broker can."""
        broker = self.state.brokers[broker_id]
        self._put(brokers={**self.state.brokers, broker_id: broker._replace(fenced=False)})
        partition = self.state.partition
        if partition.leader == NO_LEADER and broker_id in partition.isr:
            self._alter(leader=broker_id)

    def elect(self, broker_id: int) -> None:
        """Elects another in-sync replica as the leader."""
        partition = self.state.partition
        if broker_id != partition.leader and broker_id in partition.isr and self._is_alive(broker_id):
            self._alter(leader=broker_id)

    def touch(self) -> None:
        """Changes only the partition epoch, as a new log directory does."""
        self._alter()

    def alter_partition(self, request: AlterPartitionRequest) -> AlterPartitionResponse:
        """Applies the request, or returns the error."""
        if request.broker_epoch != self.state.brokers[request.broker_id].epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        (topic,) = request.topics
        (proposed,) = topic.partitions
        code = self._refusal(request.broker_id, proposed)
        if not code and sorted(proposed.new_isr) != sorted(self.state.partition.isr):
            self._alter(isr=tuple(proposed.new_isr))
        partition = self.state.partition
        answer = ResponsePartitionData(
            partition_index=proposed.partition_index,
            error_code=code,
            leader_id=0,
            leader_epoch=0,
            isr=[],
            partition_epoch=0,
        )
        if not code:
            answer.leader_id, answer.leader_epoch = partition.leader, partition.leader_epoch
            answer.isr, answer.partition_epoch = list(partition.isr), partition.partition_epoch
        return AlterPartitionResponse(
            topics=[ResponseTopicData(topic_id=topic.topic_id, partitions=[answer])], error_code=0
        )

    def _refusal(self, broker_id: int, proposed: PartitionData) -> ErrorCode:
        partition = self.state.partition
        if proposed.leader_epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if broker_id != partition.leader or proposed.leader_epoch > partition.leader_epoch:
            return ErrorCode.INVALID_REQUEST
        if proposed.partition_epoch != partition.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        for replica in proposed.new_isr_with_epochs:
            broker = self.state.brokers.get(replica.broker_id)
            if broker is None or broker.fenced or replica.broker_epoch not in (ANY_EPOCH, broker.epoch):
                return ErrorCode.INELIGIBLE_REPLICA
        return ErrorCode.NONE
