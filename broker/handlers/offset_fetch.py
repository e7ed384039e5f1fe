"""OffsetFetch (9): reads the offsets that groups have committed.

v0 reads them from ZooKeeper (without zookeeper.connect, from where later versions do), v1 from the group, v2 requests
all by null and adds the group's error (KIP-88), v3 adds the throttle time, v5 leader epochs (KIP-320), v6 is flexible,
v7 can wait for open transactions (KIP-447), v8 takes several groups (KIP-709), v9 is for members of consumer groups
(KIP-848), v10 names topics by id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from broker.dispatch.api import Api, Entries, Handle
from broker.dispatch.call import Call
from broker.dispatch.rules import add_rejections, as_requested, denial, named_since, of_group, own, reject, split
from broker.request.authorisation import DESCRIBE_GROUP, DESCRIBE_TOPIC
from broker.shards.translations import OFFSET_FETCHES, seen_by_client, translated
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
from protocol.schema import nullable_since, since
from protocol.types import NO_UUID

ZOOKEEPER_VERSION = 0
FIRST_NULL_FOR_ALL_VERSION = nullable_since(OffsetFetchRequest, "topics")
FIRST_BATCHED_VERSION = since(OffsetFetchRequest, "groups")
FIRST_TOPIC_ID_VERSION = since(OffsetFetchRequestTopics, "topic_id")

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
    """Returns the only group of a request in an older version."""
    if request.topics is None:
        return OffsetFetchRequestGroup(group_id=request.group_id, topics=None)
    topics = [
        OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics
    ]
    return OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)


def resolve_names(call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Sets the names of topics that are requested by id; returns the answers of topics that don't exist."""
    if call.version < FIRST_TOPIC_ID_VERSION or group.topics is None:
        return []
    unknown, existing = [], []
    for topic in group.topics:
        topic_image = call.topic_by_id(topic.topic_id)
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
        return call.broker.groups.submit(group.group_id, fetch, group, call.request.require_stable)
    except KafkaError as error:
        return error.detached()


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
    """Returns the topics with their ids, without topics that no longer exist."""
    image = call.broker.image
    for topic in topics:
        if topic.topic_id == NO_UUID:
            topic_image = image.topic(topic.name)
            topic.topic_id = NO_UUID if topic_image is None else topic_image.topic_id
    return [topic for topic in topics if topic.topic_id != NO_UUID]


def failed_group(
    call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup, code: ErrorCode
) -> OffsetFetchResponseGroup:
    """Returns a group with an error: its own error or, in a version without that field, the error of each partition."""
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


# Authorization


async def permitted_offsets(call: Call[OffsetFetchRequest], handle: Handle) -> object:
    """Authorizes the client for each group, then for each of its topics; without a list of topics, denied topics are
    left out."""
    request = call.request
    if call.version < FIRST_BATCHED_VERSION:
        return await permitted_offsets_of_one(call, handle)
    requested = request.groups
    permitted, denied = await split(call, DESCRIBE_GROUP, requested, of_group)
    denied_topics = [await take_denied(call, group) for group in permitted]
    request.groups = permitted
    response: OffsetFetchResponse = await handle(call)
    for group, answer, topics in zip(permitted, response.groups, denied_topics, strict=True):
        if group.topics is None:
            answer.topics = await describable(call, answer.topics)
        elif not answer.error_code:
            answer.topics += topics
    await add_rejections(call, response, "groups", denied, denial(DESCRIBE_GROUP))
    response.groups = as_requested(requested, [*permitted, *denied], response.groups)
    return response


async def permitted_offsets_of_one(call: Call[OffsetFetchRequest], handle: Handle) -> object:
    """Answers older versions, which name one group."""
    request = call.request
    if not call.may(DESCRIBE_GROUP, request.group_id):
        return await reject(call, denial(DESCRIBE_GROUP))
    if request.topics is None:
        every: OffsetFetchResponse = await handle(call)
        names = await call.permitted(DESCRIBE_TOPIC, (topic.name for topic in every.topics), quiet=True)
        every.topics = [topic for topic in every.topics if topic.name in names]
        return every
    request.topics, denied = await split(call, DESCRIBE_TOPIC, request.topics, lambda topic: topic.name)
    response: OffsetFetchResponse = await handle(call)
    if not response.error_code:
        await add_rejections(call, response, "topics", denied, denial(DESCRIBE_TOPIC))
    return response


async def take_denied(
    call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Removes the topics that the client may not describe from a group, and returns their answers."""
    if group.topics is None:
        return []
    name_of = partial(named_since(FIRST_TOPIC_ID_VERSION), call)
    group.topics, denied = await split(call, DESCRIBE_TOPIC, group.topics, name_of)
    return await call.turns().map(lambda topic: failed(topic, denial(DESCRIBE_TOPIC).code), denied)


async def describable(
    call: Call[OffsetFetchRequest], topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Returns the topics of a group that the client may describe."""
    names = {topic.topic_id: topic_image.name for topic in topics if (topic_image := call.topic_by_id(topic.topic_id))}
    named = [(topic, topic.name or names.get(topic.topic_id, "")) for topic in topics]
    permitted = await call.permitted(DESCRIBE_TOPIC, (name for _, name in named), quiet=True)
    return [topic for topic, name in named if name in permitted]


TOPICS = Entries("topics", "topics", Entries("partition_indexes", "partitions"))
API = Api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    offset_fetch,
    authorize=own(permitted_offsets, DESCRIBE_GROUP, DESCRIBE_TOPIC),
    entries=(Entries("groups", "groups", TOPICS), TOPICS),
)
