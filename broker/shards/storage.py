"""A partition's log as a coordinator's shard writes it: records are gathered into few batches, and the shard is called
back when they are committed.

A shard continues at once; its records are appended at the end of the event loop's turn, after the linger time, or when
a batch is full. If that fails, the shard is unloaded and loaded again from the log. Source: CoordinatorRuntime's
batches (KAFKA-16780, append.linger.ms).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from broker.clock import Clock
from broker.replica.partition import Partition
from broker.shards.reading import everything
from protocol.errors import ErrorCode, KafkaError
from protocol.records import batch
from protocol.types import Buffer
from storage.producers.entry import Origin

ADAPTIVE_LINGER: Final = -1
"""The linger time that adapts to the load: records are gathered until the end of the event loop's turn, while other
requests are ready."""

Committed = Callable[[KafkaError | None], None]


class Sized(Protocol):
    """A record ready to go into a batch."""

    @property
    def size_bytes(self) -> int: ...

    @property
    def at_once(self) -> bool:
        """True if the record must not be gathered with others, because the log may reject it, as it rejects a fenced
        producer's record."""
        ...


E = TypeVar("E", bound=Sized)


class PartitionStorage(Generic[E]):
    """`coordinator.engine.machine.Storage` on a partition that this broker leads, in one leader epoch: a decision that
    was made on the state of one epoch isn't written in another."""

    def __init__(
        self,
        partition: Partition,
        batches: Callable[[Sequence[E]], bytearray],
        clock: Clock,
        linger_ms: Callable[[], int] | None,
    ) -> None:
        """`batches` packs records into whole batches; `linger_ms` is called for each batch, and None gathers
        nothing."""
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self._batches = batches
        self._clock = clock
        self._linger_ms = linger_ms
        self._gathered: list[E] = []
        self._gathered_bytes = 0
        self._waiting: list[tuple[int, Committed]] = []
        """Callbacks of the gathered records, by offset."""
        self._failure: KafkaError | None = None

    def append(self, encoded: Sequence[E]) -> int:
        """Appends or gathers records, and returns the offset after the last record. Raises the error of an earlier
        write, NOT_ENOUGH_REPLICAS, NOT_LEADER_OR_FOLLOWER, and the log's errors for records that are written at
        once."""
        self._raise_failure()
        if not self.partition.is_alone:
            self.partition.check_in_sync()
        size = 0
        for record in encoded:
            size += record.size_bytes
        limit = self.partition.config.max_message_bytes - batch.HEADER_SIZE
        if self._gathered and self._gathered_bytes + size > limit:
            self.flush()
            self._raise_failure()
        if self._linger_ms is None or encoded[0].at_once:
            return self._append_now(encoded)
        self._gathered += encoded
        self._gathered_bytes += size
        if len(self._gathered) == len(encoded):
            self._schedule()
        return self.end_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last record, gathered records included."""
        return self.partition.log_end_offset + len(self._gathered)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self.partition.leader_epoch != self.leader_epoch:
            raise self.partition.moved(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _append_now(self, encoded: Sequence[E]) -> int:
        self.flush()
        self._raise_failure()
        self._write(encoded)
        return self.partition.log_end_offset

    def _schedule(self) -> None:
        linger_ms = ADAPTIVE_LINGER if self._linger_ms is None else self._linger_ms()
        if linger_ms > 0:
            self._clock.call_after(linger_ms, self.flush)
        else:
            asyncio.get_running_loop().call_soon(self.flush)

    def when_committed(self, offset: int, then: Committed) -> None:
        """Calls `then` once every record before the offset is committed, or with an error if it can't be."""
        if self._failure is not None:
            then(self._failure)
        elif offset > self.partition.log_end_offset:
            self._waiting.append((offset, then))
        else:
            self.partition.when_committed(offset, then)

    def flush(self) -> None:
        """Writes gathered records; their callbacks are called when they are committed, or now if the write failed."""
        if not self._gathered:
            return
        gathered, self._gathered, self._gathered_bytes = self._gathered, [], 0
        try:
            self._write(gathered)
        except KafkaError as error:
            self._failure = error
        except Exception as fault:
            self._failure = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(fault))
        self._pass_on()

    def abandon(self, error: KafkaError) -> None:
        """Drops the gathered records of a shard that is unloaded: another leader may not know them."""
        self._gathered, self._gathered_bytes = [], 0
        self._failure = error
        self._pass_on()

    def _pass_on(self) -> None:
        """Passes the callbacks of gathered records to their commit, or the failure to the callbacks."""
        waiting, self._waiting = self._waiting, []
        for offset, then in waiting:
            if self._failure is not None:
                then(self._failure)
            else:
                self.partition.when_committed(offset, then)

    def _write(self, encoded: Sequence[E]) -> None:
        self._raise_failure()
        batches = memoryview(self._batches(encoded))
        self.partition.append(batches, self._clock.now_ms(), Origin.COORDINATOR)

    def read(self) -> AsyncIterator[Buffer]:
        """Yields the log from its start to its end, with a turn of the event loop between pieces."""
        return everything(self.partition)
