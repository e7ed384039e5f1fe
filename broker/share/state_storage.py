"""The storage of a share partition's records: the persister writes them to the share coordinator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

from broker.share.persister import Persister
from coordinator.share.batches import NO_START_OFFSET
from coordinator.share.key import ShareKey
from coordinator.share.shard import StateWrite
from coordinator.share_partition.run import StateRecord
from coordinator.share_partition.share_partition import SharePartition
from protocol.errors import ErrorCode, KafkaError


class StateStorage:
    """`coordinator.engine.machine.Storage` and `Serde` of a share partition, in one leader epoch."""

    def __init__(
        self,
        key: ShareKey,
        leader_epoch: int,
        persister: Persister,
        machine: SharePartition,
        initial_offset: Callable[[], int],
    ) -> None:
        """`initial_offset` returns the start offset of a group without one."""
        self._key = key
        self._leader_epoch = leader_epoch
        self._state_epoch = 0
        self._persister = persister
        self._machine = machine
        self._initial_offset = initial_offset
        self._record: StateRecord = ()
        """The record to write next."""
        self.end_offset = 0
        """The number of records."""

    async def read(self) -> AsyncIterator[StateRecord]:
        """Yields the stored state, once the start offset is set. Raises KafkaError."""
        state = await self._persister.read(self._key, self._leader_epoch)
        self._state_epoch = state.state_epoch
        is_new = state.start_offset == NO_START_OFFSET
        self._machine.begin_at(self._initial_offset() if is_new else state.start_offset)
        yield state.batches

    def decode(self, record: StateRecord) -> tuple[StateRecord]:
        return (record,)

    def encode(self, records: Sequence[StateRecord], now_ms: int) -> StateRecord:
        (record,) = records
        return record

    def append(self, record: StateRecord) -> int:
        """Accepts a record, which is written once its changes are begun: the start offset and the delivery-complete
        count are written with it."""
        self._record = record
        self.end_offset += 1
        return self.end_offset

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Writes the accepted record, and calls `then` once it is durable, or with its error."""
        start_offset, count = self._machine.start_offset, self._machine.delivery_complete_count
        written = StateWrite(self._state_epoch, self._leader_epoch, start_offset, count, self._record)
        try:
            write = self._persister.write(self._key, written)
        except KafkaError as error:
            then(error)
            return
        if write.done():
            then(error_of(write))
        else:
            write.add_done_callback(lambda done: then(error_of(done)))


def error_of(write: asyncio.Future[None]) -> KafkaError | None:
    """Returns the error of a completed write; None if it succeeded."""
    error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if write.cancelled() else write.exception()
    assert error is None or isinstance(error, KafkaError), repr(error)
    return error
