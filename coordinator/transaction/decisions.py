"""Decides requests by a transactional id's state: returns the next transaction, or raises the client's error.

Each function takes the present transaction and returns the transaction to write. Source: Kafka's
TransactionCoordinator, as of 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import NamedTuple, TypeAlias

from coordinator.transaction import transaction as steps
from coordinator.transaction.state import ENDING, State
from coordinator.transaction.transaction import (
    LAST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    V2,
    Producer,
    Transaction,
    is_epoch_exhausted,
)
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

NewProducerId: TypeAlias = Callable[[], int]
"""Returns an unused producer id. Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while none is available."""


# InitProducerId


def starting(
    transaction: Transaction, timeout_ms: int, expected: Producer | None, new_producer_id: NewProducerId, now_ms: int
) -> Transaction:
    """Returns the transaction after a producer begins with this id, if no transaction is open.

    `expected` is the producer's earlier identity if it continues after an error (KIP-360). Raises PRODUCER_FENCED.
    """
    if transaction.is_epoch_exhausted and expected in (None, transaction.producer):
        return steps.next_producer_id(
            transaction, new_producer_id(), timeout_ms, now_ms, keep_last_epoch=expected is not None
        )
    return steps.next_epoch(transaction, timeout_ms, None if expected is None else expected.epoch, now_ms)


def check_may_start(transaction: Transaction, expected: Producer | None) -> None:
    """Raises CONCURRENT_TRANSACTIONS while markers are being written, or PRODUCER_FENCED if another producer has the
    id."""
    check_markers_are_written(transaction)
    if expected is not None and not _is_or_was(transaction, expected):
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"{transaction.transactional_id}: its producer id is {transaction.producer_id}, not {expected.producer_id}",
        )


def _is_or_was(transaction: Transaction, expected: Producer) -> bool:
    return (
        transaction.epoch == NO_EPOCH
        or expected.producer_id == transaction.producer_id
        or (expected.producer_id == transaction.previous_producer_id and is_epoch_exhausted(expected.epoch))
    )


# AddPartitionsToTxn, AddOffsetsToTxn


def check_may_grow(transaction: Transaction, producer: Producer) -> None:
    """Raises CONCURRENT_TRANSACTIONS while markers are being written, or else the errors of `check_producer`.

    The order is Kafka's: the answer to EndTxn gives the client the producer id and epoch of its next transaction, and
    the transaction has them only when all markers are written.
    """
    check_markers_are_written(transaction)
    check_producer(transaction, producer)


def check_producer(transaction: Transaction, producer: Producer) -> None:
    """Raises INVALID_PRODUCER_ID_MAPPING or PRODUCER_FENCED unless this is the transaction's producer id and epoch."""
    if transaction.producer_id != producer.producer_id:
        raise _other_producer(transaction, producer)
    if transaction.epoch != producer.epoch:
        raise _fenced(transaction, producer)


def check_markers_are_written(transaction: Transaction) -> None:
    """Raises CONCURRENT_TRANSACTIONS while the markers of the ended transaction are being written."""
    if transaction.state in ENDING:
        raise KafkaError(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"{transaction.transactional_id} is {transaction.state.text}: markers are being written",
        )


def growing(
    transaction: Transaction, partitions: Collection[TopicPartition], client_version: int, now_ms: int
) -> Transaction | None:
    """Returns the transaction with these partitions added; None if it has them all."""
    if transaction.state is State.ONGOING and transaction.partitions.issuperset(partitions):
        return None
    return steps.with_partitions(transaction, partitions, client_version, now_ms)


# EndTxn


class Verdict(Enum):
    """The meaning of an EndTxn in the present state of its transactional id."""

    END = "end the transaction"
    EMPTY_ABORT = "abort a transaction that no partition ever joined"
    DONE = "it has already ended as requested"
    INVALID = "there is no transaction to end, or it ends with the other result"


END_V1: dict[tuple[State, bool], Verdict] = {
    (State.ONGOING, True): Verdict.END,
    (State.ONGOING, False): Verdict.END,
    (State.COMPLETE_COMMIT, True): Verdict.DONE,
    (State.COMPLETE_ABORT, False): Verdict.DONE,
}
"""(state, committed) → verdict before transactions v2; other combinations are INVALID."""

END_V2: dict[tuple[State, bool, bool], Verdict] = {
    (State.ONGOING, True, False): Verdict.END,
    (State.ONGOING, False, False): Verdict.END,
    (State.COMPLETE_COMMIT, True, True): Verdict.DONE,
    (State.COMPLETE_ABORT, False, True): Verdict.DONE,
    (State.EMPTY, False, False): Verdict.EMPTY_ABORT,
    (State.COMPLETE_COMMIT, False, False): Verdict.EMPTY_ABORT,
    (State.COMPLETE_ABORT, False, False): Verdict.EMPTY_ABORT,
}
"""(state, committed, is a retry with the epoch from before the last end) → verdict since transactions v2. A client may
abort although no partition is in the transaction: it can't know if its records arrived and added one."""


class Ending(NamedTuple):
    """The transaction to write, None for no change, and the producer id and epoch that the client continues with."""

    transaction: Transaction | None
    producer: Producer


def ending(
    transaction: Transaction,
    producer: Producer,
    *,
    committed: bool,
    client_version: int,
    new_producer_id: NewProducerId,
    now_ms: int,
) -> Ending:
    """Returns the transaction after EndTxn. Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED,
    CONCURRENT_TRANSACTIONS, INVALID_TXN_STATE."""
    if client_version < V2:
        verdict = _verdict_v1(transaction, producer, committed)
        next_producer_id = NO_PRODUCER_ID
    else:
        verdict = _verdict_v2(transaction, producer, committed)
        must_change = transaction.is_epoch_exhausted and verdict in (Verdict.END, Verdict.EMPTY_ABORT)
        next_producer_id = new_producer_id() if must_change else NO_PRODUCER_ID
    if verdict is Verdict.DONE:
        return Ending(None, transaction.producer)
    if verdict is Verdict.INVALID:
        outcome = "committed" if committed else "aborted"
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"{transaction.transactional_id} is {transaction.state.text}: it cannot be {outcome}",
        )
    after = steps.prepared(
        transaction,
        committed=committed,
        client_version=client_version if client_version >= V2 else 0,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )
    return Ending(after, steps.after_markers(after))


def _verdict_v1(transaction: Transaction, producer: Producer, committed: bool) -> Verdict:
    check_producer(transaction, producer)
    check_markers_are_written(transaction)
    return END_V1.get((transaction.state, committed), Verdict.INVALID)


def _verdict_v2(transaction: Transaction, producer: Producer, committed: bool) -> Verdict:
    check_markers_are_written(transaction)
    ran_out = (
        transaction.previous_producer_id == producer.producer_id
        and producer.epoch == LAST_CLIENT_EPOCH
        and transaction.epoch == 0
    )
    if transaction.producer_id != producer.producer_id and not ran_out:
        raise _other_producer(transaction, producer)
    bumped = transaction.epoch == producer.epoch + 1
    is_retry = bumped or ran_out
    has_ended = transaction.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
    if transaction.epoch != producer.epoch and not (has_ended and is_retry):
        raise _fenced(transaction, producer)
    return END_V2.get((transaction.state, committed, is_retry), Verdict.INVALID)


# Fencing


def fencing(transaction: Transaction, version: int, new_producer_id: NewProducerId, now_ms: int) -> Transaction:
    """Returns an ongoing transaction's abort, for a newer producer of its id or because of its timeout; `version` is
    the cluster's transaction.version. Raises the errors of `new_producer_id`."""
    must_change = version >= V2 and transaction.is_epoch_exhausted
    next_producer_id = new_producer_id() if must_change else NO_PRODUCER_ID
    return steps.fenced(transaction, version, next_producer_id, now_ms)


def _other_producer(transaction: Transaction, producer: Producer) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{transaction.transactional_id} has producer id {transaction.producer_id}, not {producer.producer_id}",
    )


def _fenced(transaction: Transaction, producer: Producer) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"{transaction.transactional_id}: producer {transaction.producer_id} is at epoch {transaction.epoch}, "
        f"not at {producer.epoch}",
    )
