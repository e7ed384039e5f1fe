"""WriteTxnMarkers to the leaders of transactions' partitions, with many transactions' markers in one message.

Source: TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.shards.anywhere import Packing
from protocol.errors import ErrorCode, KafkaError, error_code
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition

if TYPE_CHECKING:  # imported with the first request: a node that is alone sends none
    from coordinator.group.records import EndTransaction


class MarkerRequest(NamedTuple):
    """A transaction's marker for a partition that another broker leads."""

    record: EndTransaction
    transaction_version: int
    name: TopicPartition


class MarkerKey(NamedTuple):
    """The key of a marker's answer."""

    producer_id: int
    name: TopicPartition


def key_of(due: MarkerRequest) -> MarkerKey:
    return MarkerKey(due.record.producer_id, due.name)


def packed(batch: Sequence[MarkerRequest]) -> WriteTxnMarkersRequest:
    """Returns the markers as WriteTxnMarkers encodes them: the partitions of a transaction together."""
    transactions: dict[tuple[EndTransaction, int], dict[str, list[int]]] = {}
    for record, transaction_version, (topic, partition) in batch:
        topics = transactions.setdefault((record, transaction_version), {})
        topics.setdefault(topic, []).append(partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=record.producer_id,
                producer_epoch=record.producer_epoch,
                transaction_result=record.committed,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
                ],
                coordinator_epoch=record.coordinator_epoch,
                transaction_version=transaction_version,
            )
            for (record, transaction_version), topics in transactions.items()
        ]
    )


def unpacked(batch: Sequence[MarkerRequest], response: WriteTxnMarkersResponse) -> list[KafkaError | None]:
    """Returns None for each partition that has its marker, otherwise its error; UNKNOWN_SERVER_ERROR for a partition
    that is missing in the response."""
    codes = {
        MarkerKey(result.producer_id, TopicPartition(topic.name, partition.partition_index)): partition.error_code
        for result in response.markers
        for topic in result.topics
        for partition in topic.partitions
    }
    answers = (error_code(codes.get(key_of(due), ErrorCode.UNKNOWN_SERVER_ERROR)) for due in batch)
    return [None if code is ErrorCode.NONE else KafkaError(code) for code in answers]


MARKERS: Final = Packing("txn-marker-sender", packed, WriteTxnMarkersResponse, unpacked, key_of)
