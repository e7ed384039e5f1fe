"""Tests markers for other brokers: a message has all partitions of a transaction, and each partition gets its own
answer."""

from __future__ import annotations

from broker.shards.marker_requests import MARKERS, MarkerRequest
from coordinator.group.records import EndTransaction
from protocol.codec import decoder, encoder
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import Buffer, TopicPartition

COMMIT, ABORT = EndTransaction(1, 0, True, 7), EndTransaction(2, 3, False, 7)
A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def due(record: EndTransaction, name: TopicPartition) -> MarkerRequest:
    return MarkerRequest(record, 2, name)


BATCH = [due(COMMIT, A0), due(ABORT, A0), due(COMMIT, B0), due(COMMIT, A1)]


def test_a_message_has_each_transaction_once() -> None:
    message = MARKERS.pack(BATCH)
    assert isinstance(message, WriteTxnMarkersRequest)
    assert [
        (marker.producer_id, marker.producer_epoch, marker.transaction_result, marker.coordinator_epoch,
         {topic.name: topic.partition_indexes for topic in marker.topics})
        for marker in message.markers
    ] == [(1, 0, True, 7, {"a": [0, 1], "b": [0]}), (2, 3, False, 7, {"a": [0]})]  # fmt: skip


def test_a_producer_has_one_marker_of_a_partition_in_a_message() -> None:
    newer = due(COMMIT._replace(producer_epoch=1), A0)
    assert MARKERS.key(newer) == MARKERS.key(BATCH[0]) != MARKERS.key(BATCH[1])


def test_each_partition_has_its_answer_and_one_that_is_missing_an_error() -> None:
    def result(producer_id: int, code: ErrorCode) -> WritableTxnMarkerResult:
        partitions = [WritableTxnMarkerPartitionResult(partition_index=0, error_code=code)]
        topics = [WritableTxnMarkerTopicResult(name="a", partitions=partitions)]
        return WritableTxnMarkerResult(producer_id=producer_id, topics=topics)

    response = WriteTxnMarkersResponse(
        markers=[result(1, ErrorCode.NONE), result(2, ErrorCode.TRANSACTION_COORDINATOR_FENCED)]
    )
    answers = MARKERS.unpack(BATCH, response)
    missing = ErrorCode.UNKNOWN_SERVER_ERROR
    codes = [answer.code if isinstance(answer, KafkaError) else answer for answer in answers]
    assert codes == [None, ErrorCode.TRANSACTION_COORDINATOR_FENCED, missing, missing]


def test_a_broker_of_an_older_release_gets_markers_without_a_transaction_version() -> None:
    """In a rolling upgrade, a coordinator that has transaction.version 2 writes markers to older leaders, too."""
    sent = [encoder(WriteTxnMarkersRequest, version) for version in (1, 2)]
    received = []
    for version, encode in enumerate(sent, 1):
        parts: list[Buffer] = []
        encode(MARKERS.pack(BATCH), parts.append)
        data = memoryview(b"".join(parts))
        message, end = decoder(WriteTxnMarkersRequest, version)(data, 0, len(data))
        assert end == len(data)
        assert isinstance(message, WriteTxnMarkersRequest)
        received.append([(marker.producer_id, marker.transaction_version) for marker in message.markers])
    assert received == [[(1, 0), (2, 0)], [(1, 2), (2, 2)]]
