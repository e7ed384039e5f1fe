"""Operations on share group state: decided by the shard on this broker, or sent to another broker with one of the five
requests of share group state (83 to 87). An operation has its part of the messages in both directions, so that the
persister and the handlers of the requests share it.

Source: the handlers of PersisterStateManager, whose requests also have one group each (KIP-932).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, Protocol, Self, TypeVar

from coordinator.engine.result import Ticket
from coordinator.share.batches import StateBatch
from coordinator.share.key import ShareKey
from coordinator.share.records import ShareResult, ShareState
from coordinator.share.shard import ANY_EPOCH, ShareShard, StateWrite, Summary
from protocol.errors import ErrorCode, KafkaError
from protocol.messages import delete_share_group_state as deletes
from protocol.messages import initialize_share_group_state as initializes
from protocol.messages import read_share_group_state as reads
from protocol.messages import read_share_group_state_summary as summaries
from protocol.messages import write_share_group_state as writes
from protocol.types import Uuid

A = TypeVar("A")
P_co = TypeVar("P_co", covariant=True)

MAX_STATE_BATCHES: Final = 20_000
"""Maximum number of a partition's state batches. A share partition has at most 10,000 records in flight
(`group.share.partition.max.record.locks`), and the rest of the batch that was acquired last."""


class StateData(Protocol):
    """A partition of a request."""

    @property
    def partition(self) -> int: ...


class StateResult(Protocol):
    """The common fields of the partitions of all responses."""

    partition: int
    error_code: int
    error_message: str | None


class StateTopic(Protocol[P_co]):
    """A topic of a request or a response."""

    @property
    def topic_id(self) -> Uuid: ...

    @property
    def partitions(self) -> Sequence[P_co]: ...


class StateRequest(Protocol):
    """Any of the five requests."""

    @property
    def group_id(self) -> str: ...

    @property
    def topics(self) -> Sequence[StateTopic[StateData]]: ...


class StateResponse(Protocol):
    """Any of the five responses."""

    @property
    def results(self) -> Sequence[StateTopic[StateResult]]: ...


class StateMessages(NamedTuple):
    """The messages of an operation, which all have the same shape."""

    request: Callable[..., object]
    topic: Callable[..., object]
    response: Callable[..., StateResponse]
    topic_result: Callable[..., object]
    result: Callable[..., StateResult]


@dataclass(frozen=True, slots=True)
class StateOperation(ABC, Generic[A]):
    """An operation on one share partition's state."""

    key: ShareKey

    @classmethod
    @abstractmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        """Returns the operation that a partition of a request asks for. Raises INVALID_REQUEST."""

    @abstractmethod
    def data(self) -> StateData:
        """Returns the partition of a request."""

    @abstractmethod
    def decide(self, shard: ShareShard, ticket: Ticket[A], now_ms: int) -> ShareResult:
        """Decides in the shard. Raises KafkaError."""

    def after(self, last: StateWrite | None) -> StateOperation[A]:
        """Returns the operation as it is performed after this last write of the share partition."""
        return self

    @abstractmethod
    def unstored(self) -> A:
        """Returns the answer if states are not stored."""

    @abstractmethod
    def fill(self, result: StateResult, answer: A) -> None:
        """Sets the answer in a partition of a response."""

    @abstractmethod
    def answer(self, result: StateResult) -> A:
        """Returns the answer from a partition of a response."""


class StateChange(StateOperation[None]):
    """An operation whose answer has no data: it only confirms that the change is stored."""

    __slots__ = ()

    def unstored(self) -> None: ...

    def fill(self, result: StateResult, answer: None) -> None: ...

    def answer(self, result: StateResult) -> None: ...


@dataclass(frozen=True, slots=True)
class InitializeState(StateChange):
    """Writes an initial state. With start offset -1, the group's reset strategy decides the start offset."""

    state_epoch: int
    start_offset: int

    @classmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        assert isinstance(data, initializes.PartitionData)
        return cls(key, data.state_epoch, data.start_offset)

    def data(self) -> initializes.PartitionData:
        return initializes.PartitionData(
            partition=self.key.partition, state_epoch=self.state_epoch, start_offset=self.start_offset
        )

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.initialize(self.key, self.state_epoch, self.start_offset, ticket, now_ms)


@dataclass(frozen=True, slots=True)
class ReadState(StateOperation[ShareState]):
    """Reads the state, and fences writes of earlier leaders of the partition."""

    leader_epoch: int

    @classmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        assert isinstance(data, reads.PartitionData)
        return cls(key, data.leader_epoch)

    def data(self) -> reads.PartitionData:
        return reads.PartitionData(partition=self.key.partition, leader_epoch=self.leader_epoch)

    def decide(self, shard: ShareShard, ticket: Ticket[ShareState], now_ms: int) -> ShareResult:
        return shard.read(self.key, self.leader_epoch, ticket, now_ms)

    def unstored(self) -> ShareState:
        return ShareState(0, 0, self.leader_epoch, -1, -1, 0, 0)

    def fill(self, result: StateResult, answer: ShareState) -> None:
        assert isinstance(result, reads.PartitionResult)
        result.state_epoch, result.start_offset = answer.state_epoch, answer.start_offset
        result.state_batches = [
            reads.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in answer.batches
        ]

    def answer(self, result: StateResult) -> ShareState:
        assert isinstance(result, reads.PartitionResult)
        return self.unstored()._replace(
            state_epoch=result.state_epoch,
            start_offset=result.start_offset,
            batches=tuple(
                StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
                for batch in result.state_batches
            ),
        )


async def stored_batches(
    read: Callable[[], Awaitable[ShareState]], begin: Callable[[ShareState], None]
) -> AsyncIterator[Sequence[StateBatch]]:
    """Yields the batches of the stored state, once `begin` has applied the rest of it. Raises KafkaError."""
    state = await read()
    begin(state)
    yield state.batches


@dataclass(frozen=True, slots=True)
class WriteState(StateChange):
    """Writes a change of the state."""

    written: StateWrite

    @classmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        assert isinstance(data, writes.PartitionData)
        if len(data.state_batches) > MAX_STATE_BATCHES:
            message = f"{len(data.state_batches)} state batches: at most {MAX_STATE_BATCHES} are allowed"
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)
        batches = [
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
            for batch in data.state_batches
        ]
        written = StateWrite(
            data.state_epoch, data.leader_epoch, data.start_offset, data.delivery_complete_count, batches
        )
        return cls(key, written)

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

    def after(self, last: StateWrite | None) -> WriteState:
        """Returns the write with the start offset of the last one, if both are of the same leader: it may be higher."""
        written = self.written
        if last is None or (last.state_epoch, last.leader_epoch) != (written.state_epoch, written.leader_epoch):
            return self
        start_offset, count = last.start_offset, last.delivery_complete_count
        return WriteState(self.key, written._replace(start_offset=start_offset, delivery_complete_count=count))

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.write(self.key, self.written, ticket, now_ms)


@dataclass(frozen=True, slots=True)
class ReadSummary(StateOperation[Summary]):
    """Reads the state's epochs, start offset and delivery-complete count."""

    @classmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        return cls(key)

    def data(self) -> summaries.PartitionData:
        return summaries.PartitionData(partition=self.key.partition, leader_epoch=ANY_EPOCH)

    def decide(self, shard: ShareShard, ticket: Ticket[Summary], now_ms: int) -> ShareResult:
        return shard.summary(self.key, ticket, now_ms)

    def unstored(self) -> Summary:
        return Summary()

    def fill(self, result: StateResult, answer: Summary) -> None:
        assert isinstance(result, summaries.PartitionResult)
        result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count = answer

    def answer(self, result: StateResult) -> Summary:
        assert isinstance(result, summaries.PartitionResult)
        return Summary(result.state_epoch, result.leader_epoch, result.start_offset, result.delivery_complete_count)


@dataclass(frozen=True, slots=True)
class DeleteState(StateChange):
    """Deletes the state."""

    @classmethod
    def of(cls, key: ShareKey, data: StateData) -> Self:
        return cls(key)

    def data(self) -> deletes.PartitionData:
        return deletes.PartitionData(partition=self.key.partition)

    def decide(self, shard: ShareShard, ticket: Ticket[None], now_ms: int) -> ShareResult:
        return shard.delete(self.key, ticket, now_ms)


MESSAGES: Final[dict[type, StateMessages]] = {
    InitializeState: StateMessages(
        initializes.InitializeShareGroupStateRequest,
        initializes.InitializeStateData,
        initializes.InitializeShareGroupStateResponse,
        initializes.InitializeStateResult,
        initializes.PartitionResult,
    ),
    ReadState: StateMessages(
        reads.ReadShareGroupStateRequest,
        reads.ReadStateData,
        reads.ReadShareGroupStateResponse,
        reads.ReadStateResult,
        reads.PartitionResult,
    ),
    WriteState: StateMessages(
        writes.WriteShareGroupStateRequest,
        writes.WriteStateData,
        writes.WriteShareGroupStateResponse,
        writes.WriteStateResult,
        writes.PartitionResult,
    ),
    ReadSummary: StateMessages(
        summaries.ReadShareGroupStateSummaryRequest,
        summaries.ReadStateSummaryData,
        summaries.ReadShareGroupStateSummaryResponse,
        summaries.ReadStateSummaryResult,
        summaries.PartitionResult,
    ),
    DeleteState: StateMessages(
        deletes.DeleteShareGroupStateRequest,
        deletes.DeleteStateData,
        deletes.DeleteShareGroupStateResponse,
        deletes.DeleteStateResult,
        deletes.PartitionResult,
    ),
}
"""The messages of each operation, by its class."""
