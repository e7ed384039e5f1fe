"""The guards of share groups: as those of consumer groups, and READ on the topics whose records are acquired."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from broker.exchange.authorisation import DELETE_GROUP, DESCRIBE_GROUP, DESCRIBE_TOPIC, READ_GROUP, READ_TOPIC
from broker.guards.shapes import GROUP_DENIED, TOPIC_DENIED, description, membership, split
from broker.handlers import share_group_heartbeat as heartbeat_handler
from broker.requests.api import Handle
from broker.requests.call import Call
from protocol.messages import alter_share_group_offsets as alter
from protocol.messages import delete_share_group_offsets as delete
from protocol.messages import describe_share_group_offsets as describe
from protocol.messages import share_group_describe as group_describe
from protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from protocol.types import NO_UUID


def topics_of(member: group_describe.Member) -> Iterator[str]:
    """Yields the topics of a member: those that it subscribes to, and has."""
    yield from member.subscribed_topic_names
    yield from (topic.topic_name for topic in member.assignment.topic_partitions)


share_group_heartbeat: Final = membership(heartbeat_handler.failed)
share_group_describe: Final = description(group_describe.DescribedGroup, topics_of)


async def share_fetch(call: Call[ShareFetchRequest], handle: Handle) -> ShareFetchResponse:
    """Lets members fetch; of each topic the handler asks, since a session has more than the request names."""
    if not call.may(READ_GROUP, call.request.group_id or ""):
        return ShareFetchResponse(
            error_code=GROUP_DENIED.code,
            error_message=GROUP_DENIED.message,
            acquisition_lock_timeout_ms=0,
            responses=[],
            node_endpoints=[],
        )
    response: ShareFetchResponse = await handle(call)
    return response


async def share_acknowledge(call: Call[ShareAcknowledgeRequest], handle: Handle) -> ShareAcknowledgeResponse:
    """Lets members acknowledge; of each topic the handler asks."""
    if not call.may(READ_GROUP, call.request.group_id or ""):
        return ShareAcknowledgeResponse(
            error_code=GROUP_DENIED.code, error_message=GROUP_DENIED.message, responses=[], node_endpoints=[]
        )
    response: ShareAcknowledgeResponse = await handle(call)
    return response


async def describe_share_group_offsets(
    call: Call[describe.DescribeShareGroupOffsetsRequest], handle: Handle
) -> describe.DescribeShareGroupOffsetsResponse:
    """Describes the offsets of topics of which one may know; all that one may know for a group without a list."""
    requested = call.request.groups
    permitted = await call.permitted(DESCRIBE_GROUP, (group.group_id for group in requested))
    denied_topics = {}
    call.request.groups = [group for group in requested if group.group_id in permitted]
    for group in call.request.groups:
        if group.topics is not None:
            group.topics, denied = await split(call, DESCRIBE_TOPIC, group.topics, lambda topic: topic.topic_name)
            denied_topics[group.group_id] = denied
    response: describe.DescribeShareGroupOffsetsResponse = await handle(call)
    turns = call.turns()
    for answer in response.groups:
        names = await call.permitted(DESCRIBE_TOPIC, (topic.topic_name for topic in answer.topics), quiet=True)
        answer.topics = [topic for topic in answer.topics if topic.topic_name in names]
        answer.topics += await turns.map(_undescribed_topic, denied_topics.get(answer.group_id, []))
    response.groups += await turns.map(
        _undescribed_group, [group for group in requested if group.group_id not in permitted]
    )
    return response


def _undescribed_group(
    group: describe.DescribeShareGroupOffsetsRequestGroup,
) -> describe.DescribeShareGroupOffsetsResponseGroup:
    return describe.DescribeShareGroupOffsetsResponseGroup(
        group_id=group.group_id, topics=[], error_code=GROUP_DENIED.code, error_message=GROUP_DENIED.message
    )


def _undescribed_topic(
    topic: describe.DescribeShareGroupOffsetsRequestTopic,
) -> describe.DescribeShareGroupOffsetsResponseTopic:
    partitions = [
        describe.DescribeShareGroupOffsetsResponsePartition(
            partition_index=index,
            start_offset=-1,
            leader_epoch=0,
            error_code=TOPIC_DENIED.code,
            error_message=TOPIC_DENIED.message,
        )
        for index in topic.partitions
    ]
    return describe.DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, topic_id=NO_UUID, partitions=partitions
    )


async def alter_share_group_offsets(
    call: Call[alter.AlterShareGroupOffsetsRequest], handle: Handle
) -> alter.AlterShareGroupOffsetsResponse:
    request = call.request
    if not call.may(READ_GROUP, request.group_id):
        return alter.AlterShareGroupOffsetsResponse(
            error_code=GROUP_DENIED.code, error_message=GROUP_DENIED.message, responses=[]
        )
    request.topics, denied = await split(call, READ_TOPIC, request.topics, lambda topic: topic.topic_name)
    response: alter.AlterShareGroupOffsetsResponse = await handle(call)
    response.responses += await call.turns().map(_unaltered_topic, denied)
    return response


def _unaltered_topic(
    topic: alter.AlterShareGroupOffsetsRequestTopic,
) -> alter.AlterShareGroupOffsetsResponseTopic:
    partitions = [
        alter.AlterShareGroupOffsetsResponsePartition(
            partition_index=partition.partition_index,
            error_code=TOPIC_DENIED.code,
            error_message=TOPIC_DENIED.message,
        )
        for partition in topic.partitions
    ]
    return alter.AlterShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name, topic_id=NO_UUID, partitions=partitions
    )


async def delete_share_group_offsets(
    call: Call[delete.DeleteShareGroupOffsetsRequest], handle: Handle
) -> delete.DeleteShareGroupOffsetsResponse:
    request = call.request
    if not call.may(DELETE_GROUP, request.group_id):
        return delete.DeleteShareGroupOffsetsResponse(
            error_code=GROUP_DENIED.code, error_message=GROUP_DENIED.message, responses=[]
        )
    request.topics, denied = await split(call, READ_TOPIC, request.topics, lambda topic: topic.topic_name)
    response: delete.DeleteShareGroupOffsetsResponse = await handle(call)
    response.responses += await call.turns().map(_undeleted_topic, denied)
    return response


def _undeleted_topic(
    topic: delete.DeleteShareGroupOffsetsRequestTopic,
) -> delete.DeleteShareGroupOffsetsResponseTopic:
    return delete.DeleteShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        topic_id=NO_UUID,
        error_code=TOPIC_DENIED.code,
        error_message=TOPIC_DENIED.message,
    )
