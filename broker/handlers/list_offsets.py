"""ListOffsets (2): finds offsets: of a partition's start or end, or of the first record at or after a timestamp.

v0 lists segments' offsets, newest first; v1 gives one offset, exact to the record (KIP-79); v2 adds the isolation level
(KIP-98), v4 leader epochs (KIP-320), v6 is flexible, v7 finds the record with the largest timestamp (KIP-734), v8 the
start of the local log (KIP-405), v9 the end of the tiered one (KIP-1005), v10 a timeout for remote storage (KIP-1075),
v11 the first offset not yet tiered (KIP-1023). Nothing is tiered here: the local log is the log.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each
from broker.replica.partition import Partition
from broker.replica.read_replica import check_readable
from broker.request.authorisation import DESCRIBE_TOPIC
from coordinator.replication.roles import NO_EPOCH
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from storage.segment.offsets_for_time import Looked, Unseen

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
FIRST_VERSION_OF = {MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}
FIRST_NOT_AVAILABLE_VERSION = 5
UNKNOWN = (-1, -1, -1)
"""Timestamp, offset and epoch if no such record exists."""

CONSUMER = -1
"""The replica id of a client; a replica reads up to the log's end."""
DEBUGGER = -2
"""The replica id with which tools read from any replica, not only from the leader (ReplicaVerificationTool)."""


async def list_offsets(call: Call[ListOffsetsRequest]) -> ListOffsetsResponse:
    """Lists offsets. A topic that is named twice is answered once; a partition that is named twice gets
    INVALID_REQUEST, once."""
    if call.version == 0:
        return ListOffsetsResponse(topics=await call.turns().map(partial(list_segments, call), call.request.topics))
    named = Counter((topic.name, p.partition_index) for topic in call.request.topics for p in topic.partitions)
    repeated = {name for name, count in named.items() if count > 1}
    answers: dict[str, dict[int, ListOffsetsPartitionResponse]] = {}
    turns = call.turns()
    for topic in call.request.topics:
        for requested in topic.partitions:
            await turns.next()
            of_topic, index = answers.setdefault(topic.name, {}), requested.partition_index
            if (topic.name, index) in repeated:
                of_topic[index] = failed(index, ErrorCode.INVALID_REQUEST)
            else:
                of_topic[index] = await list_partition(call, topic.name, requested)
    topics = [
        ListOffsetsTopicResponse(name=name, partitions=list(of_topic.values())) for name, of_topic in answers.items()
    ]
    return ListOffsetsResponse(topics=topics)


async def list_partition(
    call: Call[ListOffsetsRequest], topic: str, requested: ListOffsetsPartition
) -> ListOffsetsPartitionResponse:
    try:
        if call.version < FIRST_VERSION_OF.get(requested.timestamp, 0) or requested.timestamp < EARLIEST_PENDING_UPLOAD:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        timestamp, offset, epoch = await find(call, topic, requested)
    except KafkaError as error_raised:
        return failed(requested.partition_index, error_raised.code)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index, error_code=0, timestamp=timestamp, offset=offset, leader_epoch=epoch
    )


async def find(call: Call[ListOffsetsRequest], topic: str, requested: ListOffsetsPartition) -> tuple[int, int, int]:
    """Returns (timestamp, offset, leader epoch) for a timestamp, which may be a special value of this version. A thread
    reads the records; the partition may have another leader afterwards, or be deleted."""
    looked: Looked = {}
    while True:
        partition = asked_replica(call, topic, requested.partition_index, requested.current_leader_epoch)
        try:
            return find_in(call, partition, requested.timestamp, looked)
        except Unseen as unseen:
            looked[unseen.key] = await call.broker.record_work.call(unseen.look)


def asked_replica(call: Call[ListOffsetsRequest], topic: str, index: int, leader_epoch: int = NO_EPOCH) -> Partition:
    """Returns the replica on this broker, which leads unless a debugging tool asks. Raises the errors of
    `Replicas.leader`."""
    replicas = call.broker.replicas
    if call.request.replica_id != DEBUGGER:
        return replicas.leader(topic, index, leader_epoch)
    partition = replicas.partition(topic, index)
    check_readable(partition, leader_epoch)
    return partition


def find_in(
    call: Call[ListOffsetsRequest], partition: Partition, timestamp: int, looked: Looked
) -> tuple[int, int, int]:
    """Returns (timestamp, offset, leader epoch) of one partition. Raises Unseen."""
    is_consumer = call.request.replica_id == CONSUMER
    limit = partition.fetch_limit(call.request.isolation_level) if is_consumer else partition.log_end_offset
    if timestamp == LATEST:
        check_available(call, partition)
        return -1, limit, partition.last_leader_epoch
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, partition.log_start_offset, partition.first_leader_epoch
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return UNKNOWN
    by_time = timestamp != MAX_TIMESTAMP
    record = partition.offset_for_timestamp(timestamp, looked) if by_time else partition.max_timestamp(looked)
    if record is None or record.offset >= limit:
        check_available(call, partition)
        return UNKNOWN
    return record.timestamp, record.offset, -1 if record.leader_epoch is None else record.leader_epoch


def check_available(call: Call[ListOffsetsRequest], partition: Partition) -> None:
    """Raises OFFSET_NOT_AVAILABLE, LEADER_NOT_AVAILABLE before v5, if this leader is new and doesn't know yet which
    records were committed before: offsets that consumers have seen must not go back (KIP-207)."""
    if call.request.replica_id == CONSUMER and partition.is_behind:
        is_known = call.version >= FIRST_NOT_AVAILABLE_VERSION
        raise KafkaError(ErrorCode.OFFSET_NOT_AVAILABLE if is_known else ErrorCode.LEADER_NOT_AVAILABLE)


def list_segments(call: Call[ListOffsetsRequest], topic: ListOffsetsTopic) -> ListOffsetsTopicResponse:
    """Answers version 0: several offsets for each partition, where segments begin."""
    answers = []
    for requested in topic.partitions:
        answer = ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=0)
        try:
            partition = asked_replica(call, topic.name, requested.partition_index)
            if requested.timestamp < 0 and requested.timestamp not in (LATEST, EARLIEST):
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
            offsets = offsets_before(partition, requested.timestamp, call.now_ms)
            answer.old_style_offsets = offsets[: max(requested.max_num_offsets, 0)]
        except KafkaError as error:
            answer.error_code = error.code
        answers.append(answer)
    return ListOffsetsTopicResponse(name=topic.name, partitions=answers)


def offsets_before(partition: Partition, timestamp: int, now_ms: int) -> list[int]:
    """Returns the base offsets of segments that were written up to a time, newest first. The log end offset counts as
    written now."""
    places = partition.segments_written(now_ms)
    if timestamp == EARLIEST:
        return [places[0][0]]
    return [offset for offset, modified_ms in reversed(places) if timestamp == LATEST or modified_ms <= timestamp]


def failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=index, error_code=code)


def named_again(answer: ListOffsetsPartitionResponse) -> ListOffsetsPartitionResponse:
    """Returns the answer to a partition that is named in two parts of a request."""
    return failed(answer.partition_index, ErrorCode.INVALID_REQUEST)


API = Api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    list_offsets,
    authorize=each(DESCRIBE_TOPIC),
    entries=(
        Entries(
            "topics",
            "topics",
            Entries("partitions", "partitions", key="partition_index", repeated=named_again),
            key="name",
        ),
    ),
)
