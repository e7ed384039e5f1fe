"""OffsetFetch (9): the offsets that groups have committed.

v0 read them from ZooKeeper (here they are where all others are), v1 from the group, v2 asks for all by null and has a
group's own error (KIP-88), v3 adds the throttle time, v5 leader epochs (KIP-320), v6 is flexible, v7 can wait for open
transactions (KIP-447), v8 asks for several groups (KIP-709), v9 is for members of consumer groups (KIP-848), v10 names
topics by id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from broker.coordinators.translations import OFFSET_FETCHES, seen_by_client, translated
from broker.exchange.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC, by_handler
from broker.requests.api import Api
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

FIRST_NULL_FOR_ALL_VERSION = 2
FIRST_BATCHED_VERSION = 8
FIRST_TOPIC_ID_VERSION = 10

Asked = asyncio.Future[OffsetFetchResponseGroup] | KafkaError


async def offset_fetch(call: Call[OffsetFetchRequest]) -> OffsetFetchResponse:
    """Every group is asked at once."""
    groups = call.request.groups if call.version >= FIRST_BATCHED_VERSION else [single(call.request)]
    unknown = [named(call, group) for group in groups]
    asked = [ask(call, group) for group in groups]
    if pending := [each for each in asked if not isinstance(each, KafkaError) and not each.done()]:
        await asyncio.wait(pending)
    return response(call, groups, asked, unknown)


def single(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The one group of older versions."""
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    wanted = [
        OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes) for one in request.topics
    ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=wanted)


def named(call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Finds the names of topics that are asked for by id; the answers of those that are not there."""
    if call.version < FIRST_TOPIC_ID_VERSION or group.topics is None:
        return []
    unknown, known = [], []
    for topic in group.topics:
        found = call.broker.image.topic_by_id(topic.topic_id)
        if found is None:
            unknown.append(failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = found.name
            known.append(topic)
    group.topics = known
    return unknown


def ask(call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup) -> Asked:
    try:
        return call.broker.groups.decide(group.group_id, fetch, group, call.request.require_stable)
    except KafkaError as error:
        return error


def response(
    call: Call[OffsetFetchRequest],
    groups: Sequence[OffsetFetchRequestGroup],
    asked: Sequence[Asked],
    unknown: Sequence[list[OffsetFetchResponseTopics]],
) -> OffsetFetchResponse:
    fitting = partial(answer_group, call)
    answers = [fitting(*each) for each in zip(groups, asked, unknown, strict=True)]
    if call.version >= FIRST_BATCHED_VERSION:
        return OffsetFetchResponse(groups=answers)
    (only,) = answers
    return OffsetFetchResponse(error_code=only.error_code, topics=[old_form(topic) for topic in only.topics])


def answer_group(
    call: Call[OffsetFetchRequest],
    group: OffsetFetchRequestGroup,
    asked: Asked,
    unknown: list[OffsetFetchResponseTopics],
) -> OffsetFetchResponseGroup:
    error = asked if isinstance(asked, KafkaError) else asked.exception()
    if isinstance(error, KafkaError):
        return refused(call, group, translated(seen_by_client(error).code, OFFSET_FETCHES))
    assert not isinstance(asked, KafkaError)
    answer = asked.result()
    if call.version >= FIRST_TOPIC_ID_VERSION:
        answer.topics = with_ids(call, answer.topics)
    answer.topics += unknown
    return answer


def with_ids(
    call: Call[OffsetFetchRequest], topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """The topics with their ids, without those that are not there any more."""
    image = call.broker.image
    for topic in topics:
        if topic.topic_id == NO_UUID:
            found = image.topic(topic.name)
            topic.topic_id = NO_UUID if found is None else found.topic_id
    return [topic for topic in topics if topic.topic_id != NO_UUID]


def refused(
    call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """A group's own error, or that of each partition where a version has no place for it."""
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


def old_form(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = [
        OffsetFetchResponsePartition(
            partition_index=each.partition_index,
            committed_offset=each.committed_offset,
            committed_leader_epoch=each.committed_leader_epoch,
            metadata=each.metadata,
            error_code=each.error_code,
        )
        for each in topic.partitions
    ]
    return OffsetFetchResponseTopic(name=topic.name, partitions=partitions)


API = Api(OffsetFetchRequest, OffsetFetchResponse, offset_fetch, by_handler(DESCRIBE_GROUP, DESCRIBE_TOPIC))
