"""The seams of a coordinator: a shard, what writes its records, and the partition under it.

Source: Kafka's CoordinatorShard, CoordinatorRecordSerde and PartitionWriter (coordinator-common).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Sequence
from typing import Final, Protocol, TypeVar

from coordinator.outcome import Outcome
from protocol.errors import KafkaError
from protocol.types import Buffer

R = TypeVar("R")
E_in = TypeVar("E_in", contravariant=True)
E_out = TypeVar("E_out", covariant=True)
"""Records as a storage takes them: whole batches, or what a storage that gathers makes batches of."""

EXPIRY_RETRY_MS: Final = 1_000
"""How long an expiry waits whose records could not be appended: a full disk, or too few replicas, takes its time."""


class Shard(Protocol[R]):
    """The methods of a shard that the runtime itself calls; its decisions have the shape `Decision`."""

    def apply(self, record: R) -> None:
        """The only writer of durable state: for each new record, and for each one that is loaded."""
        ...

    def expire(self, now_ms: int) -> Outcome[R]:
        """A deadline has passed: more records, more replies."""
        ...

    def next_deadline_ms(self) -> int | None:
        """When `expire` is due; asked after every outcome, so it must be cheap."""
        ...

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """The last `expire` raised, or its records could not be written. The shard sees to it that what was due comes
        again, not too soon; returns when `expire` may be called again."""
        ...

    def tickets(self) -> Iterable[Hashable]:
        """The tickets that its state holds, to be answered by later decisions."""
        ...


class Serde(Protocol[R, E_out]):
    """How a shard's records are written."""

    def encode(self, records: Sequence[R], now_ms: int) -> E_out:
        """All of the records, for the storage. Raises KafkaError for what cannot be written."""
        ...

    def decode(self, batches: Buffer) -> Iterable[R]:
        """The records of whole batches, in order."""
        ...


class Storage(Protocol[E_in]):
    """The partition under a shard."""

    def append(self, encoded: E_in) -> int:
        """Append all or nothing, without waiting for a disk; the offset after the last record. Raises KafkaError.

        It may gather what it is given and write it a little later; if that fails, nothing of it will be committed.
        """
        ...

    def when_committed(self, offset: int, then: Callable[[KafkaError | None], None]) -> None:
        """Call `then` once everything before `offset` is committed: at once if it is, or with the error if it won't be.

        Calls come in the order of the offsets.
        """
        ...

    def read(self) -> AsyncIterator[Buffer]:
        """Everything, from the start of the log to its end, as pieces of whole batches; may await between them."""
        ...

    @property
    def end_offset(self) -> int:
        """The offset behind the last record."""
        ...
