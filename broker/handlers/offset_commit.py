"""OffsetCommit (8): stores the offsets that a member of a group, or a standalone consumer, commits.

v0 stores offsets in ZooKeeper (without zookeeper.connect, where later versions do), v1 adds member, generation and a
client timestamp, v2 to v4 a retention time, v3 the throttle time, v6 leader epochs (KIP-320), v7 static
members (KIP-345), v8 is flexible, v9 is for members of consumer groups (KIP-848), v10 names topics by id.
"""

from __future__ import annotations

from typing import Final

from broker.dispatch.absent_partitions import merged, take_absent
from broker.dispatch.api import Api, Entries
from broker.dispatch.call import Call
from broker.dispatch.group_client import client_of
from broker.dispatch.rejection import rejected
from broker.dispatch.rules import each, in_order, named_since, of_group, whole
from broker.request.authorisation import READ_GROUP, READ_TOPIC
from coordinator.group.offsets.commit import commit
from protocol.errors import KafkaError
from protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
)
from protocol.schema import since

FIRST_TOPIC_ID_VERSION: Final = since(OffsetCommitRequestTopic, "topic_id")
ZOOKEEPER_VERSION: Final = 0


async def offset_commit(call: Call[OffsetCommitRequest]) -> OffsetCommitResponse:
    """Answers partitions that don't exist, and gets the answer for the rest from the group's shard."""
    request = call.request
    by_id = call.version >= FIRST_TOPIC_ID_VERSION
    request.topics, absent = take_absent(call, request.topics, OffsetCommitResponseTopic, by_id=by_id)
    if not request.topics:
        return OffsetCommitResponse(topics=merged(absent, []))
    try:
        store = call.broker.zookeeper_offsets if call.version == ZOOKEEPER_VERSION else None
        if store is None:
            response = await call.broker.groups.submit(request.group_id, commit, request, client_of(call))
        else:
            response = await store.commit(request)
    except KafkaError as error:
        topics = [rejected(OffsetCommitResponseTopic, call.version, error, topic) for topic in request.topics]
        response = OffsetCommitResponse(topics=topics)
    response.topics = merged(absent, response.topics)
    return response


API = Api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    offset_commit,
    authorize=in_order(whole(READ_GROUP, of_group), each(READ_TOPIC, name_of=named_since(FIRST_TOPIC_ID_VERSION))),
    entries=(Entries("topics", "topics", Entries("partitions", "partitions")),),
)
