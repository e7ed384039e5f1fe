"""A Fetch response as a message for the codec: in every version, and with every field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from broker.fetch.partition import FetchedPartition
from broker.fetch.request import ParsedFetch
from broker.request.leaders import nodes
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode
from protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from protocol.types import NO_UUID

FIRST_LEADER_VERSION: Final = 16
ERRORS_WITH_LEADER: Final = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER})


def response(
    image: Image, listener: str, request: ParsedFetch, session_id: int, answers: Sequence[FetchedPartition]
) -> FetchResponse:
    """Returns the response."""
    topics: list[FetchableTopicResponse] = []
    add_answers(topics, request, answers)
    return FetchResponse(
        session_id=session_id, responses=topics, node_endpoints=leader_endpoints(image, listener, request, topics)
    )


def add_answers(
    topics: list[FetchableTopicResponse], request: ParsedFetch, answers: Sequence[FetchedPartition]
) -> None:
    """Adds answers to the topics of a response. Adjacent partitions of a topic share one entry of the topic."""
    last: FetchedPartition | None = None
    for answer in answers:
        if not (is_of_last(topics, request, answer) if last is None else answer.key == last.key):
            topics.append(topic_response(request, answer))
        topics[-1].partitions.append(partition_data(answer, request.version))
        last = answer


def is_of_last(topics: list[FetchableTopicResponse], request: ParsedFetch, answer: FetchedPartition) -> bool:
    """True if the last topic of a response is the answer's."""
    if not topics:
        return False
    if request.uses_topic_ids:
        return topics[-1].topic_id == answer.key
    return answer.name is not None and topics[-1].topic == answer.name.topic


def topic_response(request: ParsedFetch, answer: FetchedPartition) -> FetchableTopicResponse:
    """Returns the entry of the answer's topic, named as in the request."""
    if request.uses_topic_ids:
        return FetchableTopicResponse(topic="", topic_id=answer.key, partitions=[])
    assert answer.name is not None
    return FetchableTopicResponse(topic=answer.name.topic, topic_id=NO_UUID, partitions=[])


def partition_data(answer: FetchedPartition, version: int) -> PartitionData:
    """Returns the entry of one partition."""
    result = PartitionData(
        partition_index=answer.index,
        error_code=answer.error_code,
        high_watermark=answer.high_watermark,
        last_stable_offset=answer.last_stable_offset,
        log_start_offset=answer.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=answer.preferred,
        records=answer.records,
    )
    if answer.aborted is not None:
        result.aborted_transactions = [
            AbortedTransaction(producer_id=txn.producer_id, first_offset=txn.first_offset) for txn in answer.aborted
        ]
    if answer.diverging is not None:
        result.diverging_epoch = EpochEndOffset(epoch=answer.diverging.epoch, end_offset=answer.diverging.end_offset)
    leader = answer.leader
    if leader is not None and leader.code in ERRORS_WITH_LEADER and version >= FIRST_LEADER_VERSION:
        result.current_leader = LeaderIdAndEpoch(leader_id=leader.leader_id, leader_epoch=leader.leader_epoch)
    return result


def leader_endpoints(
    image: Image, listener: str, request: ParsedFetch, topics: Iterable[FetchableTopicResponse]
) -> list[NodeEndpoint]:
    """Returns the endpoints of the leaders in the answer, which save a consumer a Metadata request (KIP-951)."""
    if request.replica is not None:
        return []
    leaders = {part.current_leader.leader_id for topic in topics for part in topic.partitions if part.error_code}
    if not leaders:
        return []
    return [
        NodeEndpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
        for node in nodes(image, listener, leaders)
    ]
