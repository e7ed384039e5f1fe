"""OffsetCommit (8): stores the offsets that a member of a group, or a standalone consumer, commits.

v0 stores offsets in ZooKeeper (without zookeeper.connect, where later versions do), v1 adds member, generation and a
client timestamp, v2 to v4 a retention time, v3 the throttle time, v6 leader epochs (KIP-320), v7 static
members (KIP-345), v8 is flexible, v9 is for members of consumer groups (KIP-848), v10 names topics by id.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rules import each, in_order, named_since, of_group, whole
from broker.request.authorisation import READ_GROUP, READ_TOPIC
from broker.shards.answering import merged
from coordinator.group.offsets.commit import commit
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from protocol.schema import since

NAME_AND_ID = attrgetter("name", "topic_id")
FIRST_TOPIC_ID_VERSION: Final = since(OffsetCommitRequestTopic, "topic_id")
ZOOKEEPER_VERSION: Final = 0


async def offset_commit(call: Call[OffsetCommitRequest]) -> OffsetCommitResponse:
    """Answers partitions that don't exist, and has the group's shard answer the rest."""
    request = call.request
    unknown: list[OffsetCommitResponseTopic] = []
    request.topics = [
        topic for requested in request.topics if (topic := existing(call, requested, unknown)) is not None
    ]
    if not request.topics:
        return OffsetCommitResponse(topics=merged(unknown, [], NAME_AND_ID))
    try:
        store = call.broker.zookeeper_offsets if call.version == ZOOKEEPER_VERSION else None
        if store is None:
            response = await call.broker.groups.submit(request.group_id, commit, request, client_of(call))
        else:
            response = await store.commit(request)
    except KafkaError as error:
        response = OffsetCommitResponse(topics=[failed(topic, error.code) for topic in request.topics])
    response.topics = merged(unknown, response.topics, NAME_AND_ID)
    return response


def existing(
    call: Call[OffsetCommitRequest], topic: OffsetCommitRequestTopic, unknown: list[OffsetCommitResponseTopic]
) -> OffsetCommitRequestTopic | None:
    """Returns the topic with its name, its id and the partitions that exist, None if none does; adds the others to
    `unknown`."""
    by_id = call.version >= FIRST_TOPIC_ID_VERSION
    image = call.broker.image
    topic_image = call.topic_by_id(topic.topic_id) if by_id else image.topic(topic.name)
    if topic_image is None:
        unknown.append(failed(topic, ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        return None
    topic.name, topic.topic_id = topic_image.name, topic_image.topic_id
    absent = [partition for partition in topic.partitions if partition.partition_index not in topic_image.partitions]
    if absent:
        part = OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=absent)
        unknown.append(failed(part, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        topic.partitions = [
            partition for partition in topic.partitions if partition.partition_index in topic_image.partitions
        ]
    return topic if topic.partitions else None


def failed(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    partitions = [
        OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
        for partition in topic.partitions
    ]
    return OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


API = Api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    offset_commit,
    authorize=in_order(whole(READ_GROUP, of_group), each(READ_TOPIC, name_of=named_since(FIRST_TOPIC_ID_VERSION))),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
