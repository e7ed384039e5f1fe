"""Verifies that a transaction has a partition before its records are appended (KIP-890).

Producers of transactions v1 have added the partition before, which the coordinator verifies; for producers of v2 it
adds the partition now. If this broker is the coordinator there is no wait, and the records are appended inside the
socket's callback as others are; otherwise the other broker is asked over the network. Source:
ReplicaManager.handleProduceAppend, AddPartitionsToTxnManager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from broker.clock import pause
from broker.shards.translations import (
    PRODUCERS_BEFORE_KIP_588,
    PRODUCES,
    PRODUCES_OF_OLD_TRANSACTIONS,
    translated,
)
from coordinator.transaction.transaction import V2, Producer
from protocol.errors import ErrorCode, KafkaError
from protocol.lazy import lazy
from protocol.records.batch import BatchHeader
from protocol.types import TopicPartition
from storage.producers.entry import Verification

if TYPE_CHECKING:
    from broker.dispatch.broker import Broker
    from broker.shards import add_partitions_requests
else:  # with the first transaction of a coordinator elsewhere
    add_partitions_requests = lazy("broker.shards.add_partitions_requests")


class Supports(Enum):
    """The errors and features that the client supports, by the version of its Produce or TxnOffsetCommit."""

    OLD_ERRORS = "INVALID_TXN_STATE where a partition was not added"
    ABORTABLE = "TRANSACTION_ABORTABLE instead"
    ADDING = "partitions are added by writing to them"

    @classmethod
    def of(cls, version: int, first_abortable: int, first_adding: int) -> Supports:
        """Returns the client's support, by the request's version and the first versions of each feature."""
        if version >= first_adding:
            return cls.ADDING
        return cls.ABORTABLE if version >= first_abortable else cls.OLD_ERRORS


Errors: TypeAlias = Mapping[TopicPartition, KafkaError]


class Verified(NamedTuple):
    """For each partition the error of its records, or the guard that they need; most need neither."""

    errors: Errors
    guards: Mapping[TopicPartition, Verification]

    def guard_of(self, name: TopicPartition) -> Verification | None:
        """Returns the guard for a partition's records. Raises the KafkaError of the records."""
        error = self.errors.get(name)
        if error is not None:
            raise error
        return self.guards.get(name)


NOTHING = Verified({}, {})


def all_failed(names: Iterable[TopicPartition], error: KafkaError) -> Verified:
    """Returns one error for all these partitions."""
    return Verified(dict.fromkeys(names, error), {})


def start_verification(
    broker: Broker, batches: Mapping[TopicPartition, BatchHeader], supports: Supports, now_ms: int
) -> Verified:
    """Returns guards for batches that begin a transaction in their partition, and errors for batches of an older
    epoch."""
    errors: dict[TopicPartition, KafkaError] = {}
    guards: dict[TopicPartition, Verification] = {}
    adds = supports is Supports.ADDING
    for name, header in batches.items():
        try:
            partition = broker.replicas.leader(*name)
            guard = partition.start_verification(header, supports_epoch_bump=adds, now_ms=now_ms)
        except KafkaError as error:
            errors[name] = error.detached()
            continue
        if guard is not None:
            guards[name] = guard
    return Verified(errors, guards)


async def verify(
    broker: Broker,
    transactional_id: str,
    batches: Mapping[TopicPartition, BatchHeader],
    supports: Supports,
    now_ms: int,
) -> Verified:
    """Verifies all batches of a request, which are of one producer."""
    if supports is not Supports.ADDING and not broker.config.transaction_partition_verification_enable:
        return NOTHING
    started = start_verification(broker, batches, supports, now_ms)
    if not started.guards:
        return started
    header = next(iter(batches.values()))
    producer = Producer(header.producer_id, header.producer_epoch)
    errors = await add_or_verify(broker, transactional_id, producer, tuple(started.guards), supports)
    if not errors:
        return started
    guards = {name: guard for name, guard in started.guards.items() if name not in errors}
    produced = {name: _as_produced(error, supports) for name, error in errors.items()}
    return Verified({**started.errors, **produced}, guards)


def _as_produced(error: KafkaError, supports: Supports) -> KafkaError:
    """Returns the coordinator's error as a producer expects it from Produce."""
    code = (PRODUCES if supports is Supports.ADDING else PRODUCES_OF_OLD_TRANSACTIONS).get(error.code)
    if code is None:
        return error
    return KafkaError(
        code, f"Unable to verify the partition has been added to the transaction. Underlying error: {error.code.name}"
    )


async def check_joined(
    broker: Broker, transactional_id: str, producer: Producer, name: TopicPartition, supports: Supports
) -> None:
    """Verifies or adds the partition of a group's offsets to the producer's transaction, unless the transaction is open
    there already. Raises KafkaError."""
    if supports is not Supports.ADDING and not broker.config.transaction_partition_verification_enable:
        return
    if broker.replicas.leader(*name).is_in_transaction(*producer):
        return
    errors = await add_or_verify(broker, transactional_id, producer, (name,), supports)
    if name in errors:
        raise errors[name]


def _begin(
    broker: Broker, transactional_id: str, producer: Producer, names: Collection[TopicPartition], supports: Supports
) -> asyncio.Future[frozenset[TopicPartition]] | asyncio.Future[None]:
    if supports is Supports.ADDING:
        return broker.transactions.add_partitions(transactional_id, producer, names, V2)
    return broker.transactions.verify_partitions(transactional_id, producer, names)


async def _asked_elsewhere(
    broker: Broker,
    coordinator_id: int,
    transactional_id: str,
    producer: Producer,
    names: Collection[TopicPartition],
    supports: Supports,
) -> Errors:
    """Adds or verifies the partitions at another broker. Raises KafkaError if it didn't answer."""
    verify_only = supports is not Supports.ADDING
    query = add_partitions_requests.PartitionQuery(transactional_id, producer, tuple(names), verify_only)
    try:
        codes = await broker.anywhere.submit(coordinator_id, add_partitions_requests.ADD_PARTITIONS, query)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION and verify_only:
            return {}  # the coordinator can't verify it, as before KIP-890
        raise
    if ErrorCode.CONCURRENT_TRANSACTIONS in codes.values():
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {name: _error_of(code, supports) for name, code in codes.items() if code is not ErrorCode.NONE}


def _error_of(code: ErrorCode, supports: Supports) -> KafkaError:
    """Returns another broker's error as the client supports it."""
    if code is ErrorCode.TRANSACTION_ABORTABLE:
        return _not_added(supports)
    return _as_fenced(KafkaError(code))


async def _added_or_verified(
    broker: Broker, transactional_id: str, producer: Producer, names: Collection[TopicPartition], supports: Supports
) -> Errors:
    """Asks the coordinator once, on any broker: without a wait if it is this broker. Raises KafkaError."""
    coordinator_id = broker.transactions.elsewhere(broker.transactions.partition_of(transactional_id))
    if coordinator_id is not None:
        return await _asked_elsewhere(broker, coordinator_id, transactional_id, producer, names, supports)
    return _not_in(names, await _begin(broker, transactional_id, producer, names, supports), supports)


async def add_or_verify(
    broker: Broker, transactional_id: str, producer: Producer, names: Collection[TopicPartition], supports: Supports
) -> Errors:
    """Adds or verifies the partitions at the coordinator; returns the errors of the partitions that may not be written
    to.

    While the coordinator is still ending the id's last transaction, this retries for a while: the client has ended that
    already, and continues with the next.
    """
    config, clock = broker.config, broker.clock
    give_up_ms = clock.monotonic_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
    while True:
        try:
            return await _added_or_verified(broker, transactional_id, producer, names, supports)
        except KafkaError as error:
            is_ending = error.code is ErrorCode.CONCURRENT_TRANSACTIONS and supports is Supports.ADDING
            if not is_ending or clock.monotonic_ms() >= give_up_ms:
                return dict.fromkeys(names, _as_fenced(error))
        await pause(clock, config.add_partitions_to_txn_retry_backoff_ms)


def _not_in(
    names: Collection[TopicPartition], verified: frozenset[TopicPartition] | None, supports: Supports
) -> Errors:
    """Returns the errors of the partitions that are not part of the transaction; `verified` has the partitions that
    are, None if all are."""
    if verified is None or len(verified) == len(names):
        return {}
    error = _not_added(supports)
    return {name: error for name in names if name not in verified}


def _not_added(supports: Supports) -> KafkaError:
    code = ErrorCode.INVALID_TXN_STATE if supports is Supports.OLD_ERRORS else ErrorCode.TRANSACTION_ABORTABLE
    return KafkaError(code, "Partition was not added to the transaction")


def _as_fenced(error: KafkaError) -> KafkaError:
    """Returns INVALID_PRODUCER_EPOCH for PRODUCER_FENCED, which producers expect only from their coordinator."""
    return KafkaError(translated(error.code, PRODUCERS_BEFORE_KIP_588), error.message)
