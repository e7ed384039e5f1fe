"""Transactions: lists and describes them, finds hanging ones, and aborts them."""

from __future__ import annotations

from typing import Final

from cli.times import show_time
from commands.client.cluster_client import ClusterClient, CoordinatorKind, leaders, outcome
from commands.errors import CommandError, explain, raise_if
from commands.printing import Row
from protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse, TopicRequest
from protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from protocol.messages.metadata import MetadataResponseTopic
from protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from protocol.types import TopicPartition

MARKER_VERSION: Final = 1
"""The WriteTxnMarkers version for a transaction that its coordinator no longer has, as kafka-transactions uses it."""


async def transaction_rows(cluster: ClusterClient) -> list[Row]:
    """Returns a row for each transactional id, and for each coordinator that can't list its own."""
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    rows: list[Row] = []
    for node, answer in (await cluster.every(request, ListTransactionsResponse)).items():
        if isinstance(answer, CommandError) or answer.error_code:
            error = str(answer) if isinstance(answer, CommandError) else explain(answer.error_code)
            rows.append({"id": None, "coordinator": node, "error": error})
            continue
        rows += [
            {
                "id": transaction.transactional_id,
                "state": transaction.transaction_state,
                "producer": transaction.producer_id,
                "coordinator": node,
            }
            for transaction in answer.transaction_states
        ]
    return sorted(rows, key=lambda row: str(row["id"] or ""))


async def described_transaction(cluster: ClusterClient, name: str) -> Row:
    """Returns a row with the transaction of a transactional id, or with the error of one that can't be described."""
    state = await outcome(_describe(cluster, name))
    if isinstance(state, CommandError):
        return {"id": name, "error": state.message}
    return {
        "id": name,
        "state": state.transaction_state,
        "producer": state.producer_id,
        "epoch": state.producer_epoch,
        "timeout_ms": state.transaction_timeout_ms,
        "started": show_time(state.transaction_start_time_ms),
        "partitions": [f"{topic.topic}-{index}" for topic in state.topics for index in topic.partitions],
    }


async def _describe(cluster: ClusterClient, name: str) -> TransactionState:
    answer = await cluster.coordinated(
        CoordinatorKind.TRANSACTION,
        name,
        DescribeTransactionsRequest(transactional_ids=[name]),
        DescribeTransactionsResponse,
        code=lambda answer: answer.transaction_states[0].error_code,
    )
    raise_if(f"transactional id {name}", answer.transaction_states[0].error_code)
    return answer.transaction_states[0]


async def hanging_rows(
    cluster: ClusterClient, topics: list[str] | None, age_ms: int, *, skip_leaderless: bool = False
) -> list[Row]:
    """Returns transactions that are open in a partition for longer than `age_ms`, and that no coordinator has open
    there. Skips a partition without a leader, or raises CommandError."""
    open_rows = [
        row
        for topic in await cluster.topics(topics)
        for row in await open_transactions(cluster, topic, skip_leaderless=skip_leaderless)
    ]
    before_ms = cluster.clock.now_ms() - age_ms
    old = [row for row in open_rows if isinstance(row["last_write_ms"], int) and row["last_write_ms"] < before_ms]
    if not old:
        return []
    places = await _coordinated_places(cluster)
    return [
        row
        for row in old
        if (row["producer"], TopicPartition(str(row["topic"]), int(str(row["partition"])))) not in places
    ]


async def _coordinated_places(cluster: ClusterClient) -> set[tuple[object, TopicPartition]]:
    """Returns the producers and partitions of all open transactions of the coordinators."""
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    answers = await cluster.every(request, ListTransactionsResponse)
    names = []
    for answer in answers.values():
        if isinstance(answer, CommandError):
            raise answer  # without it, a transaction that it coordinates would seem to hang
        names += [transaction.transactional_id for transaction in answer.transaction_states]
    states = await cluster.together(_describe(cluster, name) for name in names)
    return {
        (state.producer_id, TopicPartition(topic.topic, index))
        for state in states
        for topic in state.topics
        for index in topic.partitions
    }


async def open_transactions(
    cluster: ClusterClient, topic: MetadataResponseTopic, *, skip_leaderless: bool = False
) -> list[Row]:
    """Returns a row for each open transaction in a topic's partitions, read from their leaders."""
    rows = await producer_rows(cluster, topic, skip_leaderless=skip_leaderless)
    return [row for row in rows if isinstance(start := row["start_offset"], int) and start >= 0]


async def producer_rows(
    cluster: ClusterClient, topic: MetadataResponseTopic, *, skip_leaderless: bool = False
) -> list[Row]:
    """Returns a row for each idempotent or transactional producer of a topic's partitions, read from their leaders.
    `start_offset` is -1 without an open transaction."""
    rows: list[Row] = []
    for leader, partitions in leaders(topic, skip_leaderless=skip_leaderless).items():
        indexes = [partition.partition_index for partition in partitions]
        request = DescribeProducersRequest(topics=[TopicRequest(name=topic.name or "", partition_indexes=indexes)])
        answer = await cluster.node(leader, request, DescribeProducersResponse)
        for partition in (partition for entry in answer.topics for partition in entry.partitions):
            raise_if(f"{topic.name}-{partition.partition_index}", partition.error_code, partition.error_message)
            rows += [
                {
                    "topic": topic.name,
                    "partition": partition.partition_index,
                    "producer": producer.producer_id,
                    "epoch": producer.producer_epoch,
                    "start_offset": producer.current_txn_start_offset,
                    "coordinator_epoch": producer.coordinator_epoch,
                    "last_sequence": producer.last_sequence,
                    "last_write_ms": producer.last_timestamp,
                    "last_write": show_time(producer.last_timestamp),
                }
                for producer in partition.active_producers
            ]
    return rows


async def abort_transaction(cluster: ClusterClient, leader: int, row: Row) -> Row:
    """Aborts an open transaction, a row of `open_transactions`, on the leader of its partition. Returns the result."""
    marker = WritableTxnMarker(
        producer_id=int(str(row["producer"])),
        producer_epoch=int(str(row["epoch"])),
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=str(row["topic"]), partition_indexes=[int(str(row["partition"]))])],
        coordinator_epoch=max(int(str(row["coordinator_epoch"])), 0),
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    answer = await cluster.node(leader, request, WriteTxnMarkersResponse, max_version=MARKER_VERSION)
    shown = {key: row[key] for key in ("topic", "partition", "producer")}
    codes = [
        partition.error_code for entry in answer.markers for topic in entry.topics for partition in topic.partitions
    ]
    error = next((explain(code) for code in codes if code), None)
    return {**shown, "error": error} if error else {**shown, "result": "aborted"}
