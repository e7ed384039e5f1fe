"""WriteTxnMarkers (27): ends transactions in this broker's partitions, for a coordinator or an administrator.

Brokers send it to each other; kafka-transactions abort sends it for a transaction that hangs (KIP-664). v1 is flexible,
v2 has the marker's transaction.version, which distinguishes a late marker from a repeated one (KIP-1228).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

from broker.coordinators.markers import Marker, marker_of
from broker.exchange.authorisation import ALTER_CLUSTER, CLUSTER_ACTION_CLUSTER
from broker.exchange.turns import Turns, batches
from broker.requests.api import Api
from broker.requests.call import Call
from broker.requests.rules import unless, whole
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
    """Appends all markers before it waits for any commit, so that a partition with slow replicas does not delay the
    others."""
    commits: list[asyncio.Task[None]] = []
    turns = call.turns()
    try:
        markers = [await begin(call, turns, marker, commits) for marker in call.request.markers]
        for commit in commits:
            await turns.next()
            await commit
    finally:  # if the client is gone, the markers stay in the logs, and nothing waits for their replicas
        for commit in commits:
            commit.cancel()
    return WriteTxnMarkersResponse(markers=await by_producer(turns, markers))


async def begin(
    call: Call[WriteTxnMarkersRequest], turns: Turns, requested: WritableTxnMarker, commits: list[asyncio.Task[None]]
) -> WritableTxnMarkerResult:
    record = EndTransaction(
        requested.producer_id, requested.producer_epoch, requested.transaction_result, requested.coordinator_epoch
    )
    marker = marker_of(record, requested.transaction_version, call.now_ms)
    topics: list[WritableTxnMarkerTopicResult] = []
    for topic in requested.topics:
        mark = partial(begin_one, call, marker, commits, topic.name)
        partitions = await turns.map(mark, list(dict.fromkeys(topic.partition_indexes)))
        topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
    return WritableTxnMarkerResult(producer_id=requested.producer_id, topics=topics)


async def by_producer(turns: Turns, markers: Iterable[WritableTxnMarkerResult]) -> list[WritableTxnMarkerResult]:
    """Returns each producer, topic and partition once, with the result of the last marker; a producer without
    partitions is left out."""
    results: dict[int, dict[str, dict[int, WritableTxnMarkerPartitionResult]]] = {}
    for marker in markers:
        for topic in marker.topics:
            for some in batches(topic.partitions):
                await turns.next()
                partitions = results.setdefault(marker.producer_id, {}).setdefault(topic.name, {})
                partitions.update((partition.partition_index, partition) for partition in some)
    answers: list[WritableTxnMarkerResult] = []
    for producer_id, topics in results.items():
        answers.append(WritableTxnMarkerResult(producer_id=producer_id, topics=[]))
        for name, partitions in topics.items():
            await turns.next()
            answers[-1].topics.append(WritableTxnMarkerTopicResult(name=name, partitions=list(partitions.values())))
    return answers


def begin_one(
    call: Call[WriteTxnMarkersRequest], marker: Marker, commits: list[asyncio.Task[None]], topic: str, index: int
) -> WritableTxnMarkerPartitionResult:
    """Appends a marker and returns the partition's answer; adds the commit to wait for to `commits`."""
    result = WritableTxnMarkerPartitionResult(partition_index=index, error_code=ErrorCode.NONE)
    try:
        wait = call.broker.marker_writer.begin(TopicPartition(topic, index), marker)
    except KafkaError as error:
        result.error_code = error.code
    else:
        if wait is not None:
            commits.append(asyncio.get_running_loop().create_task(note_commit(result, wait)))
    return result


async def note_commit(result: WritableTxnMarkerPartitionResult, wait: Coroutine[Any, Any, None]) -> None:
    try:
        await wait
    except KafkaError as error:
        result.error_code = error.code


API = Api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    write_txn_markers,
    authorize=unless(ALTER_CLUSTER, whole(CLUSTER_ACTION_CLUSTER)),
)
