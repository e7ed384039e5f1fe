"""Sends WriteTxnMarkers to the leaders of transactions' partitions, with many transactions' markers in one request.

Source: TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from broker.coordinators.batcher import Batcher
from broker.coordinators.neighbours import Neighbours
from protocol.errors import ErrorCode, error_code
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition

if TYPE_CHECKING:  # imported with the first request: a node that is alone sends none
    from coordinator.transaction.markers import Markers

Codes: TypeAlias = Mapping[TopicPartition, ErrorCode]
"""Each partition's error, NONE if it has its marker."""


class DueMarkers(NamedTuple):
    """A transaction's markers for partitions that one other broker leads."""

    markers: Markers
    coordinator_epoch: int


class MarkerRequests:
    """Batches markers to other brokers, by broker and producer."""

    def __init__(self, neighbours: Neighbours) -> None:
        self._neighbours = neighbours
        self._batcher: Batcher[int, DueMarkers, Codes] = Batcher("transaction markers", self._send)

    def submit(self, broker_id: int, due: DueMarkers) -> asyncio.Future[Codes]:
        """Returns the future of the partitions' codes; it raises KafkaError if the broker didn't answer."""
        return self._batcher.submit(broker_id, due.markers.producer_id, due)

    def stop(self) -> None:
        """Sends no more requests."""
        self._batcher.stop()
        self._neighbours.stop()

    async def _send(self, broker_id: int, batch: Sequence[DueMarkers]) -> list[Codes]:
        request = WriteTxnMarkersRequest(markers=[writable(due) for due in batch])
        codes = by_producer(await self._neighbours.send(broker_id, request, WriteTxnMarkersResponse))
        return [codes_of(due.markers, codes.get(due.markers.producer_id, {})) for due in batch]


def writable(due: DueMarkers) -> WritableTxnMarker:
    """Returns the markers as WriteTxnMarkers encodes them."""
    markers, coordinator_epoch = due
    topics: dict[str, list[int]] = {}
    for topic, partition in markers.partitions:
        topics.setdefault(topic, []).append(partition)
    return WritableTxnMarker(
        producer_id=markers.producer_id,
        producer_epoch=markers.epoch,
        transaction_result=markers.committed,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=indexes) for topic, indexes in topics.items()],
        coordinator_epoch=coordinator_epoch,
        transaction_version=markers.transaction_version,
    )


def by_producer(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    """Returns the codes of a response by producer id."""
    codes: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for result in response.markers:
        of_producer = codes.setdefault(result.producer_id, {})
        for topic in result.topics:
            for partition in topic.partitions:
                of_producer[TopicPartition(topic.name, partition.partition_index)] = error_code(partition.error_code)
    return codes


def codes_of(markers: Markers, answered: Codes) -> Codes:
    """Returns the codes of these markers; partitions that are missing in the response get UNKNOWN_SERVER_ERROR."""
    return {name: answered.get(name, ErrorCode.UNKNOWN_SERVER_ERROR) for name in markers.partitions}
