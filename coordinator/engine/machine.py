"""The interfaces of an engine: the machine that it runs, the serde of its records, and the partition under it.

Source: Kafka's CoordinatorShard, CoordinatorRecordSerde and PartitionWriter (coordinator-common).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from coordinator.engine.result import Result
from protocol.errors import KafkaError

R = TypeVar("R")
E_in = TypeVar("E_in", contravariant=True)
E_out = TypeVar("E_out", covariant=True)
"""Encoded records: whole batches, or records that a storage gathers into batches."""
P_in = TypeVar("P_in", contravariant=True)
P_out = TypeVar("P_out", covariant=True)
"""A piece of a storage's content: whole batches of a log, or a state."""

EXPIRY_RETRY_MS: Final = 1_000
"""Pause of an expiry whose records could not be appended: a full disk or missing replicas take time to recover."""


class Machine(Protocol[R]):
    """The methods of a state machine that the engine calls; its decisions have the shape `Decision`."""

    def apply(self, record: R) -> None:
        """Applies a new or a loaded record; no other method changes durable state."""
        ...

    def expire(self, now_ms: int) -> Result[R]:
        """Decides on a deadline that has passed; a result without records is followed by the next deadline."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Returns the time when `expire` is due, or a little earlier; called after every result, so it must be
        cheap."""
        ...

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Handles an `expire` that raised, or whose records could not be written: the machine makes its deadlines due
        again, not too soon. Returns the earliest time of the next `expire`."""
        ...


class Restorable(Machine[R], Protocol[R]):
    """A machine whose records are applied before they are appended, so that its log never contains a record that can't
    be applied."""

    def restore(self) -> None:
        """Replaces the state by the committed state and the records that are still in the log, because a write has
        failed."""
        ...


class Serde(Protocol[R, E_out, P_in]):
    """Encodes and decodes a machine's records."""

    def encode(self, records: Sequence[R], now_ms: int) -> E_out:
        """Returns all of the records, encoded for the storage. Raises KafkaError for a record that can't be encoded."""
        ...

    def decode(self, piece: P_in, /) -> Iterable[R]:
        """Returns the records of a piece, in order."""
        ...


class Storage(Protocol[E_in, P_out]):
    """The storage of a machine's records: the log of its partition, or another store."""

    def append(self, encoded: E_in) -> int:
        """Appends all records or none, without waiting for a disk; returns the offset after the last. Raises
        KafkaError.

        It may gather records and write them a little later; if that fails, none of them is committed.
        """
        ...

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Calls `then` once every record before `offset` is committed: at once if it is, or with the error if it can't
        be.

        Calls come in the order of the offsets, except to a machine that is told the outcome of each result.
        """
        ...

    def read(self) -> AsyncIterator[P_out]:
        """Yields the whole content, such as a log from its start to its end, in pieces; may await between them."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset after the last record."""
        ...
