"""A leader's part of Fetch and ListOffsets in the world `follow`, by Kafka's rules and with a real replica."""

from __future__ import annotations

from coordinator.replication.fetcher import LATEST
from coordinator.replication.roles import FollowerFetch
from coordinator.replication.session import PartitionKey
from coordinator.replication.truncation import diverging_epoch
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.simulation.follow_node import NAME, TOPIC_ID, Node

NO_SESSION = 0
MAX_BYTES = 900


def serve_fetch(leader: Node, request: FetchRequest, now_ms: int) -> FetchResponse:
    """Returns the answer to a follower's Fetch, as a step of its session (KIP-227)."""
    follower = request.replica_state.replica_id
    named = {
        PartitionKey(topic.topic_id, partition.partition): partition
        for topic in request.topics
        for partition in topic.partitions
    }
    if request.session_epoch == 0:
        session_id, partitions = follower * 1_000 + leader.broker_epoch, named
        leader.sessions[follower] = (session_id, 1, partitions)
    else:
        session_id, epoch, partitions = leader.sessions.get(follower, (NO_SESSION, 0, {}))
        if session_id != request.session_id:
            return FetchResponse(error_code=int(ErrorCode.FETCH_SESSION_ID_NOT_FOUND), responses=[])
        if epoch != request.session_epoch:
            return FetchResponse(error_code=int(ErrorCode.INVALID_FETCH_SESSION_EPOCH), responses=[])
        partitions.update(named)
        for gone in request.forgotten_topics_data:
            for index in gone.partitions:
                partitions.pop(PartitionKey(gone.topic_id, index), None)
        leader.sessions[follower] = (session_id, epoch + 1, partitions)
    answers = [_read(leader, request, partition, now_ms) for partition in partitions.values()]
    topics = [FetchableTopicResponse(topic_id=TOPIC_ID, partitions=answers)] if answers else []
    return FetchResponse(session_id=session_id, responses=topics)


def _read(leader: Node, request: FetchRequest, fetch: FetchPartition, now_ms: int) -> PartitionData:
    replica = leader.partition
    answer = PartitionData(partition_index=0, error_code=0, high_watermark=-1, records=memoryview(b""))
    try:
        replica.check_leads(fetch.current_leader_epoch)
        if fetch.last_fetched_epoch >= 0:
            end = diverging_epoch(replica, fetch.last_fetched_epoch, fetch.fetch_offset)
            if end is not None:
                answer.diverging_epoch = EpochEndOffset(epoch=end.epoch, end_offset=end.end_offset)
                return answer
        if not replica.log_start_offset <= fetch.fetch_offset <= replica.log_end_offset:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        state = request.replica_state
        noted = FollowerFetch(state.replica_id, state.replica_epoch, fetch.fetch_offset, fetch.log_start_offset, now_ms)
        replica.fetched(noted, fetch.current_leader_epoch)
        parts = replica.read_all(fetch.fetch_offset, MAX_BYTES).parts
    except KafkaError as error:
        answer.error_code = int(error.code)
        return answer
    answer.records = memoryview(b"".join(parts))
    answer.high_watermark, answer.log_start_offset = replica.high_watermark, replica.log_start_offset
    return answer


def serve_offsets(leader: Node, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """Returns the answer to a follower's ListOffsets: the leader's end, or its start."""
    asked_for = request.topics[0].partitions[0]
    answer = ListOffsetsPartitionResponse(partition_index=0, error_code=0)
    try:
        leader.partition.check_leads(asked_for.current_leader_epoch)
        is_end = asked_for.timestamp == LATEST
        answer.offset = leader.partition.log_end_offset if is_end else leader.partition.log_start_offset
    except KafkaError as error:
        answer.error_code = int(error.code)
    return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=NAME.topic, partitions=[answer])])
