"""What a transactional id's state makes of each request: the next transaction, or the error that the client gets.

Each function takes the transaction as it is and gives the one that is to be written. Source: Kafka's
TransactionCoordinator, as of 4.3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from typing import NamedTuple, TypeAlias

from coordinator.transaction import transaction as steps
from coordinator.transaction.state import AT_REST, ENDING, State
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
"""A producer id that nobody had. Raises KafkaError(COORDINATOR_LOAD_IN_PROGRESS) while there is none at hand."""


# InitProducerId


def starting(
    known: Transaction, timeout_ms: int, expected: Producer | None, new_producer_id: NewProducerId, now_ms: int
) -> Transaction:
    """A producer begins with this id, no transaction being open.

    `expected` is the producer that it was, if it goes on after an error (KIP-360). Raises PRODUCER_FENCED.
    """
    if known.is_epoch_exhausted and expected in (None, known.producer):
        return steps.next_producer_id(
            known, new_producer_id(), timeout_ms, now_ms, keep_last_epoch=expected is not None
        )
    return steps.next_epoch(known, timeout_ms, None if expected is None else expected.epoch, now_ms)


def check_may_start(known: Transaction, expected: Producer | None) -> None:
    """Raises PRODUCER_FENCED unless it is who it says, or was until its epochs ran out; CONCURRENT_TRANSACTIONS while
    the last transaction is still being ended."""
    if expected is not None and not _is_or_was(known, expected):
        raise KafkaError(
            ErrorCode.PRODUCER_FENCED,
            f"{known.transactional_id}: its producer id is {known.producer_id}, not {expected.producer_id}",
        )
    if known.state in ENDING:
        raise _concurrent(known)


def _is_or_was(known: Transaction, expected: Producer) -> bool:
    return (
        known.epoch == NO_EPOCH
        or expected.producer_id == known.producer_id
        or (expected.producer_id == known.previous_producer_id and is_epoch_exhausted(expected.epoch))
    )


# AddPartitionsToTxn, AddOffsetsToTxn


def check_producer(known: Transaction, producer: Producer) -> None:
    """Whoever adds to a transaction is its producer, of this epoch, and the last one is over.

    Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS.
    """
    if known.producer_id != producer.producer_id:
        raise _other_producer(known, producer)
    if known.epoch != producer.epoch:
        raise _fenced(known, producer)
    if known.state in ENDING:
        raise _concurrent(known)


def growing(
    known: Transaction, partitions: Collection[TopicPartition], client_version: int, now_ms: int
) -> Transaction | None:
    """The transaction with these partitions too; None if it has them all."""
    if known.state is State.ONGOING and known.partitions.issuperset(partitions):
        return None
    return steps.with_partitions(known, partitions, client_version, now_ms)


# EndTxn


class Verdict(Enum):
    """What an EndTxn means, in the state that its id is in."""

    END = "end the transaction"
    EMPTY_ABORT = "abort a transaction that no partition ever joined"
    DONE = "it is over already, and so"
    CONCURRENT = "it is being ended, and so"
    INVALID = "there is nothing to end, or it is ended the other way"


END_V1: dict[tuple[State, bool], Verdict] = {
    (State.ONGOING, True): Verdict.END,
    (State.ONGOING, False): Verdict.END,
    (State.PREPARE_COMMIT, True): Verdict.CONCURRENT,
    (State.PREPARE_ABORT, False): Verdict.CONCURRENT,
    (State.COMPLETE_COMMIT, True): Verdict.DONE,
    (State.COMPLETE_ABORT, False): Verdict.DONE,
}
"""(state, committed) → verdict before transactions v2; what is not here is INVALID."""

END_V2: dict[tuple[State, bool, bool], Verdict] = {
    (State.ONGOING, True, False): Verdict.END,
    (State.ONGOING, False, False): Verdict.END,
    (State.PREPARE_COMMIT, True, True): Verdict.CONCURRENT,
    (State.PREPARE_ABORT, False, True): Verdict.CONCURRENT,
    (State.COMPLETE_COMMIT, True, True): Verdict.DONE,
    (State.COMPLETE_ABORT, False, True): Verdict.DONE,
    (State.EMPTY, False, False): Verdict.EMPTY_ABORT,
    (State.COMPLETE_COMMIT, False, False): Verdict.EMPTY_ABORT,
    (State.COMPLETE_ABORT, False, False): Verdict.EMPTY_ABORT,
}
"""(state, committed, by the epoch that the last end bumped) → verdict since then. A client that has written nothing
may abort: it cannot know whether its records arrived, and were added for it."""


class Ending(NamedTuple):
    """The transaction to write, None if there is nothing to do, and what its client goes on with."""

    transaction: Transaction | None
    producer: Producer


def ending(
    known: Transaction,
    producer: Producer,
    *,
    committed: bool,
    client_version: int,
    new_producer_id: NewProducerId,
    now_ms: int,
) -> Ending:
    """A producer ends its transaction. Raises INVALID_PRODUCER_ID_MAPPING, PRODUCER_FENCED, CONCURRENT_TRANSACTIONS,
    INVALID_TXN_STATE."""
    if client_version < V2:
        verdict = _verdict_v1(known, producer, committed)
        next_producer_id = NO_PRODUCER_ID
    else:
        verdict = _verdict_v2(known, producer, committed)
        must_change = known.is_epoch_exhausted and verdict in (Verdict.END, Verdict.EMPTY_ABORT)
        next_producer_id = new_producer_id() if must_change else NO_PRODUCER_ID
    if verdict is Verdict.DONE:
        return Ending(None, known.producer)
    if verdict is Verdict.CONCURRENT:
        raise _concurrent(known)
    if verdict is Verdict.INVALID:
        wanted = "committed" if committed else "aborted"
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE, f"{known.transactional_id} is {known.state.text}: it cannot be {wanted}"
        )
    after = steps.prepared(
        known,
        committed=committed,
        client_version=client_version if client_version >= V2 else 0,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )
    return Ending(after, steps.after_markers(after))


def _verdict_v1(known: Transaction, producer: Producer, committed: bool) -> Verdict:
    if known.producer_id != producer.producer_id:
        raise _other_producer(known, producer)
    if known.epoch != producer.epoch:
        raise _fenced(known, producer)
    return END_V1.get((known.state, committed), Verdict.INVALID)


def _verdict_v2(known: Transaction, producer: Producer, committed: bool) -> Verdict:
    ran_out = (
        known.previous_producer_id == producer.producer_id and producer.epoch == LAST_CLIENT_EPOCH and known.epoch == 0
    )
    if known.producer_id != producer.producer_id and not ran_out:
        raise _other_producer(known, producer)
    bumped = known.epoch == producer.epoch + 1
    if known.state in ENDING:
        is_valid = bumped
    elif known.state in AT_REST and known.state is not State.EMPTY:
        is_valid = bumped or ran_out or known.epoch == producer.epoch
    else:
        is_valid = known.epoch == producer.epoch
    if not is_valid:
        raise _fenced(known, producer)
    return END_V2.get((known.state, committed, bumped or ran_out), Verdict.INVALID)


# Fencing


def fencing(known: Transaction, version: int, new_producer_id: NewProducerId, now_ms: int) -> Transaction:
    """An ongoing transaction is aborted for a newer producer of its id, or because its time is up; `version` is the
    cluster's transaction.version. Raises what `new_producer_id` does."""
    must_change = version >= V2 and known.is_epoch_exhausted
    next_producer_id = new_producer_id() if must_change else NO_PRODUCER_ID
    return steps.fenced(known, version, next_producer_id, now_ms)


def _other_producer(known: Transaction, producer: Producer) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        f"{known.transactional_id} has producer id {known.producer_id}, not {producer.producer_id}",
    )


def _fenced(known: Transaction, producer: Producer) -> KafkaError:
    return KafkaError(
        ErrorCode.PRODUCER_FENCED,
        f"{known.transactional_id}: producer {known.producer_id} is at epoch {known.epoch}, not at {producer.epoch}",
    )


def _concurrent(known: Transaction) -> KafkaError:
    return KafkaError(
        ErrorCode.CONCURRENT_TRANSACTIONS, f"{known.transactional_id} is {known.state.text}: markers are being written"
    )
