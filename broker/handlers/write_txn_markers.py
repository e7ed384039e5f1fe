"""WriteTxnMarkers (27): a transaction coordinator, or an administrator, ends transactions in partitions of this broker.

Brokers send it to each other; kafka-transactions abort sends it for a transaction that hangs (KIP-664). v1 is flexible,
v2 says of which transaction.version the marker is, so that a late one is told from a repeated one (KIP-1228).
"""

from __future__ import annotations

from broker.coordinators.markers import Marker, marker_of, write_marker
from broker.dispatch import Api, Call
from coordinator.group.records import EndTransaction
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition


async def write_txn_markers(call: Call[WriteTxnMarkersRequest]) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(markers=[await written(call, each) for each in call.request.markers])


async def written(call: Call[WriteTxnMarkersRequest], wanted: WritableTxnMarker) -> WritableTxnMarkerResult:
    record = EndTransaction(
        wanted.producer_id, wanted.producer_epoch, wanted.transaction_result, wanted.coordinator_epoch
    )
    marker = marker_of(record, wanted.transaction_version, call.now_ms)
    topics = [
        WritableTxnMarkerTopicResult(
            name=topic.name,
            partitions=[
                await ended(call, TopicPartition(topic.name, index), marker) for index in topic.partition_indexes
            ],
        )
        for topic in wanted.topics
    ]
    return WritableTxnMarkerResult(producer_id=wanted.producer_id, topics=topics)


async def ended(
    call: Call[WriteTxnMarkersRequest], name: TopicPartition, marker: Marker
) -> WritableTxnMarkerPartitionResult:
    code = ErrorCode.NONE
    try:
        await write_marker(call.broker, name, marker)
    except KafkaError as error:
        code = error.code
    return WritableTxnMarkerPartitionResult(partition_index=name.partition, error_code=code)


API = Api(WriteTxnMarkersRequest, WriteTxnMarkersResponse, write_txn_markers)
