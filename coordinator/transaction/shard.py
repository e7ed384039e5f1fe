"""The transaction coordinator's shard: one per partition of `__transaction_state`, with all ids that hash to it.

A transaction ends in two steps. The decision is a record; once that is committed, the marker writer (which asks with
`write_on` for its next work) writes a marker to every partition of the transaction; when all have it, a second record
completes the transaction, and the id is free for its next one. A coordinator that loads a decided transaction writes
all of its markers again, which does no harm. Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple, TypeAlias

from coordinator.engine.machine import EXPIRY_RETRY_MS
from coordinator.engine.result import Reply, Result, Ticket, answered, reply
from coordinator.transaction import decisions
from coordinator.transaction.decisions import NewProducerId
from coordinator.transaction.markers import Markers, Written, markers_of
from coordinator.transaction.records import TransactionRecord, forgotten, written
from coordinator.transaction.settings import RETRY_MS, TransactionSettings
from coordinator.transaction.state import AT_REST, ENDING, State
from coordinator.transaction.transaction import Producer, Transaction, completed, new_transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

TransactionResult: TypeAlias = Result[TransactionRecord]

MAX_TOMBSTONE_BYTES = 256 * 1024
"""Maximum bytes of the ids in a batch of tombstones, so that it stays below max.message.bytes. Other expired ids follow
at once."""

NEVER = 1 << 62


class TransactionEnvironment(NamedTuple):
    """The environment of a shard. Its settings and version are read at each use."""

    settings: Callable[[], TransactionSettings]
    transaction_version: Callable[[], int]
    """The cluster's finalized transaction.version."""
    new_producer_id: NewProducerId


class MarkerProgress(NamedTuple):
    """The progress of the marker writer, which is in no record."""

    failed: frozenset[str] = frozenset()
    """Ids of decided transactions whose markers will be tried again at `retry_ms`."""
    retry_ms: int = NEVER
    under_way: frozenset[str] = frozenset()
    """Ids whose markers are written but not committed."""
    writer: Ticket[list[Markers]] | None = None
    """The marker writer's ticket, if it waits for work."""

    def retried(self, now_ms: int) -> MarkerProgress:
        """Returns the progress in which the failed markers are due again, once their retry time has come."""
        return self._replace(failed=frozenset(), retry_ms=NEVER) if self.retry_ms <= now_ms else self


Missing = Mapping[str, frozenset[TopicPartition]]
"""The markers that decided transactions still need, by transactional id."""


class TransactionShard:
    """`coordinator.engine.machine.Machine` of transactional ids."""

    def __init__(self, environment: TransactionEnvironment) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._environment = environment
        self._ongoing: dict[str, None] = {}
        self._missing: dict[str, frozenset[TopicPartition]] = {}
        """The markers that decided transactions still need; effects reduce them."""
        self._progress = MarkerProgress()
        self._look_for_late_ms = 0
        self._look_for_expired_ms = 0

    # Records

    def apply(self, record: TransactionRecord) -> None:
        """Applies a record; no other method changes durable state."""
        transactional_id, transaction = record
        self._ongoing.pop(transactional_id, None)
        self._missing.pop(transactional_id, None)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is State.ONGOING:
            self._ongoing[transactional_id] = None
        elif transaction.state in ENDING:
            self._missing[transactional_id] = transaction.partitions

    # Requests

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, ticket: Ticket[Producer], now_ms: int
    ) -> TransactionResult:
        """Decides InitProducerId, which fences earlier producers with this id. Raises INVALID_TRANSACTION_TIMEOUT,
        PRODUCER_FENCED, CONCURRENT_TRANSACTIONS, which also answers while an open transaction is aborted first."""
        limit_ms = self._environment.settings().transaction_max_timeout_ms
        if not 0 < timeout_ms <= limit_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"{transactional_id}: a timeout of {timeout_ms} ms is not between 1 and {limit_ms}",
            )
        new_producer_id = self._environment.new_producer_id
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = new_transaction(transactional_id, new_producer_id(), timeout_ms, now_ms)
        decisions.check_may_start(transaction, expected)
        if transaction.state is State.ONGOING:
            aborted = KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS, f"{transactional_id}: its open transaction is aborted first"
            )
            return self._fence(transaction, now_ms, [reply(ticket, aborted)])
        after = decisions.starting(transaction, timeout_ms, expected, new_producer_id, now_ms)
        return answered(ticket, after.producer, [written(after)])

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        client_version: int,
        ticket: Ticket[None],
        now_ms: int,
    ) -> TransactionResult:
        """Adds partitions to the transaction, or begins it with them. Raises INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS."""
        transaction = self._existing(transactional_id)
        decisions.check_may_grow(transaction, producer)
        after = decisions.growing(transaction, partitions, client_version, now_ms)
        records = () if after is None else (written(after),)
        return answered(ticket, None, records)

    def verify_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        ticket: Ticket[frozenset[TopicPartition]],
    ) -> TransactionResult:
        """Answers with the partitions that are part of the producer's transaction (KIP-890). Raises the errors of
        `add_partitions`."""
        transaction = self._existing(transactional_id)
        decisions.check_producer(transaction, producer)
        decisions.check_markers_are_written(transaction)
        return answered(ticket, transaction.partitions.intersection(partitions))

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        client_version: int,
        ticket: Ticket[Producer],
        now_ms: int,
    ) -> TransactionResult:
        """Commits or aborts a transaction. The answer comes as soon as the decision is committed, and has the id and
        epoch with which the producer continues. Raises INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
        CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE."""
        after, next_producer = decisions.ending(
            self._existing(transactional_id),
            producer,
            committed=committed,
            client_version=client_version,
            new_producer_id=self._environment.new_producer_id,
            now_ms=now_ms,
        )
        answer = reply(ticket, next_producer)
        return Result((), [answer]) if after is None else self._decided([after], [answer])

    def _existing(self, transactional_id: str) -> Transaction:
        if not transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f"{transactional_id} has no producer id: the producer must send InitProducerId first",
            )
        return transaction

    # Ends

    def _fence(self, transaction: Transaction, now_ms: int, replies: list[Reply]) -> TransactionResult:
        version = self._environment.transaction_version()
        after = decisions.fencing(transaction, version, self._environment.new_producer_id, now_ms)
        return self._decided([after], replies)

    def _decided(self, ending: list[Transaction], replies: list[Reply]) -> TransactionResult:
        """Returns the result that writes decided transactions, and hands their markers to the marker writer once they
        are committed."""
        records = [written(transaction) for transaction in ending]
        writer = self._progress.writer
        if writer is None:
            return Result(records, replies)
        work = [markers_of(transaction, transaction.partitions) for transaction in ending]
        after = partial(self._note_progress, {}, self._progress._replace(writer=None))
        return Result(records, [*replies, reply(writer, work)], (after,))

    def write_on(
        self, done: Written, under_way: frozenset[str], ticket: Ticket[list[Markers]], now_ms: int
    ) -> TransactionResult:
        """Records written markers; answers the marker writer with the next ones, as soon as there are some.

        Partitions that `done` leaves out failed, and are tried again after RETRY_MS. When the writer starts, or after
        an error, `done` is empty, and the answer has all missing markers. `under_way` are the ids whose markers the
        writer still waits for.
        """
        left, progress = self._reported(done, now_ms)
        progress = progress.retried(now_ms)._replace(under_way=under_way)
        work = self._due(left, progress)
        replies = [reply(ticket, work)] if work else []
        progress = progress._replace(writer=None if work else ticket)
        return Result(self._completed(left, now_ms), replies, (partial(self._note_progress, left, progress),))

    def markers_written(self, done: Written, ticket: Ticket[None], now_ms: int) -> TransactionResult:
        """Records markers that were committed after the writer's last `write_on`; partitions that `done` leaves out
        failed."""
        left, progress = self._reported(done, now_ms)
        progress = progress._replace(under_way=progress.under_way.difference(done))
        after = partial(self._note_progress, left, progress)
        return Result(self._completed(left, now_ms), [reply(ticket, None)], (after,))

    def _reported(self, done: Written, now_ms: int) -> tuple[Missing, MarkerProgress]:
        """Returns the markers that the reported transactions still need, and the progress then."""
        left = {
            transactional_id: self._missing[transactional_id].difference(partitions)
            for transactional_id, partitions in done.items()
            if transactional_id in self._missing
        }
        failed = frozenset(transactional_id for transactional_id, names in left.items() if names)
        progress = self._progress
        if failed:
            retry_ms = min(progress.retry_ms, now_ms + RETRY_MS)
            progress = progress._replace(failed=progress.failed | failed, retry_ms=retry_ms)
        return left, progress

    def _completed(self, left: Missing, now_ms: int) -> list[TransactionRecord]:
        """Returns the records of transactions that need no more markers."""
        return [
            written(completed(self.transactions[transactional_id], now_ms))
            for transactional_id, names in self._missing.items()
            if not left.get(transactional_id, names)
        ]

    def _due(self, left: Missing, progress: MarkerProgress) -> list[Markers]:
        waiting = progress.failed | progress.under_way
        return [
            markers_of(self.transactions[transactional_id], names)
            for transactional_id, before in self._missing.items()
            if transactional_id not in waiting and (names := left.get(transactional_id, before))
        ]

    def _note_progress(self, left: Missing, progress: MarkerProgress) -> None:
        """Stores the progress; an effect. Changes only transactions that still need markers."""
        self._missing.update((name, names) for name, names in left.items() if names)
        self._progress = progress._replace(failed=progress.failed.intersection(self._missing))

    # Time

    def next_deadline_ms(self) -> int | None:
        """Returns the time when `expire` is due."""
        deadline_ms = self._progress.retry_ms if self._progress.writer is not None else NEVER
        if self._ongoing:
            deadline_ms = min(deadline_ms, self._look_for_late_ms)
        if self.transactions:
            deadline_ms = min(deadline_ms, self._look_for_expired_ms)
        return None if deadline_ms == NEVER else deadline_ms

    def expire(self, now_ms: int) -> TransactionResult:
        """Tries failed markers again, aborts transactions that have timed out, and removes expired ids."""
        progress = self._progress.retried(now_ms)
        if progress is not self._progress and progress.writer is not None:
            work = self._due({}, progress)
            replies = [reply(progress.writer, work)] if work else []
            progress = progress._replace(writer=None if work else progress.writer)
            return Result((), replies, (partial(self._note_progress, {}, progress),))
        if self._ongoing and self._look_for_late_ms <= now_ms:
            return self._abort_late(now_ms)
        if self._look_for_expired_ms <= now_ms:
            return self._forget_idle(now_ms)
        return Result()

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Returns the time of the next attempt. After a bug, transactions that have timed out wait for the next regular
        check."""
        if not isinstance(error, KafkaError):
            self._look_for_late_from(now_ms)
        return now_ms + EXPIRY_RETRY_MS

    def _abort_late(self, now_ms: int) -> TransactionResult:
        """Aborts the transactions that have timed out. If no other can be aborted and one fails because of a bug,
        raises its error."""
        version = self._environment.transaction_version()
        ending: list[Transaction] = []
        fault: Exception | None = None
        for transaction in map(self.transactions.__getitem__, self._ongoing):
            if transaction.started_ms + transaction.timeout_ms < now_ms:
                try:
                    ending.append(decisions.fencing(transaction, version, self._environment.new_producer_id, now_ms))
                except KafkaError:  # no producer id is available: the next check will have one
                    continue
                except Exception as error:
                    fault = error
        if ending:
            return self._decided(ending, [])
        if fault is not None:
            raise fault
        return Result((), (), (partial(self._look_for_late_from, now_ms),))

    def _look_for_late_from(self, now_ms: int) -> None:
        interval_ms = self._environment.settings().transaction_abort_timed_out_transaction_cleanup_interval_ms
        self._look_for_late_ms = now_ms + interval_ms

    def _forget_idle(self, now_ms: int) -> TransactionResult:
        settings = self._environment.settings()
        records, size = [], 0
        for transactional_id in self._idle_since(now_ms - settings.transactional_id_expiration_ms):
            records.append(forgotten(transactional_id))
            size += len(transactional_id)
            if size > MAX_TOMBSTONE_BYTES:
                return Result(records)
        return Result(records, (), (partial(self._look_for_expired_from, now_ms),))

    def _look_for_expired_from(self, now_ms: int) -> None:
        interval_ms = self._environment.settings().transaction_remove_expired_transaction_cleanup_interval_ms
        self._look_for_expired_ms = now_ms + interval_ms

    def _idle_since(self, time_ms: int) -> Iterator[str]:
        for transactional_id, transaction in self.transactions.items():
            if transaction.state in AT_REST and transaction.updated_ms <= time_ms:
                yield transactional_id
