"""OffsetFetch (9): reads the offsets that groups have committed.

v0 reads them from ZooKeeper (with zookeeper.connect, else from where all others are), v1 from the group, v2 requests
all by null and adds the group's error (KIP-88), v3 adds the throttle time, v5 leader epochs (KIP-320), v6 is flexible,
v7 can wait for open transactions (KIP-447), v8 takes several groups (KIP-709), v9 is for members of consumer groups
(KIP-848), v10 names topics by id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from broker.coordinators.translations import OFFSET_FETCHES, seen_by_client, translated
from broker.exchange.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api, Entries
from broker.requests.call import Call
from coordinator.group.offsets.fetch import INVALID_OFFSET, NO_LEADER_EPOCH, fetch
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from protocol.types import NO_UUID

ZOOKEEPER_VERSION = 0
FIRST_NULL_FOR_ALL_VERSION = 2
FIRST_BATCHED_VERSION = 8
FIRST_TOPIC_ID_VERSION = 10

GroupOutcome = asyncio.Future[OffsetFetchResponseGroup] | KafkaError


async def offset_fetch(call: Call[OffsetFetchRequest]) -> OffsetFetchResponse:
    """Fetches the offsets of all groups at once."""
    groups = call.request.groups if call.version >= FIRST_BATCHED_VERSION else [single(call.request)]
    unknown = [resolve_names(call, group) for group in groups]
    answers = [begin_fetch(call, group) for group in groups]
    if pending := [answer for answer in answers if not isinstance(answer, KafkaError) and not answer.done()]:
        await asyncio.wait(pending)
    return response(call, groups, answers, unknown)


def single(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """Returns the one group of older versions."""
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics = [
        OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes) for one in request.topics
    ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def resolve_names(call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Sets the names of topics that are requested by id; returns the answers of those that are not there."""
    if call.version < FIRST_TOPIC_ID_VERSION or group.topics is None:
        return []
    unknown, existing = [], []
    for topic in group.topics:
        topic_image = call.broker.image.topic_by_id(topic.topic_id)
        if topic_image is None:
            unknown.append(failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = topic_image.name
            existing.append(topic)
    group.topics = existing
    return unknown


def begin_fetch(call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup) -> GroupOutcome:
    store = call.broker.zookeeper_offsets
    if call.version == ZOOKEEPER_VERSION and store is not None:
        return asyncio.ensure_future(store.fetch(group))
    try:
        return call.broker.groups.decide(group.group_id, fetch, group, call.request.require_stable)
    except KafkaError as error:
        return error


def response(
    call: Call[OffsetFetchRequest],
    groups: Sequence[OffsetFetchRequestGroup],
    outcomes: Sequence[GroupOutcome],
    unknown: Sequence[list[OffsetFetchResponseTopics]],
) -> OffsetFetchResponse:
    fitting = partial(answer_group, call)
    answers = [fitting(*parts) for parts in zip(groups, outcomes, unknown, strict=True)]
    if call.version >= FIRST_BATCHED_VERSION:
        return OffsetFetchResponse(groups=answers)
    (only,) = answers
    return OffsetFetchResponse(error_code=only.error_code, topics=[single_group_topic(topic) for topic in only.topics])


def answer_group(
    call: Call[OffsetFetchRequest],
    group: OffsetFetchRequestGroup,
    outcome: GroupOutcome,
    unknown: list[OffsetFetchResponseTopics],
) -> OffsetFetchResponseGroup:
    error = outcome if isinstance(outcome, KafkaError) else outcome.exception()
    if isinstance(error, KafkaError):
        return failed_group(call, group, translated(seen_by_client(error).code, OFFSET_FETCHES))
    assert not isinstance(outcome, KafkaError)
    answer = outcome.result()
    call.count(sum(len(topic.partitions) for topic in answer.topics))
    if call.version >= FIRST_TOPIC_ID_VERSION:
        answer.topics = with_ids(call, answer.topics)
    answer.topics += unknown
    return answer


def with_ids(
    call: Call[OffsetFetchRequest], topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Returns the topics with their ids, without those that are not there any more."""
    image = call.broker.image
    for topic in topics:
        if topic.topic_id == NO_UUID:
            topic_image = image.topic(topic.name)
            topic.topic_id = NO_UUID if topic_image is None else topic_image.topic_id
    return [topic for topic in topics if topic.topic_id != NO_UUID]


def failed_group(
    call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """Returns a group's own error, or that of each partition when a version has no place for it."""
    if call.version >= FIRST_NULL_FOR_ALL_VERSION:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code)
    topics = [failed(topic, code) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def failed(topic: OffsetFetchRequestTopics, code: ErrorCode) -> OffsetFetchResponseTopics:
    partitions = [
        OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=INVALID_OFFSET,
            committed_leader_epoch=NO_LEADER_EPOCH,
            metadata="",
            error_code=code,
        )
        for index in topic.partition_indexes
    ]
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def single_group_topic(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=partition.partition_index,
            committed_offset=partition.committed_offset,
            committed_leader_epoch=partition.committed_leader_epoch,
            metadata=partition.metadata,
            error_code=partition.error_code,
        )
        for partition in topic.partitions
    ]
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


API = Api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    offset_fetch,
    by_handler(DESCRIBE_GROUP, DESCRIBE_TOPIC),
    entries=(Entries("groups", "groups"), Entries("topics", "topics", "partition_indexes", "partitions")),
)
