"""AddPartitionsToTxn to the broker that coordinates a transactional id, for producers that write here (KIP-890).

Source: AddPartitionsToTxnManager.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from broker.shards.anywhere import Packing
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from protocol.types import TopicPartition

if TYPE_CHECKING:  # imported with the first request: a node that is alone sends none
    from coordinator.transaction.transaction import Producer


Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]
"""Each partition's error, NONE if it is part of the transaction."""


class PartitionQuery(NamedTuple):
    """Partitions here that a producer writes to, in a transaction of the transactional id."""

    transactional_id: str
    producer: Producer
    names: tuple[TopicPartition, ...]
    verify_only: bool
    """True to ask whether the partitions are part of the transaction; False to add them."""


def packed(batch: Sequence[PartitionQuery]) -> AddPartitionsToTxnRequest:
    """Returns the queries as AddPartitionsToTxn encodes them."""
    return AddPartitionsToTxnRequest(transactions=[transaction_of(query) for query in batch])


def unpacked(batch: Sequence[PartitionQuery], response: AddPartitionsToTxnResponse) -> list[Codes]:
    """Returns the codes of each query's partitions. Raises KafkaError if the broker rejected all of the request."""
    if response.error_code:
        raise rejection(error_code(response.error_code))
    if not response.results_by_transaction:
        message = "the coordinator's broker does not support AddPartitionsToTxn v4, which verifies partitions"
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, message)
    codes = by_transaction(response)
    return [codes_of(query, codes.get(query.transactional_id, {})) for query in batch]


def rejection(code: ErrorCode) -> KafkaError:
    """Returns the error of a request that the coordinator's broker rejected. A producer can't act on this broker's
    missing authorization: for the producer, its transaction isn't verified."""
    return KafkaError(ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code)


def transaction_of(query: PartitionQuery) -> AddPartitionsToTxnTransaction:
    """Returns the query as AddPartitionsToTxn encodes it."""
    topics: dict[str, list[int]] = {}
    for topic, partition in query.names:
        topics.setdefault(topic, []).append(partition)
    return AddPartitionsToTxnTransaction(
        transactional_id=query.transactional_id,
        producer_id=query.producer.producer_id,
        producer_epoch=query.producer.epoch,
        verify_only=query.verify_only,
        topics=[AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in topics.items()],
    )


def by_transaction(response: AddPartitionsToTxnResponse) -> dict[str, dict[TopicPartition, ErrorCode]]:
    """Returns the codes of a response by transactional id."""
    return {
        result.transactional_id: {
            TopicPartition(topic.name, partition.partition_index): error_code(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }


def codes_of(query: PartitionQuery, answered: Codes) -> Codes:
    """Returns the codes of these partitions. A partition that is missing in the answer gets NETWORK_EXCEPTION, after
    which the producer tries again: it isn't known to be part of the transaction."""
    return {name: answered.get(name, ErrorCode.NETWORK_EXCEPTION) for name in query.names}


ADD_PARTITIONS: Final = Packing(
    "add-partitions-to-txn", packed, AddPartitionsToTxnResponse, unpacked, lambda query: query.transactional_id
)
