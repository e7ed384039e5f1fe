"""WriteTxnMarkers (27): ends transactions in this broker's partitions, for a coordinator or an administrator.

Brokers send it to each other; kafka-transactions abort sends it for a transaction that hangs (KIP-664). v1 is flexible,
v2 has the marker's transaction.version, which distinguishes a late marker from a repeated one (KIP-1228).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from broker.coordinators.markers import Marker, marker_of
from broker.exchange.authorisation import ALTER_CLUSTER, CLUSTER_ACTION_CLUSTER, by_handler
from broker.exchange.turns import Turns
from broker.requests.api import Api
from broker.requests.call import Call
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
    """Begins all markers before it waits for any: a partition whose replicas lag holds up no other."""
    waiting: list[Coroutine[Any, Any, None]] = []
    turns = call.turns()
    try:
        markers = [await begin(call, turns, marker, waiting) for marker in call.request.markers]
    except BaseException:  # the client is gone; its markers are in the logs, and nobody waits for their replicas
        for wait in waiting:
            wait.close()
        raise
    await asyncio.gather(*waiting)
    return WriteTxnMarkersResponse(markers=by_producer(markers))


async def begin(
    call: Call[WriteTxnMarkersRequest],
    turns: Turns,
    requested: WritableTxnMarker,
    waiting: list[Coroutine[Any, Any, None]],
) -> WritableTxnMarkerResult:
    record = EndTransaction(
        requested.producer_id, requested.producer_epoch, requested.transaction_result, requested.coordinator_epoch
    )
    marker = marker_of(record, requested.transaction_version, call.now_ms)
    topics: list[WritableTxnMarkerTopicResult] = []
    for topic in requested.topics:
        names = [TopicPartition(topic.name, index) for index in dict.fromkeys(topic.partition_indexes)]
        partitions = await turns.map(lambda name: begin_one(call, name, marker, waiting), names)
        topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
    return WritableTxnMarkerResult(producer_id=requested.producer_id, topics=topics)


def by_producer(markers: Iterable[WritableTxnMarkerResult]) -> list[WritableTxnMarkerResult]:
    """Returns each producer, topic and partition once, with the result of the last marker; a producer without
    partitions is left out."""
    results: dict[int, dict[str, dict[int, WritableTxnMarkerPartitionResult]]] = {}
    for marker in markers:
        for topic in marker.topics:
            if topic.partitions:
                partitions = results.setdefault(marker.producer_id, {}).setdefault(topic.name, {})
                partitions.update((partition.partition_index, partition) for partition in topic.partitions)
    return [
        WritableTxnMarkerResult(
            producer_id=producer_id,
            topics=[
                WritableTxnMarkerTopicResult(name=name, partitions=list(partitions.values()))
                for name, partitions in topics.items()
            ],
        )
        for producer_id, topics in results.items()
    ]


def begin_one(
    call: Call[WriteTxnMarkersRequest],
    name: TopicPartition,
    marker: Marker,
    waiting: list[Coroutine[Any, Any, None]],
) -> WritableTxnMarkerPartitionResult:
    """Appends a marker and returns the partition's answer; adds the commit to wait for to `waiting`."""
    result = WritableTxnMarkerPartitionResult(partition_index=name.partition, error_code=ErrorCode.NONE)
    try:
        wait = call.broker.marker_writer.begin(name, marker)
    except KafkaError as error:
        result.error_code = error.code
    else:
        if wait is not None:
            waiting.append(note_commit(result, wait))
    return result


async def note_commit(result: WritableTxnMarkerPartitionResult, wait: Coroutine[Any, Any, None]) -> None:
    try:
        await wait
    except KafkaError as error:
        result.error_code = error.code


REQUIRES = by_handler(ALTER_CLUSTER, CLUSTER_ACTION_CLUSTER)
API = Api(WriteTxnMarkersRequest, WriteTxnMarkersResponse, write_txn_markers, REQUIRES)
