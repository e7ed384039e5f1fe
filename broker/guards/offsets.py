"""The guards of committed offsets: of the group first, then of each topic (READ to commit, DESCRIBE to fetch)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from broker.exchange.authorisation import (
    DELETE_GROUP,
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    READ_TOPIC,
    WRITE_TRANSACTIONAL_ID,
)
from broker.guards.shapes import split
from broker.handlers import offset_commit as offset_commit_handler
from broker.handlers import offset_fetch as offset_fetch_handler
from broker.handlers import txn_offset_commit as txn_offset_commit_handler
from broker.requests.api import Handle
from broker.requests.call import Call
from coordinator.cluster.image import Image
from protocol.errors import ErrorCode
from protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse
from protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)
from protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponseTopic,
)

GROUP_DENIED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED

Q = TypeVar("Q")


def commit_name(
    call: Call[Q], first_id_version: int
) -> Callable[[OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic], str | None]:
    """Returns what finds the name of a topic in a request that may name it by id."""
    image: Image = call.broker.image
    if call.version < first_id_version:
        return lambda topic: topic.name

    def name_of(topic: OffsetCommitRequestTopic | TxnOffsetCommitRequestTopic) -> str | None:
        topic_image = image.topic_by_id(topic.topic_id)
        return None if topic_image is None else topic_image.name

    return name_of


async def offset_commit(call: Call[OffsetCommitRequest], handle: Handle) -> OffsetCommitResponse:
    request = call.request
    if not call.may(READ_GROUP, request.group_id):
        refused = await call.turns().map(
            lambda topic: offset_commit_handler.failed(topic, GROUP_DENIED), request.topics
        )
        return OffsetCommitResponse(topics=refused)
    name_of = commit_name(call, offset_commit_handler.FIRST_TOPIC_ID_VERSION)
    request.topics, denied = await split(call, READ_TOPIC, request.topics, name_of)
    response: OffsetCommitResponse = await handle(call)
    response.topics += await call.turns().map(lambda topic: offset_commit_handler.failed(topic, TOPIC_DENIED), denied)
    return response


async def txn_offset_commit(call: Call[TxnOffsetCommitRequest], handle: Handle) -> TxnOffsetCommitResponse:
    request, turns = call.request, call.turns()

    def failed(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
        return txn_offset_commit_handler.failed(topic, topic.partitions, code)

    code = None
    if not call.may(WRITE_TRANSACTIONAL_ID, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not call.may(READ_GROUP, request.group_id):
        code = GROUP_DENIED
    if code is not None:
        return TxnOffsetCommitResponse(topics=await turns.map(partial(failed, code=code), request.topics))
    name_of = commit_name(call, txn_offset_commit_handler.FIRST_TOPIC_ID_VERSION)
    request.topics, denied = await split(call, READ_TOPIC, request.topics, name_of)
    response: TxnOffsetCommitResponse = await handle(call)
    response.topics += await turns.map(partial(failed, code=TOPIC_DENIED), denied)
    return response


async def offset_fetch(call: Call[OffsetFetchRequest], handle: Handle) -> OffsetFetchResponse:
    """Fetches the offsets of the groups, and of the topics in them, that the client may describe."""
    request, handler = call.request, offset_fetch_handler
    if call.version < handler.FIRST_BATCHED_VERSION:
        return await single_group(call, handle)
    groups, denied_topics = request.groups, {}
    permitted = await call.permitted(DESCRIBE_GROUP, (group.group_id for group in groups))
    request.groups = [group for group in groups if group.group_id in permitted]
    for group in request.groups:
        denied_topics[group.group_id] = await take_denied(call, group)
    every = {group.group_id for group in request.groups if group.topics is None}
    response: OffsetFetchResponse = await handle(call)
    for answer in response.groups:
        if answer.group_id in every:
            answer.topics = await describable(call, answer.topics)
        elif not answer.error_code:
            answer.topics += denied_topics[answer.group_id]
    response.groups += await call.turns().map(
        lambda group: OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=GROUP_DENIED),
        [group for group in groups if group.group_id not in permitted],
    )
    return response


async def single_group(call: Call[OffsetFetchRequest], handle: Handle) -> OffsetFetchResponse:
    """Answers older versions, which name one group."""
    request, handler = call.request, offset_fetch_handler
    group = handler.single(request)
    if not call.may(DESCRIBE_GROUP, group.group_id):
        failure = handler.failed_group(call, group, GROUP_DENIED)
        topics = [handler.single_group_topic(topic) for topic in failure.topics]
        return OffsetFetchResponse(error_code=failure.error_code, topics=topics)
    denied = await take_denied(call, group)
    if request.topics is not None:
        names = {topic.name for topic in group.topics or ()}
        request.topics = [topic for topic in request.topics if topic.name in names]
    response: OffsetFetchResponse = await handle(call)
    if request.topics is None:
        names = await call.permitted(DESCRIBE_TOPIC, (topic.name for topic in response.topics), quiet=True)
        response.topics = [topic for topic in response.topics if topic.name in names]
    elif not response.error_code:
        response.topics += [handler.single_group_topic(topic) for topic in denied]
    return response


async def take_denied(
    call: Call[OffsetFetchRequest], group: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Removes the topics that the client may not describe from a group, and returns their answers."""
    if group.topics is None:
        return []
    image = call.broker.image
    by_id = call.version >= offset_fetch_handler.FIRST_TOPIC_ID_VERSION
    names = {
        topic.topic_id: topic_image.name for topic in group.topics if (topic_image := image.topic_by_id(topic.topic_id))
    }
    group.topics, denied = await split(
        call, DESCRIBE_TOPIC, group.topics, lambda topic: names.get(topic.topic_id) if by_id else topic.name
    )
    return await call.turns().map(lambda topic: offset_fetch_handler.failed(topic, TOPIC_DENIED), denied)


async def describable(
    call: Call[OffsetFetchRequest], topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Returns those of a group's topics of which the client may know."""
    names = {
        topic.topic_id: topic_image.name
        for topic in topics
        if (topic_image := call.broker.image.topic_by_id(topic.topic_id))
    }
    named = [(topic, topic.name or names.get(topic.topic_id, "")) for topic in topics]
    permitted = await call.permitted(DESCRIBE_TOPIC, (name for _, name in named), quiet=True)
    return [topic for topic, name in named if name in permitted]


async def offset_delete(call: Call[OffsetDeleteRequest], handle: Handle) -> OffsetDeleteResponse:
    request = call.request
    if not call.may(DELETE_GROUP, request.group_id):
        return OffsetDeleteResponse(error_code=GROUP_DENIED, topics=[])
    request.topics, denied = await split(call, READ_TOPIC, request.topics, lambda topic: topic.name)
    response: OffsetDeleteResponse = await handle(call)
    if not response.error_code:
        response.topics += [
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=TOPIC_DENIED)
                    for partition in topic.partitions
                ],
            )
            for topic in denied
        ]
    return response
