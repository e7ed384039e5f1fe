"""Operations on share group state: decided by the shard on this broker, or sent to another broker with one of the five
requests of share group state (83 to 87).

Source: the handlers of PersisterStateManager (KIP-932).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from coordinator.engine.result import Ticket
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareState
from coordinator.share.shard import ANY_EPOCH, ShareShard, StateWrite, Summary
from protocol.messages import delete_share_group_state as deletes
from protocol.messages import initialize_share_group_state as initializes
from protocol.messages import read_share_group_state as reads
from protocol.messages import read_share_group_state_summary as summaries
from protocol.messages import write_share_group_state as writes
from protocol.types import Uuid

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class StateResult(Protocol):
    """The common fields of all partition results."""

    @property
    def partition(self) -> int: ...

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


class StateOperation(Protocol[A]):
    """An operation on one share partition's state."""

    @property
    def key(self) -> ShareKey: ...

    def decide(self, shard: ShareShard, ticket: Ticket[A], now_ms: int) -> ShareResult:
        """Decides in the shard. Raises KafkaError."""
        ...

    def data(self) -> object:
        """Returns the partition's part of the request."""
        ...

    def answer(self, result: StateResult) -> A:
        """Returns the answer from a partition result of the response."""
        ...


class InitializeState(NamedTuple):
    key: ShareKey
    state_epoch: int
    start_offset: int

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.initialize(self.key, self.state_epoch, self.start_offset, ticket, now_ms)

    def data(self) -> initializes.PartitionData:
        return initializes.PartitionData(
            partition=self.key.partition, state_epoch=self.state_epoch, start_offset=self.start_offset
        )

    def answer(self, result: StateResult) -> None:
        """Returns nothing: the operation is done."""


class ReadState(NamedTuple):
    key: ShareKey
    leader_epoch: int

    def decide(self, shard: ShareShard, ticket: Ticket[ShareState], now_ms: int) -> ShareResult:
        return shard.read(self.key, self.leader_epoch, ticket, now_ms)

    def data(self) -> reads.PartitionData:
        return reads.PartitionData(partition=self.key.partition, leader_epoch=self.leader_epoch)

    def answer(self, result: StateResult) -> ShareState:
        assert isinstance(result, reads.PartitionResult)
        batches = [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in result.state_batches
        ]
        return ShareState(
            snapshot_epoch=0,
            state_epoch=result.state_epoch,
            leader_epoch=self.leader_epoch,
            start_offset=result.start_offset,
            delivery_complete_count=-1,
            created_ms=0,
            written_ms=0,
            batches=tuple(batches),
        )


class WriteState(NamedTuple):
    key: ShareKey
    written: StateWrite

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.write(self.key, self.written, ticket, now_ms)

    def data(self) -> writes.PartitionData:
        state_epoch, leader_epoch, start_offset, delivery_complete_count, batches = self.written
        return writes.PartitionData(
            partition=self.key.partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=delivery_complete_count,
            state_batches=[
                writes.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
                for first, last, state, count in batches
            ],
        )

    def answer(self, result: StateResult) -> None:
        """Returns nothing: the operation is done."""


class ReadSummary(NamedTuple):
    key: ShareKey

    def decide(self, shard: ShareShard, ticket: Ticket[Summary], now_ms: int) -> ShareResult:
        return shard.summary(self.key, ticket, now_ms)

    def data(self) -> summaries.PartitionData:
        return summaries.PartitionData(partition=self.key.partition, leader_epoch=ANY_EPOCH)

    def answer(self, result: StateResult) -> Summary:
        assert isinstance(result, summaries.PartitionResult)
        return Summary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)


class DeleteState(NamedTuple):
    key: ShareKey

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.delete(self.key, ticket, now_ms)

    def data(self) -> deletes.PartitionData:
        return deletes.PartitionData(partition=self.key.partition)

    def answer(self, result: StateResult) -> None:
        """Returns nothing: the operation is done."""


class TopicResults(Protocol[A_co]):
    """The results of a topic in a response."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[A_co]: ...


class StateResponse(Protocol):
    """Any of the five responses."""

    @property
    def results(self) -> Sequence[TopicResults[StateResult]]: ...


class StateMessages(NamedTuple):
    """The messages of an operation, which all have the same shape."""

    request: Callable[..., object]
    topic: Callable[..., object]
    response: type[StateResponse]


MESSAGES: Final[dict[type, StateMessages]] = {
    InitializeState: StateMessages(
        initializes.InitializeShareGroupStateRequest,
        initializes.InitializeStateData,
        initializes.InitializeShareGroupStateResponse,
    ),
    ReadState: StateMessages(reads.ReadShareGroupStateRequest, reads.ReadStateData, reads.ReadShareGroupStateResponse),
    WriteState: StateMessages(
        writes.WriteShareGroupStateRequest, writes.WriteStateData, writes.WriteShareGroupStateResponse
    ),
    ReadSummary: StateMessages(
        summaries.ReadShareGroupStateSummaryRequest,
        summaries.ReadStateSummaryData,
        summaries.ReadShareGroupStateSummaryResponse,
    ),
    DeleteState: StateMessages(
        deletes.DeleteShareGroupStateRequest, deletes.DeleteStateData, deletes.DeleteShareGroupStateResponse
    ),
}
"""The messages of each operation, by its class."""
