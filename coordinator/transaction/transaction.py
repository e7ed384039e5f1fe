"""A transactional id's producer and transaction, and all their steps: each function returns the next value.

With transactions v2 (KIP-890), each end of a transaction bumps the producer's epoch; an older client keeps its epoch.
Source: org.apache.kafka.coordinator.transaction.TransactionMetadata, as of 4.3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator.transaction.state import AT_REST, FOLLOWS, State
from protocol.errors import ErrorCode, KafkaError
from protocol.types import TopicPartition

NO_PRODUCER_ID = -1
NO_EPOCH = -1
NO_TIMESTAMP = -1
MAX_EPOCH: Final = 0x7FFF
LAST_CLIENT_EPOCH = MAX_EPOCH - 1
"""The highest epoch of a client, so that one higher epoch is always left for fencing."""

V2: Final = 2
"""The transaction.version from which on transactions end with a new epoch."""


class Producer(NamedTuple):
    """The identity of a producer."""

    producer_id: int
    epoch: int


class Transaction(NamedTuple):
    """The state of one transactional id."""

    transactional_id: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: State
    updated_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last step, which is usually the same."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the markers are written, if the present id's epochs are exhausted."""
    last_epoch: int = NO_EPOCH
    """The epoch before the current one, if its producer may still retry with it. It isn't written: after loading it is
    unknown."""
    client_version: int = 0
    """The transaction.version of the client's last request."""

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.epoch)

    @property
    def bumps_epoch(self) -> bool:
        return self.client_version >= V2

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.epoch)


def is_epoch_exhausted(epoch: int) -> bool:
    """True if a client at this epoch can't get another: it needs a new producer id."""
    return epoch >= LAST_CLIENT_EPOCH


def new_transaction(transactional_id: str, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Returns the first value of a transactional id; its producer has no epoch until `next_epoch` assigns one."""
    return Transaction(transactional_id, producer_id, NO_EPOCH, timeout_ms, State.EMPTY, now_ms)


def _check_step(before: Transaction, state: State) -> None:
    assert before.state in FOLLOWS[state], f"{before.transactional_id}: {state.text} cannot follow {before.state.text}"


# A producer comes (InitProducerId)


def next_epoch(transaction: Transaction, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> Transaction:
    """Returns the transaction after its producer starts, or continues after an error with its last epoch (KIP-360).

    A request with the previous epoch is a retry and changes no epoch. Raises PRODUCER_FENCED.
    """
    epoch, last_epoch = transaction.epoch + 1, NO_EPOCH
    if expected_epoch is not None:
        if transaction.epoch in (NO_EPOCH, expected_epoch):
            last_epoch = transaction.epoch
        elif expected_epoch == transaction.last_epoch:
            epoch, last_epoch = transaction.epoch, transaction.last_epoch
        else:
            raise KafkaError(
                ErrorCode.PRODUCER_FENCED,
                f"{transaction.transactional_id}: its producer is at epoch {transaction.epoch}, "
                f"not at {expected_epoch}",
            )
    return _at_rest(transaction, transaction.producer_id, epoch, last_epoch, timeout_ms, now_ms)


def next_producer_id(
    transaction: Transaction, producer_id: int, timeout_ms: int, now_ms: int, *, keep_last_epoch: bool
) -> Transaction:
    """Returns the transaction with another producer id, because the epochs of the last one are exhausted;
    `keep_last_epoch` allows a retry."""
    last_epoch = transaction.epoch if keep_last_epoch else NO_EPOCH
    return _at_rest(transaction, producer_id, 0, last_epoch, timeout_ms, now_ms)


def _at_rest(
    transaction: Transaction, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
) -> Transaction:
    _check_step(transaction, State.EMPTY)
    return transaction._replace(
        state=State.EMPTY,
        producer_id=producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
        previous_producer_id=transaction.producer_id,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        started_ms=NO_TIMESTAMP,
        updated_ms=now_ms,
    )


# A transaction grows


def with_partitions(
    transaction: Transaction, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
) -> Transaction:
    """Returns the transaction with more partitions; the first of them begin it."""
    _check_step(transaction, State.ONGOING)
    return transaction._replace(
        state=State.ONGOING,
        previous_producer_id=transaction.producer_id,
        partitions=transaction.partitions.union(partitions),
        started_ms=now_ms if transaction.state in AT_REST else transaction.started_ms,
        updated_ms=now_ms,
        client_version=client_version,
    )


# A transaction ends


def prepared(
    transaction: Transaction, *, committed: bool, client_version: int, next_producer_id: int, now_ms: int
) -> Transaction:
    """Returns the decided transaction, which is final. Under transactions v2 the epoch is bumped now, so that the
    markers have a higher epoch than any late record; `next_producer_id` is used if the epochs are exhausted."""
    state = State.PREPARE_COMMIT if committed else State.PREPARE_ABORT
    _check_step(transaction, state)
    bumps = client_version >= V2
    return transaction._replace(
        state=state,
        previous_producer_id=transaction.producer_id,
        next_producer_id=next_producer_id,
        epoch=min(transaction.epoch + 1, MAX_EPOCH) if bumps else transaction.epoch,
        last_epoch=transaction.epoch if bumps else transaction.last_epoch,
        updated_ms=now_ms,
        client_version=client_version,
        started_ms=now_ms if transaction.state in AT_REST else transaction.started_ms,
    )


def fenced(transaction: Transaction, version: int, next_producer_id: int, now_ms: int) -> Transaction:
    """Returns the abort of an ongoing transaction, whose producer is fenced.

    `version` is the cluster's transaction.version. Under v2 every end bumps the epoch; before, fencing bumps it.
    """
    epoch = transaction.epoch if version >= V2 else min(transaction.epoch + 1, MAX_EPOCH)
    last_epoch = transaction.last_epoch if version >= V2 else NO_EPOCH
    _check_step(transaction, State.PREPARE_EPOCH_FENCE)
    fence = transaction._replace(
        state=State.PREPARE_EPOCH_FENCE,
        previous_producer_id=transaction.producer_id,
        epoch=epoch,
        last_epoch=last_epoch,
    )
    version = version if version >= V2 else 0
    return prepared(
        fence,
        committed=False,
        client_version=version,
        next_producer_id=next_producer_id,
        now_ms=now_ms,
    )


def completed(transaction: Transaction, now_ms: int) -> Transaction:
    """Returns the transaction after every partition has its marker."""
    state = State.COMPLETE_COMMIT if transaction.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
    producer_id, epoch = after_markers(transaction)
    _check_step(transaction, state)
    return transaction._replace(
        state=state,
        producer_id=producer_id,
        epoch=epoch,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
        updated_ms=now_ms,
    )


def after_markers(ending: Transaction) -> Producer:
    """Returns the producer id and epoch that the client continues with."""
    if ending.bumps_epoch and ending.next_producer_id != NO_PRODUCER_ID:
        return Producer(ending.next_producer_id, 0)
    return ending.producer
