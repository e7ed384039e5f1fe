"""OffsetForLeaderEpoch (23): finds the end offset of a leader epoch, by which a client detects a truncated log.

v1 adds the leader epoch to the answer, v2 the client's current epoch and the throttle time (KIP-320), v3 the replica
id, v4 is flexible.
"""

from __future__ import annotations

from functools import partial

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.rules import each, unless
from broker.request.authorisation import CLUSTER_ACTION_CLUSTER, DESCRIBE_TOPIC
from protocol.errors import KafkaError
from protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def offset_for_leader_epoch(call: Call[OffsetForLeaderEpochRequest]) -> OffsetForLeaderEpochResponse:
    turns = call.turns()
    topics = [
        OffsetForLeaderTopicResult(
            topic=topic.topic, partitions=await turns.map(partial(end_of, call, topic.topic), topic.partitions)
        )
        for topic in call.request.topics
    ]
    return OffsetForLeaderEpochResponse(topics=topics)


def end_of(call: Call[OffsetForLeaderEpochRequest], topic: str, requested: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = call.broker.replicas.leader(topic, requested.partition, requested.current_leader_epoch)
    except KafkaError as error_raised:
        return EpochEndOffset(error_code=error_raised.code, partition=requested.partition, end_offset=-1)
    epoch, end_offset = partition.end_of_epoch(requested.leader_epoch)
    return EpochEndOffset(error_code=0, partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)


API = Api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    offset_for_leader_epoch,
    authorize=unless(CLUSTER_ACTION_CLUSTER, each(DESCRIBE_TOPIC, name_of=lambda _, topic: topic.topic)),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
