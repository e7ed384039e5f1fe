"""The transaction coordinator's shard: one per partition of `__transaction_state`, with all ids that hash to it.

A transaction ends in two steps. The decision is a record; once that is committed, the marker writer (which asks with
`write_on` for its next work) writes a marker to every partition of the transaction; when all have it, a second record
completes the transaction, and the id is free for its next one. A coordinator that loads a decided transaction writes
all of its markers again, which does no harm. Source: Kafka's TransactionCoordinator and TransactionStateManager.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from coordinator.outcome import Outcome, Reply, Ticket, reply
from coordinator.shard import EXPIRY_RETRY_MS
from coordinator.transaction import decisions
from coordinator.transaction.decisions import NewProducerId
from coordinator.transaction.markers import Markers, Written, markers_of
from coordinator.transaction.records import TransactionRecord, forgotten, written
from coordinator.transaction.settings import RETRY_MS, TransactionSettings
from coordinator.transaction.state import AT_REST, ENDING, State
from coordinator.transaction.transaction import Producer, Transaction, completed, new_transaction
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

TransactionOutcome: TypeAlias = Outcome[TransactionRecord]

MAX_TOMBSTONE_BYTES = 256 * 1024
"""Maximum of ids in a batch of tombstones, so that it stays below max.message.bytes; the remaining expired ids follow
at once."""

NEVER = 1 << 62


class TransactionEnvironment(NamedTuple):
    """The environment of a shard. Its settings and version are read at each use."""

    settings: Callable[[], TransactionSettings]
    transaction_version: Callable[[], int]
    """The cluster's finalized transaction.version."""
    new_producer_id: NewProducerId


class TransactionShard:
    """`coordinator.shard.Shard` of transactional ids."""

    def __init__(self, environment: TransactionEnvironment) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._environment = environment
        self._ongoing: dict[str, None] = {}
        self._without_marker: dict[str, set[TopicPartition]] = {}
        """The markers that decided transactions still need; unlike the rest this isn't durable."""
        self._failed: set[str] = set()
        """Ids of decided transactions whose markers will be tried again."""
        self._under_way: Collection[str] = ()
        """Ids whose markers are written but not committed; the marker writer updates this collection."""
        self._retry_ms = NEVER
        self._writer: Ticket[list[Markers]] | None = None
        self._fault: Exception | None = None
        """The error of a timed-out transaction that could not be aborted, raised once the others are aborted."""
        self._look_for_late_ms = 0
        self._look_for_expired_ms = 0

    # Records

    def apply(self, record: TransactionRecord) -> None:
        """Changes durable state, as no other method does."""
        transactional_id, transaction = record
        self._ongoing.pop(transactional_id, None)
        self._without_marker.pop(transactional_id, None)
        self._failed.discard(transactional_id)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is State.ONGOING:
            self._ongoing[transactional_id] = None
        elif transaction.state in ENDING:
            self._without_marker[transactional_id] = set(transaction.partitions)

    # Requests

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        ticket: Ticket[Producer],
        now_ms: int,
    ) -> TransactionOutcome:
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
        return Outcome([written(after)], [reply(ticket, after.producer)])

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        client_version: int,
        ticket: Ticket[None],
        now_ms: int,
    ) -> TransactionOutcome:
        """Adds partitions to the transaction, or begins it with them. Raises INVALID_REQUEST,
        INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS."""
        transaction = self._existing(transactional_id)
        decisions.check_may_grow(transaction, producer)
        after = decisions.growing(transaction, partitions, client_version, now_ms)
        records = () if after is None else (written(after),)
        return Outcome(records, [reply(ticket, None)])

    def verify_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Collection[TopicPartition],
        ticket: Ticket[frozenset[TopicPartition]],
    ) -> TransactionOutcome:
        """Answers with the partitions that are part of the producer's transaction (KIP-890). Raises as
        `add_partitions`."""
        transaction = self._existing(transactional_id)
        decisions.check_producer(transaction, producer)
        decisions.check_markers_are_written(transaction)
        return Outcome((), [reply(ticket, transaction.partitions.intersection(partitions))])

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        client_version: int,
        ticket: Ticket[Producer],
        now_ms: int,
    ) -> TransactionOutcome:
        """Commits or aborts a transaction; answers with the producer id and epoch to continue with as soon as the
        decision is committed. Raises INVALID_REQUEST, INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
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
        return Outcome((), [answer]) if after is None else self._decided([after], [answer])

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

    def _fence(self, transaction: Transaction, now_ms: int, replies: list[Reply]) -> TransactionOutcome:
        version = self._environment.transaction_version()
        after = decisions.fencing(transaction, version, self._environment.new_producer_id, now_ms)
        return self._decided([after], replies)

    def _decided(self, ending: list[Transaction], replies: list[Reply]) -> TransactionOutcome:
        """Returns the outcome that writes decided transactions, and hands their markers to the marker writer once they
        are committed."""
        if self._writer is not None:
            replies.append(
                reply(self._writer, [markers_of(transaction, transaction.partitions) for transaction in ending])
            )
            self._writer = None
        return Outcome([written(transaction) for transaction in ending], replies)

    def write_on(
        self, done: Written, under_way: Collection[str], ticket: Ticket[list[Markers]], now_ms: int
    ) -> TransactionOutcome:
        """Records written markers; answers the marker writer with the next ones, as soon as there are some.

        Partitions that `done` leaves out failed, and are tried again after RETRY_MS. When the writer starts, or after
        an error, `done` is empty, and the answer has all missing markers. `under_way` are the ids whose markers the
        writer still waits for; it is read now and later, as the writer changes it.
        """
        self._under_way = under_way
        records = self._take_written(done, now_ms)
        work = self._markers_due(now_ms)
        if work:
            return Outcome(records, [reply(ticket, work)])
        self._writer = ticket
        return Outcome(records)

    def markers_written(self, done: Written, ticket: Ticket[None], now_ms: int) -> TransactionOutcome:
        """Records markers that were committed after the writer's last `write_on`; partitions that `done` leaves out
        failed."""
        return Outcome(self._take_written(done, now_ms), [reply(ticket, None)])

    def _take_written(self, done: Written, now_ms: int) -> list[TransactionRecord]:
        for transactional_id, partitions in done.items():
            left = self._without_marker.get(transactional_id)
            if left is not None:
                left.difference_update(partitions)
                if left:
                    self._failed.add(transactional_id)
                    self._retry_ms = min(self._retry_ms, now_ms + RETRY_MS)
        return [
            written(completed(self.transactions[transactional_id], now_ms))
            for transactional_id, left in self._without_marker.items()
            if not left
        ]

    def _markers_due(self, now_ms: int) -> list[Markers]:
        if self._retry_ms <= now_ms:
            self._failed.clear()
            self._retry_ms = NEVER
        return [
            markers_of(self.transactions[transactional_id], left)
            for transactional_id, left in self._without_marker.items()
            if left and transactional_id not in self._failed and transactional_id not in self._under_way
        ]

    # Time

    def next_deadline_ms(self) -> int | None:
        """Returns the time when `expire` is due."""
        deadline_ms = self._retry_ms if self._writer is not None else NEVER
        if self._fault is not None:
            deadline_ms = 0
        if self._ongoing:
            deadline_ms = min(deadline_ms, self._look_for_late_ms)
        if self.transactions:
            deadline_ms = min(deadline_ms, self._look_for_expired_ms)
        return None if deadline_ms == NEVER else deadline_ms

    def expire(self, now_ms: int) -> TransactionOutcome:
        """Tries failed markers again, aborts transactions that have timed out, and removes expired ids."""
        if self._fault is not None:
            fault, self._fault = self._fault, None
            raise fault
        if self._retry_ms <= now_ms and self._writer is not None:
            work, writer = self._markers_due(now_ms), self._writer
            if work:
                self._writer = None
                return Outcome((), [reply(writer, work)])
        if self._ongoing and self._look_for_late_ms <= now_ms:
            return self._abort_late(now_ms)
        if self._look_for_expired_ms <= now_ms:
            return self._forget_idle(now_ms)
        return Outcome()

    def expire_failed(self, error: Exception, now_ms: int) -> int:
        """Decides again on what is due; a transaction that can't be aborted doesn't keep others open."""
        return now_ms + EXPIRY_RETRY_MS

    def tickets(self) -> Iterable[Hashable]:
        """Returns the marker writer's ticket, if it waits."""
        return () if self._writer is None else (self._writer,)

    def _abort_late(self, now_ms: int) -> TransactionOutcome:
        settings = self._environment.settings()
        self._look_for_late_ms = now_ms + settings.transaction_abort_timed_out_transaction_cleanup_interval_ms
        version = self._environment.transaction_version()
        ending: list[Transaction] = []
        for transaction in map(self.transactions.__getitem__, self._ongoing):
            if transaction.started_ms + transaction.timeout_ms < now_ms:
                try:
                    ending.append(decisions.fencing(transaction, version, self._environment.new_producer_id, now_ms))
                except KafkaError:  # no producer id is available: the next check will have one
                    continue
                except Exception as error:
                    self._fault = error
        return self._decided(ending, []) if ending else Outcome()

    def _forget_idle(self, now_ms: int) -> TransactionOutcome:
        settings = self._environment.settings()
        records, size = [], 0
        for transactional_id in self._idle_since(now_ms - settings.transactional_id_expiration_ms):
            records.append(forgotten(transactional_id))
            size += len(transactional_id)
            if size > MAX_TOMBSTONE_BYTES:
                return Outcome(records)
        self._look_for_expired_ms = now_ms + settings.transaction_remove_expired_transaction_cleanup_interval_ms
        return Outcome(records)

    def _idle_since(self, time_ms: int) -> Iterator[str]:
        for transactional_id, transaction in self.transactions.items():
            if transaction.state in AT_REST and transaction.updated_ms <= time_ms:
                yield transactional_id
