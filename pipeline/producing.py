"""Writes records in order, with their partition, headers and timestamp.

Runs on the driver and in Spark's Python workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from pipeline.errors import PipelineError

Headers = Sequence[tuple[str, bytes | None]]

ANY_PARTITION = -1
FLUSH_TIMEOUT_S = 120
ANSWERS_EVERY = 64
"""Number of records between two checks for answers, because a check costs as much as a record."""

COMMIT_EVERY = 20_000
"""Number of records in a transaction. A reader waits for at most this many, and after a crash at most this many are
written again.
"""
TRANSACTION_TIMEOUT_S = 300
"""Longest time that a source may take for the records of a transaction. A writer that died is fenced by the next
writer, long before.
"""

SETTINGS: Mapping[str, str | int | float | bool] = {
    "enable.idempotence": True,  # keeps the order, without duplicates, during retries
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 256 * 1024,
    "partitioner": "murmur2_random",  # the Java client's: all clients put a key into the same partition
    "message.timeout.ms": 60_000,
    "queue.buffering.max.messages": 50_000,
    "log_level": 0,
}


class Outgoing(NamedTuple):
    """A record to be written. `timestamp_ms` is its CreateTime; None uses the time of sending."""

    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int | None
    partition: int = ANY_PARTITION


class Writer:
    """Writes to one topic, in the order of the calls for each partition. Leaving the context waits for all answers.

    Raises PipelineError with topic, partition and the broker's reason if a record was rejected.
    """

    def __init__(self, bootstrap: str, topic: str, properties: Mapping[str, str] | None = None) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._producer = Producer({**SETTINGS, **(properties or {}), "bootstrap.servers": bootstrap})
        self._failure: str | None = None
        self._until_look = ANSWERS_EVERY
        self.acknowledged: dict[int, int] = {}

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._producer.purge()
            return
        left = self._producer.flush(FLUSH_TIMEOUT_S)
        self._raise()
        if left:
            raise PipelineError(f"{self._bootstrap} has not acknowledged {left} records of {self._topic}")

    def write(self, record: Outgoing) -> None:
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value=record.value,
                    key=record.key,
                    partition=record.partition,
                    timestamp=0 if record.timestamp_ms is None else record.timestamp_ms,
                    headers=list(record.headers) or None,
                    on_delivery=self._delivered,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
                self._raise()
            except KafkaException as error:
                raise PipelineError(f"{self._topic}-{record.partition}: {error.args[0].str()}") from None
        self._until_look -= 1
        if not self._until_look:
            self._until_look = ANSWERS_EVERY
            self._producer.poll(0)
            self._raise()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition = message.partition()
        if error is None and partition is not None:
            self.acknowledged[partition] = self.acknowledged.get(partition, 0) + 1
        elif error is not None:
            self._failure = f"{self._bootstrap}: {self._topic}-{partition}: record not written: {error.str()}"

    def _raise(self) -> None:
        if self._failure:
            raise PipelineError(self._failure)


class FencedWriter(Writer):
    """Writes in transactions, as the only writer with its transactional id. Entering the context fences earlier
    writers: their open transactions are aborted, and they can't commit anything, even if they are still running.

    Leaving the context commits the last transaction, or aborts it after an exception.
    """

    def __init__(
        self, bootstrap: str, topic: str, transactional_id: str, properties: Mapping[str, str] | None = None
    ) -> None:
        own = {"transactional.id": transactional_id, "transaction.timeout.ms": str(TRANSACTION_TIMEOUT_S * 1000)}
        super().__init__(bootstrap, topic, {**(properties or {}), **own})
        self._uncommitted = 0

    def __enter__(self) -> FencedWriter:
        with self._explained():
            self._producer.init_transactions(FLUSH_TIMEOUT_S)
            self._producer.begin_transaction()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is None:
            self._commit()
            return
        with suppress(KafkaException):
            self._producer.abort_transaction(FLUSH_TIMEOUT_S)

    def write(self, record: Outgoing) -> None:
        if self._uncommitted == COMMIT_EVERY:
            self._commit()
            with self._explained():
                self._producer.begin_transaction()
            self._uncommitted = 0
        super().write(record)
        self._uncommitted += 1

    def _commit(self) -> None:
        with self._explained():
            self._producer.commit_transaction(FLUSH_TIMEOUT_S)
        self._raise()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            self._raise()
            raise PipelineError(f"{self._bootstrap}: {self._topic}: {error.args[0].str()}") from None


def write_all(writer: Writer, records: Iterable[Outgoing], before_each: Callable[[int], None] | None = None) -> int:
    """Writes the records and returns their number. `before_each` gets the number of records written so far, and may
    wait to keep a pace.
    """
    count = 0
    for record in records:
        if before_each is not None:
            before_each(count)
        writer.write(record)
        count += 1
    return count
